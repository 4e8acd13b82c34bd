"""How plays of different lengths follow each other in several envs at once.

Between `state` and the engines. An env draws a task when it is reset, plays it for so many vector
steps, and its record arrives with the last of them. The next vector step only resets the env, as
with next-step autoreset. The learner updates after every rollout, from the plays that have ended.

Nothing happens between two endings but updates, so the kernels go from ending to ending. The loop
for the compiled engine has the placeholders of `loops.play_rounds`.
"""

from typing import Any

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.compiled import bare, inlined
from stepladder.curricula.batch_rule import count_record
from stepladder.curricula.uniform import observe_one, settle_nothing
from stepladder.plans.kernels import begin_write, draw_seen, end_write
from stepladder.plans.record import TERMINATED, RecordFields
from stepladder.plans.status import DONE, NOTHING_ACTIVE, TO_REPLACE
from stepladder.records import Records
from stepladder.simulator.generalising.state import GeneralState, note_play, play, update
from stepladder.simulator.learner_state import SEED_MASK
from stepladder.simulator.rounds import SlotSums

# Placeholders for the parts of a rule in the loop below; `loops.loop_of` replaces them.
OBSERVE_ONE, SETTLE, CHANGES_PLAN = observe_one, settle_nothing, False


@inlined
def begin_plays(block: Words, values: Floats, learner: GeneralState) -> bool:
    """Let every env that waits draw a task and begin it; False if there is nothing to draw."""
    clock = learner.clock[0]
    for index in range(clock.num_waiting):
        env = learner.waiting[index]
        row = learner.rows[env]
        slot, generation, task_id, version, seed, tick = draw_seen(
            block, values, env, row.episode, values[:0]
        )
        if slot < 0:
            return False
        node = task_id % len(learner.nodes)
        level, success, length = play(learner, node, seed & SEED_MASK)
        row.slot, row.generation, row.plan_version, row.tick = slot, generation, version, tick
        row.node, row.level, row.success, row.length = node, level, success, length
        row.episode += 1
        learner.ends_at[env] = row.begins + length
    clock.num_waiting = 0
    return True


@inlined
def skip_to(learner: GeneralState, time: int) -> bool:
    """Let time pass in which no play ends; stop early, with True, when the goal is reached."""
    clock, rollout = learner.clock[0], learner.settings[0].rollout_steps
    due = (clock.time // rollout + 1) * rollout
    while due <= time:
        clock.time = due
        if update(learner):
            return True
        due += rollout
    clock.time = max(clock.time, time)
    return False


@inlined
def end_plays(learner: GeneralState, played: Words, limit: int) -> int:
    """Go on to the next vector step in which plays end; note their envs, in order.

    Args:
        learner: The learner.
        played: Receives the envs.
        limit: Last vector step.

    Returns:
        The number of envs; 0 if the limit or the goal was reached first.
    """
    ends_at = learner.ends_at
    first = ends_at[0]
    for env in range(1, len(ends_at)):
        first = min(first, ends_at[env])
    if skip_to(learner, min(first - 1, limit)) or first > limit:
        return 0
    learner.clock[0].time = first
    count = 0
    for env in range(len(ends_at)):
        if ends_at[env] == first:
            played[count] = env
            count += 1
    return count


@inlined
def learn_ended(learner: GeneralState, played: Words, count: int) -> None:
    """Keep what the plays that have just ended teach, and update the learner when it is time."""
    if count == 0:
        return
    clock = learner.clock[0]
    for index in range(count):
        env = played[index]
        row = learner.rows[env]
        note_play(learner, row.node, row.level, row.length)
        row.begins = clock.time + 1
        learner.waiting[index] = env
    clock.num_waiting = count
    if clock.time % learner.settings[0].rollout_steps == 0:
        update(learner)


@bare
def play_on(
    block: Words,
    learner: GeneralState,
    records: Records[RecordFields],
    played: Words,
    levels: Floats,
    until: int,
) -> int:
    """Play until the next envs end, or for `until` env steps since the beginning.

    Args:
        block: The plan.
        learner: The learner.
        records: Receives what the envs that end report.
        played: Receives these envs.
        levels: Receives the chances of success that they began with.
        until: Env steps.

    Returns:
        The number of envs that end; negative if there is nothing to draw.
    """
    if not begin_plays(block, block.view(np.float64), learner):
        return NOTHING_ACTIVE
    num_envs = learner.settings[0].num_envs
    count = end_plays(learner, played, (until + num_envs - 1) // num_envs)
    for index in range(count):
        env = played[index]
        row, record = learner.rows[env], records[index]
        levels[index] = row.level
        record.slot, record.generation = row.slot, row.generation
        record.plan_version, record.tick = row.plan_version, row.tick
        record.env_index, record.episode_index = env, row.episode - 1
        record.episode_return, record.length = row.success, row.length
        record.success, record.outcome = row.success, TERMINATED
    return count


@bare
def end_vector_step(learner: GeneralState, nodes: Words, levels: Floats, lengths: Words) -> None:
    """Let one vector step of real envs pass, in which these plays ended."""
    clock = learner.clock[0]
    clock.time += 1
    for index in range(len(nodes)):
        note_play(learner, nodes[index], levels[index], lengths[index])
    if clock.time % learner.settings[0].rollout_steps == 0:
        update(learner)


@bare
def abandon_plays(learner: GeneralState) -> None:
    """Let all envs start again, without a record of what they were playing."""
    clock = learner.clock[0]
    for env in range(len(learner.rows)):
        learner.waiting[env] = env
        learner.rows[env].begins = clock.time
    clock.num_waiting = len(learner.rows)


def play_endings(
    learner: GeneralState,
    played: Words,
    sums: Records[SlotSums],
    until: int,
    stops: bool,
    block: Words,
    table: int,
    state: Any,
    constants: Any,
) -> int:
    """Play for `until` env steps (`DONE`), or until a task should be replaced."""
    values, totals, clock = block.view(np.float64), state.method[0].totals, learner.clock[0]
    num_envs = learner.settings[0].num_envs
    limit = (until + num_envs - 1) // num_envs
    while clock.time < limit and not (stops and clock.done_at >= 0):
        if not begin_plays(block, values, learner):
            return NOTHING_ACTIVE
        count = end_plays(learner, played, limit)
        if count == 0:
            continue
        if CHANGES_PLAN:
            begin_write(block)
        for index in range(count):
            row = learner.rows[played[index]]
            # The last row of the sums is for tasks that were replaced while they were played.
            total = sums[len(sums) - 1]
            slot, success = row.slot, row.success
            if count_record(block, table, totals, slot, row.generation, row.length, success):
                OBSERVE_ONE(block, table, state, constants, row.slot, row.success, row.success)
                total = sums[row.slot]
            total.num_plays += 1.0
            total.successes += row.success
            total.returns += row.success
            total.levels += row.level
            total.steps += row.length
            total.success_steps += row.success * row.length
        status = SETTLE(block, table, state, constants)
        if CHANGES_PLAN:
            end_write(block)
        learn_ended(learner, played, count)
        if status == TO_REPLACE:
            return TO_REPLACE
    return DONE
