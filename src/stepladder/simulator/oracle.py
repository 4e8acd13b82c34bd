"""The oracle of a graph of tasks: the best of several policies that see the hidden skills.

Used by `compare`, which measures every curriculum against it. What a play teaches does not depend
on its outcome, so a policy that looks at skills alone plays the same with every seed: one run gives
its mean.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from stepladder.arrays import Words
from stepladder.compiled import bare, inlined
from stepladder.simulator.base import OracleRun, best_run
from stepladder.simulator.dynamics import Epochwise
from stepladder.simulator.learner import TaskDependencySimulator
from stepladder.simulator.learner_state import LEARNABLE, LearnerState, gate, learn_and_count, skill

LINES = (-0.02, -0.01, 0.0, 0.02, 0.05)
"""Distances above the mastery line at which an oracle leaves a task for the next one."""


@inlined
def _first_below(learner: LearnerState, order: Words, line: float) -> int:
    for index in range(len(order)):
        node = order[index]
        if learner.nodes[node].is_learnable == 1 and skill(learner, node) < line:
            return node
    return -1


@bare
def run_in_order(learner: LearnerState, order: Words, line: float, until: int) -> None:
    """Practise the first task in order that is below `line`; then the first not mastered."""
    clock, first_pass = learner.clock[0], True
    while clock.num_plays < until and clock.done_at < 0:
        node = _first_below(learner, order, line) if first_pass else -1
        if node < 0:
            first_pass = False
            node = _first_below(learner, order, max(line, learner.settings[0].mastery))
        learn_and_count(learner, max(0, node))


@bare
def run_by_gain(learner: LearnerState, until: int) -> None:
    """Practise the unmastered task that gains most by the next play."""
    clock = learner.clock[0]
    while clock.num_plays < until and clock.done_at < 0:
        best, chosen = -1.0, 0
        for node in range(len(learner.nodes)):
            p, own = skill(learner, node), learner.nodes[node]
            if own.kind != LEARNABLE or p >= learner.settings[0].mastery:
                continue
            gain = own.rate * gate(learner, node) * (1.0 - p)
            if gain > best:
                best, chosen = gain, node
        learn_and_count(learner, chosen)


def _play_in_order(order: Words, line: float, learner: LearnerState, until: int) -> None:
    run_in_order(learner, order, line, until)


def _needed(simulator: TaskDependencySimulator) -> set[int]:
    """Return the nodes that count, and all that must be learned before them."""
    graph = simulator.graph
    if not simulator.target:
        return set(graph.order)
    gates = graph.children() if isinstance(simulator.dynamics, Epochwise) else graph.parents
    found, left = set[int](), list(simulator.target)
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left += gates[node]
    return found


def oracle_runs(simulator: TaskDependencySimulator, budget: int) -> list[OracleRun]:
    """Run every policy once on a simulator, which is reset before each and afterwards."""
    needed, mastery = _needed(simulator), simulator.dynamics.mastery
    order = [node for node in simulator.graph.order if node in needed]
    policies: list[tuple[str, Callable[[LearnerState, int], None]]] = []
    for name, nodes in (("in order", order), ("in reverse order", order[::-1])):
        for line in (min(1.0, mastery + above) for above in LINES):
            play = partial(_play_in_order, np.array(nodes, dtype=np.int64), line)
            policies.append((f"{name}, to {line:.2f}", play))
    policies.append(("largest gain", run_by_gain))
    runs: list[OracleRun] = []
    for policy, play in policies:
        # A policy that is behind the best one so far is not played to its end.
        limit = min(budget, 1 + min((run.samples for run in runs), default=budget))
        simulator.reset()
        play(simulator.state, limit)
        runs.append(OracleRun.of(policy, simulator, budget))
    simulator.reset()
    return runs


def best_oracle(simulator: TaskDependencySimulator, budget: int) -> OracleRun:
    """Return the best policy: the fewest samples, then the largest area."""
    return best_run(oracle_runs(simulator, budget))
