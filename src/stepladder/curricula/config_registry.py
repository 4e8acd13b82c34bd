"""Every config of a curriculum by name.

Asked by `CurriculumConfig` when a document names its kind: a run's ``config.json``, or settings
that somebody wrote by hand.
"""

from typing import Any

from stepladder.curricula.config import CurriculumConfig
from stepladder.curricula.frontier.config import FrontierConfig
from stepladder.curricula.learnability.learnability import LearnabilityConfig
from stepladder.curricula.learning_progress.config import (
    AncestorProgressConfig,
    LearningProgressConfig,
)
from stepladder.curricula.level_replay.config import LevelReplayConfig
from stepladder.curricula.phased.config import PhasedConfig
from stepladder.curricula.phased.mixture import MixtureConfig
from stepladder.curricula.staged.config import StagedConfig
from stepladder.curricula.uniform import UniformConfig

CONFIGS: dict[str, type[CurriculumConfig]] = {
    kind.__name__: kind
    for kind in (
        AncestorProgressConfig,
        FrontierConfig,
        LearnabilityConfig,
        LearningProgressConfig,
        LevelReplayConfig,
        MixtureConfig,
        PhasedConfig,
        StagedConfig,
        UniformConfig,
    )
}
"""Every config that describes a curriculum, by the name of its class."""


def config_from_json(data: Any, document: str = "the curriculum") -> CurriculumConfig:
    """Return the config whose `to_json` gave this.

    Args:
        data: What `to_json` gave, perhaps through a file; fields left out have their defaults.
        document: What to call it in messages.

    Raises:
        ConfigError: Something is wrong; all of it is listed, with paths.

    Example:
        >>> config_from_json({"config": "FrontierConfig", "probing": 0.1}).probing
        0.1
    """
    return CurriculumConfig.from_json(data, document)
