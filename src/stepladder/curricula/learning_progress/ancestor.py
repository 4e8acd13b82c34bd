"""The ancestor's learning progress, by its own formulas: for comparison, not for use.

Gets records from `sync`, gives weights back, like any other curriculum. Two versions, named in
`AncestorProgressConfig`: `seed` averages the mean of the last results of every task whenever any
task reports, takes the signed difference and squashes it; `mature` averages what the task itself
reports, measured from its first result, takes the absolute difference, scales it by its spread over
all tasks and squashes that. docs/learning_progress.md says what is wrong with either.

What is kept is the formulas, not the faults around them: every result reaches the task it belongs
to, and a failed lookup cannot swap two tasks. Each batch costs a pass over all tasks.
"""

from typing import Annotated, NamedTuple

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.compiled import compiled
from stepladder.curricula.batch_rule import count_record
from stepladder.curricula.eviction import Evicting
from stepladder.curricula.learning_progress.config import AncestorProgressConfig
from stepladder.curricula.owner import PlainMethod
from stepladder.curricula.reporting.explanation import Explanation
from stepladder.curricula.returns import ReturnScale, signal_of, signal_settings
from stepladder.plans.kernels import begin_write, end_write, fill_leaves
from stepladder.plans.record import RecordArray, RecordFields, first_bad_record
from stepladder.plans.status import DONE
from stepladder.records import Count, Fields, Limits, Records, Share, settings_record, zeros
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
    returns: Records[ReturnScale]
    recent: Annotated[Floats, Limits(0.0, 1.0 + 1e-9)]
    """The last results of every slot, in the version that averages them."""


class Settings(AncestorProgressConfig):
    """The config as kernels read it, with what follows from it."""

    is_seed: bool
    uses_return: bool
    finds_range: bool


@compiled
def _learn_seed(state: State, settings: Settings, slot: int, value: float) -> None:
    """Remember a result; move the averages of every task that has two."""
    memory = state.recent.shape[1]
    state.recent[slot, state.tasks[slot].num_plays % memory] = value
    state.tasks[slot].num_plays += 1
    for other in range(len(state.tasks)):
        task = state.tasks[other]
        if task.num_plays >= 2:
            mean = state.recent[other].sum() / min(task.num_plays, memory)
            task.fast += settings.ema_timescale * (mean - task.fast)
            rate = settings.ema_timescale * settings.slow_timescale_factor
            task.slow += rate * (mean - task.slow)


@compiled
def _learn_mature(task: AncestorTask, settings: Settings, value: float) -> None:
    """Move the averages of the task that was played."""
    task.num_plays += 1
    measured = value
    if settings.use_baseline_normalization:
        if task.baseline == 0.0:
            task.baseline = min(value, 0.75)
        measured = max(value - task.baseline, 0.0) / max(1.0 - task.baseline, 1e-10)
    if task.fast == 0.0 and task.slow == 0.0:
        task.fast = measured
        task.slow = measured
        task.plain = value
    else:
        rate = settings.ema_timescale
        task.fast += rate * (measured - task.fast)
        task.slow += rate * settings.slow_timescale_factor * (measured - task.slow)
        task.plain += rate * (value - task.plain)


@compiled
def observe_first(
    block: Words,
    table: int,
    state: State,
    settings: Records[Settings],
    records: Records[RecordFields],
    handled: Words,
) -> None:
    """Learn from the first of some records, in one call that no interrupt divides.

    The result of a task that was replaced changes no score; then `handled` says that no task is
    to make room.
    """
    record, own, totals = records[0], settings[0], state.method[0].totals
    slot, success = record.slot, record.success
    if not count_record(block, table, totals, slot, record.generation, record.length, success):
        handled[0] = totals.num_observed
        return
    value = signal_of(own, state.returns[0], record.success, record.episode_return)
    if own.is_seed:
        _learn_seed(state, own, record.slot, value)
    else:
        _learn_mature(state.tasks[record.slot], own, value)


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
        self._keep_state(state)
        self._settings = settings_record(
            config, is_seed=config.variant == "seed", **signal_settings(config)
        )
        self._plays: Words = state.tasks["num_plays"]
        self._fast, self._slow = state.tasks["fast"], state.tasks["slow"]
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
            plain = self._state.tasks["plain"][tracked]
            probs = squash(self._shape(self._raw()[tracked], plain))
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
        if num_done == 0:
            # Nothing of this batch has been published or looked at for eviction.
            self._handled[0] = self._published[0] = first
        while True:
            observed = self._num_observed.item(0)
            if self._handled.item(0) != observed:
                self._evict_one(observed)
            if observed == first + len(records):
                break
            rest = records[observed - first :]
            block, table = self.plan.block, self._table
            observe_first(block, table, self._state, self._settings, rest, self._handled)
        if len(records) and self._published.item(0) != observed:
            weights = self._allowed(self.scores())
            publish(self.plan.block, self._table, weights, self._published, observed)
        return DONE

    def _evict_one(self, observed: int) -> None:
        """Replace the lowest of all tasks at or below the eviction rank, if there is one."""
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
        self._state.recent[slot] = 0.0
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
        sums = self._state.recent.sum(axis=1)
        require_parts("recent", place, sum_of_results=(sums, most))
