"""Tasks whose success is changing; and the ancestor's versions, for comparison."""

from stepladder.curricula.learning_progress.ancestor import AncestorProgress
from stepladder.curricula.learning_progress.config import (
    AncestorProgressConfig,
    LearningProgressConfig,
)
from stepladder.curricula.learning_progress.learning_progress import (
    LearningProgress,
    ProgressExplanation,
)

__all__ = [
    "AncestorProgress",
    "AncestorProgressConfig",
    "LearningProgress",
    "LearningProgressConfig",
    "ProgressExplanation",
]
