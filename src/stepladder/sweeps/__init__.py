"""WHICH SETTINGS: many settings, each played over seeds, saved in an Optuna study.

`space` defines what is varied, `objective` says what is measured, `study` proposes and saves
trials, `trials` plays them.
"""

from stepladder.sweeps.objective import Measured, Objective, Start, Wait
from stepladder.sweeps.space import (
    Dimension,
    SweepChoice,
    SweepParams,
    SweepRange,
    parse_choice,
    parse_range,
)
from stepladder.sweeps.trials import SweepResult, SweepTrial, sweep

__all__ = [
    "Dimension",
    "Measured",
    "Objective",
    "Start",
    "SweepChoice",
    "SweepParams",
    "SweepRange",
    "SweepResult",
    "SweepTrial",
    "Wait",
    "parse_choice",
    "parse_range",
    "sweep",
]
