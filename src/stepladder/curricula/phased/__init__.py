"""A list of phases, and fixed mixtures of labels."""

from stepladder.curricula.phased.config import Phase, PhasedConfig
from stepladder.curricula.phased.mixture import Mixture, MixtureConfig
from stepladder.curricula.phased.phased import Phased
from stepladder.curricula.phased.report import PhaseChange, PhasedExplanation
from stepladder.curricula.phased.settings import Mixed, Ramp

__all__ = [
    "Mixed",
    "Mixture",
    "MixtureConfig",
    "Phase",
    "PhaseChange",
    "Phased",
    "PhasedConfig",
    "PhasedExplanation",
    "Ramp",
]
