"""Which edit of which task comes into a slot: what makes level replay ACCEL.

Mixed into `level_replay`. The choice depends on nothing but the seed, the slot, its generation and
the weights of the moment, and changes nothing: a snapshot needs no more for it, and after an
interrupt it is made again.
"""

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from stepladder.curricula.eviction import Evicting
from stepladder.curricula.level_replay.config import LevelReplayConfig
from stepladder.curricula.level_replay.state import BY_AGE, BY_SCORE
from stepladder.plans.choosing import draw_from_group
from stepladder.tasks.editing import FIRST_EDIT, NUM_VARIANTS, EditedSource
from stepladder.tasks.scramble import stream_key

MAX_PARENTS = 16
"""Tasks that are tried for one edit, before the source's next task comes in instead."""

_EDIT_STREAM = 0x6564
"""Tells these choices from other uses of the seed."""


class Editing(Evicting):
    """Puts edits of replayed tasks into slots."""

    if TYPE_CHECKING:
        config: LevelReplayConfig  # pyright: ignore[reportIncompatibleVariableOverride]

    @property
    def num_edits(self) -> int:
        """Edits in the pool."""
        return int(np.count_nonzero(self.pool.task_ids >= FIRST_EDIT))

    def choose_newcomer(self, slot: int, label: str | None) -> int | None:
        """Return an edit of a task drawn as a replay is drawn; None is the source's next task."""
        key = self.seed
        for stream in (_EDIT_STREAM, slot, int(self.pool.generations[slot])):
            key = stream_key(key, stream)
        if _unit(key, 0) >= self.config.editing:
            return None
        for attempt in range(MAX_PARENTS):
            parent = self._draw_replay(*(_unit(key, 3 * attempt + number) for number in (1, 2)))
            if parent < 0:
                return None
            if label is None or self.label_of(parent) == label:
                first = stream_key(key, 3 * attempt + 3) % NUM_VARIANTS
                edit = self._free_edit(int(self.pool.task_ids[parent]), first)
                if edit is not None:
                    return edit
        return None

    def _draw_replay(self, which: float, where: float) -> int:
        """Return a slot that has a score, by age or by score; -1 if there is none."""
        block, table = (self._plan or self.plan).block, self._table
        layer = BY_AGE if which < self.config.staleness else BY_SCORE
        return int(draw_from_group(block, table, layer, where))

    def _free_edit(self, task_id: int, first: int) -> int | None:
        """Return an edit of a task that is not in the pool; None if there is none."""
        source = cast("EditedSource", self.pool.source)
        if source.depth(task_id) == source.max_depth:
            return None
        for variant in range(NUM_VARIANTS):
            edit = source.child(task_id, 1 + (first + variant) % NUM_VARIANTS)
            if not self.pool.contains(edit):
                return edit
        return None

    def state_metrics(self) -> dict[str, float]:
        """Return how many edits are in the pool, and how deep the deepest is."""
        metrics = super().state_metrics()
        if not self.config.editing:
            return metrics
        return {**metrics, "num_edits": self.num_edits, "deepest_edit": self.deepest_edit}

    @property
    def deepest_edit(self) -> int:
        """Edits that lie between the source and the task that is farthest from it."""
        source: Any = self.pool.source
        edits = self.pool.task_ids[self.pool.task_ids >= FIRST_EDIT]
        return int(source.depths(edits).max()) if len(edits) else 0


def _unit(key: int, number: int) -> float:
    return (stream_key(key, number) >> 11) * 2.0**-53
