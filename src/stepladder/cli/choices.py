"""The curricula among which ``simulate`` lets one choose, each a subcommand with its own flags.

Between the command line and `simulator`: some of them need to know the scenario before they can be
turned into a config, as a user of theirs would.
"""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import tyro

from stepladder.configs.checks import require_share, require_whole
from stepladder.configs.documents import load_document
from stepladder.curricula.config import CurriculumConfig
from stepladder.curricula.config_registry import config_from_json
from stepladder.curricula.frontier.config import FrontierConfig
from stepladder.curricula.learnability.learnability import LearnabilityConfig
from stepladder.curricula.learning_progress.config import (
    AncestorProgressConfig,
    LearningProgressConfig,
)
from stepladder.curricula.level_replay.config import LevelReplayConfig
from stepladder.curricula.staged.config import StagedConfig
from stepladder.curricula.uniform import UniformConfig
from stepladder.simulator.contestants import CONTESTANTS
from stepladder.simulator.scenarios import Scenario


@dataclass(frozen=True, kw_only=True)
class FrontierWithFeatures(FrontierConfig):
    """As frontier, but tasks near a mastered one are probed first; `features` says what is near."""

    features: tuple[str, ...] = ()
    """Parameters of the tasks by which they are neighbours; by default all the scenario has."""


@dataclass(frozen=True, kw_only=True)
class StagedInOrder:
    """One stage per task, in the order of prerequisites."""

    threshold: float | None = None
    """Success needed to leave a stage, in [0, 1]; None takes what the scenario calls mastered."""

    min_episodes: int = 10
    """Episodes since entry needed to leave a stage."""

    window_episodes: int = 50
    """Success is the mean over this many latest episodes of a stage since entry."""

    check_interval_episodes: int = 10
    """Advancement is considered after every so many episodes, whichever env they come from."""

    confidence_z: float | None = None
    """Judge by Wilson's lower bound at so many standard deviations; None takes the plain rate."""

    exploration: float = 0.0
    """Share of draws spread evenly over all tasks, whatever the method thinks, in [0, 1]."""

    def __post_init__(self) -> None:
        if self.threshold is not None:
            require_share("threshold", self.threshold)
        require_whole("min_episodes", self.min_episodes, 1)

    def config(self, place: Scenario) -> StagedConfig:
        """Return the settings for a scenario."""
        config = CONTESTANTS["staged"](place)
        assert isinstance(config, StagedConfig)
        changes = asdict(self)
        if self.threshold is None:
            changes["threshold"] = config.threshold
        return replace(config, **changes)


@dataclass(frozen=True, kw_only=True)
class FromFile:
    """Settings in a JSON file, as a run keeps them under "curriculum" in its config.json."""

    file: tyro.conf.Positional[Path]
    """A file with an object such as {"config": "FrontierConfig", "probing": 0.1}. Phased, staged
    and mixed curricula can be given this way too."""

    def config(self) -> CurriculumConfig:
        """Return the settings that the file holds."""
        return config_from_json(load_document(self.file), str(self.file))


_subcommand = tyro.conf.subcommand

CurriculumChoice = (
    Annotated[
        LearningProgressConfig,
        _subcommand(
            "learning-progress",
            description="Tasks whose success is changing, beyond what is noise.",
        ),
    ]
    | Annotated[
        FrontierConfig,
        _subcommand("frontier", description="Tasks that can be learned now; found by probing."),
    ]
    | Annotated[FrontierWithFeatures, _subcommand("frontier-features")]
    | Annotated[
        LearnabilityConfig,
        _subcommand("learnability", description="Tasks that succeed sometimes: p(1 - p)."),
    ]
    | Annotated[
        LevelReplayConfig,
        _subcommand("level-replay", description="Prioritised level replay: the highest scores."),
    ]
    | Annotated[StagedInOrder, _subcommand("staged")]
    | Annotated[
        UniformConfig, _subcommand("uniform", description="Every task alike: the baseline.")
    ]
    | Annotated[
        AncestorProgressConfig,
        _subcommand(
            "learning-progress-seed",
            default=AncestorProgressConfig.seed_defaults(),
            description="The ancestor's learning progress as it was first; for comparison.",
        ),
    ]
    | Annotated[
        AncestorProgressConfig,
        _subcommand(
            "learning-progress-mature",
            default=AncestorProgressConfig.mature_defaults(),
            description="The ancestor's learning progress as it was last; for comparison.",
        ),
    ]
    | Annotated[FromFile, _subcommand("from-file")]
)
"""What ``stepladder simulate`` can be followed by."""

_NAMES: dict[type, str] = {
    FrontierConfig: "frontier",
    FrontierWithFeatures: "frontier-features",
    FromFile: "from-file",
    LearnabilityConfig: "learnability",
    LearningProgressConfig: "learning-progress",
    LevelReplayConfig: "level-replay",
    StagedInOrder: "staged",
    UniformConfig: "uniform",
}


def name_of(choice: CurriculumChoice) -> str:
    """Return what a choice is called on the command line."""
    if isinstance(choice, AncestorProgressConfig):
        return f"learning-progress-{choice.variant}"
    return choice.file.stem if isinstance(choice, FromFile) else _NAMES[type(choice)]


def config_of(choice: CurriculumChoice, place: Scenario) -> CurriculumConfig:
    """Return the settings that a choice means in a scenario."""
    if isinstance(choice, FromFile):
        return choice.config()
    if isinstance(choice, StagedInOrder):
        return choice.config(place)
    if isinstance(choice, FrontierWithFeatures):
        features = choice.features or place.features
        return FrontierConfig(**{**asdict(choice), "features": features})
    return choice
