"""WHICH TASK NEXT: one module or folder per method; `base` is the contract they all keep.

What a method of your own needs is exported here too; `registry` is where methods are found by name.
"""

from stepladder.curricula.base import Curriculum
from stepladder.curricula.compiled_rule import CompiledRule
from stepladder.curricula.config import CurriculumConfig, TaskKnowledge, Tasks, Variant
from stepladder.curricula.events import CurriculumEvent, EventCursor, curriculum_events
from stepladder.curricula.evicting import Evicting
from stepladder.curricula.explanation import Explanation, TaskExplanation
from stepladder.curricula.frontier import Frontier, FrontierConfig, FrontierExplanation
from stepladder.curricula.learnability import (
    Learnability,
    LearnabilityConfig,
    LearnabilityExplanation,
)
from stepladder.curricula.learning_progress import (
    AncestorProgress,
    AncestorProgressConfig,
    LearningProgress,
    LearningProgressConfig,
    ProgressExplanation,
)
from stepladder.curricula.level_replay import LevelReplay, LevelReplayConfig, LevelReplayExplanation
from stepladder.curricula.meter import CurriculumMeter, task_table
from stepladder.curricula.owner import Quarantined
from stepladder.curricula.phased import (
    Mixed,
    Mixture,
    MixtureConfig,
    Phase,
    PhaseChange,
    Phased,
    PhasedConfig,
    PhasedExplanation,
    Ramp,
)
from stepladder.curricula.registry import (
    CURRICULA,
    config_from_json,
    curriculum_variants,
    register_curriculum,
)
from stepladder.curricula.staged import (
    SEVEN_STAGES,
    SEVEN_STAGES_LENIENT,
    DemotionRule,
    EarlyRule,
    Mixing,
    Stage,
    StageChange,
    Staged,
    StagedConfig,
    StagedExplanation,
    StageReport,
    TrendRule,
)
from stepladder.curricula.uniform import PlayCounter, Uniform, UniformConfig
from stepladder.plans.legend import Legend
from stepladder.plans.plan import Grouping
from stepladder.plans.record import Draw, Record, RecordArray, record_array
from stepladder.saving.snapshot import Snapshot

__all__ = [
    "CURRICULA",
    "SEVEN_STAGES",
    "SEVEN_STAGES_LENIENT",
    "AncestorProgress",
    "AncestorProgressConfig",
    "CompiledRule",
    "Curriculum",
    "CurriculumConfig",
    "CurriculumEvent",
    "CurriculumMeter",
    "DemotionRule",
    "Draw",
    "EarlyRule",
    "EventCursor",
    "Evicting",
    "Explanation",
    "Frontier",
    "FrontierConfig",
    "FrontierExplanation",
    "Grouping",
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
    "PlayCounter",
    "ProgressExplanation",
    "Quarantined",
    "Ramp",
    "Record",
    "RecordArray",
    "Snapshot",
    "Stage",
    "StageChange",
    "StageReport",
    "Staged",
    "StagedConfig",
    "StagedExplanation",
    "TaskExplanation",
    "TaskKnowledge",
    "Tasks",
    "TrendRule",
    "Uniform",
    "UniformConfig",
    "Variant",
    "config_from_json",
    "curriculum_events",
    "curriculum_variants",
    "record_array",
    "register_curriculum",
    "task_table",
]
