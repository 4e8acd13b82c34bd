"""Curricula by name, as the commands and `compare` know them.

A contestant is a function of the scenario and the seed, because some curricula want to know what a
user of theirs would know: the order of the stages, or which parameters say where a task lies.
"""

from collections.abc import Callable

from stepladder.configs.checks import require_kind
from stepladder.curricula.base import Curriculum
from stepladder.curricula.config import CurriculumConfig
from stepladder.curricula.frontier.config import FrontierConfig
from stepladder.curricula.learnability.learnability import LearnabilityConfig
from stepladder.curricula.learning_progress.config import LearningProgressConfig
from stepladder.curricula.level_replay.config import LevelReplayConfig
from stepladder.curricula.staged.config import Stage, StagedConfig
from stepladder.curricula.uniform import UniformConfig
from stepladder.errors import ConfigError
from stepladder.simulator.dynamics import learning_order
from stepladder.simulator.graph import LABEL
from stepladder.simulator.scenarios import Scenario
from stepladder.tasks import Pool

MakeConfig = Callable[[Scenario], CurriculumConfig]


def _staged(place: Scenario) -> StagedConfig:
    """One stage per task, in the order of learning: what somebody who knows it would do."""
    order = learning_order(place.graph, place.dynamics)
    stages = tuple(Stage(name=f"{LABEL}{node}") for node in order)
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


def settings_of(
    curriculum: CurriculumConfig | MakeConfig | str, place: Scenario
) -> CurriculumConfig:
    """Return the settings that a name or a function stands for in a scenario.

    Settings are returned as they are.

    Raises:
        ConfigError: There is no such name, or it is none of these.
    """
    if isinstance(curriculum, str):
        if curriculum not in CONTESTANTS:
            raise ConfigError(
                f"there is no curriculum {curriculum!r}; there are {', '.join(CONTESTANTS)}."
            )
        curriculum = CONTESTANTS[curriculum]
    if callable(curriculum):
        curriculum = curriculum(place)
    require_kind(
        "curriculum", curriculum, CurriculumConfig, fix="Give a name, or such as FrontierConfig()."
    )
    return curriculum


def contestant(name: str, place: Scenario, seed: int) -> Curriculum:
    """Build a curriculum over a scenario's tasks.

    One that can replace tasks gets a pool of the scenario's capacity, unless it looks at features.
    """
    return build(settings_of(name, place), place, seed)


def build(config: CurriculumConfig, place: Scenario, seed: int) -> Curriculum:
    """Build what a config describes over a scenario's tasks."""
    source = place.graph.source()
    evicts = hasattr(config, "eviction_plays") and not getattr(config, "features", ())
    if evicts and place.capacity is not None:
        return config.make(Pool(source, place.capacity, seed), seed=seed)
    return config.make(source, seed=seed)
