"""What is kept of a task that an env could not build.

Made by `owner` when it takes a task out of play; `turnover` and `reporting` show it.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Quarantined:
    """A task that an env could not build."""

    slot: int
    generation: int
    task: str
    label: str
    reason: str
    replaced: bool
    """Whether the source had another task to put into the slot."""
