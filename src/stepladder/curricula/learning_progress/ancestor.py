"""The ancestor's learning progress, by its own formulas: for comparison, not for use.

Gets records from `sync`, gives weights back, like any other curriculum. Two versions, named in
`AncestorProgressConfig`: `seed` averages the mean of the last results of every task whenever any
task reports, takes the signed difference and squashes it; `mature` averages what the task itself
reports, measured from its first result, takes the absolute difference, scales it by its spread over
all tasks and squashes that. docs/learning_progress.md says what is wrong with either.

What is kept is the formulas, not the faults around them: every result reaches the task it belongs
to, and a failed lookup cannot swap two tasks. Each batch costs a pass over all tasks.
"""

from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np

from stepladder.compiled import compiled
from stepladder.curricula.eviction import Evicting
from stepladder.curricula.explanation import Explanation
from stepladder.curricula.learning_progress.config import AncestorProgressConfig
from stepladder.curricula.owner import PlainMethod
from stepladder.plans.kernels import begin_write, end_write, fill_leaves
from stepladder.plans.record import RecordArray, first_bad_record
from stepladder.plans.status import DONE
from stepladder.records import Count, Fields, Floats, Limits, Records, Share, Words, zeros
from stepladder.saving.saved_array import require_parts


class AncestorTask(Fields):
    """What is known of a slot's task."""

    num_plays: Count
    fast: Share
    slow: Share
    plain: Share
    """Average of what the task itself reports."""
    baseline: Share
    """Its first result."""


class State(NamedTuple):
    """Everything that the method learns."""

    method: Records[PlainMethod]
    tasks: Records[AncestorTask]
    recent: Annotated[Floats, Limits(0.0, 1.0 + 1e-9)]
    """The last results of every slot, in the version that averages them."""


Change: TypeAlias = list[tuple[Any, Any, Any]]
"""Arrays, places in them, and what they hold from now on."""


@compiled
def publish(block: Words, table: int, weights: Floats, published: Words, observed: int) -> None:
    """Write all weights, and note for how many records that was done."""
    begin_write(block)
    fill_leaves(block, table, weights)
    published[0] = observed
    end_write(block)


def stretch(average: Floats, amount: float) -> Floats:
    """Map an average so that small values spread out; the identity at an amount of 0.5."""
    clipped = np.clip(average, 0.0, 1.0)
    return clipped * (1.0 - amount) / (clipped + amount * (1.0 - 2.0 * clipped))


def squash(scores: Floats) -> Floats:
    """Turn scores into probabilities: a logistic of each, divided by their sum."""
    odds = 1.0 / (1.0 + np.exp(-np.clip(scores, -500.0, 500.0)))
    return odds / odds.sum()


class AncestorProgress(Evicting):
    """Draws tasks by the ancestor's scores."""

    Config = AncestorProgressConfig
    config: AncestorProgressConfig  # pyright: ignore[reportIncompatibleVariableOverride]

    def _set_up(self) -> None:
        super()._set_up()
        config = self.config
        self.needs_success = config.signal == "success"
        num_slots = self.pool.num_slots
        memory = config.memory if config.variant == "seed" else 0
        state = zeros(State, tasks=num_slots, recent=(num_slots, memory))
        self._learn_in(state)
        self._plays: Words = state.tasks["num_plays"]
        self._fast, self._slow = state.tasks["fast"], state.tasks["slow"]
        self._plain, self._baseline = state.tasks["plain"], state.tasks["baseline"]
        self._recent = state.recent
        self._change: Change = []
        """What the record being observed changes; empty between two records."""
        self._published: Words = np.zeros(1, dtype=np.int64)
        """Records whose scores are in the plan."""

    def _publish(self) -> None:
        self._fill_weights(self.scores())

    def scores(self) -> Floats:
        """Return every slot's score: the bonus while it is hardly known, else a probability."""
        config = self.config
        least = config.min_samples_for_lp
        tracked = self._plays >= (2 if config.variant == "seed" else 1)
        scores = np.full(self.pool.num_slots, config.exploration_bonus)
        if tracked.any():
            probs = squash(self._shape(self._raw()[tracked], self._plain[tracked]))
            scores[tracked] = np.where(
                self._plays[tracked] < least, config.exploration_bonus, probs
            )
        return scores

    def _raw(self) -> Floats:
        if self.config.variant == "seed":
            return self._fast - self._slow
        amount = self.config.early_progress_amplification
        if amount == 0.5:
            return np.abs(self._fast - self._slow)
        return np.abs(stretch(self._fast, amount) - stretch(self._slow, amount))

    def _shape(self, raw: Floats, plain: Floats) -> Floats:
        config = self.config
        scores = raw + config.progress_smoothing
        if config.variant == "seed":
            return scores
        scores = scores + config.performance_bonus_weight * plain
        if config.lp_score_temperature > 0.0:
            return scores / config.lp_score_temperature
        spread = float(scores.std())
        if spread <= 1e-10:
            return scores
        return (scores - scores.mean()) / spread * config.z_score_amplification

    def _update(self, records: RecordArray, num_done: int) -> int:
        bad = first_bad_record(records, self.pool.num_slots, self.needs_success)
        if bad >= 0:
            return bad
        first = self._num_observed.item(0) - num_done
        self._apply()
        if self._num_observed.item(0) == first:
            # Nothing of this batch has been published or looked at for eviction.
            self._handled[0] = self._published[0] = first
        while True:
            observed = self._num_observed.item(0)
            if self._handled.item(0) != observed:
                self._evict_one(observed)
            if observed == first + len(records):
                break
            self._change = self._change_by(records[observed - first], observed + 1)
            self._apply()
        if len(records) and self._published.item(0) != observed:
            weights = self._allowed(self.scores())
            publish(self.plan.block, self._table, weights, self._published, observed)
        return DONE

    def _apply(self) -> None:
        """Store what one record changes; the same again changes nothing."""
        for array, place, value in self._change:
            array[place] = value
        self._change = []

    def _change_by(self, record: Any, observed: int) -> Change:
        """Return what a record changes, as the numbers that follow.

        Args:
            record: The record.
            observed: Records observed with this one.
        """
        slot = int(record["slot"])
        counted: Change = [
            (self.totals["num_steps"], 0, self.num_steps + record["length"]),
            (self._num_observed, 0, observed),
        ]
        if record["generation"] != self.pool.generations[slot]:
            orphans: Change = [(self.totals["num_orphaned"], 0, self.num_orphaned + 1)]
            # No score has changed, so no task makes room.
            return [*orphans, *counted, (self._handled, 0, observed)]
        learn = self._learn_seed if self.config.variant == "seed" else self._learn_mature
        return [*learn(slot, self._value(record)), *counted]

    def _value(self, record: Any) -> float:
        if self.config.signal == "success":
            return float(record["success"])
        span = self.config.return_high - self.config.return_low
        return min(1.0, max(0.0, (float(record["episode_return"]) - self.config.return_low) / span))

    def _learn_seed(self, slot: int, value: float) -> Change:
        rate, factor = self.config.ema_timescale, self.config.slow_timescale_factor
        place = (slot, self._plays[slot] % self.config.memory)
        plays, recent = self._plays.copy(), self._recent.copy()
        fast, slow = self._fast.copy(), self._slow.copy()
        recent[place] = value
        plays[slot] += 1
        known = plays >= 2
        filled = np.minimum(plays, self.config.memory)[known]
        means = recent[known].sum(axis=1) / filled
        fast[known] += rate * (means - fast[known])
        slow[known] += rate * factor * (means - slow[known])
        return [
            (self._recent, place, value),
            (self._plays, slot, plays[slot]),
            (self._fast, slice(None), fast),
            (self._slow, slice(None), slow),
        ]

    def _learn_mature(self, slot: int, value: float) -> Change:
        rate, factor = self.config.ema_timescale, self.config.slow_timescale_factor
        fast, slow, plain, base = (
            array[slot] for array in (self._fast, self._slow, self._plain, self._baseline)
        )
        measured = value
        if self.config.use_baseline_normalization:
            if base == 0.0:
                base = min(value, 0.75)
            measured = max(value - base, 0.0) / max(1.0 - base, 1e-10)
        if fast == 0.0 and slow == 0.0:
            fast = slow = measured
            plain = value
        else:
            fast = fast + rate * (measured - fast)
            slow = slow + rate * factor * (measured - slow)
            plain = plain + rate * (value - plain)
        return [
            (self._plays, slot, self._plays[slot] + 1),
            (self._baseline, slot, base),
            (self._fast, slot, fast),
            (self._slow, slot, slow),
            (self._plain, slot, plain),
        ]

    def _evict_one(self, observed: int) -> None:
        """Replace the lowest of all tasks at or below the eviction rank, if there is one.

        Args:
            observed: Records observed so far; noted in `_handled` together with it.
        """
        lowest = self._lowest() if self.pool.can_replace else None
        if lowest is None or not self._evict(lowest, observed):
            self._handled[0] = observed

    def _lowest(self) -> int | None:
        known = self._plays >= 1
        eligible = self._plays >= self.config.min_presentations_for_eviction
        if not eligible.any() or known.sum() < 2:
            return None
        scores = self.scores()
        ranked = np.sort(scores[known])
        share = self.config.eviction_threshold_percentile
        limit = ranked[min(int(len(ranked) * share), len(ranked) - 1)]
        candidates = np.flatnonzero(eligible & (scores <= limit))
        if not len(candidates):
            return None
        return int(candidates[np.argmin(scores[candidates])])

    def _slot_replaced(self, slot: int) -> None:
        self._state.tasks[slot : slot + 1] = 0
        self._recent[slot] = 0.0
        self._set_weight(slot, self.config.exploration_bonus)

    def _explain(self) -> Explanation:
        return self._overview()

    def _reason(self, slot: int) -> tuple[str, dict[str, float]]:
        numbers = {
            "plays": float(self._plays[slot]),
            "fast": float(self._fast[slot]),
            "slow": float(self._slow[slot]),
            "score": float(self.scores()[slot]),
        }
        if self._plays[slot] < self.config.min_samples_for_lp:
            return "it has too few results and scores the exploration bonus", numbers
        return f"its score by the {self.config.variant!r} formulas is what it is", numbers

    def _check_loaded(self, place: str) -> None:
        most = np.minimum(self._plays, self.config.memory) + 1e-6
        require_parts("recent", place, sum_of_results=(self._recent.sum(axis=1), most))
