"""Compiled arithmetic of the simulated learner: what a play shows, and what it teaches.

Called by `learner` for the Python object and by `engines` for whole runs; both use the very same
kernels, so a play has the same outcome in every engine.

A skill is stored divided by a common scale, the last word of `skills`. Forgetting multiplies the
scale alone, so a play costs the same with ten tasks and with ten thousand.
"""
# pyright: reportReturnType=false, reportArgumentType=false, reportAttributeAccessIssue=false
# Reason: NumPy's stubs do not know that an element of an integer array is an integer.

from typing import NamedTuple

import numpy as np

from stepladder.compiled import compiled
from stepladder.curricula import kernels
from stepladder.curricula.kernels import Floats, Words
from stepladder.curricula.record import TERMINATED, RecordArray

LEARNABLE, IMPOSSIBLE, NOISE = 0, 1, 2
"""Kinds of tasks: one that can be learned, one that never succeeds, one that is a coin toss."""

# Settings, by position.
(
    S_EPOCHWISE,
    S_GAMMA,
    S_KEEP,
    S_MASTERY,
    S_REWARD_IS_SKILL,
    S_SAMPLE_STD,
    S_BASE,
    S_SATURATE,
    S_LAMBDA,
    S_STEP,
) = range(10)
NUM_SETTINGS = 10

# The clock, by position: plays, rounds (the next episode of every env), plays on tasks that were
# mastered, locked, hopeless; learnable tasks mastered now; play at which all of them first were
# (-1 before); sum over all plays of the number mastered; plays per epoch, for epochwise dynamics;
# plays on mastered, locked and hopeless tasks when all were first mastered.
(
    C_PLAYS,
    C_ROUNDS,
    C_ON_MASTERED,
    C_ON_LOCKED,
    C_ON_HOPELESS,
    C_NUM_MASTERED,
    C_DONE_AT,
    C_AREA,
    C_EPOCH_PLAYS,
    C_DONE_MASTERED,
    C_DONE_LOCKED,
    C_DONE_HOPELESS,
) = range(12)
NUM_CLOCK = 12

OPEN_GATE = 0.5
"""A task whose gate is below this counts as locked in the statistics; a lone parent has then a
skill below 0.71."""

RECOUNT_INTERVAL = 64
"""Plays after which the mastered tasks are counted again, for forgetting lowers their number."""

SMALLEST_SCALE = 1e-200
SEED_MASK = 2**31 - 1
"""What envs are seeded with: `envs.curriculum_env` hands on these bits of a draw's seed."""


class World(NamedTuple):
    """The arrays of one simulated learner; kernels change `skills`, `counts` and `epoch_counts`."""

    skills: Floats
    """Skill per node divided by the scale; then the scale."""
    kinds: Words
    """Kind per node; a task below a hopeless one is learnable in kind but not in fact."""
    learnable: Words
    """1 for nodes that can be learned in fact."""
    rates: Floats
    biases: Floats
    parent_starts: Words
    parents: Words
    child_starts: Words
    children: Words
    counts: Words
    epoch_counts: Words
    settings: Floats


@compiled
def mixed(word: int) -> np.uint64:
    """Scramble a word (the finaliser of SplitMix64): neighbouring seeds give unrelated results."""
    z = np.uint64(word) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def uniform(seed: int, number: int) -> float:
    """Return the `number`-th of a seed's numbers in [0, 1)."""
    word = mixed(seed + (number << 40))
    return float(word >> np.uint64(11)) / 9007199254740992.0


@compiled
def skill(world: World, node: int) -> float:
    """Return the probability that a play of a node succeeds."""
    if world.kinds[node] == IMPOSSIBLE:
        return 0.0
    if world.kinds[node] == NOISE:
        return 0.5
    return world.skills[node] * world.skills[len(world.kinds)]


@compiled
def gate(world: World, node: int) -> float:
    """Return how far the prerequisites of a node are there, in [0, 1]."""
    product = 1.0
    for index in range(world.parent_starts[node], world.parent_starts[node + 1]):
        parent = skill(world, world.parents[index])
        product *= parent * parent
    return product


@compiled
def play(world: World, node: int, seed: int) -> tuple[float, float]:
    """Return success and return of one play; nothing is learned yet."""
    p = skill(world, node)
    success = 1.0 if uniform(seed, 0) < p else 0.0
    if world.settings[S_REWARD_IS_SKILL] == 0.0:
        return success, world.settings[S_BASE] + success
    reward = world.settings[S_BASE] + p + world.biases[node]
    if world.settings[S_SAMPLE_STD] > 0.0:
        # Box and Muller: two even numbers make one bell-shaped.
        radius = np.sqrt(-2.0 * np.log(1.0 - uniform(seed, 1)))
        reward += world.settings[S_SAMPLE_STD] * radius * np.cos(2.0 * np.pi * uniform(seed, 2))
    if world.settings[S_SATURATE] > 0.0:
        reward = min(1.0, max(0.0, reward))
    return success, reward


@compiled
def _raise(world: World, node: int, rate: float) -> bool:
    """Let one task gain; return whether that carried it over the mastery line."""
    if world.kinds[node] != LEARNABLE:
        return False
    scale = world.skills[len(world.kinds)]
    before = world.skills[node] * scale
    after = before + rate * gate(world, node) * (1.0 - before)
    world.skills[node] = after / scale
    line = world.settings[S_MASTERY]
    return before < line <= after


@compiled
def learn(world: World, node: int) -> bool:
    """Learn from one play; return whether a task was carried over the mastery line."""
    world.counts[node] += 1
    world.epoch_counts[node] += 1
    if world.settings[S_EPOCHWISE] > 0.0:
        return False
    crossed = _raise(world, node, world.rates[node])
    if world.kinds[node] == LEARNABLE:
        for index in range(world.parent_starts[node], world.parent_starts[node + 1]):
            parent = world.parents[index]
            crossed |= _raise(world, parent, world.settings[S_GAMMA] * world.rates[parent])
    last = len(world.kinds)
    world.skills[last] *= world.settings[S_KEEP]
    if world.skills[last] < SMALLEST_SCALE:
        for other in range(last):
            world.skills[other] *= world.skills[last]
        world.skills[last] = 1.0
    return crossed


@compiled
def complete_epoch(world: World, num_plays: int) -> None:
    """Apply the epochwise equations to the plays since the last call, and begin a new epoch."""
    if world.settings[S_EPOCHWISE] > 0.0:
        num_nodes = len(world.kinds)
        old = world.skills[:num_nodes].copy()
        for node in range(num_nodes):
            if world.kinds[node] != LEARNABLE:
                continue
            stimulus = float(world.epoch_counts[node])
            for index in range(world.parent_starts[node], world.parent_starts[node + 1]):
                parent = world.parents[index]
                stimulus += world.settings[S_GAMMA] * world.epoch_counts[parent]
            product = 1.0
            for index in range(world.child_starts[node], world.child_starts[node + 1]):
                product *= old[world.children[index]]
            gain = stimulus * product * (1.0 - old[node])
            gain -= world.settings[S_LAMBDA] * old[node]
            moved = old[node] + gain * world.settings[S_STEP] / num_plays
            world.skills[node] = min(1.0, max(0.0, moved))
    world.epoch_counts[:] = 0


@compiled
def count_mastered(world: World) -> int:
    """Return how many of the tasks that can be learned are mastered."""
    scale = world.skills[len(world.kinds)]
    line = world.settings[S_MASTERY]
    count = 0
    for node in range(len(world.kinds)):
        if world.learnable[node] == 1 and world.skills[node] * scale >= line:
            count += 1
    return count


@compiled
def recount(world: World, clock: Words, num_learnable: int) -> None:
    """Count the mastered tasks; note the first moment at which all of them are."""
    clock[C_NUM_MASTERED] = count_mastered(world)
    if clock[C_DONE_AT] < 0 and clock[C_NUM_MASTERED] == num_learnable:
        clock[C_DONE_AT] = clock[C_PLAYS]
        clock[C_DONE_MASTERED : C_DONE_HOPELESS + 1] = clock[C_ON_MASTERED : C_ON_HOPELESS + 1]


@compiled
def deal(
    block: Words, world: World, clock: Words, records: RecordArray, nodes: Words, levels: Floats
) -> bool:
    """Let every env draw and play one episode; False if there is nothing to draw.

    All of them play with the skills of this moment: learning comes after the round, in `absorb`.
    `nodes` and `levels` receive what each env played and how skilled the learner was at it.
    """
    episode = clock[C_ROUNDS]
    nothing = block.view(np.float64)[:0]
    for env in range(len(records)):
        slot, generation, task_id, version, seed, tick = kernels.draw(block, env, episode, nothing)
        if slot < 0:
            return False
        node = task_id % len(world.kinds)
        success, reward = play(world, node, seed & SEED_MASK)
        nodes[env], levels[env] = node, skill(world, node)
        record = records[env]
        record.slot, record.generation = slot, generation
        record.plan_version, record.tick = version, tick
        record.env_index, record.episode_index = env, episode
        record.episode_return, record.length = reward, 1
        record.success, record.outcome = success, TERMINATED
    clock[C_ROUNDS] += 1
    return True


@compiled
def tally(records: RecordArray, levels: Floats, sums: Floats) -> None:
    """Add a round to the sums per slot: plays, successes, returns, skills."""
    for index in range(len(records)):
        row = sums[records[index].slot]
        row[0] += 1.0
        row[1] += records[index].success
        row[2] += records[index].episode_return
        row[3] += levels[index]


@compiled
def absorb(world: World, clock: Words, nodes: Words, num_learnable: int) -> None:
    """Learn from the plays of one round, in the order of the envs, and keep count."""
    line = world.settings[S_MASTERY]
    for index in range(len(nodes)):
        node = nodes[index]
        clock[C_AREA] += clock[C_NUM_MASTERED]
        clock[C_PLAYS] += 1
        if world.learnable[node] == 0:
            clock[C_ON_HOPELESS] += 1
        elif skill(world, node) >= line:
            clock[C_ON_MASTERED] += 1
        elif world.settings[S_EPOCHWISE] == 0.0 and gate(world, node) < OPEN_GATE:
            clock[C_ON_LOCKED] += 1
        crossed = learn(world, node)
        if crossed or clock[C_PLAYS] % RECOUNT_INTERVAL == 0:
            recount(world, clock, num_learnable)
        if clock[C_EPOCH_PLAYS] > 0 and clock[C_PLAYS] % clock[C_EPOCH_PLAYS] == 0:
            complete_epoch(world, clock[C_EPOCH_PLAYS])
            recount(world, clock, num_learnable)
