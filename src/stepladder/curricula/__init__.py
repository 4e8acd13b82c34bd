"""WHICH TASK NEXT: one module or folder per method; `base` is the contract they all keep."""

from stepladder.curricula.base import Curriculum
from stepladder.curricula.config import CurriculumConfig
from stepladder.curricula.config_registry import config_from_json
from stepladder.curricula.events import CurriculumEvent, EventCursor, curriculum_events
from stepladder.curricula.explanation import Explanation, TaskExplanation
from stepladder.curricula.frontier.config import FrontierConfig
from stepladder.curricula.frontier.frontier import Frontier, FrontierExplanation
from stepladder.curricula.learnability.learnability import (
    Learnability,
    LearnabilityConfig,
    LearnabilityExplanation,
)
from stepladder.curricula.learning_progress.ancestor import AncestorProgress
from stepladder.curricula.learning_progress.config import (
    AncestorProgressConfig,
    LearningProgressConfig,
)
from stepladder.curricula.learning_progress.learning_progress import (
    LearningProgress,
    ProgressExplanation,
)
from stepladder.curricula.level_replay.config import LevelReplayConfig
from stepladder.curricula.level_replay.level_replay import LevelReplay
from stepladder.curricula.level_replay.report import LevelReplayExplanation
from stepladder.curricula.meter import CurriculumMeter, task_table
from stepladder.curricula.owner import Quarantined
from stepladder.curricula.phased.config import Phase, PhasedConfig
from stepladder.curricula.phased.mixture import Mixture, MixtureConfig
from stepladder.curricula.phased.phased import Phased
from stepladder.curricula.phased.report import PhaseChange, PhasedExplanation
from stepladder.curricula.phased.settings import Mixed, Ramp
from stepladder.curricula.staged.config import (
    DemotionRule,
    EarlyRule,
    Mixing,
    Stage,
    StagedConfig,
    TrendRule,
)
from stepladder.curricula.staged.presets import SEVEN_STAGES, SEVEN_STAGES_LENIENT
from stepladder.curricula.staged.report import StageChange, StagedExplanation, StageReport
from stepladder.curricula.staged.staged import Staged
from stepladder.curricula.uniform import Uniform, UniformConfig
from stepladder.plans.legend import Legend
from stepladder.plans.record import Draw, Record, record_array
from stepladder.saving.snapshot import Snapshot

__all__ = [
    "SEVEN_STAGES",
    "SEVEN_STAGES_LENIENT",
    "AncestorProgress",
    "AncestorProgressConfig",
    "Curriculum",
    "CurriculumConfig",
    "CurriculumEvent",
    "CurriculumMeter",
    "DemotionRule",
    "Draw",
    "EarlyRule",
    "EventCursor",
    "Explanation",
    "Frontier",
    "FrontierConfig",
    "FrontierExplanation",
    "Learnability",
    "LearnabilityConfig",
    "LearnabilityExplanation",
    "LearningProgress",
    "LearningProgressConfig",
    "Legend",
    "LevelReplay",
    "LevelReplayConfig",
    "LevelReplayExplanation",
    "Mixed",
    "Mixing",
    "Mixture",
    "MixtureConfig",
    "Phase",
    "PhaseChange",
    "Phased",
    "PhasedConfig",
    "PhasedExplanation",
    "ProgressExplanation",
    "Quarantined",
    "Ramp",
    "Record",
    "Snapshot",
    "Stage",
    "StageChange",
    "StageReport",
    "Staged",
    "StagedConfig",
    "StagedExplanation",
    "TaskExplanation",
    "TrendRule",
    "Uniform",
    "UniformConfig",
    "config_from_json",
    "curriculum_events",
    "record_array",
    "task_table",
]
