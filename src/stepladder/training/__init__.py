"""Real learning: the loop, phases, opponents, evaluation, checkpoints.

Above agents, games, envs and runs; the commands ``stepladder train`` and ``stepladder eval`` call
it. Names are imported when first used: most of them load torch.
"""

from typing import TYPE_CHECKING

from stepladder.lazy import lazy_names

if TYPE_CHECKING:
    from stepladder.training.config import TrainingConfig, load_config
    from stepladder.training.evaluation import evaluate
    from stepladder.training.loop_run import LoopRun
    from stepladder.training.loop_starting import run
    from stepladder.training.policies import TrainedPolicy, load_policy
    from stepladder.training.results import Progress, TrainingResult
    from stepladder.training.seeds import SeedsOptions, SeedsResult, resume_seeds, train_seeds
    from stepladder.training.starting import resume, train, train_single_run

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

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "stepladder.training.config": "TrainingConfig load_config",
        "stepladder.training.evaluation": "evaluate",
        "stepladder.training.loop_run": "LoopRun",
        "stepladder.training.loop_starting": "run",
        "stepladder.training.policies": "TrainedPolicy load_policy",
        "stepladder.training.results": "Progress TrainingResult",
        "stepladder.training.seeds": "SeedsOptions SeedsResult resume_seeds train_seeds",
        "stepladder.training.starting": "resume train train_single_run",
    },
)
