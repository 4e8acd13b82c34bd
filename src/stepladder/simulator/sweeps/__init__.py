"""WHICH SETTINGS: many settings of one curriculum, played over seeds and saved in an Optuna study.

`space` defines what is varied, `study` proposes and saves trials, `trials` plays them.
"""

from stepladder.simulator.sweeps.space import (
    Dimension,
    SweepChoice,
    SweepConfig,
    SweepRange,
    parse_choice,
    parse_range,
)
from stepladder.simulator.sweeps.trials import SweepResult, SweepTrial, sweep

__all__ = [
    "Dimension",
    "SweepChoice",
    "SweepConfig",
    "SweepRange",
    "SweepResult",
    "SweepTrial",
    "parse_choice",
    "parse_range",
    "sweep",
]
