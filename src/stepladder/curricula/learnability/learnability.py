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
from typing import Any

import numpy as np

from stepladder.curricula.config import Tasks, settle
from stepladder.curricula.evicting import CompiledMethod
from stepladder.curricula.eviction import check_filed, unfile
from stepladder.curricula.explanation import Explanation
from stepladder.curricula.learnability import kernels
from stepladder.curricula.learnability.config import LearnabilityConfig
from stepladder.curricula.learnability.kernels import (
    LARGEST,
    Constants,
    State,
    learnability,
    weight_of,
)
from stepladder.records import Floats, Words, settings_record, zeros


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


class Learnability(CompiledMethod):
    """Draws tasks by the expectation of p(1 - p), p being their success rate.

    Args:
        tasks: A source, a pool or a list of tasks.
        config: The settings; or give them as keywords.
        seed: Seed of all draws.
        capacity: Number of slots; with more tasks in the source than that, tasks are evicted.
        **settings: Fields of `LearnabilityConfig`.
    """

    Config = LearnabilityConfig
    config: LearnabilityConfig  # pyright: ignore[reportIncompatibleVariableOverride]
    _observe_kernel = kernels.observe
    rule = kernels.RULE

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
        settings_of = settings_record(
            config,
            keep=0.5 ** (1.0 / config.halflife_episodes),
            eviction_share=float(config.eviction_percentile if self.pool.can_replace else 0.0),
            uses_return=config.signal == "return",
        )
        state = zeros(State, tasks=self.pool.num_slots, filed=self.pool.num_slots)
        self._prior_score = learnability(0.0, 0.0, config.prior_successes, config.prior_failures)
        state.tasks["score"] = self._prior_score
        state.filed["weight"] = self.pool.base_weights
        self._compile_in(state, Constants(settings_of))

    def _publish(self) -> None:
        weights = (self._state.tasks["score"] / LARGEST) ** self.config.exponent
        self._fill_weights(weights * self.pool.base_weights)

    def _slot_replaced(self, slot: int) -> None:
        state, weight = self._state, float(self.pool.base_weights[slot])
        unfile(slot, state.filed, state.method["ranks"])
        state.filed["weight"][slot] = weight
        state.tasks[slot : slot + 1] = 0
        state.tasks["score"][slot] = self._prior_score
        self._set_weight(slot, weight_of(self._prior_score, self.config.exponent) * weight)

    def scores(self) -> Floats:
        """Return the expectation of p(1 - p) for every slot, in [0, 0.25]."""
        return self._state.tasks["score"].copy()

    def plays(self) -> Words:
        """Return how often each slot's task was played."""
        return self._state.tasks["num_plays"].copy()

    def success_rates(self) -> Floats:
        """Return the posterior mean of every slot's success rate; the prior's if untried."""
        wins = self.config.prior_successes + self._state.tasks["successes"]
        return wins / (wins + self.config.prior_failures + self._state.tasks["failures"])

    def _explain(self) -> LearnabilityExplanation:
        scores, rates, probs = self._state.tasks["score"], self.success_rates(), self.probs()
        tried = self._state.tasks["num_plays"] > 0
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
        task: Any = self._state.tasks[slot]
        wins = self.config.prior_successes + float(task["successes"])
        losses = self.config.prior_failures + float(task["failures"])
        rate = wins / (wins + losses)
        numbers = {
            "plays": float(task["num_plays"]),
            "success": rate,
            "success_error": math.sqrt(rate * (1.0 - rate) / (wins + losses + 1.0)),
            "learnability": float(task["score"]),
        }
        if task["num_plays"] == 0:
            return "it is untried and weighs what the prior says", numbers
        return (
            f"it is solved in about {rate:.0%} of its episodes, and half would weigh most"
        ), numbers

    def _saved_limits(self) -> dict[str, tuple[Any, Any]]:
        weights, num_slots = self.pool.base_weights, self.pool.num_slots
        return {
            **super()._saved_limits(),
            "filed.weight": (weights, weights),
            "method.ranks.histogram": (0, num_slots),
        }

    def _check_loaded(self, place: str) -> None:
        check_filed(self._state.filed, self._state.method["ranks"], place)
