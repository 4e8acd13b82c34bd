"""Favour tasks whose success is still moving, up or down.

Gets records from `sync`, gives weights back; when its source has more tasks than the pool, tasks
without progress make room for new ones.

After Kanitscheider et al. 2021, "Multi-task curriculum learning in a complex, visual, hard
exploration domain", with what measuring showed to be missing there: an average starts from nothing
rather than from zero, sampling noise is not progress (it is subtracted), and exploration is a share
of probability rather than a score. docs/learning_progress.md lists the differences one by one.

A task nobody solves and a task everybody solves look alike here: both have stopped moving, so both
fade to the exploration share. Do not use this when the order of tasks is known; `Staged` is
simpler and does not have to find out.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stepladder.compiled import compiled
from stepladder.curricula.base import Curriculum
from stepladder.curricula.config import Tasks
from stepladder.curricula.explanation import Explanation
from stepladder.curricula.kernels import (
    H_POSITIONS,
    H_ROWS,
    Floats,
    Words,
    begin_write,
    end_write,
    set_leaf,
)
from stepladder.curricula.learning_progress_config import LearningProgressConfig
from stepladder.curricula.plan import Grouping
from stepladder.curricula.record import RecordArray, first_bad_record
from stepladder.curricula.snapshot import Snapshot, matching
from stepladder.stats.averages import AveragePair

# Columns of the statistics per slot.
PLAYS, FAST, SLOW, PROGRESS, BIN = 0, 1, 2, 3, 4
NUM_COLUMNS = 8
"""Five are used; eight fill a cache line."""

# Layers of the weight table.
BY_PROGRESS, BY_NOVELTY = 0, 1

NUM_BINS = 256

# The settings that the kernel reads.
S_FAST_RATE, S_SLOW_RATE, S_NOISE_Z, S_NOVICE, S_EVICT_PLAYS, S_EVICT_SHARE = 0, 1, 2, 3, 4, 5
S_USES_RETURN, S_LOW, S_HIGH = 6, 7, 8


@compiled
def progress_of(row: Floats, tables: Floats, noise_z: float) -> float:
    """Return how far the averages lie apart beyond what chance explains, in [0, 1]."""
    entry = min(int(row[PLAYS]), tables.shape[1] - 1)
    if row[PLAYS] < 2.0:
        return 0.0
    fast, slow = row[FAST] / tables[0, entry], row[SLOW] / tables[1, entry]
    count = tables[3, entry]
    # One success and one failure more than were seen: no rate is ever certain to be 0 or 1.
    rate = (slow * count + 1.0) / (count + 2.0)
    error = np.sqrt(rate * (1.0 - rate) * tables[2, entry])
    return max(0.0, abs(fast - slow) - noise_z * error)


@compiled
def _rank_is_low(bin_index: int, histogram: Words, share: float) -> bool:
    """Whether fewer than `share` of the well-known tasks have less progress than this bin."""
    below, total = 0, 0
    for index in range(len(histogram)):
        total += histogram[index]
        if index < bin_index:
            below += histogram[index]
    return total * share >= 1.0 and below < share * total


@compiled
def absorb(
    block: Words,
    table: int,
    records: RecordArray,
    rows: Floats,
    base_weights: Floats,
    tables: Floats,
    settings: Floats,
    histogram: Words,
    counters: Words,
    evict: Words,
) -> tuple[int, int]:
    """Learn from records and write the weights of the slots they name.

    Returns:
        Minus one and how many slots to replace, listed in `evict`; or, with nothing changed, the
        index of a bad record and zero.
    """
    uses_return = settings[S_USES_RETURN] > 0.0
    bad = first_bad_record(records, len(rows), not uses_return)
    if bad >= 0:
        return bad, 0
    num_evicted = 0
    begin_write(block)
    for index in range(len(records)):
        record = records[index]
        slot = record.slot
        counters[0] += 1
        counters[1] += record.length
        if record.generation != block[block[H_ROWS] + 2 * slot + 1]:
            counters[2] += 1
            continue
        value = record.success
        if uses_return:
            span = settings[S_HIGH] - settings[S_LOW]
            value = min(1.0, max(0.0, (record.episode_return - settings[S_LOW]) / span))
        row = rows[slot]
        row[PLAYS] += 1.0
        row[FAST] += settings[S_FAST_RATE] * (value - row[FAST])
        row[SLOW] += settings[S_SLOW_RATE] * (value - row[SLOW])
        row[PROGRESS] = progress_of(row, tables, settings[S_NOISE_Z])
        if block[block[H_POSITIONS] + slot] >= 0:
            set_leaf(block, table, slot, row[PROGRESS] * base_weights[slot], BY_PROGRESS)
            if row[PLAYS] == settings[S_NOVICE]:
                set_leaf(block, table, slot, 0.0, BY_NOVELTY)
        if row[PLAYS] >= settings[S_EVICT_PLAYS]:
            new_bin = min(int(row[PROGRESS] * len(histogram)), len(histogram) - 1)
            if row[BIN] > 0.0:
                histogram[int(row[BIN]) - 1] -= 1
            histogram[new_bin] += 1
            row[BIN] = new_bin + 1
            if num_evicted < len(evict) and _rank_is_low(
                new_bin, histogram, settings[S_EVICT_SHARE]
            ):
                evict[num_evicted] = slot
                num_evicted += 1
    end_write(block)
    return -1, num_evicted


@dataclass(frozen=True, kw_only=True)
class ProgressExplanation(Explanation):
    """Where the progress is."""

    num_novices: int
    """Tasks played too rarely to be judged."""

    num_progressing: int
    """Tasks with progress beyond noise."""

    num_evicted: int
    """Tasks that made room for others so far."""

    top: tuple[tuple[str, float, float], ...]
    """The tasks with the most progress: name, progress, probability."""

    def lines(self) -> list[str]:
        """Return the text, line by line."""
        return [
            *super().lines(),
            f"{self.num_progressing} tasks make progress beyond noise, {self.num_novices} are "
            f"hardly known, {self.num_evicted} have been replaced.",
            *(f"  {name:<24} progress {p:.3f}, probability {q:.4f}" for name, p, q in self.top),
        ]


class LearningProgress(Curriculum):
    """Draws tasks by how much their success is changing.

    Args:
        tasks: A source, a pool or a list of tasks.
        config: The settings; or give them as keywords.
        seed: Seed of all draws.
        capacity: Number of slots; with more tasks in the source than that, tasks are evicted.
        **settings: Fields of `LearningProgressConfig`.
    """

    config: LearningProgressConfig  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(
        self,
        tasks: Tasks,
        config: LearningProgressConfig | None = None,
        *,
        seed: int = 0,
        capacity: int | None = None,
        **settings: Any,
    ):
        config = config or LearningProgressConfig(**settings)
        super().__init__(tasks, config, seed=seed, capacity=capacity)
        self.needs_success = config.signal == "success"
        self.num_evicted = 0
        """Tasks that made room for others so far."""
        num_slots = self.pool.num_slots
        pair = AveragePair.of_halflives(
            config.fast_halflife_episodes, config.slow_halflife_episodes
        )
        self._tables = np.stack([pair.fast_sums, pair.slow_sums, pair.noise, pair.counts])
        self._settings = np.array(
            [
                pair.fast_rate,
                pair.slow_rate,
                np.sqrt(2.0 * np.log(max(2, num_slots)))
                if config.noise_z is None
                else config.noise_z,
                config.novice_plays,
                config.eviction_plays,
                config.eviction_percentile if self.pool.can_replace else 0.0,
                config.signal == "return",
                config.return_low,
                config.return_high,
            ]
        )
        self._rows = np.zeros((num_slots, NUM_COLUMNS))
        self._histogram: Words = np.zeros(NUM_BINS, dtype=np.int64)
        self._evict: Words = np.zeros(64 if self.pool.can_replace else 0, dtype=np.int64)

    def _groupings(self) -> list[Grouping]:
        return [Grouping.layers(self.pool.num_slots, 2)]

    def _publish(self) -> None:
        assert self._plan is not None
        weights = self.pool.base_weights
        novices = self._rows[:, PLAYS] < self.config.novice_plays
        self._fill_weights(self._rows[:, PROGRESS] * weights, BY_PROGRESS)
        self._fill_weights(np.where(novices, weights, 0.0), BY_NOVELTY)
        shares = self._plan.shares(self._table)
        shares[BY_PROGRESS], shares[BY_NOVELTY] = 1.0 - self.config.novelty, self.config.novelty

    def _update(self, records: RecordArray) -> int:
        bad, num_evicted = absorb(
            (self._plan or self.plan).block,
            self._table,
            records,
            self._rows,
            self.pool.base_weights,
            self._tables,
            self._settings,
            self._histogram,
            self.counters,
            self._evict,
        )
        if num_evicted:
            self._replace_all(self._evict[:num_evicted])
        return bad

    def _replace_all(self, slots: Words) -> None:
        for slot in dict.fromkeys(slots.tolist()):
            if not self.is_quarantined(slot):
                self._root.replace(slot)
                self.num_evicted += 1

    def _slot_replaced(self, slot: int) -> None:
        row = self._rows[slot]
        if row[BIN] > 0:
            self._histogram[int(row[BIN]) - 1] -= 1
        row[:] = 0.0
        self._set_weight(slot, 0.0, BY_PROGRESS)
        novice = self.config.novice_plays > 0
        self._set_weight(slot, float(self.pool.base_weights[slot]) * novice, BY_NOVELTY)

    def progress(self) -> Floats:
        """Return every slot's progress, noise taken off; 0 for a task hardly known."""
        return self._rows[:, PROGRESS].copy()

    def plays(self) -> Words:
        """Return how often each slot's task was played."""
        return self._rows[:, PLAYS].astype(np.int64)

    def _explain(self) -> ProgressExplanation:
        progress, probs = self._rows[:, PROGRESS], self.probs()
        best = np.argsort(-progress, kind="stable")[:5]
        return ProgressExplanation(
            **self._overview_fields(),
            num_novices=int(np.sum(self._rows[:, PLAYS] < self.config.novice_plays)),
            num_progressing=int(np.sum(progress > 0)),
            num_evicted=self.num_evicted,
            top=tuple(
                (self.pool.task(slot).name, float(progress[slot]), float(probs[slot]))
                for slot in best.tolist()
                if progress[slot] > 0
            ),
        )

    def _reason(self, slot: int) -> tuple[str, dict[str, float]]:
        row = self._rows[slot]
        entry = min(int(row[PLAYS]), self._tables.shape[1] - 1)
        numbers = {"plays": float(row[PLAYS]), "progress": float(row[PROGRESS])}
        if row[PLAYS] > 0:
            numbers["fast"] = float(row[FAST] / self._tables[0, entry])
            numbers["slow"] = float(row[SLOW] / self._tables[1, entry])
        if row[PROGRESS] > 0:
            return "its success is changing beyond noise", numbers
        if row[PLAYS] < self.config.novice_plays:
            return "it is hardly known and takes part in the share for new tasks", numbers
        return "its success has stopped changing, so exploration alone draws it", numbers

    def _save(self) -> Snapshot:
        return Snapshot(
            {"num_evicted": self.num_evicted},
            {"rows": self._rows.copy(), "histogram": self._histogram.copy()},
        )

    def _load(self, snapshot: Snapshot) -> None:
        self.num_evicted = int(snapshot.state["num_evicted"])
        self._rows[:] = matching(snapshot.arrays, "rows", self._rows)
        self._histogram[:] = matching(snapshot.arrays, "histogram", self._histogram)
