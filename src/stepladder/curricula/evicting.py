"""What every curriculum shares whose tasks make room for others.

Between `base` and the methods that have a pool with more tasks behind it. Kernels note the slots
(`eviction`); only Python can ask a source for another task, and does it here.
"""

from stepladder.curricula.base import Curriculum
from stepladder.curricula.eviction import take_noted
from stepladder.curricula.kernels import Words
from stepladder.curricula.snapshot import Snapshot
from stepladder.errors import SnapshotError
from stepladder.tasks.plain import whole_number


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

    def _load_num_evicted(self, snapshot: Snapshot) -> None:
        """Take over the count that a method has saved with its own state."""
        self.num_evicted = whole_number(
            snapshot.state["num_evicted"], "The snapshot's num_evicted", 0, 2**61, SnapshotError
        )
