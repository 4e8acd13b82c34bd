"""Favour tasks that are solved sometimes: neither always nor never.

Gets records from `sync`, gives weights back; when its source has more tasks than the pool, tasks
that are always or never solved make room for new ones.

After Rutherford et al. 2024, "No regrets: investigating and improving regret approximations for
curriculum discovery", whose score of a level is p(1 - p), p being the success rate. Florensa et al.
2018, "Automatic goal generation for reinforcement learning agents", keep goals of intermediate
success by two thresholds; prioritised self-play weighs opponents by the same p(1 - p), p being the
rate of wins (Vinyals et al. 2019). Here p is not a number but a Beta distribution, so that a
task played twice is not yet taken for impossible.

A task whose result is a coin toss that no practice changes scores highest here, and keeps doing so.
Do not use it when results are noisy by nature; `LearningProgress` looks for change instead. Do not
use it when the order of tasks is known; `Staged` does not have to find out.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from stepladder.configs.checks import Count, Positive, Share, Within
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
from stepladder.curricula.learnability.kernels import (
    FAILURES,
    LARGEST,
    NUM_COLUMNS,
    PLAYS,
    SCORE,
    SUCCESSES,
    absorb,
    learnability,
    weight_of,
)
from stepladder.curricula.learning_progress.config import SignalConfig
from stepladder.plans.kernels import Floats, Words
from stepladder.plans.record import RecordArray
from stepladder.saving.saved_array import MAX_COUNT, Part, SavedArray

Prior = Annotated[float, Within(0.0, 1e6, above=True, fix="With more, results would not count.")]


@dataclass(frozen=True, kw_only=True)
class LearnabilityConfig(SignalConfig):
    """How much a task is known before it is played, and how soon results are forgotten."""

    halflife_episodes: Positive = 20.0
    """Half-life of a result, in plays of the same task: how quickly a learner is followed."""

    prior_successes: Prior = 1.0
    """Successes that a task counts as having had before its first play."""

    prior_failures: Prior = 1.0
    """Failures that a task counts as having had before its first play."""

    exponent: Annotated[float, Within(0.0, 100.0, fix="1 is the plain p(1 - p).")] = 1.0
    """Power of p(1 - p) that is the weight; above 1 is keener, 0 draws all tasks alike."""

    eviction_percentile: Share = 0.3
    """A task whose learnability is among this lowest share of all well-known tasks is replaced,
    if the source has more tasks than the pool, in [0, 1]. 0 never replaces."""

    eviction_plays: Count = 30
    """Plays after which a task is well known."""

    def make(self, tasks: Tasks, *, seed: int = 0) -> "Learnability":
        """Build the curriculum that this config describes."""
        return Learnability(tasks, self, seed=seed)


@dataclass(frozen=True, kw_only=True)
class LearnabilityExplanation(Explanation):
    """Which tasks are solved sometimes."""

    num_untried: int
    """Tasks without a result."""

    num_evicted: int
    """Tasks that made room for others so far."""

    mean_learnability: float
    """Mean of all tasks' p(1 - p), as far as known; at most 0.25."""

    top: tuple[tuple[str, float, float, float], ...]
    """The most learnable tasks tried so far: name, success, learnability, probability."""

    def lines(self) -> list[str]:
        """Return the text, line by line."""
        return [
            *super().lines(),
            f"Mean learnability {self.mean_learnability:.3f} of at most 0.25; {self.num_untried} "
            f"tasks are untried, {self.num_evicted} have been replaced.",
            *(
                f"  {name:<24} success {p:.2f}, learnability {score:.3f}, probability {prob:.4f}"
                for name, p, score, prob in self.top
            ),
        ]


class Learnability(Evicting):
    """Draws tasks by the expectation of p(1 - p), p being their success rate.

    Args:
        tasks: A source, a pool or a list of tasks.
        config: The settings; or give them as keywords.
        seed: Seed of all draws.
        capacity: Number of slots; with more tasks in the source than that, tasks are evicted.
        **settings: Fields of `LearnabilityConfig`.
    """

    config: LearnabilityConfig  # pyright: ignore[reportIncompatibleVariableOverride]
    _noted_at = I_NUM_EVICTIONS

    def __init__(
        self,
        tasks: Tasks,
        config: LearnabilityConfig | None = None,
        *,
        seed: int = 0,
        capacity: int | None = None,
        **settings: Any,
    ):
        config = settle(LearnabilityConfig, config, settings)
        super().__init__(tasks, config, seed=seed, capacity=capacity)
        self.needs_success = config.signal == "success"
        num_slots = self.pool.num_slots
        # In the order of the settings in `learnability_kernels`.
        self._constants = np.array(
            [
                0.5 ** (1.0 / config.halflife_episodes),
                config.prior_successes,
                config.prior_failures,
                config.exponent,
                config.eviction_plays,
                config.eviction_percentile if self.pool.can_replace else 0.0,
                config.signal == "return",
                config.return_low,
                config.return_high,
            ]
        )
        self._prior_score = learnability(0.0, 0.0, config.prior_successes, config.prior_failures)
        self._rows = np.zeros((num_slots, NUM_COLUMNS))
        self._rows[:, SCORE] = self._prior_score
        self._extras = np.stack([np.zeros(num_slots), self.pool.base_weights], axis=1)
        self._ints: Words = np.zeros(NUM_INTS, dtype=np.int64)
        self.counters = self._ints[:I_HISTOGRAM]

    def _publish(self) -> None:
        weights = (self._rows[:, SCORE] / LARGEST) ** self.config.exponent
        self._fill_weights(weights * self.pool.base_weights)

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

    def _slot_replaced(self, slot: int) -> None:
        unfile(slot, self._extras, self._ints)
        weight = float(self.pool.base_weights[slot])
        self._extras[slot, WEIGHT] = weight
        self._rows[slot] = 0.0
        self._rows[slot, SCORE] = self._prior_score
        self._set_weight(slot, weight_of(self._prior_score, self.config.exponent) * weight)

    def scores(self) -> Floats:
        """Return the expectation of p(1 - p) for every slot, in [0, 0.25]."""
        return self._rows[:, SCORE].copy()

    def plays(self) -> Words:
        """Return how often each slot's task was played."""
        return self._rows[:, PLAYS].astype(np.int64)

    def success_rates(self) -> Floats:
        """Return the posterior mean of every slot's success rate; the prior's if untried."""
        wins = self.config.prior_successes + self._rows[:, SUCCESSES]
        return wins / (wins + self.config.prior_failures + self._rows[:, FAILURES])

    def _explain(self) -> LearnabilityExplanation:
        scores, rates, probs = self._rows[:, SCORE], self.success_rates(), self.probs()
        tried = self._rows[:, PLAYS] > 0
        best = np.argsort(np.where(tried, -scores, 0.0), kind="stable")[:5]
        return LearnabilityExplanation(
            **self._overview_fields(),
            num_untried=int(np.sum(~tried)),
            num_evicted=self.num_evicted,
            mean_learnability=float(scores.mean()),
            top=tuple(
                (
                    self.pool.source.name(int(self.pool.task_ids[slot])),
                    float(rates[slot]),
                    float(scores[slot]),
                    float(probs[slot]),
                )
                for slot in best.tolist()
                if tried[slot]
            ),
        )

    def _reason(self, slot: int) -> tuple[str, dict[str, float]]:
        row = self._rows[slot]
        wins = self.config.prior_successes + float(row[SUCCESSES])
        losses = self.config.prior_failures + float(row[FAILURES])
        rate = wins / (wins + losses)
        numbers = {
            "plays": float(row[PLAYS]),
            "success": rate,
            "success_error": math.sqrt(rate * (1.0 - rate) / (wins + losses + 1.0)),
            "learnability": float(row[SCORE]),
        }
        if row[PLAYS] == 0:
            return "it is untried and weighs what the prior says", numbers
        return (
            f"it is solved in about {rate:.0%} of its episodes, and half would weigh most"
        ), numbers

    def _saved_arrays(self) -> list[SavedArray]:
        return [
            SavedArray(
                "rows",
                self._rows,
                (
                    Part.count("plays", np.s_[:, PLAYS]),
                    Part("successes", np.s_[:, SUCCESSES], 0.0, MAX_COUNT),
                    Part("failures", np.s_[:, FAILURES], 0.0, MAX_COUNT),
                    Part("learnability", np.s_[:, SCORE], 0.0, LARGEST + 1e-9),
                ),
            ),
            *filed_arrays(self._extras, self._ints, self.pool.base_weights),
        ]

    def _check_loaded(self, place: str) -> None:
        check_filed(self._extras, self._ints, place)
