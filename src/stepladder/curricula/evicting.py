"""What every curriculum shares whose tasks make room for others.

Between `base` and the methods that have a pool with more tasks behind it. Kernels note the slots
(`eviction`); only Python can ask a source for another task, and does it here. The list is kept
until the last of its slots was handled, so that an interrupt loses none and handles none twice.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, cast

import numpy as np

from stepladder.compiled import compiled, direct
from stepladder.curricula.base import Curriculum
from stepladder.curricula.eviction import Noted
from stepladder.curricula.turnover import Eviction, Turnover
from stepladder.plans.plan import aligned_words
from stepladder.plans.record import RecordArray
from stepladder.plans.status import TO_REPLACE
from stepladder.records import Records, Words
from stepladder.saving.saved_fields import read_count


class Evicting(Curriculum):
    """A curriculum that replaces tasks."""

    num_evicted: int = 0
    """Tasks that made room for others so far."""

    def __init__(self, *args: Any, **settings: Any):
        super().__init__(*args, **settings)
        self._handled: Words = np.zeros(1, dtype=np.int64)
        """How many of the noted slots were handled."""

    def _evict(self, slot: int, num_handled: int) -> bool:
        """Put another task into a slot if the source has one, and count it; say whether it had.

        Args:
            slot: Which one.
            num_handled: What to note in `_handled` together with it.
        """
        root = cast("Turnover", self._root)
        return root.evict(slot, Eviction(self, self.num_evicted + 1, num_handled))

    def note_eviction(self, eviction: Eviction) -> None:
        """Count a task that made room; called by whoever carried the replacement out."""
        self.num_evicted = eviction.num_evicted
        self._handled[0] = eviction.num_handled

    def _save_state(self) -> dict[str, Any]:
        return {"num_evicted": self.num_evicted}

    def _load_state(self, state: Mapping[str, Any], place: str) -> None:
        self.num_evicted = read_count(state.get("num_evicted"), f"num_evicted of {place}")


class CompiledMethod(Evicting):
    """A curriculum whose rule for one result is compiled.

    A subclass sets `_observe_kernel`, makes a state and constants and hands them to `_compile_in`.
    """

    _observe_kernel: ClassVar[Callable[..., int]]
    """Called with block, table, state, constants and records; see `observation.observe_batch`."""

    _constants: Any

    def _compile_in(self, state: Any, constants: Any) -> None:
        """Keep what the kernels read: a state, whose ``method`` has `Noted`, and constants."""
        self._learn_in(state)
        self._constants = constants
        self._noted: Records[Noted] = state.method["noted"]
        # Called for every batch: looking at the types of all arguments takes longer than the work.
        self._observe_batch = direct(
            type(self)._observe_kernel, aligned_words(1), 0, state, constants, self._scratch
        )

    def kernel_state(self) -> tuple[Any, ...]:
        """Return what the method's kernels take before the records."""
        return (self._plan or self.plan).block, self._table, self._state, self._constants

    def _update(self, records: RecordArray, num_done: int) -> int:
        status = TO_REPLACE
        if len(records) and not num_done:
            plan = self._plan or self.plan
            status = self._observe_batch(
                *(plan.block, self._table, self._state, self._constants, records)
            )
        if status == TO_REPLACE:
            self._replace_noted()
        return status

    def _replace_noted(self) -> None:
        """Replace the tasks that the last records showed to be due."""
        noted = self._noted["slots"][0, : self._noted["count"][0]].tolist()
        for position in range(self._handled.item(0), len(noted)):
            slot = noted[position]
            is_due = slot not in noted[:position] and self._is_due(slot)
            if not (is_due and not self.is_quarantined(slot) and self._evict(slot, position + 1)):
                self._handled[0] = position + 1
        empty_noted(self._noted, self._handled)

    def _is_due(self, slot: int) -> bool:
        """Whether a noted slot is still to be replaced after the rest of its batch."""
        return True

    def _saved_limits(self) -> dict[str, tuple[Any, Any]]:
        return {"method.noted.slots": (0, self.pool.num_slots - 1)}


@compiled
def empty_noted(noted: Records[Noted], handled: Words) -> None:
    """Empty the list, all of which was handled; one call that no interrupt divides."""
    noted[0].count = 0
    handled[0] = 0
