"""What was learnt, for any program: a trained policy that predicts, is saved, loaded and exported.

`train` returns one, and `load_policy` reads one from a run; both are names of the library itself.
"""

from stepladder.training.policies.loading import load_policy
from stepladder.training.policies.trained_policy import TrainedPolicy

__all__ = ["TrainedPolicy", "load_policy"]
