"""Favour tasks that are solved sometimes: neither always nor never.

Gets records from `sync`, gives weights back; when its source has more tasks than the pool, tasks
that are always or never solved make room for new ones. The rule for one result is compiled.

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
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from stepladder.compiled import bare, inlined
from stepladder.configs.checks import Count as AtLeastOne
from stepladder.configs.checks import Positive, Share, Within
from stepladder.curricula.batch_rule import (
    CompiledRule,
    observe_batch,
    settle_noted,
)
from stepladder.curricula.config import SignalConfig
from stepladder.curricula.explanation import EvictingExplanation
from stepladder.curricula.ranking import Filed, RankedMethod, RankedTotals, file_by_score
from stepladder.curricula.returns import ReturnScale, signal_of, signal_settings
from stepladder.plans.kernels import set_leaf
from stepladder.plans.layout import is_active
from stepladder.plans.record import RecordFields
from stepladder.records import Count, Fields, Floats, Limits, Records, Words, settings_record, zeros
from stepladder.saving.saved_array import MAX_COUNT

LARGEST = 0.25
"""The most that p(1 - p) can be."""

Prior = Annotated[float, Within(0.0, 1e6, above=True, fix="With more, results would not count.")]


@dataclass(frozen=True, kw_only=True)
class LearnabilityConfig(SignalConfig):
    """Tasks that succeed sometimes: p(1 - p).

    Sets how much a task is known before it is played, and how soon results are forgotten.
    """

    kind: ClassVar[str] = "learnability"

    halflife_episodes: Positive = 20.0
    """Half-life of a result, in plays of the same task: how quickly a learner is followed."""

    prior_successes: Prior = 1.0
    """Successes that a task counts as having had before its first play."""

    prior_failures: Prior = 1.0
    """Failures that a task counts as having had before its first play."""

    exponent: Annotated[float, Within(0.0, 100.0, fix="1 is the plain p(1 - p).")] = 1.0
    """Power of p(1 - p) that is the weight; above 1 is keener, 0 draws all tasks equally often."""

    eviction_percentile: Share = 0.3
    """A task whose learnability is among this lowest share of all well-known tasks is replaced,
    if the source has more tasks than the pool, in [0, 1]. 0 never replaces."""

    eviction_plays: AtLeastOne = 30
    """Plays after which a task is well known."""

    @property
    def replaces_tasks(self) -> bool:
        """Whether tasks make room for others if the source has more tasks than the pool."""
        return True


class TaskEvidence(Fields):
    """What is known of a slot's task; two slots fill a cache line."""

    num_plays: Count
    successes: Annotated[float, Limits(0.0, MAX_COUNT)]
    """Discounted sum."""
    failures: Annotated[float, Limits(0.0, MAX_COUNT)]
    score: Annotated[float, Limits(0.0, LARGEST + 1e-9)]
    """Expectation of p(1 - p)."""


class State(NamedTuple):
    """Everything that the method learns."""

    method: Records[RankedTotals]
    tasks: Records[TaskEvidence]
    filed: Records[Filed]
    returns: Records[ReturnScale]


class Settings(LearnabilityConfig):
    """The config as kernels read it, with what follows from it."""

    keep: float
    """What is left of the evidence after another play."""
    eviction_share: float
    uses_return: bool
    finds_range: bool


class Constants(NamedTuple):
    """What stays the same."""

    settings: Records[Settings]


@inlined
def learnability(successes: float, failures: float, alpha: float, beta: float) -> float:
    """Return the expectation of p(1 - p) under a Beta posterior; the prior is alpha and beta."""
    a, b = alpha + successes, beta + failures
    return a * b / ((a + b) * (a + b + 1.0))


@inlined
def weight_of(score: float, exponent: float) -> float:
    """Return the weight of a task by its learnability, at most 1."""
    share = score / LARGEST
    return share if exponent == 1.0 else share**exponent


@inlined
def observe_one(
    block: Words,
    table: int,
    state: State,
    constants: Constants,
    slot: int,
    success: float,
    episode_return: float,
) -> None:
    """Update one task's evidence and its weight from one episode. Call between begin and end."""
    task, settings = state.tasks[slot], constants.settings[0]
    value = signal_of(settings, state.returns[0], success, episode_return)
    task.num_plays += 1
    task.successes = settings.keep * task.successes + value
    task.failures = settings.keep * task.failures + (1.0 - value)
    prior_successes, prior_failures = settings.prior_successes, settings.prior_failures
    task.score = learnability(task.successes, task.failures, prior_successes, prior_failures)
    if is_active(block, slot):
        weight = weight_of(task.score, settings.exponent) * state.filed[slot].weight
        set_leaf(block, table, slot, weight)
    if settings.eviction_share > 0.0 and task.num_plays >= settings.eviction_plays:
        score, share = task.score / LARGEST, settings.eviction_share
        file_by_score(slot, score, state.filed, state.method[0], share)


@bare
def observe(
    block: Words, table: int, state: State, constants: Constants, records: Records[RecordFields]
) -> int:
    """Learn from records; see `observe_batch`."""
    needs_success = not constants.settings[0].uses_return
    return observe_batch(
        observe_one, settle_noted, block, table, state, constants, records, needs_success
    )


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


class Learnability(RankedMethod):
    """Draws tasks by the expectation of p(1 - p), p being their success rate."""

    Config = LearnabilityConfig
    config: LearnabilityConfig  # pyright: ignore[reportIncompatibleVariableOverride]
    rule = CompiledRule(observe_one, settle_noted)
    _observe_kernel = observe

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
        state = zeros(State, tasks=num_slots, filed=num_slots)
        self._prior_score = learnability(0.0, 0.0, config.prior_successes, config.prior_failures)
        state.tasks["score"] = self._prior_score
        self._keep_kernel_state(state, Constants(settings))

    def _publish(self) -> None:
        weights = (self._state.tasks["score"] / LARGEST) ** self.config.exponent
        self._fill_weights(weights * self.pool.base_weights)

    def _slot_replaced(self, slot: int) -> None:
        super()._slot_replaced(slot)
        weight = weight_of(self._prior_score, self.config.exponent)
        self._set_weight(slot, weight * float(self.pool.base_weights[slot]))

    def scores(self) -> Floats:
        """Return the expectation of p(1 - p) for every slot, in [0, 0.25]."""
        return self._state.tasks["score"].copy()

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
            mean_learnability=float(scores.mean()),
            top=self._top(best[tried[best]], rates, scores, probs),
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
