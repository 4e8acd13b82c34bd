import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from stepladder.agents.config import AGENTS
from stepladder.agents.dddqn.config import DDDQNConfig
from stepladder.agents.sac.config import SACConfig
from stepladder.curricula.auto.config import AutoConfig
from stepladder.curricula.phased.config import Phase, PhasedConfig
from stepladder.curricula.phased.mixture import MixtureConfig
from stepladder.curricula.phased.settings import Mixed, Ramp
from stepladder.curricula.registry import CURRICULA
from stepladder.curricula.staged.config import StagedConfig
from stepladder.curricula.uniform import UniformConfig
from stepladder.errors import ConfigError
from stepladder.games.ledge.source import LedgeLevels
from stepladder.tasks import Task
from stepladder.training.config import (
    CheckpointConfig,
    EvaluationConfig,
    OpponentsConfig,
    TrainingConfig,
    load_config,
)
from stepladder.training.contradictions import neural_opponents

HOCKEY = "stepladder/Hockey-v0"


def problems_of(data, document="run.json"):
    """Return a line for each problem of what is refused."""
    with pytest.raises(ConfigError) as refusal:
        TrainingConfig.from_json(data, document)
    lines = [f"{path}: {text}".removeprefix(": ") for path, text in refusal.value.problems]
    count = "1 problem" if len(lines) == 1 else f"{len(lines)} problems"
    heading = f"{count} in {document}; nothing was started:"
    separator = " " if len(lines) == 1 else "\n  "
    assert str(refusal.value) == separator.join([heading, *lines])
    return lines


def paths_of(data):
    return [line.split(":")[0] for line in problems_of(data)]


def test_by_default_ppo_climbs_five_stages_of_ledge():
    config = TrainingConfig()
    stages = [stage.name for stage in config.curriculum.stages]
    assert stages == ["simplest", "simpler", "simple", "medium", "complex"]
    assert config.task_source().labels() == stages
    assert (config.agent.kind, config.num_envs, config.device) == ("PPO", 128, "cpu")
    curriculum = config.curriculum.make(config.task_source())
    assert curriculum.pool.num_slots == 1_000


def test_the_default_curriculum_follows_the_levels_and_the_env():
    few = TrainingConfig(source={"stages": ["medium", "complex"]})
    assert [stage.name for stage in few.curriculum.stages] == ["medium", "complex"]
    assert TrainingConfig(env="CartPole-v1").curriculum == AutoConfig()
    named = TrainingConfig(env=HOCKEY, tasks=(Task("a"), Task("b")))
    assert named.curriculum == AutoConfig()


def test_a_chosen_curriculum_stays_where_a_default_one_follows():
    default = TrainingConfig(env="CartPole-v1")
    assert len(replace(default, env="stepladder/Ledge-v0").curriculum.stages) == 5
    chosen = TrainingConfig(env="CartPole-v1", curriculum=UniformConfig())
    assert replace(chosen, env="stepladder/Ledge-v0").curriculum == UniformConfig()


def test_what_is_practised_is_levels_or_tasks_or_the_env():
    levels = TrainingConfig(source={"per_stage": None, "seed": 3}).task_source()
    assert isinstance(levels, LedgeLevels)
    assert levels.num_tasks is None
    assert levels.get(0).seed != LedgeLevels(seed=4).get(0).seed
    tasks = (Task("a"), Task("b"))
    assert TrainingConfig(env=HOCKEY, tasks=tasks).task_source().get(1) == Task("b")
    assert TrainingConfig(env="CartPole-v1").task_source().get(0) == Task("CartPole-v1")


def every_setting_changed():
    return TrainingConfig(
        env=HOCKEY,
        env_kwargs={"players": "both", "puck_speed": 3.5},
        num_envs=3,
        total_steps=17,
        total_episodes=5,
        seed=2,
        device="cuda:1",
        tasks=(Task("a", "x", {"opponent": "weak"}, 1), Task("b", "y")),
        num_workers=0,
        curriculum=PhasedConfig(
            exploration=0.1,
            phases=(
                Phase(name="one", episodes=3, mixture={"x": 1.0}),
                Phase(
                    name="two",
                    success=0.5,
                    curriculum=StagedConfig(stages=("x", "y")),
                    settings={
                        "opponent": Mixed(("weak", "caller:pool", "caller:newest"), (1, 2, 3)),
                        "closeness_weight": Ramp(start=1.0, end=0.0),
                    },
                ),
                Phase(name="three"),
            ),
        ),
        agent=SACConfig(tau=0.01, hidden_sizes=(8,)),
        reward_scale=0.5,
        max_episode_steps=100,
        clear_buffer=False,
        clear_buffer_on={"two": True},
        evaluation=EvaluationConfig(every_steps=None, num_games=6, opponents=("strong",)),
        opponents=OpponentsConfig(archive="rivals", deterministic=True),
        checkpoints=CheckpointConfig(every_steps=9, every_s=2.5, keep=1),
        epoch_steps=4,
    )


@pytest.mark.parametrize("config", [TrainingConfig(), every_setting_changed()])
def test_a_config_comes_back_from_json_as_it_was(config, tmp_path):
    assert TrainingConfig.from_json(json.loads(json.dumps(config.to_json()))) == config
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config.to_json()))
    assert load_config(path) == config
    assert load_config(str(path)) == config


@pytest.mark.parametrize("name", CURRICULA)
def test_every_curriculum_can_be_read(name):
    needed = {
        "staged": {"stages": ["default"]},
        "phased": {"phases": [{"name": "only"}]},
        "mixture": {"weights": {"default": 1.0}},
    }.get(name, {})
    data = {"env": "CartPole-v1", "curriculum": {"type": name, **needed}}
    config = TrainingConfig.from_json(data)
    assert config.curriculum.kind == name
    assert TrainingConfig.from_json(config.to_json()) == config


@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_can_be_read(name):
    config = TrainingConfig.from_json({"env": "CartPole-v1", "agent": {"type": name}})
    assert config.agent == AGENTS[name]()


def test_all_problems_are_listed_at_once_with_their_paths():
    lines = problems_of(
        {
            "num_env": 3,
            "num_envs": -1,
            "total_steps": "many",
            "evaluation": {"num_games": 0, "opponents": ["weak", "weak"]},
            "opponents": {"pool_size": 0, "archive": 3},
            "checkpoints": {"every_s": 0, "keep": 1.5},
            "agent": {"type": "SAC", "tau": 3, "gama": 0.9, "batch_size": -4, "noise": "red"},
            "curriculum": {
                "type": "staged",
                "stages": [{"threshold": 7}, "b"],
                "starting_stage": "b",
                "threshold": 5,
                "mixing": {"source": "none"},
            },
            "tasks": [{"name": "a"}, {"label": "b"}],
        }
    )
    assert sorted(line.split(":")[0] for line in lines) == [
        "agent.batch_size",
        "agent.gama",
        "agent.noise",
        "agent.tau",
        "checkpoints.every_s",
        "checkpoints.keep",
        "curriculum.mixing.source",
        "curriculum.stages[0].name",
        "curriculum.stages[0].threshold",
        "curriculum.threshold",
        "evaluation.num_games",
        "evaluation.opponents",
        "num_env",
        "num_envs",
        "opponents.archive",
        "opponents.pool_size",
        "tasks[1]",
        "total_steps",
    ]
    assert "num_env: unknown key. Did you mean 'num_envs'?" in lines
    assert "agent.gama: unknown key. Did you mean 'gamma'?" in lines
    own = {"num_envs": -1, "source": {"stages": ["simple", "hard"], "per_stage": 0}}
    assert sorted(paths_of(own)) == ["num_envs", "source.per_stage", "source.stages[1]"]


def test_a_key_like_no_other_is_refused_with_all_that_are_known():
    (line,) = problems_of({"checkpoints": {"xyz": 1}})
    assert line == "checkpoints.xyz: unknown key. Known here: every_steps, every_s, keep."
    (line,) = problems_of({"source": {"xyz": 1}})
    assert line == "source.xyz: unknown key. Known here: stages, per_stage, seed."
    (line,) = problems_of({"env": "CartPole-v1", "source": {"stages": ["simple"]}})
    assert line.startswith("source: has 'stages', and this env has no tasks of its own")


def test_an_opponent_of_an_evaluation_that_the_game_lacks_is_refused():
    evaluation = {"opponents": ["weak", "storng", "caller:rivals/3"]}
    (line,) = problems_of({"env": HOCKEY, "agent": {"type": "SAC"}, "evaluation": evaluation})
    assert line.startswith("evaluation.opponents: must be of none, weak, strong, ")
    assert "got 'storng'" in line


def test_two_fields_that_disagree_inside_one_part_are_one_problem():
    agent = {"type": "SAC", "batch_size": 64, "buffer_size": 32}
    (line,) = problems_of({"env": HOCKEY, "agent": agent})
    assert line.startswith("agent.buffer_size: must be at least batch_size (64); got 32.")
    agent["buffer_size"], agent["batch_size"] = 3_000_000, 2_000_000
    assert TrainingConfig.from_json({"env": HOCKEY, "agent": agent}).agent.batch_size == 2_000_000


@pytest.mark.parametrize("name", ["Staged", None, 3, ["staged"]])
def test_a_curriculum_of_an_unknown_kind_is_refused(name):
    assert paths_of({"curriculum": {"type": name}}) == ["curriculum.type"]
    assert paths_of({"agent": {"type": name}}) == ["agent.type"]


def test_a_curriculum_as_the_last_version_wrote_it_is_refused_with_the_new_form():
    for more in ({}, {"phases": [{"name": "only"}]}):
        (line,) = problems_of({"curriculum": {"config": "PhasedConfig", **more}})
        assert line.startswith("curriculum.type: must be one of uniform, frontier")
        assert 'write {"type": "frontier"} instead' in line


@pytest.mark.parametrize("part", ["source", "agent", "curriculum", "env_kwargs", "tasks"])
def test_a_part_of_the_wrong_kind_is_refused(part):
    assert paths_of({part: 3}) == [part]


def test_a_document_that_is_no_object_is_refused():
    assert problems_of([1]) == [
        "must be of type TrainingConfig; got [1]. Give TrainingConfig(…), in JSON an object with "
        "its settings."
    ]


def test_keys_that_are_no_texts_are_refused():
    assert problems_of({1: 2}) == ["has the key 1 of type int; keys must be strings. Quote it."]


def test_settings_that_do_not_go_together_are_listed_when_all_else_is_right():
    lines = problems_of(
        {
            "agent": {"type": "SAC"},
            "clear_buffer_on": {"shooting": True},
            "curriculum": {"type": "staged", "stages": ["simple", "hard"]},
            "source": {"stages": ["simple", "medium"]},
        }
    )
    assert [line.split(":")[0] for line in lines] == [
        "agent",
        "curriculum.stages[1]",
        "curriculum.stages",
        "clear_buffer_on.shooting",
    ]
    assert "SAC needs continuous actions" in lines[0]
    assert paths_of({"agent": {"type": "SAC"}, "num_envs": 0}) == ["num_envs"]


def test_an_agent_that_cannot_act_in_hockey_is_refused():
    with pytest.raises(ConfigError, match=r'set env_kwargs\.actions to "discrete"'):
        TrainingConfig(env=HOCKEY, agent=DDDQNConfig())
    discrete = {"actions": "discrete"}
    TrainingConfig(env=HOCKEY, agent=DDDQNConfig(), env_kwargs=discrete)
    with pytest.raises(ConfigError, match=r"leave env_kwargs\.actions out"):
        TrainingConfig(env=HOCKEY, agent=SACConfig(), env_kwargs=discrete)


def test_a_mixture_of_labels_that_no_task_has_is_refused():
    phases = (Phase(name="a", mixture={"easy": 1, "default": 1}),)
    with pytest.raises(ConfigError, match=r"curriculum\.phases\[0\]\.mixture\.weights\.easy"):
        TrainingConfig(env=HOCKEY, curriculum=PhasedConfig(phases=phases))
    with pytest.raises(ConfigError, match=r"curriculum\.weights\.easy: no task has this label"):
        TrainingConfig(env=HOCKEY, curriculum=MixtureConfig(weights={"easy": 1}))


def test_a_curriculum_of_another_package_says_itself_which_labels_it_needs():
    @dataclass(frozen=True, kw_only=True)
    class PickyConfig(UniformConfig):
        kind: ClassVar[str] = "picky"

        def about_labels(self, labels):
            yield "label", f"needs tasks labelled 'rare'; got {', '.join(labels)}."

    with pytest.raises(ConfigError, match=r"curriculum\.label: needs tasks labelled 'rare'; got"):
        TrainingConfig(env=HOCKEY, curriculum=PickyConfig())


def hockey_phases(**settings):
    return PhasedConfig(phases=(Phase(name="only", settings=settings),))


def test_neural_opponents_are_found_and_need_both_players():
    curriculum = hockey_phases(opponent=Mixed(("weak", "caller:newest", "caller:pool")))
    with pytest.raises(ConfigError, match=r'env_kwargs\.players must be "both"'):
        TrainingConfig(env=HOCKEY, curriculum=curriculum)
    config = TrainingConfig(env=HOCKEY, curriculum=curriculum, env_kwargs={"players": "both"})
    assert neural_opponents(config) == ("caller:newest", "caller:pool")
    assert neural_opponents(TrainingConfig()) == ()


@pytest.mark.parametrize(
    ("opponent", "reason"),
    [
        ("caller", "says .caller. and not who"),
        ("caller:", "and a name"),
        ("caller:archive", r"opponents\.archive is missing"),
        ("storng", "must be one of"),
    ],
)
def test_an_opponent_that_nobody_could_play_is_refused(opponent, reason):
    with pytest.raises(ConfigError, match=reason):
        TrainingConfig(
            env=HOCKEY,
            curriculum=hockey_phases(opponent=opponent),
            env_kwargs={"players": "both"},
        )


def test_what_hockey_would_refuse_later_is_refused_now():
    with pytest.raises(ConfigError) as refusal:
        TrainingConfig(
            env=HOCKEY,
            env_kwargs={"keep_mode": 3},
            evaluation=EvaluationConfig(num_games=7),
            tasks=(Task("a", params={"puck_sped": 1}), Task("b", params={"puck_speed": -1})),
            curriculum=hockey_phases(
                mode=Mixed(("NORMAL", "SHOOT")), touch_weight=Ramp(start=0.0, end=1e9)
            ),
        )
    assert [path for path, _ in refusal.value.problems] == [
        "evaluation.num_games",
        "env_kwargs.keep_mode",
        "tasks[0].params.puck_sped",
        "tasks[1].params.puck_speed",
        "curriculum.phases[0].settings.mode",
        "curriculum.phases[0].settings.touch_weight",
    ]


def test_the_memory_is_cleared_as_the_phase_says_or_else_all_phases():
    config = every_setting_changed()
    assert config.clears_buffer("two")
    assert not config.clears_buffer("three")


@pytest.mark.parametrize(
    "settings",
    [
        {"device": "gpu"},
        {"device": "cuda:x"},
        {"seed": -1},
        {"seed": 2**63},
        {"reward_scale": 0},
        {"epoch_steps": 0},
        {"total_episodes": 0},
        {"max_episode_steps": 0},
        {"env": ""},
        {"env_kwargs": {"f": print}},
        {"clear_buffer": 1},
        {"clear_buffer_on": {"a": 1}},
        {"tasks": (Task("a"), Task("a"))},
        {"tasks": Task("a")},
        {"agent": "PPO"},
        {"curriculum": UniformConfig},
        {"checkpoints": 3},
    ],
)
def test_a_wrong_setting_is_named_when_made_in_python(settings):
    with pytest.raises(ConfigError, match=next(iter(settings))):
        TrainingConfig(**settings)


def test_stages_are_names_that_exist_each_once():
    for stages in (3, ("simple", "simple"), ("none",), ()):
        with pytest.raises(ConfigError, match="stages"):
            TrainingConfig(source={"stages": stages})
    assert TrainingConfig(source={"stages": "simple,medium"}).task_source().labels() == [
        "simple",
        "medium",
    ]


def test_a_config_can_be_changed_in_one_field():
    assert replace(TrainingConfig(), seed=4).curriculum == TrainingConfig().curriculum


def test_a_file_that_is_missing_or_no_json_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="neither a preset nor a file"):
        load_config(str(tmp_path / "none.json"))
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path / "none.json")
    path = tmp_path / "some.json"
    path.write_text('{"seed": 1, "seed": 2}')
    with pytest.raises(ConfigError, match="'seed' is there twice"):
        load_config(path)
    path.write_bytes(b"\xff{")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_config(path)
    path.write_text("{")
    with pytest.raises(ConfigError, match=r"some\.json is not JSON"):
        load_config(path)
    path.write_text('{"sed": 1}')
    with pytest.raises(ConfigError, match=r"1 problem in .*some\.json; nothing was started"):
        load_config(Path(path))
    with pytest.raises(ConfigError, match="source must be"):
        load_config(3)


@pytest.mark.parametrize(
    ("settings", "steps"),
    [
        ({}, 16_384),
        ({"num_envs": 8_192}, 64 * 8_192),
        ({"num_envs": 8_192, "epoch_steps": 100}, 100),
        ({"num_envs": 8_192, "evaluation": EvaluationConfig(every_steps=5_000)}, 5_000),
    ],
)
def test_an_epoch_grows_with_many_envs_and_never_outlasts_an_evaluation(
    settings: dict[str, Any], steps: int
) -> None:
    settings = {"evaluation": EvaluationConfig(every_steps=None), **settings}
    assert TrainingConfig(env="CartPole-v1", **settings).steps_per_epoch == steps
