"""SEVERAL TRAININGS AT ONCE: each in a process of its own, with its share of the cores.

`starting` trains one config with several seeds, `crew` runs the processes, `ray_crew` does so on
the machines of a cluster, `child` is what each of them does.
"""

from stepladder.training.seeds.child import TrainingEnd
from stepladder.training.seeds.starting import (
    SeedsOptions,
    SeedsResult,
    require_engine,
    resume_seeds,
    train_seeds,
)

__all__ = [
    "SeedsOptions",
    "SeedsResult",
    "TrainingEnd",
    "require_engine",
    "resume_seeds",
    "train_seeds",
]
