"""Compiled arithmetic of the simulated learner: what a play shows, and what it teaches.

Called by `learner` for the Python object and by `rounds` for the engines; both use the very same
kernels, so a play has the same outcome in every engine.

A skill is stored divided by a common scale. Forgetting multiplies the scale alone, so a play costs
the same with ten tasks and with ten thousand.
"""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, cast

import numpy as np

from stepladder.compiled import bare, inlined
from stepladder.records import Count, Fields, Floats, Limits, Records, Words

LEARNABLE, IMPOSSIBLE, NOISE = 0, 1, 2
"""Kinds of tasks: one that can be learned, one that never succeeds, one that is a coin toss."""

OPEN_GATE = 0.5
"""A task whose gate is below this counts as locked in the statistics; a lone parent has then a
skill below 0.71."""

RECOUNT_INTERVAL = 64
"""Plays after which the mastered tasks are counted again, for forgetting lowers their number."""

SMALLEST_SCALE = 1e-200
SEED_MASK = 2**31 - 1
"""What envs are seeded with: `envs.curriculum_env` hands on these bits of a draw's seed."""


class WorldSettings(Fields):
    """How the learner learns, and what a play shows."""

    is_epochwise: int
    gamma: float
    keep: float
    """What one play leaves of all skills."""
    mastery: float
    reward_is_skill: int
    sample_std: float
    reward_base: float
    saturates: int
    forgetting: float
    """Of epochwise dynamics, per epoch."""
    step: float
    """Of epochwise dynamics: how far one epoch moves a skill."""


class Clock(Fields):
    """What has been counted so far."""

    num_plays: Count
    num_rounds: Count
    """Also the next episode of every env."""
    on_mastered: Count
    """Plays on tasks that were mastered already; likewise locked and hopeless."""
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
    """Plays on mastered tasks when all were first mastered; likewise locked and hopeless."""
    done_on_locked: Count
    done_on_hopeless: Count
    num_epochs: Count
    """Epochs completed."""
    plays_in_epoch: Count
    just_ended: Annotated[int, Limits(0, 1)]
    """Whether the last epoch ended by itself with the last play."""
    scale: float
    """What stored skills are to be multiplied by."""
    num_learnable: int
    """Tasks that can be learned in fact."""


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
    """A task below a hopeless one is learnable in kind but not in fact."""
    is_learnable: int
    """Whether it can be learned in fact."""
    num_plays: Count
    num_epoch_plays: Count
    parents_at: int
    """Where its parents begin and end among the links; likewise its children."""
    parents_end: int
    children_at: int
    children_end: int


CLOCK, NODE = Clock.dtype, Node.dtype


class World(NamedTuple):
    """One simulated learner, as kernels take it."""

    settings: Records[WorldSettings]
    clock: Records[Clock]
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
    ) -> "World":
        """Lay out a world; settings, skills and clock are zero."""
        clock, nodes = Clock.zeros(), Node.zeros(len(kinds))
        clock["num_learnable"] = learnable.sum()
        nodes["kind"], nodes["is_learnable"] = kinds, learnable
        nodes["rate"], nodes["bias"] = rates, biases
        lists = [*parents, *children]
        ends = np.cumsum([len(entry) for entry in lists])
        starts = ends - [len(entry) for entry in lists]
        nodes["parents_at"], nodes["children_at"] = np.split(starts, 2)
        nodes["parents_end"], nodes["children_end"] = np.split(ends, 2)
        links = np.array([number for entry in lists for number in entry], dtype=np.int64)
        return cls(WorldSettings.zeros(), clock, nodes, links)

    @property
    def shared_words(self) -> int:
        """Size of what changes, and what envs in other processes have to see."""
        return Clock.num_words + len(self.nodes) * Node.num_words

    def in_words(self, words: Words) -> "World":
        """Return the same world with clock and nodes in given memory, which holds them already."""
        clock, nodes = words[: Clock.num_words].view(CLOCK), words[Clock.num_words :].view(NODE)
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
def skill(world: World, node: int) -> float:
    """Return the probability that a play of a node succeeds."""
    own = world.nodes[node]
    if own.kind == IMPOSSIBLE:
        return 0.0
    if own.kind == NOISE:
        return 0.5
    return own.skill * world.clock[0].scale


@inlined
def gate(world: World, node: int) -> float:
    """Return how far the prerequisites of a node are there, in [0, 1]."""
    own = world.nodes[node]
    product = 1.0
    for index in range(own.parents_at, own.parents_end):
        parent = skill(world, world.links[index])
        product *= parent * parent
    return product


@bare
def opening(world: World, node: int) -> float:
    """Return how far what a node's learning waits for is there: epochwise, that is its children."""
    if world.settings[0].is_epochwise == 0:
        return gate(world, node)
    own = world.nodes[node]
    product = 1.0
    for index in range(own.children_at, own.children_end):
        product *= skill(world, world.links[index])
    return product


@inlined
def play(world: World, node: int, seed: int) -> tuple[float, float]:
    """Return success and return of one play; nothing is learned yet."""
    p, settings = skill(world, node), world.settings[0]
    success = 1.0 if uniform(seed, 0) < p else 0.0
    if settings.reward_is_skill == 0:
        return success, settings.reward_base + success
    reward = settings.reward_base + p + world.nodes[node].bias
    if settings.sample_std > 0.0:
        # Box and Muller: two even numbers make one bell-shaped.
        radius = np.sqrt(-2.0 * np.log(1.0 - uniform(seed, 1)))
        reward += settings.sample_std * radius * np.cos(2.0 * np.pi * uniform(seed, 2))
    if settings.saturates > 0:
        reward = min(1.0, max(0.0, reward))
    return success, reward


@inlined
def _raise(world: World, node: int, share: float) -> bool:
    """Let one task gain a share of what it could; say if that carried it over the mastery line."""
    own, scale = world.nodes[node], world.clock[0].scale
    if own.kind != LEARNABLE:
        return False
    before = own.skill * scale
    after = before + share * own.rate * gate(world, node) * (1.0 - before)
    own.skill = after / scale
    return before < world.settings[0].mastery <= after


@inlined
def learn(world: World, node: int) -> bool:
    """Learn from one play; return whether a task was carried over the mastery line."""
    own, clock, settings = world.nodes[node], world.clock[0], world.settings[0]
    own.num_plays += 1
    own.num_epoch_plays += 1
    if settings.is_epochwise > 0:
        return False
    crossed = _raise(world, node, 1.0)
    if own.kind == LEARNABLE:
        for index in range(own.parents_at, own.parents_end):
            crossed |= _raise(world, world.links[index], settings.gamma)
    clock.scale *= settings.keep
    if clock.scale < SMALLEST_SCALE:
        for other in range(len(world.nodes)):
            world.nodes[other].skill *= clock.scale
        clock.scale = 1.0
    return crossed


@bare
def count_mastered(world: World) -> int:
    """Return how many of the tasks that can be learned are mastered."""
    scale, line = world.clock[0].scale, world.settings[0].mastery
    count = 0
    for node in range(len(world.nodes)):
        own = world.nodes[node]
        if own.is_learnable == 1 and own.skill * scale >= line:
            count += 1
    return count


@bare
def recount(world: World) -> None:
    """Count the mastered tasks; note the first moment at which all of them are."""
    clock = world.clock[0]
    clock.num_mastered = count_mastered(world)
    if clock.done_at < 0 and clock.num_mastered == clock.num_learnable:
        clock.done_at = clock.num_plays
        clock.done_on_mastered = clock.on_mastered
        clock.done_on_locked = clock.on_locked
        clock.done_on_hopeless = clock.on_hopeless


@bare
def complete_epoch(world: World) -> None:
    """Apply the epochwise equations to the plays since the last call, and begin a new epoch."""
    clock, settings, nodes, links = world.clock[0], world.settings[0], world.nodes, world.links
    if settings.is_epochwise > 0:
        for node in range(len(nodes)):
            nodes[node].skill_before = skill(world, node)
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
        recount(world)
    for node in range(len(nodes)):
        nodes[node].num_epoch_plays = 0
    clock.num_epochs += 1
    clock.plays_in_epoch = 0


@inlined
def learn_and_count(world: World, node: int) -> None:
    """Learn from one play and keep count."""
    clock = world.clock[0]
    clock.area += clock.num_mastered
    clock.num_plays += 1
    if world.nodes[node].is_learnable == 0:
        clock.on_hopeless += 1
    elif skill(world, node) >= world.settings[0].mastery:
        clock.on_mastered += 1
    elif opening(world, node) < OPEN_GATE:
        clock.on_locked += 1
    crossed = learn(world, node)
    if crossed or clock.num_plays % RECOUNT_INTERVAL == 0:
        recount(world)
    if clock.epoch_plays > 0:
        clock.plays_in_epoch += 1
        clock.just_ended = clock.plays_in_epoch == clock.epoch_plays
        if clock.just_ended:
            complete_epoch(world)


@bare
def learn_round(world: World, nodes: Words) -> None:
    """Learn from the plays of one round, in the order of the envs, and keep count."""
    for index in range(len(nodes)):
        learn_and_count(world, nodes[index])
