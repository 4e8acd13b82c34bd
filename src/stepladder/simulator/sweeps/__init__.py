"""WHICH SETTINGS: many settings of one curriculum, played over seeds and kept in an Optuna study.

`space` says what is varied, `study` which values are tried and where results are kept, `trials`
plays them.
"""

from stepladder.simulator.sweeps.space import Choice, Dimension, Range, parse_choice, parse_range
from stepladder.simulator.sweeps.trials import SweepConfig, SweepResult, SweepTrial, sweep

__all__ = [
    "Choice",
    "Dimension",
    "Range",
    "SweepConfig",
    "SweepResult",
    "SweepTrial",
    "parse_choice",
    "parse_range",
    "sweep",
]
