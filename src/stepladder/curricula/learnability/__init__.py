"""Tasks that are solved sometimes, by p(1 - p)."""

from stepladder.curricula.learnability.learnability import (
    Learnability,
    LearnabilityConfig,
    LearnabilityExplanation,
)

__all__ = ["Learnability", "LearnabilityConfig", "LearnabilityExplanation"]
