"""The best that could have been done: policies that see the hidden skills.

Used by `compare` as the measure of every curriculum. The oracle of a scenario is the best of
several such policies. What a play teaches does not depend on its outcome, so a policy that looks at
skills alone takes the same course with every seed: one run tells its mean.
"""
# pyright: reportReturnType=false, reportArgumentType=false
# Reason: NumPy's stubs do not know that an element of an integer array is an integer.

from dataclasses import dataclass

import numpy as np

from stepladder.compiled import compiled
from stepladder.plans.kernels import Floats, Words
from stepladder.simulator.learner import TaskDependencySimulator
from stepladder.simulator.world import (
    C_DONE_AT,
    C_PLAYS,
    CLOCK,
    KINDS,
    LEARNABLE,
    S_MASTERY,
    SKILLS,
    W_NUM_NODES,
    absorb_one,
    gate,
    skill,
)

LINES = (-0.02, -0.01, 0.0, 0.02, 0.05)
"""How far above the mastery line an oracle practises a task before it goes on to the next."""


@dataclass(frozen=True)
class OracleRun:
    """How one policy that sees the hidden skills fared."""

    policy: str
    samples: int
    """Plays until every learnable task was mastered, or the budget."""

    finished: bool
    area: int
    """Sum over all plays of the number of mastered tasks."""

    num_mastered: int
    """Tasks mastered at the end."""

    shares: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Shares of plays on tasks already mastered, still locked, and hopeless."""


@compiled
def _first_below(numbers: Floats, words: Words, order: Words, line: float) -> int:
    for index in range(len(order)):
        node = order[index]
        learnable = words[KINDS + words[W_NUM_NODES] + node] == 1
        if learnable and skill(numbers, words, node) < line:
            return node
    return -1


@compiled
def run_in_order(numbers: Floats, words: Words, order: Words, line: float, until: int) -> None:
    """Practise the first task in order that is below `line`; then the first not mastered."""
    first_pass = True
    while words[CLOCK + C_PLAYS] < until and words[CLOCK + C_DONE_AT] < 0:
        node = _first_below(numbers, words, order, line) if first_pass else -1
        if node < 0:
            first_pass = False
            node = _first_below(numbers, words, order, max(line, numbers[S_MASTERY]))
        absorb_one(numbers, words, max(0, node))


@compiled
def run_by_gain(numbers: Floats, words: Words, until: int) -> None:
    """Practise the unmastered task that gains most by the next play."""
    num_nodes = words[W_NUM_NODES]
    while words[CLOCK + C_PLAYS] < until and words[CLOCK + C_DONE_AT] < 0:
        best, chosen = -1.0, 0
        for node in range(num_nodes):
            p = skill(numbers, words, node)
            if words[KINDS + node] != LEARNABLE or p >= numbers[S_MASTERY]:
                continue
            rate = numbers[SKILLS + num_nodes + 1 + node]
            gain = rate * gate(numbers, words, node) * (1.0 - p)
            if gain > best:
                best, chosen = gain, node
        absorb_one(numbers, words, chosen)


def oracle_runs(simulator: TaskDependencySimulator, budget: int) -> list[OracleRun]:
    """Run every policy once on a simulator, which is reset before each and afterwards."""
    orders = {
        "in order": np.array(simulator.graph.order, dtype=np.int64),
        "in reverse order": np.array(simulator.graph.order[::-1], dtype=np.int64),
    }
    mastery = simulator.dynamics.mastery
    runs: list[OracleRun] = []

    def note(policy: str) -> None:
        done = simulator.done_at
        runs.append(
            OracleRun(
                policy,
                budget if done is None else done,
                done is not None,
                simulator.area_so_far,
                simulator.num_mastered,
                simulator.shares(),
            )
        )

    for name, order in orders.items():
        for above in LINES:
            # Whoever is behind the best so far need not be watched to the end.
            limit = min(budget, 1 + min((run.samples for run in runs), default=budget))
            simulator.reset()
            line = min(1.0, mastery + above)
            run_in_order(simulator.world.numbers, simulator.world.words, order, line, limit)
            note(f"{name}, to {line:.2f}")
    simulator.reset()
    limit = min(budget, 1 + min(run.samples for run in runs))
    run_by_gain(simulator.world.numbers, simulator.world.words, limit)
    note("largest gain")
    simulator.reset()
    return runs


def best_oracle(simulator: TaskDependencySimulator, budget: int) -> OracleRun:
    """Return the best policy: the fewest samples, then the largest area."""
    return min(oracle_runs(simulator, budget), key=lambda run: (run.samples, -run.area))
