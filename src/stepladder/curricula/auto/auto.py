"""The curriculum if the user chooses none: the method that fits the tasks.

Gets records from `sync` and hands them to the method that it chose, which gives weights back. What
is known about the tasks decides: whether there are several, and whether labels or features say
which are alike. Whether episodes say how successful they were is seen when they end. So there are
two methods in the plan, each with a weight table of its own; the first batch of records decides
which one is in force. An env that says success only in some episodes, such as those that succeed,
is judged by success from the first of these on; then the others are failures.

Do not use it when the order of tasks is known and right; `Staged` does not have to find out. Do not
use it to compare methods: name them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stepladder.arrays import Floats
from stepladder.curricula.auto.config import AutoConfig
from stepladder.curricula.base import Curriculum
from stepladder.curricula.batch_rule import CompiledRule
from stepladder.curricula.owner import PlanOwner
from stepladder.curricula.pooled.cells import splits_by_label
from stepladder.curricula.reporting.explanation import Change, Explanation
from stepladder.errors import SnapshotError
from stepladder.plans.plan import Grouping, Plan
from stepladder.plans.record import RecordArray, first_bad_record
from stepladder.saving.saved_array import Part
from stepladder.saving.snapshot import Snapshot
from stepladder.tasks.plain import checked_integer

BY_SUCCESS, BY_RETURN = 0, 1
"""Which of the two methods is in force."""


@dataclass(frozen=True, kw_only=True)
class AutoExplanation(Explanation):
    """Which method was chosen, and what it says."""

    chosen: str
    """Name of the method."""

    reason: str
    """Why it was chosen."""

    inner: Explanation
    """What the method says."""

    def lines(self) -> list[str]:
        """Return the text, line by line."""
        return [
            *super().lines(),
            f"It chose {self.chosen}: {self.reason}.",
            *(f"  {line}" for line in self.inner.lines()),
        ]


class Auto(Curriculum):
    """Chooses the method that fits the tasks, and is that method."""

    Config = AutoConfig
    config: AutoConfig  # pyright: ignore[reportIncompatibleVariableOverride]
    needs_success = False

    def _set_up(self) -> None:
        self.choices = self.config.choose(self.pool)
        self._methods = [one.config.make(self.pool, seed=self.seed) for one in self.choices]
        self._use(BY_SUCCESS)

    def _use(self, index: int) -> None:
        """Let one of the two methods be in force; what it has observed is what this one has."""
        self._chosen = index
        self._keep_state(self._methods[index]._state)

    @property
    def groups_by_label(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the methods judge tasks by their labels; both do if labels stand for kinds."""
        return splits_by_label(self.pool)

    @property
    def method(self) -> Curriculum:
        """The method that was chosen."""
        return self._methods[self._chosen]

    # The plan.

    def _groupings(self) -> list[Grouping]:
        return [grouping for method in self._methods for grouping in method._groupings()]

    def _dials(self) -> list[Part]:
        return [dial for method in self._methods for dial in method._dials()]

    def _attach(self, plan: Plan, tables: list[int], first_dial: int, root: PlanOwner) -> None:
        self._plan, self._root, self._first_dial = plan, root, first_dial
        for method in self._methods:
            method._attach(plan, tables, first_dial, root)
            first_dial += len(method._dials())

    def _active_table(self) -> int:
        return self.method._active_table()

    def _publish(self) -> None:
        """Leave the plan to the methods."""

    def _publish_target(self) -> None:
        for method in self._methods:
            method._publish_target()

    def _renew_target(self, slot: int) -> None:
        for method in self._methods:
            method._renew_target(slot)

    # Observing.

    def _update(self, records: RecordArray, num_done: int) -> int:
        if self._state is not self.method._state:
            self._use(self._chosen)  # An interrupt came in between.
        if not num_done and len(records):
            bad = first_bad_record(records, self.pool.num_slots, False)
            if bad >= 0:
                return bad
            self._decide(records)
        if self._chosen == BY_SUCCESS and np.isnan(records["success"]).any():
            records = records.copy()
            records["success"] = np.nan_to_num(records["success"])
        return self.method._update(records, num_done)

    def _decide(self, records: RecordArray) -> None:
        """Choose by the first records; a success that comes later decides for good."""
        has_success = not np.isnan(records["success"]).all()
        if self._chosen == BY_RETURN and has_success:
            self._methods[BY_SUCCESS].totals[:] = self.totals
            self._use(BY_SUCCESS)
        elif self._num_observed.item(0) == 0 and not has_success:
            self._use(BY_RETURN)
        else:
            return
        self.plan.header["table_at"] = self._root._active_table()

    def rule_in_force(self) -> CompiledRule | None:
        """Return the kernels of the method."""
        return self.method.rule_in_force()

    def kernel_state(self) -> tuple[Any, ...]:
        """Return what the kernels of the method take before the records."""
        _ = self.plan
        return self.method.kernel_state()

    # Tasks that come and go.

    @property
    def num_evicted(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Tasks that made room for others so far."""
        return self.method.num_evicted

    def _slot_replaced(self, slot: int) -> None:
        for method in self._methods:
            method._slot_replaced(slot)

    def _expect_envs(self, num_envs: int) -> None:
        for method in self._methods:
            method._expect_envs(num_envs)

    def _can_replace(self) -> bool:
        return self.method._can_replace()

    def _slot_lost(self, slot: int, reason: str) -> None:
        for method in self._methods:
            method._slot_lost(slot, reason)

    def _replacement_label(self, slot: int) -> str | None:
        labels = [method._replacement_label(slot) for method in self._methods]
        return next((label for label in labels if label is not None), None)

    # Looking.

    def in_force(self) -> Curriculum:
        """Return the method that was chosen."""
        return self.method.in_force()

    def changes(self) -> Sequence[Change]:
        """Return the decisions of the method so far."""
        return self.method.changes()

    def states(self) -> list[str]:
        """Return where every slot stands, in the words of the method."""
        return self.method.states()

    def state_metrics(self) -> dict[str, float]:
        """Return the metrics of the method."""
        return self.method.state_metrics()

    def scores(self) -> Floats:
        """Return the scores of the method."""
        _ = self.plan
        return self.method.scores()

    def _explain(self) -> AutoExplanation:
        choice = self.choices[self._chosen]
        return AutoExplanation(
            **self._overview_fields(),
            chosen=choice.config.kind,
            reason=choice.reason,
            inner=self.method._explain(),
        )

    def _reason(self, slot: int) -> tuple[str, dict[str, float]]:
        return self.method._reason(slot)

    # Saving and resuming.

    def _save_all(self) -> Snapshot:
        parts = {f"method{index}": one._save_all() for index, one in enumerate(self._methods)}
        return Snapshot.of_parts({"chosen": self._chosen}, **parts)

    def _load_all(self, snapshot: Snapshot) -> None:
        self._load_state(snapshot.state, snapshot.place)
        for index, method in enumerate(self._methods):
            method._load_all(snapshot.part(f"method{index}"))

    def _load_state(self, state: Mapping[str, Any], place: str) -> None:
        chosen = checked_integer(
            state.get("chosen"), "The snapshot's method", BY_SUCCESS, BY_RETURN, SnapshotError
        )
        self._use(chosen)
