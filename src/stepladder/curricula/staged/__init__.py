"""Ordered stages that unlock each other."""

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

__all__ = [
    "SEVEN_STAGES",
    "SEVEN_STAGES_LENIENT",
    "DemotionRule",
    "EarlyRule",
    "Mixing",
    "Stage",
    "StageChange",
    "StageReport",
    "Staged",
    "StagedConfig",
    "StagedExplanation",
    "TrendRule",
]
