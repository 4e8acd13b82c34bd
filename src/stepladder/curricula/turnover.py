"""Tasks that come and go: another task in a slot, or a slot out of play.

Between `intake` and `base`. Everything that a replacement changes is found first and noted in
one store; from then on it is carried out, and carried out again if an interrupt comes in between.
Each step either stores what is known beforehand or is one compiled call.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stepladder.curricula.intake import IntakeOwner
from stepladder.curricula.owner import Quarantined
from stepladder.errors import BuildError, ConfigError, TaskError
from stepladder.plans import kernels
from stepladder.tasks.pool import Newcomer


@dataclass
class Eviction:
    """What the method that replaces a task counts when it is done."""

    evictor: Any
    num_evicted: int
    num_handled: int


@dataclass
class Replacement:
    """Another task for a slot, found and not carried out to the end yet."""

    newcomer: Newcomer
    eviction: Eviction | None = None
    is_in: bool = False
    """Whether the task is in its slot, with a weight."""

    notified: list[Any] = field(default_factory=list[Any])
    """One entry for each listener that was called."""


@dataclass(frozen=True)
class Loss:
    """A task that cannot be built, and what becomes of its slot."""

    entry: Quarantined
    replacement: Replacement | None
    num_before: int
    """Tasks quarantined before this one."""


class Turnover(IntakeOwner):
    """Replaces tasks, and takes out those that cannot be built."""

    def __init__(self, *args: Any):
        super().__init__(*args)
        self._replacing: Replacement | None = None
        self._losing: Loss | None = None

    def _complete(self) -> None:
        plan = self.plan
        if int(plan.header["sequence"]) & 1:
            # The interrupt came at the moment in which a write ended.
            kernels.end_write(plan.block)
        if self._replacing is not None:
            self._carry_out_replacing()
        if self._losing is not None:
            self._carry_out_loss(self._losing)

    # Replacing.

    def replace(self, slot: int, task_id: int | None = None) -> int:
        """Put another task into a slot; return the slot's new generation."""
        self.finish()
        label = self._replacement_label(slot)
        if task_id is not None and label is not None and self.pool.source.label(task_id) != label:
            raise ConfigError(
                f"task {task_id} has label {self.pool.source.label(task_id)!r}; slot {slot} "
                f"belongs to {label!r} and keeps it. Choose a task with that label."
            )
        _ = self.plan
        newcomer = self.pool.prepare(slot, task_id, label)
        self._begin_work()
        self._replacing = Replacement(newcomer)
        self._carry_out_replacing()
        self._end_work()
        return newcomer.generation

    def evict(self, slot: int, eviction: Eviction) -> bool:
        """Put another task into a slot if the source has one that fits; say whether it had.

        Called during an update, by this curriculum or one inside its phases.
        """
        self._replacing = self._find_replacement(slot, eviction)
        if self._replacing is None:
            return False
        self._carry_out_replacing()
        return True

    def _find_replacement(self, slot: int, eviction: Eviction | None) -> Replacement | None:
        """Find what a slot gets; changes nothing, so an interrupt in here leaves nothing."""
        if not self._can_replace():
            return None
        label = self._replacement_label(slot)
        chosen = None if eviction is None else eviction.evictor.choose_newcomer(slot, label)
        try:
            newcomer = self.pool.prepare(slot, chosen, label)
        except TaskError:
            return None
        return Replacement(newcomer, eviction)

    def _carry_out_replacing(self) -> None:
        replacement = self._replacing
        assert replacement is not None
        self._carry_out(replacement)
        self._replacing = None

    def _carry_out(self, replacement: Replacement) -> None:
        """Do what is left of a replacement."""
        newcomer, eviction = replacement.newcomer, replacement.eviction
        if not replacement.is_in:
            with self.plan.writing() as block:
                self.pool.admit(newcomer)
                kernels.put_in(block, newcomer.slot)
                self._renew_target(newcomer.slot)
                self._slot_replaced(newcomer.slot)
            replacement.is_in = True
        self._notify_replaced(newcomer.slot, replacement.notified)
        if eviction is not None:
            eviction.evictor.note_eviction(eviction)

    # Quarantine.

    def quarantine(self, slot: int, generation: int, reason: str) -> bool:
        """Take a task that cannot be built out of play, or replace it if the source has more.

        Returns:
            Whether anything changed: False for a task that is already gone.

        Raises:
            BuildError: The method cannot go on without it. It is out of play all the same.
        """
        self.finish()
        self._check_slot(slot)
        if self.is_quarantined(slot) or generation != int(self.pool.generations[slot]):
            return False
        name, label = self.task_name(slot), self.label_of(slot)
        replacement = self._find_replacement(slot, None)
        entry = Quarantined(slot, generation, name, label, reason, replacement is not None)
        self._begin_work()
        self._losing = loss = Loss(entry, replacement, len(self.quarantined))
        try:
            self._carry_out_loss(loss)
        except BuildError:
            self._end_work()
            raise
        self._end_work()
        return True

    def _carry_out_loss(self, loss: Loss) -> None:
        """Do what is left of taking a task out of play."""
        if loss.replacement is not None:
            self._carry_out(loss.replacement)
        if len(self.quarantined) == loss.num_before:
            self.quarantined.append(loss.entry)
        if loss.replacement is None:
            plan, slot = self.plan, loss.entry.slot
            kernels.take_out(plan.block, np.array(plan.tables), slot)
            try:
                self._slot_lost(slot, loss.entry.reason)
            except BuildError:
                self._losing = None
                raise
        self._losing = None
