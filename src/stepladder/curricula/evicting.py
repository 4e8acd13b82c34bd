"""What every curriculum shares whose tasks make room for others.

Between `base` and the methods that have a pool with more tasks behind it. Kernels note the slots
(`eviction`); only Python can ask a source for another task, and does it here. The list is kept
until the last of its slots was handled, so that an interrupt loses none and handles none twice.
"""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from stepladder.curricula.base import Curriculum
from stepladder.curricula.eviction import empty_noted, noted_slots
from stepladder.curricula.turnover import Eviction, Turnover
from stepladder.plans.kernels import Words
from stepladder.saving.saved_fields import read_count


class Evicting(Curriculum):
    """A curriculum that replaces tasks."""

    _noted_at: int
    """Where in the method's whole numbers the list of noted slots begins."""

    _ints: Words

    def __init__(self, *args: Any, **settings: Any):
        super().__init__(*args, **settings)
        self._handled: Words = np.zeros(1, dtype=np.int64)
        """How many of the noted slots were handled."""

    def _replace_noted(self) -> None:
        """Replace the tasks that the last records showed to be due."""
        noted = noted_slots(self._ints, self._noted_at)
        for position in range(self._handled.item(0), len(noted)):
            slot = noted[position]
            is_due = slot not in noted[:position] and self._is_due(slot)
            if not (is_due and not self.is_quarantined(slot) and self._evict(slot, position + 1)):
                self._handled[0] = position + 1
        empty_noted(self._ints, self._noted_at, self._handled)

    def _is_due(self, slot: int) -> bool:
        """Whether a noted slot is still to be replaced after the rest of its batch."""
        return True

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
