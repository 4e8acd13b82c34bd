"""Checkpoints of a training: saved whole or not at all, and the newest whole one found again.

The training loop saves and resumes here; evaluation, ``watch`` and opponents read policies.
"""

from stepladder.training.checkpoints.folder import TrainingCheckpoint
from stepladder.training.checkpoints.saved_policy import (
    SavedPolicy,
    read_policy,
)
from stepladder.training.checkpoints.store import find, load, load_newest, save

__all__ = [
    "SavedPolicy",
    "TrainingCheckpoint",
    "find",
    "load",
    "load_newest",
    "read_policy",
    "save",
]
