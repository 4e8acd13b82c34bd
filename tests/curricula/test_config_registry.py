import json

import pytest

import stepladder.curricula
from stepladder.curricula import (
    AdvantageBanditConfig,
    AncestorProgressConfig,
    AutoConfig,
    CurriculumConfig,
    DemotionRule,
    FrontierConfig,
    LearnabilityConfig,
    LearningProgressConfig,
    LevelReplayConfig,
    Mixed,
    Mixing,
    MixtureConfig,
    Phase,
    PhasedConfig,
    Ramp,
    Stage,
    StagedConfig,
    UniformConfig,
)
from stepladder.curricula.registry import CURRICULA
from stepladder.errors import ConfigError
from stepladder.tasks import Task

STAGED = StagedConfig(
    stages=(Stage(name="easy", threshold=0.5), Stage(name="hard", labels=("a", "b"))),
    early=None,
    mixing=Mixing(table=((0.3, 0.5),), source="all_earlier"),
    demotion=DemotionRule(threshold=0.1),
    confidence_z=1.0,
)

EXAMPLES = [
    UniformConfig(exploration=0.25),
    AutoConfig(features=("x",)),
    FrontierConfig(probing=0.2, features=("x", "place.y"), trial_episodes=7),
    LearningProgressConfig(noise_z=None, signal="return", return_high=3.0),
    AncestorProgressConfig.seed_defaults(),
    LearnabilityConfig(exponent=2),
    LevelReplayConfig(transform="softmax", score_weight=0.5),
    AdvantageBanditConfig(scored_by="deviation", bonus=0.0),
    MixtureConfig(weights={"a": 1.0, "b": 3.0}),
    STAGED,
    PhasedConfig(
        phases=(
            Phase(name="shoot", mixture={"a": 2.0}, episodes=10),
            Phase(name="climb", curriculum=STAGED, success=0.75),
            Phase(
                name="both",
                curriculum=PhasedConfig(phases=(Phase(name="inner", curriculum=FrontierConfig()),)),
                settings={
                    "plain": {"values": 3},
                    "opponent": Mixed(("weak", "strong"), (0.25, 0.75)),
                    "reward.shaping": Ramp(start=1.0, end=0.0, ramp_episodes=5),
                },
            ),
        )
    ),
]


@pytest.mark.parametrize("config", EXAMPLES, ids=lambda config: type(config).__name__)
def test_a_config_comes_back_from_its_json_unchanged(config: CurriculumConfig) -> None:
    text = json.dumps(config.to_json())
    assert CurriculumConfig.from_json(json.loads(text)) == config


@pytest.mark.parametrize("config", EXAMPLES, ids=lambda config: type(config).__name__)
def test_a_config_makes_what_it_describes(config: CurriculumConfig) -> None:
    labels = ("easy", "a", "b")
    tasks = [Task(name, name, params={"x": x, "place": {"y": x}}) for x, name in enumerate(labels)]
    curriculum = config.make(tasks, seed=5)
    assert type(curriculum) is getattr(
        stepladder.curricula, type(config).__name__[: -len("Config")]
    )
    assert type(curriculum).Config is type(config)
    assert (curriculum.seed, curriculum.config) == (5, config)


def test_a_phase_with_nothing_in_it_comes_back_as_the_uniform_it_means() -> None:
    config = PhasedConfig(phases=(Phase(name="all"),))
    again = CurriculumConfig.from_json(json.loads(json.dumps(config.to_json())))
    assert isinstance(again, PhasedConfig)
    assert again == config
    assert again.to_json() == config.to_json()
    assert again.phases[0].inner() == UniformConfig()


def test_every_config_that_is_exported_is_known_by_name() -> None:
    exported = {
        kind.kind
        for name in stepladder.curricula.__all__
        if isinstance(kind := getattr(stepladder.curricula, name), type)
        and issubclass(kind, CurriculumConfig)
        and kind is not CurriculumConfig
    }
    assert exported | {"ancestor-progress"} == set(CURRICULA)
    assert {example.kind for example in EXAMPLES} == set(CURRICULA)


def test_what_is_left_out_has_its_default() -> None:
    assert CurriculumConfig.from_json({"type": "frontier"}) == FrontierConfig()


def test_a_stage_may_be_just_its_name() -> None:
    config = CurriculumConfig.from_json({"type": "staged", "stages": ["easy", "hard"]})
    assert config == StagedConfig(stages=(Stage(name="easy"), Stage(name="hard")))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([1], "must be of type CurriculumConfig; got [1]. Give"),
        ({}, "type: must be one of uniform, frontier,"),
        ({"type": "Nonsense"}, "got 'Nonsense'"),
        ({"config": "FrontierConfig"}, 'write {"type": "frontier"} instead of {"config":'),
        ({"type": ["frontier"]}, "got ['frontier']"),
        (
            {"type": "frontier", "porbing": 1},
            "porbing: unknown key. Did you mean 'probing'?",
        ),
        (
            {"type": "frontier", "probing": "much"},
            "probing: must lie in (0, 1000]; got 'much'",
        ),
        ({"type": "frontier", "probing": True}, "probing: must lie in (0, 1000]; got True"),
        (
            {"type": "frontier", "trial_episodes": 2.5},
            "trial_episodes: must be an integer of at least 2; got 2.5",
        ),
        ({"type": "frontier", "features": "x"}, "features: must be a list; got 'x'"),
        ({"type": "frontier", "features": [1]}, "features[0]: must be a text; got 1"),
        (
            {"type": "learnability", "signal": "luck"},
            "signal: must be 'success' or 'return'; got 'luck'",
        ),
        ({"type": "staged"}, "stages: is missing. Give it."),
        (
            {"type": "staged", "stages": [{"name": "a", "size": 1}]},
            "stages[0].size: unknown key. Known here: name, labels,",
        ),
        (
            {"type": "staged", "stages": [{"name": "a"}], "standard": 1},
            "standard: must be true or false; got 1",
        ),
        (
            {
                "type": "staged",
                "stages": [{"name": "a"}],
                "mixing": {"table": [[0.5, 0.4, 0.3]]},
            },
            "mixing.table[0]: must be a list of 2; got [0.5, 0.4, 0.3]",
        ),
        (
            {"type": "staged", "stages": [3]},
            "stages[0]: must be of type Stage; got 3. Give Stage(…)",
        ),
        ({"type": "mixture", "weights": 3}, "weights: must be an object; got 3"),
        (
            {"type": "phased", "phases": [{"name": "a", "curriculum": {"type": "X"}}]},
            "phases[0].curriculum.type: must be one of uniform, frontier,",
        ),
        (
            {
                "type": "phased",
                "phases": [
                    {
                        "name": "a",
                        "settings": {
                            "x": {"start": "0", "end": 1, "hold_episodes": 0, "ramp_episodes": 1}
                        },
                    }
                ],
            },
            "phases[0].settings.x.start: must be a finite number; got '0'",
        ),
        ({"type": "frontier", "probing": -1}, "probing: must lie in (0, 1000]; got -1"),
    ],
)
def test_what_does_not_fit_is_named_in_one_line(data: object, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        CurriculumConfig.from_json(data)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
