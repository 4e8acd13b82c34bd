"""WHICH TASK NEXT: one method per file; `base` is the contract they all keep."""

from stepladder.curricula.ancestor_progress import AncestorProgress
from stepladder.curricula.base import Curriculum
from stepladder.curricula.config import CurriculumConfig
from stepladder.curricula.config_registry import config_from_json
from stepladder.curricula.events import CurriculumEvent, EventCursor, curriculum_events
from stepladder.curricula.explanation import Explanation, TaskExplanation
from stepladder.curricula.frontier import Frontier, FrontierExplanation
from stepladder.curricula.frontier_config import FrontierConfig
from stepladder.curricula.learnability import (
    Learnability,
    LearnabilityConfig,
    LearnabilityExplanation,
)
from stepladder.curricula.learning_progress import LearningProgress, ProgressExplanation
from stepladder.curricula.learning_progress_config import (
    AncestorProgressConfig,
    LearningProgressConfig,
)
from stepladder.curricula.legend import Legend
from stepladder.curricula.level_replay import LevelReplay
from stepladder.curricula.level_replay_config import LevelReplayConfig
from stepladder.curricula.level_replay_report import LevelReplayExplanation
from stepladder.curricula.meter import CurriculumMeter, task_table
from stepladder.curricula.mixture import Mixture, MixtureConfig
from stepladder.curricula.owner import Quarantined
from stepladder.curricula.phase_settings import Mixed, Ramp
from stepladder.curricula.phased import Phased
from stepladder.curricula.phased_config import Phase, PhasedConfig
from stepladder.curricula.phased_report import PhaseChange, PhasedExplanation
from stepladder.curricula.presets import SEVEN_STAGES, SEVEN_STAGES_LENIENT
from stepladder.curricula.record import Draw, Record, record_array
from stepladder.curricula.snapshot import Snapshot
from stepladder.curricula.staged import Staged
from stepladder.curricula.staged_config import (
    DemotionRule,
    EarlyRule,
    Mixing,
    Stage,
    StagedConfig,
    TrendRule,
)
from stepladder.curricula.staged_report import StageChange, StagedExplanation, StageReport
from stepladder.curricula.uniform import Uniform, UniformConfig

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
