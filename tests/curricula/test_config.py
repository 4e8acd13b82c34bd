"""Settings that all curricula share: plain JSON, one source of settings at a time."""

import json
from dataclasses import FrozenInstanceError, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest

from stepladder.curricula import (
    SEVEN_STAGES,
    AncestorProgressConfig,
    Curriculum,
    CurriculumConfig,
    LearningProgress,
    LearningProgressConfig,
    MixtureConfig,
    Phase,
    PhasedConfig,
    StagedConfig,
    Uniform,
    UniformConfig,
)
from stepladder.curricula.registry import CURRICULA
from stepladder.errors import ConfigError
from stepladder.tasks import ListSource, NumberedSource, Pool, Task

if TYPE_CHECKING:
    from collections.abc import Sequence

TASKS = ListSource([Task("one", "a"), Task("two", "b")])
CONFIGS = [
    UniformConfig(exploration=0.5),
    MixtureConfig(weights={"a": 1.0}),
    StagedConfig(stages=("a", "b")),
    LearningProgressConfig(),
    AncestorProgressConfig.seed_defaults(),
    AncestorProgressConfig.mature_defaults(),
    PhasedConfig(phases=(Phase(name="only", curriculum=StagedConfig(stages=("a", "b"))),)),
]
every_config = pytest.mark.parametrize("config", CONFIGS, ids=lambda config: type(config).__name__)


@every_config
def test_a_config_makes_its_curriculum(config: CurriculumConfig):
    curriculum = config.make(TASKS, seed=3)
    assert isinstance(curriculum, Curriculum)
    assert type(curriculum).__name__ == type(config).__name__.removesuffix("Config")
    assert curriculum.config is config
    assert curriculum.seed == 3


@every_config
def test_a_config_is_plain_json_with_its_name(config: CurriculumConfig):
    written = config.to_json()
    assert written["type"] == config.kind
    assert json.loads(json.dumps(written, allow_nan=False)) == written


@every_config
def test_a_curriculum_has_its_config_as_an_attribute(config: CurriculumConfig):
    kind: Any = type(config.make(TASKS))
    assert kind.Config is type(config) is CURRICULA[config.kind]


@every_config
def test_a_config_cannot_be_changed_in_place(config: CurriculumConfig):
    with pytest.raises(FrozenInstanceError):
        config.exploration = 0.9  # type: ignore[misc]


@every_config
@pytest.mark.parametrize("wrong", [-0.01, 1.01, np.nan, np.inf])
def test_exploration_is_a_share(config: CurriculumConfig, wrong: float):
    with pytest.raises(ConfigError, match=r"exploration must lie in \[0, 1\]; got"):
        replace(config, exploration=wrong)


def test_the_base_of_all_configs_describes_no_curriculum():
    with pytest.raises(ConfigError, match="has Config = CurriculumConfig"):
        CurriculumConfig().make(TASKS)


def test_a_config_makes_the_class_that_was_first_to_name_it():
    @dataclass(frozen=True, kw_only=True)
    class OwnConfig(UniformConfig):
        kind: ClassVar[str] = "own"

    assert type(OwnConfig().make(TASKS)) is Uniform

    class Own(Uniform):
        Config = OwnConfig

    class Another(Uniform):
        Config = OwnConfig

    assert type(OwnConfig().make(TASKS)) is Own
    assert type(UniformConfig().make(TASKS)) is Uniform


def test_an_annotation_that_only_type_checkers_know_is_refused_by_name():
    @dataclass(frozen=True, kw_only=True)
    class HastyConfig(CurriculumConfig):
        kind: ClassVar[str] = "hasty"
        speeds: "Sequence[float]" = ()

    with pytest.raises(ConfigError) as refusal:
        HastyConfig()
    assert str(refusal.value) == (
        "the annotation 'Sequence[float]' of speeds in HastyConfig names 'Sequence', which does "
        "not exist at run time. Import it at run time, not only under TYPE_CHECKING."
    )


def test_inner_settings_are_written_with_the_name_of_their_method():
    written = PhasedConfig(phases=(Phase(name="p", mixture={"a": 1.0}),)).to_json()
    assert written["phases"][0]["curriculum"] == {
        "type": "mixture",
        "exploration": 0.0,
        "max_share": None,
        "target": None,
        "weights": {"a": 1.0},
    }


@every_config
def test_settings_beside_a_config_are_refused_not_ignored(config: CurriculumConfig):
    kind: type = type(config.make(TASKS))
    with pytest.raises(ConfigError, match="exploration was given in addition to a config"):
        kind(TASKS, config, exploration=0.25)


@every_config
def test_the_config_of_another_curriculum_is_refused_by_name(config: CurriculumConfig):
    kind: type = type(config.make(TASKS))
    other = MixtureConfig(weights={"a": 1.0}) if type(config) is UniformConfig else UniformConfig()
    with pytest.raises(
        ConfigError, match=f"expected a {type(config).__name__}; got a {type(other).__name__}"
    ):
        kind(TASKS, other)


def test_settings_may_be_given_as_keywords():
    assert Uniform(TASKS, exploration=0.25).config == UniformConfig(exploration=0.25)
    with pytest.raises(ConfigError, match="no_such_setting: unknown key"):
        LearningProgress(TASKS, no_such_setting=1)


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5, True, "one", None])
def test_a_seed_is_a_whole_number_that_fits_into_shared_memory(seed: object):
    with pytest.raises(ConfigError, match="seed"):
        Uniform(TASKS, seed=seed)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [0, 2**63 - 1, np.int64(7)])
def test_any_seed_that_fits_will_do(seed: int):
    curriculum = Uniform(TASKS, seed=seed)
    assert curriculum.seed == seed
    assert len(curriculum.draw(3)) == 3
    json.dumps(curriculum.snapshot().state)


def test_a_curriculum_takes_a_list_a_source_or_a_pool():
    tasks = [Task("one"), Task("two")]
    assert Uniform(tasks).pool.num_slots == 2
    assert Uniform(NumberedSource(10**15), capacity=7).pool.num_slots == 7
    pool = Pool(ListSource(tasks))
    assert Uniform(pool).pool is pool
    with pytest.raises(ConfigError, match="capacity 1 was given with a Pool"):
        Uniform(pool, capacity=1)


def test_presets_are_configs():
    assert SEVEN_STAGES.to_json()["stages"][0]["name"] == "simplest"
