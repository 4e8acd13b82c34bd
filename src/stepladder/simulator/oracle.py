"""The oracle of a graph of tasks: the best of several policies that see the hidden skills.

Used by `compare`, which measures every curriculum against it. What a play teaches does not depend
on its outcome, so a policy that looks at skills alone plays the same with every seed: one run gives
its mean.
"""

from functools import partial

import numpy as np

from stepladder.arrays import Words
from stepladder.compiled import bare, inlined
from stepladder.simulator.dynamics import Epochwise
from stepladder.simulator.learner import TaskDependencySimulator
from stepladder.simulator.learner_state import LEARNABLE, LearnerState, gate, learn_and_count, skill
from stepladder.simulator.policies import OraclePolicy, OracleRun, PlayUntil, best_run, policy_runs

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
def run_in_order(
    learner: LearnerState, order: Words, line: float, passed: Words, until: int
) -> None:
    """Practise the first task in order that is below `line`; then the first not mastered.

    `passed` holds a 0 before the first call, and a 1 once all tasks have been above the line.
    """
    clock = learner.clock[0]
    while clock.num_plays < until and clock.done_at < 0:
        node = -1 if passed[0] else _first_below(learner, order, line)
        if node < 0:
            passed[0] = 1
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


def graph_policies(simulator: TaskDependencySimulator) -> list[OraclePolicy]:
    """Return what is tried on a graph: an order up to several lines, and the largest gain."""
    needed, mastery = _needed(simulator), simulator.dynamics.mastery
    order = [node for node in simulator.graph.order if node in needed]
    learner = simulator.state

    def in_order(nodes: list[int], line: float) -> PlayUntil:
        passed = np.zeros(1, dtype=np.int64)
        return partial(run_in_order, learner, np.array(nodes, dtype=np.int64), line, passed)

    policies: list[OraclePolicy] = []
    for name, nodes in (("in order", order), ("in reverse order", order[::-1])):
        for line in (min(1.0, mastery + above) for above in LINES):
            policies.append(OraclePolicy(f"{name}, to {line:.2f}", partial(in_order, nodes, line)))
    return [*policies, OraclePolicy("largest gain", lambda: partial(run_by_gain, learner))]


def oracle_runs(simulator: TaskDependencySimulator, budget: int) -> list[OracleRun]:
    """Run every policy once on a simulator, which is reset before each and afterwards."""
    return policy_runs(simulator, graph_policies(simulator), budget)


def best_oracle(simulator: TaskDependencySimulator, budget: int) -> OracleRun:
    """Return the best policy: the fewest samples, then the largest area."""
    return best_run(oracle_runs(simulator, budget))
