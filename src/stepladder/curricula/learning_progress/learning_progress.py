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

from stepladder.compiled import direct
from stepladder.curricula.base import NO_NUMBER
from stepladder.curricula.config import Tasks, settle
from stepladder.curricula.evicting import Evicting
from stepladder.curricula.eviction import (
    I_HISTOGRAM,
    I_NUM_EVICTIONS,
    NUM_INTS,
    SOME_TO_REPLACE,
    WEIGHT,
    check_filed,
    filed_arrays,
    unfile,
)
from stepladder.curricula.explanation import Explanation
from stepladder.curricula.intake import Intake
from stepladder.curricula.learning_progress.config import LearningProgressConfig
from stepladder.curricula.learning_progress.kernels import (
    BY_NOVELTY,
    BY_PROGRESS,
    C_FAST_SCALE,
    C_SLOW_SCALE,
    FAST,
    NUM_COLUMNS,
    NUM_SETTINGS,
    PLAYS,
    PROGRESS,
    RULE,
    SLOW,
    absorb,
    absorb_single,
)
from stepladder.plans.kernels import (
    Floats,
    Words,
)
from stepladder.plans.plan import Grouping
from stepladder.plans.record import Draw, RecordArray
from stepladder.saving.saved_array import Part, SavedArray, require_parts
from stepladder.stats.averages import AveragePair


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


class LearningProgress(Evicting):
    """Draws tasks by how much their success is changing.

    Args:
        tasks: A source, a pool or a list of tasks.
        config: The settings; or give them as keywords.
        seed: Seed of all draws.
        capacity: Number of slots; with more tasks in the source than that, tasks are evicted.
        **settings: Fields of `LearningProgressConfig`.
    """

    Config = LearningProgressConfig
    config: LearningProgressConfig  # pyright: ignore[reportIncompatibleVariableOverride]
    _noted_at = I_NUM_EVICTIONS
    rule = RULE

    def __init__(
        self,
        tasks: Tasks,
        config: LearningProgressConfig | None = None,
        *,
        seed: int = 0,
        capacity: int | None = None,
        **settings: Any,
    ):
        config = settle(LearningProgressConfig, config, settings)
        super().__init__(tasks, config, seed=seed, capacity=capacity)
        self.needs_success = config.signal == "success"
        num_slots = self.pool.num_slots
        self._rows = np.zeros((num_slots, NUM_COLUMNS))
        self._extras = np.stack([np.zeros(num_slots), self.pool.base_weights], axis=1)
        self._constants = self._tabulate(config)
        self._ints: Words = np.zeros(NUM_INTS, dtype=np.int64)
        self.counters = self._ints[:I_HISTOGRAM]
        self._single = Intake()
        self._absorb_single = direct(
            absorb_single,
            *(self._ints, 0, self._rows, self._extras, self._constants, self._ints),
            *(0, 0, 0.0, 0.0, 0),
        )

    def _tabulate(self, config: LearningProgressConfig) -> Floats:
        """Write tables and settings as the numbers that the kernels read."""
        pair = AveragePair.of_halflives(
            config.fast_halflife_episodes, config.slow_halflife_episodes
        )
        noise_z = config.noise_z
        if noise_z is None:
            noise_z = float(np.sqrt(2.0 * np.log(max(2, self.pool.num_slots))))
        settings = np.zeros(len(pair.noise))
        settings[:NUM_SETTINGS] = [
            pair.fast_rate,
            pair.slow_rate,
            noise_z,
            config.novice_plays,
            config.eviction_plays,
            config.eviction_percentile if self.pool.can_replace else 0.0,
            config.signal == "return",
            config.return_low,
            config.return_high,
        ]
        # Entry 0 is never read: progress needs two plays.
        return np.stack(
            [
                1.0 / np.maximum(pair.fast_sums, 1e-300),
                1.0 / np.maximum(pair.slow_sums, 1e-300),
                pair.noise,
                pair.counts,
                1.0 / (pair.counts + 2.0),
                settings,
            ]
        )

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

    def kernel_state(self) -> tuple[Words, int, Floats, Floats, Floats, Words]:
        """Return what the `absorb` kernel takes before the records, the plan's block first."""
        return (
            (self._plan or self.plan).block,
            self._table,
            self._rows,
            self._extras,
            self._constants,
            self._ints,
        )

    def _update(self, records: RecordArray, num_done: int) -> int:
        status = SOME_TO_REPLACE
        if len(records) and not num_done:
            status = absorb(*self.kernel_state(), records)
        if status == SOME_TO_REPLACE:
            self._replace_noted()
        return status

    def report(
        self,
        draw: Draw,
        success: float,
        episode_return: float = 0.0,
        length: int = 1,
        truncated: bool = False,
    ) -> None:
        """Observe one episode; the same as observing its record, in one compiled call.

        Raises:
            RecordError: A number is impossible. Then nothing was observed.
        """
        if self._listeners:
            # They are told records, which the shortcut below does without.
            super().report(draw, success, episode_return, length, truncated)
            return
        if self._due is not None:
            self.finish()
        # An empty batch: what is left to do after the call below is to replace what it notes.
        due = self._due
        self._due = self._single if due is None else Intake(outer=due)
        try:
            status = self._absorb_single(
                (self._plan or self.plan).block,
                self._table,
                self._rows,
                self._extras,
                self._constants,
                self._ints,
                draw[0],
                draw[1],
                success,
                episode_return,
                length,
            )
        except NO_NUMBER:
            status = 0
        if status == SOME_TO_REPLACE:
            self._replace_noted()
        self._due = due
        if status >= 0:
            # It is bad, and nothing has changed; the general way says what is wrong with it.
            super().report(draw, success, episode_return, length, truncated)

    def _slot_replaced(self, slot: int) -> None:
        unfile(slot, self._extras, self._ints)
        self._extras[slot, WEIGHT] = self.pool.base_weights[slot]
        self._rows[slot] = 0.0
        self._set_weight(slot, 0.0, BY_PROGRESS)
        novice = self.config.novice_plays > 0
        self._set_weight(slot, float(self._extras[slot, WEIGHT]) * novice, BY_NOVELTY)

    def progress(self) -> Floats:
        """Return every slot's progress, noise taken off; 0 for a task hardly known."""
        return self._rows[:, PROGRESS].copy()

    def scores(self) -> Floats:
        """Return every slot's `progress`."""
        return self.progress()

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
        entry = min(int(row[PLAYS]), self._constants.shape[1] - 1)
        numbers = {"plays": float(row[PLAYS]), "progress": float(row[PROGRESS])}
        if row[PLAYS] > 0:
            numbers["fast"] = float(row[FAST] * self._constants[C_FAST_SCALE, entry])
            numbers["slow"] = float(row[SLOW] * self._constants[C_SLOW_SCALE, entry])
        if row[PROGRESS] > 0:
            return "its success is changing beyond noise", numbers
        if row[PLAYS] < self.config.novice_plays:
            return "it is hardly known and takes part in the share for new tasks", numbers
        return "its success has stopped changing, so exploration alone draws it", numbers

    def _saved_arrays(self) -> list[SavedArray]:
        return [
            SavedArray(
                "rows",
                self._rows,
                (
                    Part.count("plays", np.s_[:, PLAYS]),
                    Part.share("fast average", np.s_[:, FAST]),
                    Part.share("slow average", np.s_[:, SLOW]),
                    Part("progress", np.s_[:, PROGRESS], 0.0, 1.0 + 1e-6),
                ),
            ),
            *filed_arrays(self._extras, self._ints, self.pool.base_weights),
        ]

    def _check_loaded(self, place: str) -> None:
        constants, rows = self._constants, self._rows
        entries = np.minimum(rows[:, PLAYS], constants.shape[1] - 1).astype(np.int64)
        # Averages begin at 0, and are made larger the fewer plays they have: none passes 1.
        is_played = rows[:, PLAYS] > 0.0
        most = np.where(is_played, 1.0 + 1e-6, 0.0)
        scales = np.where(is_played, constants[:, entries], 1.0)
        require_parts(
            "rows",
            place,
            corrected_fast_average=(rows[:, FAST] * scales[C_FAST_SCALE], most),
            corrected_slow_average=(rows[:, SLOW] * scales[C_SLOW_SCALE], most),
        )
        check_filed(self._extras, self._ints, place)
