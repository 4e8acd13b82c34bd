"""Favour tasks that are solved sometimes: neither always nor never.

Gets records from `sync`, gives weights back; when its source has more tasks than the pool, tasks
that are always or never solved make room for new ones. The rule for one result is compiled.

After Rutherford et al. 2024, "No regrets: investigating and improving regret approximations for
curriculum discovery", whose score of a level is p(1 - p), p being the success rate. Florensa et al.
2018, "Automatic goal generation for reinforcement learning agents", keep goals of intermediate
success by two thresholds; prioritised self-play weighs opponents by the same p(1 - p), p being the
rate of wins (Vinyals et al. 2019). Here p is not a number but a Beta distribution, so that a
task played twice is not yet taken for impossible.

Tasks with the same label are judged together (`pooling`), unless the config says otherwise: what a
label's tasks have shown is the prior of each of them. Draws go to labels first, by how quickly they
are learned and how much is left to learn, then to tasks. What no practice changes, such as a coin
toss, loses weight with every trial that shows no change (`stuck`).

Do not use it when success is not a rate that practice can bring near one, such as a score without
a top; `LearningProgress` asks for change alone. Do not use it when the order of tasks is known and
right; `Staged` does not have to find out.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from stepladder.arrays import Floats
from stepladder.curricula.batch_rule import CompiledRule, settle_noted
from stepladder.curricula.learnability import kernels
from stepladder.curricula.learnability.config import LearnabilityConfig
from stepladder.curricula.learnability.kernels import (
    Constants,
    State,
    learnability,
    set_shares,
    weight_of,
)
from stepladder.curricula.pooled.labels import LabelPooling, know_nothing
from stepladder.curricula.pooled.pooling import PRIOR_STRENGTH, rates_of
from stepladder.curricula.ranking import RankedMethod
from stepladder.curricula.reporting.explanation import EvictingExplanation
from stepladder.curricula.returns import signal_settings
from stepladder.plans.plan import Grouping
from stepladder.records import settings_record, zeros


@dataclass(frozen=True, kw_only=True)
class LearnabilityExplanation(EvictingExplanation):
    """Which tasks are solved sometimes."""

    num_untried: int
    """Tasks without a result."""

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


class Learnability(LabelPooling, RankedMethod):  # pyright: ignore[reportIncompatibleVariableOverride]
    """Draws tasks by the expectation of p(1 - p), p being their success rate."""

    Config = LearnabilityConfig
    config: LearnabilityConfig  # pyright: ignore[reportIncompatibleVariableOverride]
    rule = CompiledRule(kernels.observe_one, settle_noted)
    _observe_kernel = kernels.observe

    def _set_up(self) -> None:
        super()._set_up()
        config, num_slots = self.config, self.pool.num_slots
        self.needs_success = config.signal == "success"
        settings = settings_record(
            config,
            keep=0.5 ** (1.0 / config.halflife_episodes),
            eviction_share=self._eviction_share(config.eviction_percentile),
            **signal_settings(config),
        )
        cells = self._find_cells()
        state = zeros(State, tasks=num_slots, filed=num_slots, cells=cells.num_cells)
        know_nothing(state.cells, state.pooling)
        prior = (config.prior_successes, config.prior_failures)
        if config.pooled:
            prior = (0.5 * PRIOR_STRENGTH, 0.5 * PRIOR_STRENGTH)
        state.tasks["score"] = learnability(0.0, 0.0, *prior)
        self._keep_kernel_state(state, Constants(settings, cells.of_slot))

    def _groupings(self) -> list[Grouping]:
        return [Grouping(self._constants.cells, len(self._state.cells))]

    def _publish(self) -> None:
        self._fill_weights(self._unplayed_weight() * self.pool.base_weights)
        set_shares(*self.kernel_state())

    def _unplayed_weight(self) -> float:
        """Return the leaf of a task that was never played: with pooling, the unit of its label."""
        if self.config.pooled:
            return 1.0
        return weight_of(float(self._fresh["score"][0]), self.config.exponent)

    def _slot_replaced(self, slot: int) -> None:
        super()._slot_replaced(slot)
        self._set_weight(slot, self._unplayed_weight() * float(self.pool.base_weights[slot]))
        set_shares(*self.kernel_state())

    def _slot_lost(self, slot: int, reason: str) -> None:
        with self.plan.writing():
            set_shares(*self.kernel_state())

    def scores(self) -> Floats:
        """Return the expectation of p(1 - p) for every slot, in [0, 0.25]; less if it is stuck."""
        state = self._state
        if not self.config.pooled:
            return state.tasks["score"].copy()
        # The leaf of a task is as old as its last play; this is what is known now.
        rates = self.success_rates()
        plays = float(state.pooling["strength"][0])
        plays = plays + state.tasks["successes"] + state.tasks["failures"]
        left = 0.5 ** state.tasks["trial"]["num_stuck"]
        return left * rates * (1.0 - rates) * plays / (plays + 1.0)

    def success_rates(self) -> Floats:
        """Return the posterior mean of every slot's success rate; the prior's if untried."""
        state, config = self._state, self.config
        wins, losses = state.tasks["successes"], state.tasks["failures"]
        if not config.pooled:
            wins = config.prior_successes + wins
            return wins / (wins + config.prior_failures + losses)
        strength = float(state.pooling["strength"][0])
        return rates_of(state.tasks, state.cells["rate"][self._constants.cells], strength)

    def _explain(self) -> LearnabilityExplanation:
        scores, rates, probs = self.scores(), self.success_rates(), self.probs()
        tried = self._state.tasks["num_plays"] > 0
        best = np.argsort(np.where(tried, -scores, 0.0), kind="stable")[:5]
        return LearnabilityExplanation(
            **self._overview_fields(),
            num_untried=int(np.sum(~tried)),
            mean_learnability=float(scores.mean()),
            top=self._top(best[tried[best]], rates, scores, probs),
        )

    def _reason(self, slot: int) -> tuple[str, dict[str, float]]:
        task: Any = self._state.tasks[slot]
        config, rate = self.config, float(self.success_rates()[slot])
        prior = config.prior_successes + config.prior_failures
        if config.pooled:
            prior = float(self._state.pooling["strength"][0])
        count = prior + float(task["successes"] + task["failures"])
        numbers = {
            "plays": float(task["num_plays"]),
            "success": rate,
            "success_error": math.sqrt(rate * (1.0 - rate) / (count + 1.0)),
            "learnability": float(self.scores()[slot]),
        }
        if task["num_plays"] == 0:
            known = "its label has shown" if config.pooled else "the prior says"
            return f"it is untried; {known} a success of about {rate:.0%}", numbers
        stuck = int(task["trial"]["num_stuck"])
        basis = ", by its own results and those of its label" if config.pooled else ""
        reason = f"its success is about {rate:.0%}{basis}; half would weigh most"
        if stuck:
            reason += f"; nothing has changed in its last {stuck + 1} trials, so it fades"
        return reason, numbers
