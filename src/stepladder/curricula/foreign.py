"""What is left of a curriculum in a process that does not own it: a refusal.

A fork takes the plan away from every owner it copies, and a pickle of one is a `ForeignCurriculum`.
Both ways of copying a curriculum into a worker end in an error that says what to do, instead
of in a copy whose decisions reach no env.
"""

import os
from abc import ABC
from typing import Any, Protocol
from weakref import WeakSet

from stepladder.errors import WrongProcessError


class Disownable(Protocol):
    """Something that belongs to one process."""

    def disown(self) -> None:
        """Refuse to work from now on."""
        ...


owners: WeakSet[Disownable] = WeakSet()
"""Everything that a fork must not duplicate."""


def _disown_all() -> None:
    for owner in list(owners):
        owner.disown()
    owners.clear()


# Done once per fork, so that drawing and observing need not ask each time whose process it is.
os.register_at_fork(after_in_child=_disown_all)

REFUSAL = (
    "this is a copy of a curriculum in a process that does not own it; what it decided here would "
    "reach no env. Pass enable_local_tracking=False to CurriculumEnv and wrap the vector env, or "
    "give the env a client. To continue a curriculum elsewhere, restore its snapshot there."
)


class ForeignCurriculum(ABC):  # noqa: B024, a copy can become one only if both derive from ABC
    """What is left of a curriculum in another process: a marker that refuses to work."""

    is_foreign = True

    def __init__(self, kind: str):
        self.kind = kind

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise WrongProcessError(REFUSAL)
