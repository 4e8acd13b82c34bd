"""Compiled arithmetic of the simulated learner: what a play shows, and what it teaches.

Called by `learner` for the Python object and by `rounds` for the engines; both use the very same
kernels, so a play has the same outcome in every engine.

A skill is stored divided by a common scale. Forgetting multiplies the scale alone, so a play costs
the same with ten tasks and with ten thousand.
"""
# pyright: reportReturnType=false, reportArgumentType=false, reportAttributeAccessIssue=false
# Reason: NumPy's stubs do not know that an element of an integer array is an integer.

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stepladder.compiled import compiled, inlined
from stepladder.plans.kernels import Floats, Words

LEARNABLE, IMPOSSIBLE, NOISE = 0, 1, 2
"""Kinds of tasks: one that can be learned, one that never succeeds, one that is a coin toss."""

# Numbers of a world, by position: the settings; then the skill of every node divided by the scale,
# the scale, and per node the rate of learning and the fixed error.
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
SKILLS = 16

# Words of a world, by position: how many nodes and how many of them can be learned; the clock; then
# per node its kind, whether it can be learned, its plays, its plays in this epoch; then where each
# node's parents and children begin, and these themselves.
W_NUM_NODES, W_NUM_LEARNABLE = range(2)
CLOCK = 16
KINDS = 32

# The clock, by position: plays, rounds (the next episode of every env), plays on tasks that were
# mastered, locked, hopeless; learnable tasks mastered now; play at which all of them first were
# (-1 before); sum over all plays of the number mastered; plays per epoch, for epochwise dynamics;
# plays on mastered, locked and hopeless tasks when all were first mastered; epochs completed, plays
# in the present one, whether the last one ended by itself with the last play.
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
    C_EPOCHS,
    C_IN_EPOCH,
    C_JUST_ENDED,
) = range(15)
NUM_CLOCK = 15

OPEN_GATE = 0.5
"""A task whose gate is below this counts as locked in the statistics; a lone parent has then a
skill below 0.71."""

RECOUNT_INTERVAL = 64
"""Plays after which the mastered tasks are counted again, for forgetting lowers their number."""

SMALLEST_SCALE = 1e-200
SEED_MASK = 2**31 - 1
"""What envs are seeded with: `envs.curriculum_env` hands on these bits of a draw's seed."""


@dataclass(frozen=True)
class World:
    """One simulated learner as two arrays, which kernels take in this order.

    Two and not a dozen: handing an array to compiled code takes as long as a play.
    """

    numbers: Floats
    words: Words

    @classmethod
    def of(
        cls,
        kinds: Words,
        learnable: Words,
        parents: Sequence[Sequence[int]],
        children: Sequence[Sequence[int]],
        rates: Floats,
        biases: Floats,
    ) -> "World":
        """Lay out a world; settings, skills and clock are zero."""
        num_nodes = len(kinds)
        links = [number for lists in (parents, children) for entry in lists for number in entry]
        first_link = KINDS + 6 * num_nodes + 2
        words = np.zeros(first_link + len(links), dtype=np.int64)
        words[W_NUM_NODES], words[W_NUM_LEARNABLE] = num_nodes, int(learnable.sum())
        words[KINDS : KINDS + num_nodes] = kinds
        words[KINDS + num_nodes : KINDS + 2 * num_nodes] = learnable
        starts = np.cumsum([0, *(len(entry) for lists in (parents, children) for entry in lists)])
        at = KINDS + 4 * num_nodes
        words[at : at + num_nodes + 1] = first_link + starts[: num_nodes + 1]
        words[at + num_nodes + 1 : at + 2 * num_nodes + 2] = first_link + starts[num_nodes:]
        words[first_link:] = links
        numbers = np.zeros(SKILLS + 3 * num_nodes + 1)
        numbers[SKILLS + num_nodes + 1 :] = np.concatenate([rates, biases])
        return cls(numbers, words)

    @property
    def num_nodes(self) -> int:
        """Number of tasks."""
        return int(self.words[W_NUM_NODES])

    @property
    def settings(self) -> Floats:
        """The settings, by position; a view, as all of these."""
        return self.numbers[:SKILLS]

    @property
    def skills(self) -> Floats:
        """Skill per node divided by the scale; then the scale."""
        return self.numbers[SKILLS : SKILLS + self.num_nodes + 1]

    @property
    def biases(self) -> Floats:
        """Fixed error of the reward per node."""
        return self.numbers[SKILLS + 2 * self.num_nodes + 1 :]

    @property
    def clock(self) -> Words:
        """The clock, by position."""
        return self.words[CLOCK : CLOCK + NUM_CLOCK]

    def _per_node(self, column: int) -> Words:
        start = KINDS + column * self.num_nodes
        return self.words[start : start + self.num_nodes]

    @property
    def kinds(self) -> Words:
        """Kind per node; a task below a hopeless one is learnable in kind but not in fact."""
        return self._per_node(0)

    @property
    def learnable(self) -> Words:
        """1 for nodes that can be learned in fact."""
        return self._per_node(1)

    @property
    def counts(self) -> Words:
        """Plays per node."""
        return self._per_node(2)

    @property
    def epoch_counts(self) -> Words:
        """Plays per node in this epoch."""
        return self._per_node(3)


@inlined
def mixed(word: int) -> np.uint64:
    """Scramble a word (the finaliser of SplitMix64): neighbouring seeds give unrelated results."""
    z = np.uint64(word) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inlined
def uniform(seed: int, number: int) -> float:
    """Return the `number`-th of a seed's numbers in [0, 1)."""
    word = mixed(seed + (number << 40))
    return float(word >> np.uint64(11)) / 9007199254740992.0


@inlined
def skill(numbers: Floats, words: Words, node: int) -> float:
    """Return the probability that a play of a node succeeds."""
    kind = words[KINDS + node]
    if kind == IMPOSSIBLE:
        return 0.0
    if kind == NOISE:
        return 0.5
    return numbers[SKILLS + node] * numbers[SKILLS + words[W_NUM_NODES]]


@inlined
def gate(numbers: Floats, words: Words, node: int) -> float:
    """Return how far the prerequisites of a node are there, in [0, 1]."""
    at = KINDS + 4 * words[W_NUM_NODES] + node
    product = 1.0
    for index in range(words[at], words[at + 1]):
        parent = skill(numbers, words, words[index])
        product *= parent * parent
    return product


@compiled
def opening(numbers: Floats, words: Words, node: int) -> float:
    """Return how far what a node's learning waits for is there: epochwise, that is its children."""
    if numbers[S_EPOCHWISE] == 0.0:
        return gate(numbers, words, node)
    at = KINDS + 5 * words[W_NUM_NODES] + 1 + node
    product = 1.0
    for index in range(words[at], words[at + 1]):
        product *= skill(numbers, words, words[index])
    return product


@inlined
def play(numbers: Floats, words: Words, node: int, seed: int) -> tuple[float, float]:
    """Return success and return of one play; nothing is learned yet."""
    p = skill(numbers, words, node)
    success = 1.0 if uniform(seed, 0) < p else 0.0
    if numbers[S_REWARD_IS_SKILL] == 0.0:
        return success, numbers[S_BASE] + success
    num_nodes = words[W_NUM_NODES]
    reward = numbers[S_BASE] + p + numbers[SKILLS + 2 * num_nodes + 1 + node]
    if numbers[S_SAMPLE_STD] > 0.0:
        # Box and Muller: two even numbers make one bell-shaped.
        radius = np.sqrt(-2.0 * np.log(1.0 - uniform(seed, 1)))
        reward += numbers[S_SAMPLE_STD] * radius * np.cos(2.0 * np.pi * uniform(seed, 2))
    if numbers[S_SATURATE] > 0.0:
        reward = min(1.0, max(0.0, reward))
    return success, reward


@inlined
def _raise(numbers: Floats, words: Words, node: int, share: float) -> bool:
    """Let one task gain a share of what it could; say if that carried it over the mastery line."""
    if words[KINDS + node] != LEARNABLE:
        return False
    num_nodes = words[W_NUM_NODES]
    scale = numbers[SKILLS + num_nodes]
    before = numbers[SKILLS + node] * scale
    rate = share * numbers[SKILLS + num_nodes + 1 + node]
    after = before + rate * gate(numbers, words, node) * (1.0 - before)
    numbers[SKILLS + node] = after / scale
    line = numbers[S_MASTERY]
    return before < line <= after


@inlined
def learn(numbers: Floats, words: Words, node: int) -> bool:
    """Learn from one play; return whether a task was carried over the mastery line."""
    num_nodes = words[W_NUM_NODES]
    words[KINDS + 2 * num_nodes + node] += 1
    words[KINDS + 3 * num_nodes + node] += 1
    if numbers[S_EPOCHWISE] > 0.0:
        return False
    crossed = _raise(numbers, words, node, 1.0)
    if words[KINDS + node] == LEARNABLE:
        at = KINDS + 4 * num_nodes + node
        for index in range(words[at], words[at + 1]):
            crossed |= _raise(numbers, words, words[index], numbers[S_GAMMA])
    last = SKILLS + num_nodes
    numbers[last] *= numbers[S_KEEP]
    if numbers[last] < SMALLEST_SCALE:
        for other in range(SKILLS, last):
            numbers[other] *= numbers[last]
        numbers[last] = 1.0
    return crossed


@compiled
def count_mastered(numbers: Floats, words: Words) -> int:
    """Return how many of the tasks that can be learned are mastered."""
    num_nodes = words[W_NUM_NODES]
    scale, line = numbers[SKILLS + num_nodes], numbers[S_MASTERY]
    count = 0
    for node in range(num_nodes):
        learnable = words[KINDS + num_nodes + node] == 1
        if learnable and numbers[SKILLS + node] * scale >= line:
            count += 1
    return count


@compiled
def recount(numbers: Floats, words: Words) -> None:
    """Count the mastered tasks; note the first moment at which all of them are."""
    words[CLOCK + C_NUM_MASTERED] = count_mastered(numbers, words)
    is_first = words[CLOCK + C_DONE_AT] < 0
    if is_first and words[CLOCK + C_NUM_MASTERED] == words[W_NUM_LEARNABLE]:
        words[CLOCK + C_DONE_AT] = words[CLOCK + C_PLAYS]
        for index in range(3):
            spent = words[CLOCK + C_ON_MASTERED + index]
            words[CLOCK + C_DONE_MASTERED + index] = spent


@compiled
def complete_epoch(numbers: Floats, words: Words) -> None:
    """Apply the epochwise equations to the plays since the last call, and begin a new epoch."""
    num_nodes = words[W_NUM_NODES]
    counts = words[KINDS + 3 * num_nodes : KINDS + 4 * num_nodes]
    if numbers[S_EPOCHWISE] > 0.0:
        num_plays = words[CLOCK + C_EPOCH_PLAYS]
        old = np.empty(num_nodes)
        for node in range(num_nodes):
            old[node] = skill(numbers, words, node)
        for node in range(num_nodes):
            if words[KINDS + node] != LEARNABLE:
                continue
            at = KINDS + 4 * num_nodes + node
            stimulus = float(counts[node])
            for index in range(words[at], words[at + 1]):
                stimulus += numbers[S_GAMMA] * counts[words[index]]
            at += num_nodes + 1
            product = 1.0
            for index in range(words[at], words[at + 1]):
                product *= old[words[index]]
            gain = stimulus * product * (1.0 - old[node]) - numbers[S_LAMBDA] * old[node]
            moved = old[node] + gain * numbers[S_STEP] / num_plays
            numbers[SKILLS + node] = min(1.0, max(0.0, moved))
        recount(numbers, words)
    counts[:] = 0
    words[CLOCK + C_EPOCHS] += 1
    words[CLOCK + C_IN_EPOCH] = 0


@inlined
def absorb_one(numbers: Floats, words: Words, node: int) -> None:
    """Learn from one play and keep count."""
    line = numbers[S_MASTERY]
    words[CLOCK + C_AREA] += words[CLOCK + C_NUM_MASTERED]
    words[CLOCK + C_PLAYS] += 1
    plays = words[CLOCK + C_PLAYS]
    if words[KINDS + words[W_NUM_NODES] + node] == 0:
        words[CLOCK + C_ON_HOPELESS] += 1
    elif skill(numbers, words, node) >= line:
        words[CLOCK + C_ON_MASTERED] += 1
    elif opening(numbers, words, node) < OPEN_GATE:
        words[CLOCK + C_ON_LOCKED] += 1
    crossed = learn(numbers, words, node)
    if crossed or plays % RECOUNT_INTERVAL == 0:
        recount(numbers, words)
    if words[CLOCK + C_EPOCH_PLAYS] > 0:
        words[CLOCK + C_IN_EPOCH] += 1
        is_full = words[CLOCK + C_IN_EPOCH] == words[CLOCK + C_EPOCH_PLAYS]
        words[CLOCK + C_JUST_ENDED] = is_full
        if is_full:
            complete_epoch(numbers, words)


@compiled
def absorb(numbers: Floats, words: Words, nodes: Words) -> None:
    """Learn from the plays of one round, in the order of the envs, and keep count."""
    for index in range(len(nodes)):
        absorb_one(numbers, words, nodes[index])
