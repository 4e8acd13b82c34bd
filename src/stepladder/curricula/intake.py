"""A batch of records on its way into a curriculum: kept until all that follows from it is done.

Ctrl-C can come between any two lines. It may stop an update with some of a batch observed, a
change of stage half written or a listener not told yet. An intake says
how far the batch has come, so that the next call completes it: nothing is lost, nothing is done
twice. Used by `observing`; `sync` keeps one for each collection.
"""

import inspect
from typing import Any

import numpy as np

from stepladder.plans.record import RECORD_DTYPE, RecordArray

NO_RECORDS: RecordArray = np.zeros(0, dtype=RECORD_DTYPE)


def is_running(method: Any, owner: object) -> bool:
    """Whether this is called from inside a method of an object.

    By the stack: a flag would stay set forever when an interrupt comes at the wrong moment.
    """
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code is method.__code__ and frame.f_locals["self"] is owner:
            return True
        frame = frame.f_back
    return False


class Intake:
    """One batch, and how far it has come. Its records must not change before it is done."""

    __slots__ = ("is_done", "num_before", "outer", "records", "telling")

    def __init__(
        self,
        records: RecordArray = NO_RECORDS,
        num_before: int = 0,
        outer: "Intake | None" = None,
    ):
        self.records = records
        self.num_before = num_before
        """Records that the curriculum had observed before it."""
        self.outer = outer
        """The intake that is going on already: of the batch whose listener observes this one."""
        self.is_done = False
        self.telling: tuple[tuple[Any, ...], list[Any]] | None = None
        """The listeners, and an entry for each that has returned; set when the first is called."""
