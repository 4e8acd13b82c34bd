"""WHICH TASK NEXT: one module or folder per method; `base` is the contract they all keep.

What a method of your own needs is exported here too; `registry` is where methods are found by name.
"""

from typing import TYPE_CHECKING

from stepladder.lazy import lazy_names

if TYPE_CHECKING:
    from stepladder.curricula.advantage_bandit.advantage_bandit import (
        AdvantageBandit,
        AdvantageBanditExplanation,
    )
    from stepladder.curricula.advantage_bandit.config import AdvantageBanditConfig
    from stepladder.curricula.auto.auto import Auto, AutoExplanation
    from stepladder.curricula.auto.config import AutoConfig
    from stepladder.curricula.base import Curriculum
    from stepladder.curricula.batch_rule import CompiledRule
    from stepladder.curricula.config import CurriculumConfig, TaskKnowledge, Tasks, Variant
    from stepladder.curricula.eviction import Evicting
    from stepladder.curricula.frontier.config import FrontierConfig
    from stepladder.curricula.frontier.frontier import Frontier, FrontierExplanation
    from stepladder.curricula.learnability.config import LearnabilityConfig
    from stepladder.curricula.learnability.learnability import (
        Learnability,
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
    from stepladder.curricula.level_replay.level_replay import LevelReplay, LevelReplayExplanation
    from stepladder.curricula.phased.config import Phase, PhasedConfig
    from stepladder.curricula.phased.mixture import Mixture, MixtureConfig
    from stepladder.curricula.phased.phased import PhaseChange, Phased, PhasedExplanation
    from stepladder.curricula.phased.settings import Mixed, Ramp
    from stepladder.curricula.quarantined import Quarantined
    from stepladder.curricula.registry import CURRICULA, curriculum_variants, register_curriculum
    from stepladder.curricula.reporting.events import (
        CurriculumEvent,
        EventCursor,
        curriculum_events,
    )
    from stepladder.curricula.reporting.explanation import Change, Explanation, TaskExplanation
    from stepladder.curricula.reporting.meter import CurriculumMeter, task_table
    from stepladder.curricula.staged.config import (
        PUBLISHED_MIXING,
        SEVEN_STAGES,
        SEVEN_STAGES_LENIENT,
        DemotionRule,
        EarlyRule,
        Mixing,
        Stage,
        StagedConfig,
        TrendRule,
    )
    from stepladder.curricula.staged.report import StageChange, StagedExplanation, StageReport
    from stepladder.curricula.staged.staged import Staged
    from stepladder.curricula.uniform import PlayCounter, Uniform, UniformConfig
    from stepladder.plans.legend import Legend
    from stepladder.plans.plan import Grouping
    from stepladder.plans.record import Draw, Record, RecordArray, record_array
    from stepladder.saving.snapshot import Snapshot

__all__ = [
    "CURRICULA",
    "PUBLISHED_MIXING",
    "SEVEN_STAGES",
    "SEVEN_STAGES_LENIENT",
    "AdvantageBandit",
    "AdvantageBanditConfig",
    "AdvantageBanditExplanation",
    "AncestorProgress",
    "AncestorProgressConfig",
    "Auto",
    "AutoConfig",
    "AutoExplanation",
    "Change",
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
    "curriculum_events",
    "curriculum_variants",
    "record_array",
    "register_curriculum",
    "task_table",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "stepladder.curricula.advantage_bandit.advantage_bandit": (
            "AdvantageBandit AdvantageBanditExplanation"
        ),
        "stepladder.curricula.advantage_bandit.config": "AdvantageBanditConfig",
        "stepladder.curricula.auto.auto": "Auto AutoExplanation",
        "stepladder.curricula.auto.config": "AutoConfig",
        "stepladder.curricula.base": "Curriculum",
        "stepladder.curricula.batch_rule": "CompiledRule",
        "stepladder.curricula.config": "CurriculumConfig TaskKnowledge Tasks Variant",
        "stepladder.curricula.eviction": "Evicting",
        "stepladder.curricula.frontier.config": "FrontierConfig",
        "stepladder.curricula.frontier.frontier": "Frontier FrontierExplanation",
        "stepladder.curricula.learnability.config": "LearnabilityConfig",
        "stepladder.curricula.learnability.learnability": ("Learnability LearnabilityExplanation"),
        "stepladder.curricula.learning_progress.ancestor": "AncestorProgress",
        "stepladder.curricula.learning_progress.config": (
            "AncestorProgressConfig LearningProgressConfig"
        ),
        "stepladder.curricula.learning_progress.learning_progress": (
            "LearningProgress ProgressExplanation"
        ),
        "stepladder.curricula.level_replay.config": "LevelReplayConfig",
        "stepladder.curricula.level_replay.level_replay": ("LevelReplay LevelReplayExplanation"),
        "stepladder.curricula.quarantined": "Quarantined",
        "stepladder.curricula.phased.config": "Phase PhasedConfig",
        "stepladder.curricula.phased.mixture": "Mixture MixtureConfig",
        "stepladder.curricula.phased.phased": "PhaseChange Phased PhasedExplanation",
        "stepladder.curricula.phased.settings": "Mixed Ramp",
        "stepladder.curricula.registry": "CURRICULA curriculum_variants register_curriculum",
        "stepladder.curricula.reporting.events": ("CurriculumEvent EventCursor curriculum_events"),
        "stepladder.curricula.reporting.explanation": "Change Explanation TaskExplanation",
        "stepladder.curricula.reporting.meter": "CurriculumMeter task_table",
        "stepladder.curricula.staged.config": (
            "PUBLISHED_MIXING SEVEN_STAGES SEVEN_STAGES_LENIENT DemotionRule EarlyRule Mixing "
            "Stage StagedConfig TrendRule"
        ),
        "stepladder.curricula.staged.report": "StageChange StagedExplanation StageReport",
        "stepladder.curricula.staged.staged": "Staged",
        "stepladder.curricula.uniform": "PlayCounter Uniform UniformConfig",
        "stepladder.plans.legend": "Legend",
        "stepladder.plans.plan": "Grouping",
        "stepladder.plans.record": "Draw Record RecordArray record_array",
        "stepladder.saving.snapshot": "Snapshot",
    },
)
