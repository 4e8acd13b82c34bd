"""Read a trained policy from a run, a checkpoint or a file.

Called by users, as ``stepladder.load_policy``.
"""

from os import PathLike
from typing import Literal

from stepladder.configs.checks import require_integer
from stepladder.errors import ConfigError, shown
from stepladder.runs.checkpoint_choice import BEST, LAST
from stepladder.training.checkpoints import read_policy
from stepladder.training.policies.trained_policy import TrainedPolicy


def load_policy(
    path: str | PathLike[str],
    *,
    step: int | None = None,
    which: Literal["last", "best"] = "last",
    device: str = "cpu",
    seed: int = 0,
    trust: bool = False,
) -> TrainedPolicy:
    """Return the policy of a run.

    Args:
        path: The folder of a run or of one of its checkpoints, or a file such as
            ``weights.safetensors`` or what `TrainedPolicy.save` has written.
        step: Of the checkpoint to take, if the path is a run.
        which: If no step is given: the newest checkpoint (``"last"``), or that of the best
            evaluation so far (``"best"``).
        device: Where it computes: "cpu", "cuda", "cuda:1", or "auto".
        seed: Of the actions that it draws.
        trust: Whether a network of a user that it names may be imported.

    Raises:
        ConfigError: The run has no such checkpoint to choose, or the device does not exist.
        SnapshotError: There is none, or it is damaged.
        RunError: The run is.
    """
    if which not in (LAST, BEST):
        raise ConfigError(f"which must be 'last' or 'best'; got {shown(which)}.")
    if step is not None:
        require_integer("step", step, 0)
        if which == BEST:
            raise ConfigError(
                f"step={step} and which='best' were given, and may be two checkpoints. Leave one "
                "out."
            )
    saved = read_policy(path, which if step is None else int(step))
    return TrainedPolicy(saved, device=device, seed=seed, trust=trust)
