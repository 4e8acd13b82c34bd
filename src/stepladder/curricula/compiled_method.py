"""Curricula whose rule for one result is compiled: a batch is one call of the method's kernel.

Between `eviction` and the methods. The kernel is `batch_rule.observe_batch` around the method's
rule. It notes slots to replace in a short list; only Python can ask a source for another task, and
does it after the batch. The list is kept until the last of its slots was handled, so that an
interrupt loses none and handles none twice.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from stepladder.arrays import Words
from stepladder.compiled import compiled, direct
from stepladder.curricula.batch_rule import Noted
from stepladder.curricula.eviction import Evicting
from stepladder.plans.plan import aligned_words
from stepladder.plans.record import RecordArray
from stepladder.plans.status import TO_REPLACE
from stepladder.records import Records


class CompiledMethod(Evicting):
    """A curriculum whose rule for one result is compiled.

    A subclass sets `_observe_kernel` and gives a state and constants to `_keep_kernel_state`.
    """

    _observe_kernel: ClassVar[Callable[..., int]]
    """Called with block, table, state, constants and records; see `batch_rule.observe_batch`."""

    _constants: Any

    def _keep_kernel_state(self, state: Any, constants: Any) -> None:
        """Keep what the kernels read: a state, whose ``method`` has `Noted`, and constants."""
        self._keep_state(state)
        self._constants = constants
        self._fresh = state.tasks[:1].copy()
        """What is known of a task that has just come in."""
        self._noted: Records[Noted] = state.method["noted"]
        # Called for every batch: looking at the types of all arguments takes longer than the work.
        self._kernel = direct(
            type(self)._observe_kernel, aligned_words(1), 0, state, constants, self._scratch
        )

    def kernel_state(self) -> tuple[Any, ...]:
        """Return what the method's kernels take before the records."""
        return (self._plan or self.plan).block, self._table, self._state, self._constants

    def _update(self, records: RecordArray, num_done: int) -> int:
        if len(records) and not num_done:
            plan = self._plan or self.plan
            status = self._kernel(*(plan.block, self._table, self._state, self._constants, records))
        else:
            # Observed before an interrupt: what its kernel noted is left to do.
            status = TO_REPLACE
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

    def _eviction_share(self, percentile: float) -> float:
        """Return the share of well-known tasks that are replaced: none without more tasks."""
        return float(percentile) if self.pool.can_replace else 0.0

    def _slot_replaced(self, slot: int) -> None:
        self._state.tasks[slot : slot + 1] = self._fresh

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
