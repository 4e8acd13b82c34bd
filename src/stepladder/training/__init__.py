"""Real learning: the loop, phases, opponents, evaluation, checkpoints.

Above agents, games, envs and runs; the commands ``stepladder train`` and ``stepladder eval`` call
it. Names are imported when first used: most of them load torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepladder.training.config import TrainingConfig, load_config
    from stepladder.training.evaluation import evaluate
    from stepladder.training.loop_run import LoopRun
    from stepladder.training.loop_starting import run
    from stepladder.training.policies import TrainedPolicy, load_policy
    from stepladder.training.results import Progress, TrainingResult
    from stepladder.training.seeds import SeedsOptions, SeedsResult, resume_seeds, train_seeds
    from stepladder.training.starting import resume, train, train_single_run

_HOMES = {
    "LoopRun": "loop_run",
    "Progress": "results",
    "SeedsOptions": "seeds",
    "SeedsResult": "seeds",
    "TrainedPolicy": "policies",
    "TrainingConfig": "config",
    "TrainingResult": "results",
    "evaluate": "evaluation",
    "load_config": "config",
    "load_policy": "policies",
    "resume": "starting",
    "resume_seeds": "seeds",
    "run": "loop_starting",
    "train": "starting",
    "train_seeds": "seeds",
    "train_single_run": "starting",
}

__all__ = [
    "LoopRun",
    "Progress",
    "SeedsOptions",
    "SeedsResult",
    "TrainedPolicy",
    "TrainingConfig",
    "TrainingResult",
    "evaluate",
    "load_config",
    "load_policy",
    "resume",
    "resume_seeds",
    "run",
    "train",
    "train_seeds",
    "train_single_run",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"stepladder.training.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'stepladder.training' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
