"""What every curriculum shares whose tasks make room for others.

Between `base` and the methods that have a pool with more tasks behind it. Kernels note the slots
(`eviction`); only Python can ask a source for another task, and does it here.
"""

from collections.abc import Mapping
from typing import Any

from stepladder.curricula.base import Curriculum
from stepladder.curricula.eviction import take_noted
from stepladder.curricula.kernels import Words
from stepladder.curricula.saved_fields import read_count


class Evicting(Curriculum):
    """A curriculum that replaces tasks."""

    num_evicted: int = 0
    """Tasks that made room for others so far."""

    _noted_at: int
    """Where in the method's whole numbers the list of noted slots begins."""

    _ints: Words

    def replace_noted(self) -> None:
        """Replace the tasks that the last records showed to be due."""
        for slot in take_noted(self._ints, self._noted_at):
            if self._is_due(slot) and not self.is_quarantined(slot):
                self._evict(slot)

    def _is_due(self, slot: int) -> bool:
        """Whether a noted slot is still to be replaced after the rest of its batch."""
        return True

    def _evict(self, slot: int) -> None:
        """Put another task into a slot if the source has one, and count it."""
        self.num_evicted += self._root._try_replace(slot)

    def _save_state(self) -> dict[str, Any]:
        return {"num_evicted": self.num_evicted}

    def _load_state(self, state: Mapping[str, Any], place: str) -> None:
        self.num_evicted = read_count(state.get("num_evicted"), f"num_evicted of {place}")
