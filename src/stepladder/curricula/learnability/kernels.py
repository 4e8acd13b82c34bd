"""Compiled rules of the learnability curriculum: discounted evidence and what it is worth.

Called by `learnability`, which owns the arrays.
"""

from typing import Annotated, NamedTuple

from stepladder.compiled import bare, inlined
from stepladder.curricula.compiled_rule import CompiledRule
from stepladder.curricula.eviction import Filed, Noted, Ranks, file_by_score
from stepladder.curricula.learnability.config import LearnabilityConfig
from stepladder.curricula.observation import Totals, observe_batch, settle_noted, signal_of
from stepladder.plans.kernels import set_leaf
from stepladder.plans.layout import is_active
from stepladder.plans.record import RecordFields
from stepladder.records import Count, Fields, Limits, Records, Words
from stepladder.saving.saved_array import MAX_COUNT

LARGEST = 0.25
"""The most that p(1 - p) can be."""


class TaskEvidence(Fields):
    """What is known of a slot's task; two slots fill a cache line."""

    num_plays: Count
    successes: Annotated[float, Limits(0.0, MAX_COUNT)]
    """Discounted sum."""
    failures: Annotated[float, Limits(0.0, MAX_COUNT)]
    score: Annotated[float, Limits(0.0, LARGEST + 1e-9)]
    """Expectation of p(1 - p)."""


class Method(Fields):
    """What is known beside the tasks."""

    totals: Totals
    ranks: Ranks
    noted: Noted


class State(NamedTuple):
    """Everything that the method learns."""

    method: Records[Method]
    tasks: Records[TaskEvidence]
    filed: Records[Filed]


class Settings(LearnabilityConfig):
    """The config as kernels read it, with what follows from it."""

    keep: float
    """What is left of the evidence after another play."""
    eviction_share: float
    uses_return: bool


class Constants(NamedTuple):
    """What stays the same."""

    settings: Records[Settings]


@inlined
def learnability(successes: float, failures: float, alpha: float, beta: float) -> float:
    """Return the expectation of p(1 - p) under a Beta posterior.

    Args:
        successes: Discounted sum of successes.
        failures: Discounted sum of failures.
        alpha: Successes that the prior counts as.
        beta: Failures that the prior counts as.
    """
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
    value = signal_of(settings, success, episode_return)
    task.num_plays += 1
    task.successes = settings.keep * task.successes + value
    task.failures = settings.keep * task.failures + (1.0 - value)
    prior_successes, prior_failures = settings.prior_successes, settings.prior_failures
    task.score = learnability(task.successes, task.failures, prior_successes, prior_failures)
    if is_active(block, slot):
        weight = weight_of(task.score, settings.exponent) * state.filed[slot].weight
        set_leaf(block, table, slot, weight)
    if settings.eviction_share > 0.0 and task.num_plays >= settings.eviction_plays:
        method, score = state.method[0], task.score / LARGEST
        share = settings.eviction_share
        file_by_score(slot, score, state.filed, method.ranks, method.noted, share)


@bare
def observe(
    block: Words, table: int, state: State, constants: Constants, records: Records[RecordFields]
) -> int:
    """Learn from records; see `observe_batch`."""
    needs_success = not constants.settings[0].uses_return
    return observe_batch(
        observe_one, settle_noted, block, table, state, constants, records, needs_success
    )


RULE = CompiledRule(observe_one, settle_noted)
"""For the compiled simulator."""
