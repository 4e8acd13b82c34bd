"""Compiled arithmetic of the simulated learner: what a play shows, and what it teaches.

Called by `learner` for the Python object and by `rounds` for the engines; both use the same
kernels, so a play has the same outcome in every engine.

A skill is stored divided by a common scale. Forgetting multiplies the scale alone, so a play costs
the same with ten tasks and with ten thousand.
"""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, cast

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.compiled import bare, inlined
from stepladder.records import Count, Fields, Limits, Records

LEARNABLE, IMPOSSIBLE, NOISE = 0, 1, 2
"""Kinds of tasks: one that can be learned, one that never succeeds, one that is a coin toss."""

OPEN_GATE = 0.5
"""A task whose gate is below this counts as locked in the statistics; with one parent, the parent's
skill is then below 0.71."""

RECOUNT_INTERVAL = 64
"""Plays after which the mastered tasks are counted again, since forgetting lowers their number."""

SMALLEST_SCALE = 1e-200
SEED_MASK = 2**31 - 1
"""Bits of a draw's seed that `envs.curriculum_env` seeds an env with."""


class LearnerSettings(Fields):
    """How the learner learns, and what a play shows."""

    is_epochwise: int
    gamma: float
    keep: float
    """Factor on all skills per play."""
    mastery: float
    reward_is_skill: int
    sample_std: float
    reward_base: float
    saturates: int
    forgetting: float
    """Of epochwise dynamics, per epoch."""
    step: float
    """Of epochwise dynamics: how far one epoch moves a skill."""


class LearnerClock(Fields):
    """All counts of a learner."""

    num_plays: Count
    num_rounds: Count
    """Also the next episode of every env."""
    on_mastered: Count
    """Plays on tasks that were already mastered; locked and hopeless likewise."""
    on_locked: Count
    on_hopeless: Count
    num_mastered: int
    """Learnable tasks that are mastered now."""
    done_at: int
    """Play at which all of them first were; -1 before."""
    area: Count
    """Sum over all plays of the number mastered."""
    epoch_plays: int
    """Plays per epoch, for epochwise dynamics; 0 otherwise."""
    done_on_mastered: Count
    """Plays on mastered tasks when all were first mastered; locked and hopeless likewise."""
    done_on_locked: Count
    done_on_hopeless: Count
    num_epochs: Count
    """Epochs completed."""
    plays_in_epoch: Count
    just_ended: Annotated[int, Limits(0, 1)]
    """Whether the last epoch ended by itself with the last play."""
    scale: float
    """Factor on stored skills."""
    num_learnable: int
    """Tasks that can be learned, with all their prerequisites."""


class Node(Fields):
    """One task of the learner."""

    skill: float
    """Divided by the scale."""
    skill_before: float
    """At the end of the last epoch, for epochwise dynamics."""
    rate: float
    """Of learning."""
    bias: float
    """Fixed error of the reward."""
    kind: int
    """LEARNABLE, IMPOSSIBLE or NOISE."""
    is_learnable: int
    """Whether it can be learned; not so below an impossible task."""
    counts: int
    """Whether it is to be mastered: it can be learned, and it is of the target if there is one."""
    num_plays: Count
    num_epoch_plays: Count
    parents_at: int
    """Position of its parents in the links, from here to `parents_end`; children likewise."""
    parents_end: int
    children_at: int
    children_end: int


CLOCK, NODE = LearnerClock.dtype, Node.dtype


class LearnerState(NamedTuple):
    """One simulated learner, as kernels take it."""

    settings: Records[LearnerSettings]
    clock: Records[LearnerClock]
    nodes: Records[Node]
    links: Words

    @classmethod
    def of(
        cls,
        kinds: Words,
        learnable: Words,
        parents: Sequence[Sequence[int]],
        children: Sequence[Sequence[int]],
        rates: Floats,
        biases: Floats,
    ) -> "LearnerState":
        """Lay out a learner; settings, skills and clock are zero."""
        clock, nodes = LearnerClock.zeros(), Node.zeros(len(kinds))
        clock["num_learnable"] = learnable.sum()
        nodes["kind"], nodes["is_learnable"], nodes["counts"] = kinds, learnable, learnable
        nodes["rate"], nodes["bias"] = rates, biases
        lists = [*parents, *children]
        ends = np.cumsum([len(entry) for entry in lists])
        starts = ends - [len(entry) for entry in lists]
        nodes["parents_at"], nodes["children_at"] = np.split(starts, 2)
        nodes["parents_end"], nodes["children_end"] = np.split(ends, 2)
        links = np.array([number for entry in lists for number in entry], dtype=np.int64)
        return cls(LearnerSettings.zeros(), clock, nodes, links)

    def show(self, node: int, seed: int) -> tuple[float, float, float, int]:
        """Return level, success, return and length of a play that begins now."""
        success, reward = play(self, node, seed)
        return skill(self, node), success, reward, 1

    @property
    def plays(self) -> Words:
        """Plays of each task so far."""
        return cast("Words", self.nodes["num_plays"])

    @property
    def shared_words(self) -> int:
        """Size of clock and nodes, which envs in other processes read."""
        return LearnerClock.num_words + len(self.nodes) * Node.num_words

    def in_words(self, words: Words) -> "LearnerState":
        """Return the same learner with the clock and nodes that given memory holds."""
        clock, nodes = (
            words[: LearnerClock.num_words].view(CLOCK),
            words[LearnerClock.num_words :].view(NODE),
        )
        return self._replace(clock=cast("Any", clock), nodes=cast("Any", nodes))


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
def skill(learner: LearnerState, node: int) -> float:
    """Return the probability that a play of a node succeeds."""
    own = learner.nodes[node]
    if own.kind == IMPOSSIBLE:
        return 0.0
    if own.kind == NOISE:
        return 0.5
    return own.skill * learner.clock[0].scale


@inlined
def gate(learner: LearnerState, node: int) -> float:
    """Return the product of the squared skills of a node's parents, in [0, 1]."""
    own = learner.nodes[node]
    product = 1.0
    for index in range(own.parents_at, own.parents_end):
        parent = skill(learner, learner.links[index])
        product *= parent * parent
    return product


@bare
def opening(learner: LearnerState, node: int) -> float:
    """Return how far a node can be learned now, in [0, 1]; epochwise, its children decide."""
    if learner.settings[0].is_epochwise == 0:
        return gate(learner, node)
    own = learner.nodes[node]
    product = 1.0
    for index in range(own.children_at, own.children_end):
        product *= skill(learner, learner.links[index])
    return product


@inlined
def play(learner: LearnerState, node: int, seed: int) -> tuple[float, float]:
    """Return success and return of one play; nothing is learned yet."""
    p, settings = skill(learner, node), learner.settings[0]
    success = 1.0 if uniform(seed, 0) < p else 0.0
    if settings.reward_is_skill == 0:
        return success, settings.reward_base + success
    reward = settings.reward_base + p + learner.nodes[node].bias
    if settings.sample_std > 0.0:
        # Box and Muller: two uniform numbers make a normal one.
        radius = np.sqrt(-2.0 * np.log(1.0 - uniform(seed, 1)))
        reward += settings.sample_std * radius * np.cos(2.0 * np.pi * uniform(seed, 2))
    if settings.saturates > 0:
        reward = min(1.0, max(0.0, reward))
    return success, reward


@inlined
def _raise(learner: LearnerState, node: int, share: float) -> bool:
    """Raise one skill by a share of the full gain; return whether it crossed the mastery line."""
    own, scale = learner.nodes[node], learner.clock[0].scale
    if own.kind != LEARNABLE:
        return False
    before = own.skill * scale
    after = before + share * own.rate * gate(learner, node) * (1.0 - before)
    own.skill = after / scale
    return before < learner.settings[0].mastery <= after


@inlined
def learn(learner: LearnerState, node: int) -> bool:
    """Learn from one play; return whether a task crossed the mastery line."""
    own, clock, settings = learner.nodes[node], learner.clock[0], learner.settings[0]
    own.num_plays += 1
    own.num_epoch_plays += 1
    if settings.is_epochwise > 0:
        return False
    crossed = _raise(learner, node, 1.0)
    if own.kind == LEARNABLE:
        for index in range(own.parents_at, own.parents_end):
            crossed |= _raise(learner, learner.links[index], settings.gamma)
    clock.scale *= settings.keep
    if clock.scale < SMALLEST_SCALE:
        for other in range(len(learner.nodes)):
            learner.nodes[other].skill *= clock.scale
        clock.scale = 1.0
    return crossed


@bare
def count_mastered(learner: LearnerState) -> int:
    """Return the number of tasks that count and are mastered."""
    scale, line = learner.clock[0].scale, learner.settings[0].mastery
    count = 0
    for node in range(len(learner.nodes)):
        own = learner.nodes[node]
        if own.counts == 1 and own.skill * scale >= line:
            count += 1
    return count


@bare
def recount(learner: LearnerState) -> None:
    """Count the mastered tasks; note the first play at which all of them are."""
    clock = learner.clock[0]
    clock.num_mastered = count_mastered(learner)
    if clock.done_at < 0 and clock.num_mastered == clock.num_learnable:
        clock.done_at = clock.num_plays
        clock.done_on_mastered = clock.on_mastered
        clock.done_on_locked = clock.on_locked
        clock.done_on_hopeless = clock.on_hopeless


@bare
def complete_epoch(learner: LearnerState) -> None:
    """Apply the epochwise equations to the plays since the last call, and begin a new epoch."""
    clock, settings, nodes, links = (
        learner.clock[0],
        learner.settings[0],
        learner.nodes,
        learner.links,
    )
    if settings.is_epochwise > 0:
        for node in range(len(nodes)):
            nodes[node].skill_before = skill(learner, node)
        for node in range(len(nodes)):
            own = nodes[node]
            if own.kind != LEARNABLE:
                continue
            stimulus = float(own.num_epoch_plays)
            for index in range(own.parents_at, own.parents_end):
                stimulus += settings.gamma * nodes[links[index]].num_epoch_plays
            product = 1.0
            for index in range(own.children_at, own.children_end):
                product *= nodes[links[index]].skill_before
            old = own.skill_before
            gain = stimulus * product * (1.0 - old) - settings.forgetting * old
            moved = old + gain * settings.step / clock.epoch_plays
            own.skill = min(1.0, max(0.0, moved))
        recount(learner)
    for node in range(len(nodes)):
        nodes[node].num_epoch_plays = 0
    clock.num_epochs += 1
    clock.plays_in_epoch = 0


@inlined
def learn_and_count(learner: LearnerState, node: int) -> None:
    """Learn from one play and keep count."""
    clock = learner.clock[0]
    clock.area += clock.num_mastered
    clock.num_plays += 1
    if learner.nodes[node].is_learnable == 0:
        clock.on_hopeless += 1
    elif skill(learner, node) >= learner.settings[0].mastery:
        clock.on_mastered += 1
    elif opening(learner, node) < OPEN_GATE:
        clock.on_locked += 1
    crossed = learn(learner, node)
    if crossed or clock.num_plays % RECOUNT_INTERVAL == 0:
        recount(learner)
    if clock.epoch_plays > 0:
        clock.plays_in_epoch += 1
        clock.just_ended = clock.plays_in_epoch == clock.epoch_plays
        if clock.just_ended:
            complete_epoch(learner)


@bare
def learn_round(learner: LearnerState, nodes: Words, count: int) -> None:
    """Learn from the plays of one round, in the order of the envs, and keep count.

    Args:
        learner: The learner.
        nodes: What was played.
        count: How many of `nodes` were.
    """
    for index in range(count):
        learn_and_count(learner, nodes[index])
