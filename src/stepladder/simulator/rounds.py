"""One round: every env draws from the plan and plays an episode, then the learner learns.

Between `world`, which knows no plan, and the engines: `deal` makes records for those that hand
them to a curriculum, `deal_round` single numbers for the compiled loops (`loops`).
"""
# pyright: reportReturnType=false, reportArgumentType=false, reportAttributeAccessIssue=false
# Reason: NumPy's stubs do not know that an element of an integer array is an integer.

import numpy as np

from stepladder.compiled import compiled, inlined
from stepladder.plans import kernels
from stepladder.plans.kernels import Floats, Words
from stepladder.plans.record import TERMINATED, RecordArray
from stepladder.simulator.world import (
    C_ROUNDS,
    CLOCK,
    SEED_MASK,
    W_NUM_NODES,
    absorb_one,
    play,
    skill,
)

# A round of an engine that keeps no records, by column: what was drawn, and what came of it.
D_SLOT, D_GENERATION, D_NODE = 0, 1, 2
R_SUCCESS, R_RETURN, R_LEVEL = 0, 1, 2


@inlined
def deal_one(
    block: Words, values: Floats, numbers: Floats, words: Words, env: int, episode: int
) -> tuple[int, int, int, int, int, float, float]:
    """Let one env draw and play an episode; nothing is learned yet.

    Args:
        block: The plan.
        values: The plan seen as floats.
        numbers: The world's numbers.
        words: The world's words.
        env: Index of the env.
        episode: Index of the episode.

    Returns:
        Slot (negative if there is nothing to draw), generation, plan version, tick, node,
        success and return.
    """
    slot, generation, task_id, version, seed, tick = kernels.draw_seen(
        block, values, env, episode, values[:0]
    )
    node = task_id % words[W_NUM_NODES]
    success, reward = play(numbers, words, node, seed & SEED_MASK)
    return slot, generation, version, tick, node, success, reward


@compiled
def deal(
    block: Words,
    numbers: Floats,
    words: Words,
    records: RecordArray,
    nodes: Words,
    levels: Floats,
) -> bool:
    """Let every env draw and play one episode; False if there is nothing to draw.

    All of them play with the skills of this moment: learning comes after the round, in `absorb`.
    `nodes` and `levels` receive what each env played and how skilled the learner was at it.
    """
    episode, values = words[CLOCK + C_ROUNDS], block.view(np.float64)
    for env in range(len(records)):
        slot, generation, version, tick, node, success, reward = deal_one(
            block, values, numbers, words, env, episode
        )
        if slot < 0:
            return False
        nodes[env], levels[env] = node, skill(numbers, words, node)
        record = records[env]
        record.slot, record.generation = slot, generation
        record.plan_version, record.tick = version, tick
        record.env_index, record.episode_index = env, episode
        record.episode_return, record.length = reward, 1
        record.success, record.outcome = success, TERMINATED
    words[CLOCK + C_ROUNDS] += 1
    return True


@inlined
def deal_round(
    block: Words, values: Floats, numbers: Floats, words: Words, drawn: Words, results: Floats
) -> bool:
    """Do the same as `deal`, for loops that hand on single numbers instead of records."""
    episode = words[CLOCK + C_ROUNDS]
    for env in range(len(drawn)):
        slot, generation, _, _, node, success, reward = deal_one(
            block, values, numbers, words, env, episode
        )
        if slot < 0:
            return False
        drawn[env, D_SLOT], drawn[env, D_GENERATION], drawn[env, D_NODE] = slot, generation, node
        results[env, R_SUCCESS], results[env, R_RETURN] = success, reward
        results[env, R_LEVEL] = skill(numbers, words, node)
    words[CLOCK + C_ROUNDS] += 1
    return True


@inlined
def absorb_round(
    numbers: Floats, words: Words, drawn: Words, results: Floats, sums: Floats
) -> None:
    """Learn from a round, and add it to the sums per slot: plays, successes, returns, skills."""
    for env in range(len(drawn)):
        row = drawn[env, D_SLOT]
        sums[row, 0] += 1.0
        sums[row, 1] += results[env, R_SUCCESS]
        sums[row, 2] += results[env, R_RETURN]
        sums[row, 3] += results[env, R_LEVEL]
        absorb_one(numbers, words, drawn[env, D_NODE])
