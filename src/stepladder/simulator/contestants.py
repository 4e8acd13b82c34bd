"""Curricula by name, as the commands and `compare` know them.

A contestant is a function of the scenario and the seed, because some curricula want to know what a
user of theirs would know: the order of the stages, or which parameters say where a task lies.
"""

from collections.abc import Callable

from stepladder.curricula.base import Curriculum
from stepladder.curricula.config import CurriculumConfig
from stepladder.curricula.frontier_config import FrontierConfig
from stepladder.curricula.learnability import LearnabilityConfig
from stepladder.curricula.learning_progress_config import LearningProgressConfig
from stepladder.curricula.level_replay_config import LevelReplayConfig
from stepladder.curricula.staged_config import Stage, StagedConfig
from stepladder.curricula.uniform import UniformConfig
from stepladder.errors import ConfigError
from stepladder.simulator.graph import LABEL
from stepladder.simulator.scenarios import Scenario
from stepladder.tasks import Pool

MakeConfig = Callable[[Scenario], CurriculumConfig]


def _staged(place: Scenario) -> StagedConfig:
    """One stage per task, in the order of prerequisites: what somebody who knows it would do."""
    stages = tuple(Stage(name=f"{LABEL}{node}") for node in place.graph.order)
    return StagedConfig(stages=stages, threshold=place.dynamics.mastery, min_episodes=10)


CONTESTANTS: dict[str, MakeConfig] = {
    "uniform": lambda place: UniformConfig(),
    "frontier": lambda place: FrontierConfig(),
    "frontier-features": lambda place: FrontierConfig(features=place.features),
    "learning-progress": lambda place: LearningProgressConfig(),
    "learning-progress-seed": lambda place: LearningProgressConfig.named("seed"),
    "learning-progress-mature": lambda place: LearningProgressConfig.named("mature"),
    "learnability": lambda place: LearnabilityConfig(),
    "level-replay": lambda place: LevelReplayConfig(),
    "staged": _staged,
}
"""Every curriculum that can be compared, by name. `frontier-features` sees the tasks' features,
`staged` knows the order of prerequisites; the others know nothing."""


def contestant(name: str, place: Scenario, seed: int) -> Curriculum:
    """Build a curriculum over a scenario's tasks.

    One that can replace tasks gets a pool of the scenario's capacity, unless it looks at features.
    """
    if name not in CONTESTANTS:
        raise ConfigError(f"there is no curriculum {name!r}; there are {', '.join(CONTESTANTS)}.")
    return build(CONTESTANTS[name](place), place, seed)


def build(config: CurriculumConfig, place: Scenario, seed: int) -> Curriculum:
    """Build what a config describes over a scenario's tasks."""
    source = place.graph.source()
    evicts = hasattr(config, "eviction_plays") and not getattr(config, "features", ())
    if evicts and place.capacity is not None:
        return config.make(Pool(source, place.capacity, seed), seed=seed)
    return config.make(source, seed=seed)
