"""Curricula whose tasks make room for others: counting and carrying out one replacement.

Between `base` and the methods that have a pool with more tasks behind it.
"""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from stepladder.arrays import Words
from stepladder.curricula.base import Curriculum
from stepladder.curricula.reporting.explanation import EvictingExplanation
from stepladder.curricula.turnover import Eviction, Turnover
from stepladder.saving.saved_fields import read_count


class Evicting(Curriculum):
    """A curriculum that replaces tasks."""

    num_evicted: int = 0
    """Tasks that made room for others so far."""

    def _set_up(self) -> None:
        super()._set_up()
        self._handled: Words = np.zeros(1, dtype=np.int64)
        """How many of the noted slots were handled."""

    def _evict(self, slot: int, num_handled: int) -> bool:
        """Put another task into a slot if the source has one, and count it; say whether it had.

        `num_handled` is stored in `_handled` together with it.
        """
        root = cast("Turnover", self._root)
        return root.evict(slot, Eviction(self, self.num_evicted + 1, num_handled))

    def choose_newcomer(self, slot: int, label: str | None) -> int | None:
        """Return the id of the task that is to come into a slot; None leaves it to the pool.

        The same at any call before the slot has another task: it may be called again.

        Args:
            slot: Whose task makes room.
            label: The label that the newcomer must have; None is any.
        """
        return None

    def note_eviction(self, eviction: Eviction) -> None:
        """Count a task that made room; called when the replacement is complete."""
        self.num_evicted = eviction.num_evicted
        self._handled[0] = eviction.num_handled

    def _overview_fields(self) -> dict[str, Any]:
        return {**super()._overview_fields(), "num_evicted": self.num_evicted}

    def _overview(self) -> EvictingExplanation:
        return EvictingExplanation(**self._overview_fields())

    def _save_state(self) -> dict[str, Any]:
        return {"num_evicted": self.num_evicted}

    def _load_state(self, state: Mapping[str, Any], place: str) -> None:
        self.num_evicted = read_count(state.get("num_evicted"), f"num_evicted of {place}")
