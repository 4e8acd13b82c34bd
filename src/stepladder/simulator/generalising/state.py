"""Compiled arithmetic of the learner that generalises: a play, an update, the score.

Called by `learner` for the Python object, by envs and by `course` for the engines, so a play has
the same outcome in every engine.

A memory is stored divided by a common scale. Forgetting multiplies the scale alone, so an update
costs the same with a hundred tasks and with a hundred thousand.
"""

from typing import Annotated, Any, NamedTuple, cast

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.compiled import bare, inlined
from stepladder.records import Count, Fields, Limits, Records, Share
from stepladder.simulator.learner_state import SMALLEST_SCALE, uniform

MASTERED_SUCCESS = 0.9
"""Chance of success from which the statistics count a task as mastered."""

LOCKED = 0.1
"""Chance of success below which the statistics count a task as out of reach."""

NO_SPREAD = 1e-6
"""Spread of difficulties below which all tasks of a group count as equal."""

MOST_SKILL = 1e12
"""Skills and memories of a snapshot are at most this."""


class GeneralSettings(Fields):
    """How the learner learns."""

    eta: float
    eta_memory: float
    keep: float
    """Factor on all skills per update."""
    keep_memory: float
    length_spread: float
    goal: float
    num_envs: int
    rollout_steps: int
    """Vector steps from one update to the next."""


class GeneralClock(Fields):
    """All counts of the learner; those of samples are in env steps."""

    time: Count
    """Vector steps so far."""
    num_plays: Count
    num_updates: Count
    on_mastered: Count
    """Env steps on tasks that were already mastered; locked and hopeless likewise."""
    on_locked: Count
    on_hopeless: Count
    done_at: int
    """Env steps until the score first reached the goal; -1 before."""
    done_on_mastered: Count
    """Env steps on mastered tasks until then; locked and hopeless likewise."""
    done_on_locked: Count
    done_on_hopeless: Count
    num_waiting: int
    """Envs that begin another play in the next vector step."""
    num_pending: int
    """Tasks with plays that the learner has not learned from yet."""
    scored_at: Count
    """Vector step up to which the area is summed."""
    area: Annotated[float, Limits(0.0, 2.0**62)]
    """Sum of the score over all env steps until then."""
    score: Share
    """Mean success on held-out tasks of the target since the last update."""
    scale: float
    """Factor on stored memories."""


class GeneralGroup(Fields):
    """What does not change about a group."""

    difficulty: float
    spread: float
    success_steps: float
    failure_steps: float
    target: float
    """Weight in the score."""
    is_hopeless: int
    """Whether its plays teach nothing that counts."""


class GroupSkill(Fields):
    """What the learner knows of a group."""

    skill: Annotated[float, Limits(-MOST_SKILL, MOST_SKILL)]
    gain: Annotated[float, Limits(0.0, MOST_SKILL)]
    """Sum of what plays since the last update teach."""


class GeneralNode(Fields):
    """What does not change about a task."""

    group: int
    difficulty: float


class TaskMemory(Fields):
    """What the learner knows of a single task."""

    memory: Annotated[float, Limits(0.0, MOST_SKILL / SMALLEST_SCALE)]
    """Divided by the scale."""
    gain: Annotated[float, Limits(0.0, MOST_SKILL)]
    num_plays: Count


class GeneralPlay(Fields):
    """The play of one env."""

    slot: Count
    generation: Count
    plan_version: Count
    tick: Count
    episode: Count
    """Number of the env's next episode."""
    node: int
    begins: Count
    """Vector step at which the env is reset for it."""
    length: Count
    level: Share
    success: Share


CLOCK, SKILL, MEMORY = GeneralClock.dtype, GroupSkill.dtype, TaskMemory.dtype


class GeneralState(NamedTuple):
    """The learner, as kernels take it."""

    settings: Records[GeneralSettings]
    groups: Records[GeneralGroup]
    nodes: Records[GeneralNode]
    coupling: Floats
    clock: Records[GeneralClock]
    skills: Records[GroupSkill]
    memories: Records[TaskMemory]
    pending: Words
    """Tasks with a gain; the first `num_pending` count."""
    rows: Records[GeneralPlay]
    ends_at: Words
    """Vector step with which the play of each env ends."""
    waiting: Words
    """Envs that begin another play; the first `num_waiting` count."""

    def show(self, node: int, seed: int) -> tuple[float, float, float, int]:
        """Return level, success, return and length of a play that begins now."""
        level, success, length = play(self, node, seed)
        return level, success, success, length

    @property
    def plays(self) -> Words:
        """Plays of each task so far."""
        return cast("Words", self.memories["num_plays"])

    @property
    def shared_words(self) -> int:
        """Size of clock, skills and memories, which envs in other processes read."""
        sizes = (GeneralClock.num_words, len(self.skills) * GroupSkill.num_words)
        return sum(sizes) + len(self.memories) * TaskMemory.num_words

    def in_words(self, words: Words) -> "GeneralState":
        """Return the same learner with the clock, skills and memories that given memory holds."""
        first = GeneralClock.num_words
        second = first + len(self.skills) * GroupSkill.num_words
        clock, skills = words[:first].view(CLOCK), words[first:second].view(SKILL)
        memories = words[second:].view(MEMORY)
        return self._replace(
            clock=cast("Any", clock), skills=cast("Any", skills), memories=cast("Any", memories)
        )


@inlined
def chance(learner: GeneralState, node: int) -> float:
    """Return the probability that a play of a task succeeds."""
    own = learner.nodes[node]
    memory = learner.memories[node].memory * learner.clock[0].scale
    return 1.0 / (1.0 + np.exp(own.difficulty - memory - learner.skills[own.group].skill))


@inlined
def play(learner: GeneralState, node: int, seed: int) -> tuple[float, float, int]:
    """Return level, success and length of a play that begins now; nothing is learned yet."""
    level, group = chance(learner, node), learner.groups[learner.nodes[node].group]
    success = 1.0 if uniform(seed, 0) < level else 0.0
    steps = group.success_steps if success > 0.0 else group.failure_steps
    stretch = 1.0 + learner.settings[0].length_spread * (2.0 * uniform(seed, 1) - 1.0)
    return level, success, max(1, int(steps * stretch + 0.5))


@inlined
def _softplus(x: float) -> float:
    """Return ``log(1 + exp(x))`` without overflow."""
    return max(x, 0.0) + np.log1p(np.exp(-abs(x)))


@inlined
def mean_chance(ahead: float, spread: float) -> float:
    """Return the mean chance of success on tasks whose difficulties lie evenly within `spread`.

    The mean is an integral with a closed form; `ahead` is skill less the mean difficulty.
    """
    if spread < NO_SPREAD:
        return 1.0 / (1.0 + np.exp(-ahead))
    whole = _softplus(ahead + spread) - _softplus(ahead - spread)
    return whole / (2.0 * spread)


@bare
def held_out(learner: GeneralState, group: int) -> float:
    """Return the mean success on held-out tasks of a group."""
    own = learner.groups[group]
    success = mean_chance(learner.skills[group].skill - own.difficulty, own.spread)
    return min(1.0, max(0.0, success))


@bare
def score(learner: GeneralState) -> float:
    """Return the mean success on held-out tasks of the target."""
    total = 0.0
    for group in range(len(learner.groups)):
        if learner.groups[group].target > 0.0:
            total += learner.groups[group].target * held_out(learner, group)
    return min(1.0, total)


@inlined
def note_play(learner: GeneralState, node: int, level: float, length: int) -> None:
    """Keep what one finished play teaches for the next update, and count it."""
    clock, memory = learner.clock[0], learner.memories[node]
    group = learner.nodes[node].group
    taught = 4.0 * level * (1.0 - level)
    if taught > 0.0 and memory.gain == 0.0 and clock.num_pending < len(learner.pending):
        learner.pending[clock.num_pending] = node
        clock.num_pending += 1
    memory.gain += taught
    memory.num_plays += 1
    learner.skills[group].gain += taught
    clock.num_plays += 1
    if learner.groups[group].is_hopeless == 1:
        clock.on_hopeless += length + 1
    elif level >= MASTERED_SUCCESS:
        clock.on_mastered += length + 1
    elif level < LOCKED:
        clock.on_locked += length + 1


@bare
def _forget(learner: GeneralState) -> None:
    """Lose a share of all skills and memories."""
    clock, settings = learner.clock[0], learner.settings[0]
    for group in range(len(learner.skills)):
        learner.skills[group].skill *= settings.keep
    clock.scale *= settings.keep_memory
    if clock.scale < SMALLEST_SCALE:
        for node in range(len(learner.memories)):
            learner.memories[node].memory *= clock.scale
        clock.scale = 1.0


@bare
def _learn(learner: GeneralState) -> None:
    """Learn from all plays since the last update."""
    clock, settings, skills = learner.clock[0], learner.settings[0], learner.skills
    for group in range(len(skills)):
        gain = settings.eta * skills[group].gain
        if gain > 0.0:
            for other in range(len(skills)):
                skills[other].skill += gain * learner.coupling[other, group]
            skills[group].gain = 0.0
    for index in range(clock.num_pending):
        memory = learner.memories[learner.pending[index]]
        memory.memory += settings.eta_memory * memory.gain / clock.scale
        memory.gain = 0.0
    clock.num_pending = 0


@bare
def update(learner: GeneralState) -> bool:
    """Forget, learn and keep the score; return whether it reached the goal for the first time."""
    clock, settings = learner.clock[0], learner.settings[0]
    clock.area += clock.score * settings.num_envs * (clock.time - clock.scored_at)
    clock.scored_at = clock.time
    _forget(learner)
    if clock.num_pending > 0:
        _learn(learner)
    clock.num_updates += 1
    clock.score = score(learner)
    if clock.done_at >= 0 or clock.score < settings.goal:
        return False
    clock.done_at = clock.time * settings.num_envs
    clock.done_on_mastered = clock.on_mastered
    clock.done_on_locked = clock.on_locked
    clock.done_on_hopeless = clock.on_hopeless
    return True
