"""One round: every env draws from the plan and plays an episode, then the learner learns.

Between `learner_state` and the engines: `deal` makes the records that a curriculum observes,
`deal_round` makes results without records for the compiled loops (`loops`).
"""

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.compiled import bare, inlined
from stepladder.plans import kernels
from stepladder.plans.record import TERMINATED, RecordFields
from stepladder.plans.status import NOTHING_ACTIVE
from stepladder.records import Fields, Records
from stepladder.simulator.learner_state import SEED_MASK, LearnerState, learn_and_count, play, skill


class Dealt(Fields):
    """What one env drew and played."""

    slot: int
    generation: int
    node: int
    success: float
    episode_return: float
    level: float
    """How skilled the learner was at it."""


class SlotSums(Fields):
    """Sums over the plays of a slot."""

    num_plays: float
    successes: float
    returns: float
    levels: float
    steps: float
    success_steps: float
    """Those of plays that succeeded."""


@inlined
def deal_one(
    block: Words, values: Floats, learner: LearnerState, env: int, episode: int
) -> tuple[int, int, int, int, int, float, float]:
    """Let one env draw and play an episode; nothing is learned yet.

    Args:
        block: The plan.
        values: The plan seen as floats.
        learner: The learner.
        env: Index of the env.
        episode: Index of the episode.

    Returns:
        Slot (negative if there is nothing to draw), generation, plan version, tick, node,
        success and return.
    """
    slot, generation, task_id, version, seed, tick = kernels.draw_seen(
        block, values, env, episode, values[:0]
    )
    node = task_id % len(learner.nodes)
    success, reward = play(learner, node, seed & SEED_MASK)
    return slot, generation, version, tick, node, success, reward


@bare
def deal(
    block: Words,
    learner: LearnerState,
    records: Records[RecordFields],
    nodes: Words,
    levels: Floats,
    until: int = 0,
) -> int:
    """Let every env draw and play one episode; return their number, or a negative one.

    All of them play with the current skills: learning comes after the round, in
    `learner_state.learn_round`. `nodes` and `levels` receive the node that each env played and the
    learner's skill at it. The number is negative if there is nothing to draw. A round is never cut
    short, so `until` has no meaning here.
    """
    clock, values = learner.clock[0], block.view(np.float64)
    episode = clock.num_rounds
    for env in range(len(records)):
        slot, generation, version, tick, node, success, reward = deal_one(
            block, values, learner, env, episode
        )
        if slot < 0:
            return NOTHING_ACTIVE
        nodes[env], levels[env] = node, skill(learner, node)
        record = records[env]
        record.slot, record.generation = slot, generation
        record.plan_version, record.tick = version, tick
        record.env_index, record.episode_index = env, episode
        record.episode_return, record.length = reward, 1
        record.success, record.outcome = success, TERMINATED
    clock.num_rounds += 1
    return len(records)


@inlined
def deal_round(block: Words, values: Floats, learner: LearnerState, dealt: Records[Dealt]) -> bool:
    """Do the same as `deal` without records."""
    clock = learner.clock[0]
    for env in range(len(dealt)):
        slot, generation, _, _, node, success, reward = deal_one(
            block, values, learner, env, clock.num_rounds
        )
        if slot < 0:
            return False
        one = dealt[env]
        one.slot, one.generation, one.node = slot, generation, node
        one.success, one.episode_return, one.level = success, reward, skill(learner, node)
    clock.num_rounds += 1
    return True


@inlined
def finish_round(learner: LearnerState, dealt: Records[Dealt], sums: Records[SlotSums]) -> None:
    """Learn from a round, and add it to the sums per slot."""
    for env in range(len(dealt)):
        one = dealt[env]
        total = sums[one.slot]
        total.num_plays += 1.0
        total.successes += one.success
        total.returns += one.episode_return
        total.levels += one.level
        total.steps += 1.0
        total.success_steps += one.success
        learn_and_count(learner, one.node)
