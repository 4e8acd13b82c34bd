"""Checkpoints of a training: saved whole or not at all, and the newest whole one found again.

The training loop saves and resumes here; evaluation, ``watch`` and opponents read policies.
"""

from stepladder.training.checkpoints.folder import TrainingCheckpoint
from stepladder.training.checkpoints.store import (
    Policy,
    find,
    load,
    load_newest,
    load_policy,
    save,
)

__all__ = ["Policy", "TrainingCheckpoint", "find", "load", "load_newest", "load_policy", "save"]
