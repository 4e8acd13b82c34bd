"""The oracle of the learner that generalises: the best of several policies that see its state.

Used by `scenarios`. A policy chooses the plays of a whole rollout at once, because skills change at
updates only: the tasks worth most, each once before any is played again, so that nothing is
memorised that could be learned. Plays take their mean length, so one run gives a policy's mean.
"""

from functools import partial

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.compiled import bare, compiled, inlined
from stepladder.simulator.generalising.learner import GeneralisingSimulator
from stepladder.simulator.generalising.state import (
    GeneralState,
    chance,
    held_out,
    note_play,
    update,
)
from stepladder.simulator.policies import OraclePolicy, OracleRun, PlayUntil, policy_runs

PER_STEP, PER_PLAY, BY_NEED, IN_ORDER = 0, 1, 2, 3
"""What a policy looks at: the gain in the score per env step or per play; what is missing to
success 1, per env step; one group after the other."""

LINES = (0.3, 0.5, 0.7, 0.9)
"""Success on held-out tasks at which the policy in order leaves a group for the next one."""

MOST_CANDIDATES = 512
"""Tasks that a policy looks at for one rollout; of more, other ones every time."""


@inlined
def _slope(learner: GeneralState, group: int) -> float:
    """Return how much the success on held-out tasks of a group rises with its skill."""
    own = learner.groups[group]
    ahead, reach = learner.skills[group].skill - own.difficulty, max(own.spread, 1e-3)
    high, low = 1.0 / (1.0 + np.exp(-ahead - reach)), 1.0 / (1.0 + np.exp(reach - ahead))
    return (high - low) / (2.0 * reach)


@bare
def weigh_groups(
    learner: GeneralState, kind: int, order: Words, line: float, worth: Floats
) -> None:
    """Say what a play of each group is worth, before what a single task teaches."""
    for group in range(len(worth)):
        worth[group] = 0.0
    if kind == IN_ORDER:
        for index in range(len(order)):
            if held_out(learner, order[index]) < line:
                worth[order[index]] = 1.0
                return
    for other in range(len(worth)):
        need = learner.groups[other].target
        if need > 0.0:
            by_need = kind in (BY_NEED, IN_ORDER)
            need *= 1.0 - held_out(learner, other) if by_need else _slope(learner, other)
            for group in range(len(worth)):
                worth[group] += need * learner.coupling[other, group]


@bare
def weigh_tasks(
    learner: GeneralState, kind: int, first: int, stride: int, worth: Floats, values: Floats
) -> None:
    """Say what a play of each candidate is worth: every `stride`-th task from the first on."""
    for index in range(len(values)):
        node = (first + index * stride) % len(learner.nodes)
        p, group = chance(learner, node), learner.groups[learner.nodes[node].group]
        memory = learner.memories[node].memory * learner.clock[0].scale
        # What is memorised already will teach less and less: fresh tasks first.
        values[index] = 4.0 * p * (1.0 - p) * worth[learner.nodes[node].group] / (1.0 + memory)
        if kind != PER_PLAY:
            values[index] /= p * group.success_steps + (1.0 - p) * group.failure_steps + 1.0


@compiled
def run_policy(
    learner: GeneralState, kind: int, order: Words, line: float, room: Floats, until: int
) -> None:
    """Practise as a policy says, for `until` env steps or until the goal is reached.

    `room` holds the env steps that the last play left over, 0 before the first call.
    """
    clock, settings, num_tasks = learner.clock[0], learner.settings[0], len(learner.nodes)
    rollout = settings.rollout_steps * settings.num_envs
    worth = np.zeros(len(learner.groups))
    stride = (num_tasks + MOST_CANDIDATES - 1) // MOST_CANDIDATES
    values = np.zeros(num_tasks // stride)
    while clock.time * settings.num_envs < until and clock.done_at < 0:
        first = clock.num_updates % stride
        weigh_groups(learner, kind, order, line, worth)
        weigh_tasks(learner, kind, first, stride, worth, values)
        ranking, turn = np.argsort(-values), 0
        room[0] += rollout
        while room[0] > 0.0:
            node = (first + ranking[turn % len(values)] * stride) % num_tasks
            turn += 1
            if values[ranking[turn % len(values)]] <= 0.0:
                # The rest teaches nothing that counts, or worse.
                turn = 0
            p, group = chance(learner, node), learner.groups[learner.nodes[node].group]
            steps = p * group.success_steps + (1.0 - p) * group.failure_steps
            note_play(learner, node, p, int(steps + 0.5))
            room[0] -= steps + 1.0
        clock.time += settings.rollout_steps
        update(learner)


def general_policies(simulator: GeneralisingSimulator) -> list[OraclePolicy]:
    """Return what is tried: the largest gain or need, and groups in order up to several lines."""
    easiest_first = np.argsort(simulator.dynamics.difficulty, kind="stable").astype(np.int64)
    order = easiest_first[simulator.state.groups["is_hopeless"][easiest_first] == 0]
    learner = simulator.state

    def begin(kind: int, line: float) -> PlayUntil:
        return partial(run_policy, learner, kind, order, line, np.zeros(1))

    policies = [
        ("largest gain per step", PER_STEP, 0.0),
        ("largest gain per play", PER_PLAY, 0.0),
        ("largest need per step", BY_NEED, 0.0),
        *((f"groups in order, to {line:.2f}", IN_ORDER, line) for line in LINES),
    ]
    return [OraclePolicy(name, partial(begin, kind, line)) for name, kind, line in policies]


def oracle_runs(simulator: GeneralisingSimulator, budget: int) -> list[OracleRun]:
    """Run every policy once on a simulator, which is reset before each and afterwards."""
    return policy_runs(simulator, general_policies(simulator), budget)
