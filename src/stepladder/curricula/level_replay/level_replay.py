"""Replay the tasks that surprised most when last played, and look at new ones in between.

Gets records from `sync` and, if wanted, scores from a trainer; gives weights back. When its source
has more tasks than the pool, tasks with low scores make room for new ones.

After Jiang, Grefenstette and Rocktäschel 2021, "Prioritized level replay": a draw is a replay or a
task not seen yet; replays go by the rank of a task's score, and some by how long ago it was played.
After Jiang et al. 2021, "Replay-guided adversarial environment design", too, whose robust variant
learns from replays only: `is_replay` tells which draws are. docs/level_replay.md lists where a cost
that is flat in the number of tasks made us deviate from the papers.

A task whose result stays a surprise whatever is learned keeps the highest score. Do not use it with
tasks that are noisy by nature, nor with fewer tasks than would be worth remembering: the method is
made for many levels of one kind, of which a few dozen plays each are all that can be had.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from stepladder.curricula.config import Tasks, settle
from stepladder.curricula.evicting import Evicting
from stepladder.curricula.eviction import SOME_TO_REPLACE, noted_parts
from stepladder.curricula.level_replay.config import (
    GREEDY_TEMPERATURE,
    LevelReplayConfig,
)
from stepladder.curricula.level_replay.kernels import (
    BEFORE,
    BEST,
    BIN,
    BY_AGE,
    BY_RANK,
    BY_SCORE,
    I_NEXT,
    I_NUM_EVICTIONS,
    I_NUM_SEEN,
    I_ORPHANED_SCORES,
    I_START,
    I_TREE,
    LAST,
    MEAN,
    NEVER,
    NUM_COLUMNS,
    NUM_EXTRAS,
    NUM_INTS,
    NUM_LAYERS,
    ORDER,
    PLAYS,
    POSITION,
    PRIOR_MEAN,
    PROPORTIONAL,
    RULE,
    SCORE,
    SCORED,
    SINCE,
    SOFTMAX,
    UNSEEN,
    WEIGHT,
    absorb,
    absorb_scores,
    forget,
    leave,
    write_shares,
    write_shares_anew,
)
from stepladder.curricula.level_replay.ranks import NUM_BINS, add, count_below
from stepladder.curricula.level_replay.report import LevelReplayExplanation
from stepladder.errors import ConfigError, RecordError, SnapshotError
from stepladder.plans.kernels import T_TREES, Floats, Words
from stepladder.plans.plan import Grouping
from stepladder.plans.record import Draw, RecordArray
from stepladder.saving.saved_array import Part, SavedArray

_TRANSFORMS = {
    "rank": BY_RANK,
    "greedy": BY_RANK,
    "proportional": PROPORTIONAL,
    "softmax": SOFTMAX,
}


class LevelReplay(Evicting):
    """Draws tasks by the rank of their last scores, and unseen ones in between.

    Args:
        tasks: A source, a pool or a list of tasks.
        config: The settings; or give them as keywords.
        seed: Seed of all draws.
        capacity: Number of slots; with more tasks in the source than that, tasks are evicted.
        **settings: Fields of `LevelReplayConfig`.
    """

    Config = LevelReplayConfig
    config: LevelReplayConfig  # pyright: ignore[reportIncompatibleVariableOverride]
    _noted_at = I_NUM_EVICTIONS
    rule = RULE

    def __init__(
        self,
        tasks: Tasks,
        config: LevelReplayConfig | None = None,
        *,
        seed: int = 0,
        capacity: int | None = None,
        **settings: Any,
    ):
        config = settle(LevelReplayConfig, config, settings)
        super().__init__(tasks, config, seed=seed, capacity=capacity)
        self.needs_success = config.scored_by == "deviation" and config.signal == "success"
        num_slots = self.pool.num_slots
        self._rows = np.zeros((num_slots, NUM_COLUMNS))
        self._rows[:, MEAN], self._rows[:, BEST] = PRIOR_MEAN, -np.inf
        self._rows[:, WEIGHT] = self.pool.base_weights
        self._extras: Words = np.zeros((num_slots, NUM_EXTRAS), dtype=np.int64)
        self._extras[:, POSITION] = -1
        self._extras[:, SINCE] = self._extras[:, BEFORE] = NEVER
        self._constants = self._tabulate(config)
        self._ints: Words = np.zeros(NUM_INTS, dtype=np.int64)
        self.counters = self._ints[:I_NUM_EVICTIONS]
        self._forgotten: Words = np.full(2, -1, dtype=np.int64)
        """Slot and generation of the last newcomer."""

    def _tabulate(self, config: LevelReplayConfig) -> Floats:
        """Write the settings as the numbers that the kernels read, in their order."""
        return np.array(
            [
                config.scored_by == "trainer",
                config.signal == "return",
                config.return_low,
                config.return_high,
                config.newest_weight,
                _TRANSFORMS[config.transform],
                1.0 / (GREEDY_TEMPERATURE if config.transform == "greedy" else config.temperature),
                config.staleness,
                config.schedule == "fixed",
                config.replay_prob,
                config.min_seen,
                config.reranked_per_episode,
                config.eviction_plays,
                config.eviction_percentile if self.pool.can_replace else 0.0,
            ],
            dtype=np.float64,
        )

    def _groupings(self) -> list[Grouping]:
        return [Grouping.layers(self.pool.num_slots, NUM_LAYERS)]

    def _publish(self) -> None:
        assert self._plan is not None
        # The other layers stay empty: the plan is built before the first record is taken.
        self._fill_weights(self.pool.base_weights, UNSEEN)
        write_shares(self._plan.block, self._table, self._constants, self._ints)

    def kernel_state(self) -> tuple[Words, int, Floats, Words, Floats, Words]:
        """Return what the `absorb` kernel takes before the records, the plan's block first."""
        block = (self._plan or self.plan).block
        return block, self._table, self._rows, self._extras, self._constants, self._ints

    def _update(self, records: RecordArray, num_done: int) -> int:
        status = SOME_TO_REPLACE
        if len(records) and not num_done:
            status = absorb(*self.kernel_state(), records)
        if status == SOME_TO_REPLACE:
            self._replace_noted()
        return status

    def _slot_replaced(self, slot: int) -> None:
        assert self._plan is not None
        generation = int(self.pool.generations[slot])
        forget(self._rows, self._extras, self._ints, slot, generation, self._forgotten)
        weight = float(self.pool.base_weights[slot])
        row = self._rows[slot]
        row[:] = 0.0
        row[MEAN], row[BEST], row[WEIGHT] = PRIOR_MEAN, -np.inf, weight
        self._set_weight(slot, 0.0, BY_SCORE)
        self._set_weight(slot, 0.0, BY_AGE)
        self._set_weight(slot, weight, UNSEEN)
        write_shares(self._plan.block, self._table, self._constants, self._ints)

    def _slot_lost(self, slot: int, reason: str) -> None:
        leave(self._rows, self._extras, self._ints, slot)
        write_shares_anew(self.plan.block, self._table, self._constants, self._ints)

    # What a trainer gives and asks.

    def report_scores(
        self, slots: npt.ArrayLike, generations: npt.ArrayLike, scores: npt.ArrayLike
    ) -> None:
        """Take the scores of finished episodes from a trainer; changes the plan in place.

        `stats.level_scores` has the papers' scores. A score for a task that has been replaced
        since is counted (`num_orphaned_scores`) and credited to nobody.

        Args:
            slots: Slot of each episode, or a single one.
            generations: Generation of each episode, from its draw or its info.
            scores: What each episode scored; a score below 0 counts as 0.

        Raises:
            ConfigError: The config says that scores come from elsewhere.
            RecordError: A number is impossible, or there are not as many of each. Then nothing
                was taken.
        """
        if self.config.scored_by != "trainer":
            raise ConfigError(
                f"scores are reported, but scored_by is {self.config.scored_by!r}. Build the "
                "curriculum with scored_by='trainer'."
            )
        self.finish()
        slot_list, generation_list = self._whole_numbers(slots, generations)
        try:
            score_list = np.atleast_1d(np.asarray(scores, dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise RecordError(f"a score is no number ({error}). Give floats.") from error
        if score_list.shape != slot_list.shape:
            raise RecordError(
                f"there are {score_list.size} scores for {slot_list.size} slots. Give one for each."
            )
        bad = np.flatnonzero(~np.isfinite(score_list))
        if len(bad):
            raise RecordError(
                f"score {int(bad[0])} of {len(score_list)} is {score_list[bad[0]]}; expected a "
                "finite number. Nothing was taken; correct it and send all again."
            )
        self._begin_work()
        status = absorb_scores(
            self.plan.block,
            self._table,
            self._rows,
            self._extras,
            self._constants,
            self._ints,
            slot_list,
            generation_list,
            score_list,
        )
        if status == SOME_TO_REPLACE:
            self._replace_noted()
        self._end_work()

    def is_replay(self, draw: Draw) -> bool:
        """Whether the task of a draw already had a score when it was drawn.

        Robust level replay takes gradients from replays only; other draws are for scoring.
        """
        return bool(self.are_replays(draw.slot, draw.generation, draw.plan_version)[0])

    def are_replays(
        self, slots: npt.ArrayLike, generations: npt.ArrayLike, plan_versions: npt.ArrayLike
    ) -> npt.NDArray[np.bool_]:
        """Answer `is_replay` for many episodes, named by what their infos hold.

        Right for the task in a slot and the one before it; False for any older task.
        """
        slot_list, generation_list, version_list = self._whole_numbers(
            slots, generations, plan_versions
        )
        behind = self.pool.generations[slot_list] - generation_list
        extras = self._extras[slot_list]
        since = np.where(behind == 0, extras[:, SINCE], extras[:, BEFORE])
        return ((behind == 0) | (behind == 1)) & (version_list >= since)

    def _whole_numbers(self, slots: npt.ArrayLike, *others: npt.ArrayLike) -> list[Words]:
        """Return arrays of slots that exist and of whole numbers to go with them."""
        arrays = [np.atleast_1d(np.asarray(numbers)) for numbers in (slots, *others)]
        for array in arrays:
            if array.dtype.kind not in "iu" or array.ndim != 1 or array.shape != arrays[0].shape:
                raise RecordError(
                    "slots, generations and versions must be whole numbers, as many of each; got "
                    f"{array.dtype}{list(array.shape)} beside {len(arrays[0])} slots. "
                    "Take them from the draws or the infos."
                )
        whole = [array.astype(np.int64) for array in arrays]
        outside = np.flatnonzero((whole[0] < 0) | (whole[0] >= self.pool.num_slots))
        if len(outside):
            self._check_slot(int(whole[0][outside[0]]))
        return whole

    # What it knows.

    @property
    def replay_prob(self) -> float:
        """Probability that the next draw is a replay, exploration apart."""
        plan = self.plan
        trees = int(plan.block[self._table + T_TREES])
        sums = plan.block.view(np.float64)[plan.block[trees : trees + NUM_LAYERS] + 1]
        shares = np.where(sums > 0.0, plan.shares(self._table), 0.0)
        return float(shares[:UNSEEN].sum() / shares.sum()) if shares.sum() > 0.0 else 0.0

    @property
    def num_seen(self) -> int:
        """Tasks in play that have a score."""
        return int(self._ints[I_NUM_SEEN])

    @property
    def num_orphaned_scores(self) -> int:
        """Scores of tasks that were replaced before they arrived; credited to nobody."""
        return int(self._ints[I_ORPHANED_SCORES])

    def scores(self) -> Floats:
        """Return every slot's score; 0 for a task without one."""
        return self._rows[:, SCORE].copy()

    def plays(self) -> Words:
        """Return how often each slot's task was played."""
        return self._rows[:, PLAYS].astype(np.int64)

    def best_returns(self) -> Floats:
        """Return the highest return of each slot's task, for `max_monte_carlo`; NaN if unplayed."""
        return np.where(self._rows[:, PLAYS] > 0, self._rows[:, BEST], np.nan)

    def _explain(self) -> LevelReplayExplanation:
        scores, probs = self._rows[:, SCORE], self.probs()
        seen = self._extras[: self.num_seen, ORDER]
        best = sorted(seen.tolist(), key=lambda slot: (-scores[slot], slot))[:5]
        return LevelReplayExplanation(
            **self._overview_fields(),
            num_seen=self.num_seen,
            replay_prob=self.replay_prob,
            num_evicted=self.num_evicted,
            top=tuple(
                (
                    self.pool.source.name(int(self.pool.task_ids[slot])),
                    float(scores[slot]),
                    float(probs[slot]),
                )
                for slot in best
            ),
        )

    def _reason(self, slot: int) -> tuple[str, dict[str, float]]:
        row = self._rows[slot]
        numbers = {"plays": float(row[PLAYS])}
        if self._extras[slot, POSITION] < 0:
            return "it has no score yet and takes part in the share for unseen tasks", numbers
        above = self.num_seen - count_below(self._ints, I_TREE, int(row[BIN]) + 1)
        age = int(self.counters[0] - self.counters[2]) - int(row[LAST])
        numbers |= {"score": float(row[SCORE]), "rank": above + 1.0, "age": float(age)}
        return f"its score ranks {above + 1} of {self.num_seen}", numbers

    def _saved_arrays(self) -> list[SavedArray]:
        num_slots, weights = self.pool.num_slots, self.pool.base_weights
        rows = (
            Part.count("plays", np.s_[:, PLAYS]),
            Part.share("mean", np.s_[:, MEAN]),
            Part.count("number of scores", np.s_[:, SCORED]),
            Part("score", np.s_[:, SCORE], 0.0),
            Part.count("bin", np.s_[:, BIN], NUM_BINS - 1),
            Part.count("time of the last play", np.s_[:, LAST]),
            Part("best return", np.s_[:, BEST], -np.inf),
            Part("base weight", np.s_[:, WEIGHT], weights, weights),
        )
        seen = (
            Part("position", np.s_[:, POSITION], -1, num_slots - 1),
            Part.count("slot", np.s_[:, ORDER], num_slots - 1),
        )
        ints = (
            Part.count("counters", np.s_[:I_NUM_EVICTIONS]),
            *noted_parts(I_NUM_EVICTIONS, num_slots),
            Part.count("number of seen tasks", np.s_[I_NUM_SEEN], num_slots),
            Part.count("next rank", np.s_[I_NEXT], num_slots),
            Part.count("clock and late scores", np.s_[I_START:I_TREE]),
            Part.count("ranks", np.s_[I_TREE:], num_slots),
        )
        return [
            SavedArray("rows", self._rows, rows),
            SavedArray("seen", self._extras[:, : ORDER + 1], seen),
            SavedArray(
                "seen_versions", self._extras[:, SINCE:], (Part.count("version", high=NEVER),)
            ),
            SavedArray("ints", self._ints, ints),
        ]

    def _check_loaded(self, place: str) -> None:
        """Refuse lists that disagree with each other: the kernels would write beside them."""
        self._forgotten[:] = -1
        count, positions = self.num_seen, self._extras[:, POSITION]
        seen = np.flatnonzero(positions >= 0)
        in_order = np.array_equal(np.sort(positions[seen]), np.arange(count))
        if not in_order or not np.array_equal(self._extras[positions[seen], ORDER], seen):
            raise SnapshotError(
                f"array 'seen' of {place}: positions and slots disagree, so the list of seen tasks "
                "is damaged. Use an older one."
            )
        expected = np.zeros_like(self._ints)
        bins, numbers = np.unique(self._rows[seen, BIN], return_counts=True)
        for bin_index, number in zip(bins, numbers, strict=True):
            add(expected, I_TREE, int(bin_index), int(number))
        if not np.array_equal(expected[I_TREE:], self._ints[I_TREE:]):
            raise SnapshotError(
                f"array 'ints' of {place}: the ranks do not count the bins of the scores. Use an "
                "older one."
            )
