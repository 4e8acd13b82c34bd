"""Compiled rules of the frontier: what a play says about where its task stands.

Called by `frontier`, which owns the arrays. A record changes one task's numbers and perhaps its
standing, moves it between layers (`rounds`) and, when it becomes mastered or no longer is, touches
its few neighbours; nothing grows with the number of tasks.
"""

from typing import NamedTuple

import numpy as np

from stepladder.arrays import Words
from stepladder.compiled import bare, compiled, inlined
from stepladder.curricula.batch_rule import note, observe_batch, settle_noted
from stepladder.curricula.frontier.config import PRIOR
from stepladder.curricula.frontier.rounds import (
    FAR_ORIGIN,
    IN_ZONE,
    MASTERED,
    MAX_TRIAL,
    NEAR_ORIGIN,
    NO_ORIGIN,
    PROBED,
    Constants,
    Method,
    Settings,
    State,
    TaskStanding,
    place,
    pool_scale,
    set_need,
    set_shares,
    share_in_flight,
    turn_rounds,
)
from stepladder.curricula.pooled.pooling import NUM_CLOCKS, learn, rate_of
from stepladder.curricula.pooled.stuck import changes, watch, worth
from stepladder.plans.kernels import begin_write, end_write
from stepladder.plans.layout import is_active
from stepladder.plans.record import RecordFields
from stepladder.records import Records

LEAST_SUCCESSES = 0.5
"""Discounted successes below which a task has shown nothing: one success, one half-life ago."""

LEAST_VARIANCE = 0.01
"""Of a single play: no task's success is believed to be steadier than one in a hundred."""

HALFLIVES_PER_TRIAL = 10.0
"""Half-lives of a trial beyond which the half-life grows, with the square root of the trial: errors
of the success rate and its delay then both become smaller, measured by what the task takes."""

LEAST_NEED = 0.1
"""Share of what it takes to learn a task that one near mastery still needs, to prove itself."""

NUM_SIBLINGS = 4
"""Other tasks of a kind that every result judges again."""

KEEP_FINDINGS = 0.99
"""How much of what probing found is remembered with every further probe of the same queue."""


@inlined
def _keep(task: TaskStanding, settings: Settings) -> float:
    """Return what one more play leaves of earlier results."""
    ratio = task.trial_length / (HALFLIVES_PER_TRIAL * settings.halflife_episodes)
    return settings.keep if ratio <= 1.0 else settings.keep ** (1.0 / np.sqrt(ratio))


class PooledResults(NamedTuple):
    """Discounted plays that speak for and against a task, those of its kind among them."""

    successes: float
    plays: float


@inlined
def shown_by(state: State, constants: Constants, slot: int) -> PooledResults:
    """Return what is known of a task that was played: its own results, and its kind's as a prior.

    A kind is worth no more plays than it has had.
    """
    task = state.tasks[slot]
    plays = task.successes + task.failures
    if not constants.settings[0].pools:
        return PooledResults(task.successes, plays)
    cell = state.cells[int(constants.cells[slot])]
    strength = min(state.pooling[0].strength, cell.plays[NUM_CLOCKS - 1])
    if strength + plays <= 0.0:
        return PooledResults(0.0, 0.0)
    return PooledResults((strength + plays) * rate_of(task, cell.rate, strength), strength + plays)


@inlined
def mean_of(shown: PooledResults) -> float:
    """Return a success rate, a little towards one half."""
    return (shown.successes + PRIOR) / (shown.plays + 2.0 * PRIOR)


@inlined
def looks_mastered(shown: PooledResults, settings: Settings) -> bool:
    """Whether a task that was played nearly always succeeded, even if only once."""
    return shown.successes >= settings.mastery * shown.plays


@inlined
def is_mastered(shown: PooledResults, settings: Settings) -> bool:
    """Whether a task nearly always succeeds, over enough plays to say so."""
    return shown.plays >= settings.evidence and mean_of(shown) >= settings.mastery


@inlined
def _error(rate: float, count: float) -> float:
    """Return the standard error of a success rate over so many plays."""
    return np.sqrt(max(rate * (1.0 - rate), LEAST_VARIANCE) / count)


@bare
def _after_probe(task: TaskStanding, shown: PooledResults, settings: Settings) -> int:
    """Return where a probed task stands after a play: it is found once it beats its old level."""
    if shown.successes < LEAST_SUCCESSES:
        # Whatever it was stuck at before is gone.
        task.level = 0.0
        return PROBED
    if looks_mastered(shown, settings):
        # Probing goes on until that is sure; practice would be wasted on it.
        return MASTERED if is_mastered(shown, settings) else PROBED
    count = shown.plays
    z = settings.promote_z
    if task.level > 0.0:
        # The more looks, the likelier that one of them is lucky: the largest of n independent
        # errors grows with the square root of 2 log n.
        z = np.sqrt(z * z + 2.0 * np.log(1.0 + task.trial_plays / count))
    to_beat = task.level + z * _error(task.level, count)
    return IN_ZONE if shown.successes / count > to_beat else PROBED


@bare
def _after_practice(
    task: TaskStanding, shown: PooledResults, settings: Settings, kind_changes: bool
) -> int:
    """Return where a task of the zone stands after a play: mastered, lost again, stuck, or same.

    While the tasks of its kind get better together, a single one is not called stuck.
    """
    if is_mastered(shown, settings):
        return MASTERED
    if shown.successes < LEAST_SUCCESSES:
        task.level = 0.0
        return PROBED
    if task.trial_plays < task.trial_length:
        return IN_ZONE
    rate = task.trial_successes / task.trial_plays
    better = rate > task.level + settings.stuck_z * _error(rate, task.trial_plays)
    if task.level > 0.0 or not better:
        # Whether it is stuck or learns slowly, only a longer trial can tell. The first trial had
        # nothing to beat, so it says nothing about speed.
        task.trial_length = min(MAX_TRIAL, 2 * task.trial_length)
    task.level = rate
    task.trial_plays = 0
    task.trial_successes = 0.0
    return IN_ZONE if better or kind_changes else PROBED


@bare
def _after_rehearsal(task: TaskStanding, shown: PooledResults, settings: Settings) -> int:
    """Return where a mastered task stands after a play: same, or to be practised again."""
    mean = mean_of(shown)
    if mean >= settings.lapses_below:
        return MASTERED
    task.level = min(task.level, mean)
    return IN_ZONE


@inlined
def _standing_after(state: State, constants: Constants, slot: int, shown: PooledResults) -> int:
    """Return where a slot stands by what is known of it now."""
    task, settings = state.tasks[slot], constants.settings[0]
    if task.standing == IN_ZONE:
        kind_changes = settings.pools and changes(state.cells[int(constants.cells[slot])].trial)
        return _after_practice(task, shown, settings, kind_changes)
    if task.standing == MASTERED:
        return _after_rehearsal(task, shown, settings)
    return _after_probe(task, shown, settings)


@inlined
def _count_probe(state: State, constants: Constants, slot: int) -> None:
    """Count a play of a probed task."""
    is_near = constants.near[slot] > 0
    finds = state.method[0].near if is_near else state.method[0].far
    finds.num_finds *= KEEP_FINDINGS
    finds.num_probes = finds.num_probes * KEEP_FINDINGS + 1.0
    state.tasks[slot].origin = NEAR_ORIGIN if is_near else FAR_ORIGIN


@inlined
def _update_neighbors(
    block: Words, table: int, state: State, constants: Constants, slot: int, change: int
) -> None:
    """Count for the neighbours of a slot that it was mastered (1) or no longer is (-1)."""
    links, near = constants.links, constants.near
    if len(links) == 0:
        return
    for index in range(links[slot], links[slot + 1]):
        other = int(links[index])
        before = near[other]
        near[other] += change
        if state.tasks[other].standing == PROBED and (before > 0) != (near[other] > 0):
            place(block, table, state, constants, other, 0)


@inlined
def _note_pace(method: Method, practice: float) -> None:
    """Note how much practice a task has taken; what needed none says nothing."""
    if practice > 0.0:
        method.pace = np.sqrt(method.pace * practice) if method.pace > 0.0 else practice


@bare
def _change_standing(
    block: Words, table: int, state: State, constants: Constants, slot: int, standing: int
) -> None:
    """Change where a slot stands, and count it for its neighbours."""
    task, method = state.tasks[slot], state.method[0]
    was_mastered = task.standing == MASTERED
    task.standing = standing
    if standing == IN_ZONE:
        # It is likely to take as long as others did: a trial of half of that.
        task.trial_length = max(task.trial_length, min(MAX_TRIAL, int(0.5 * method.pace)))
    task.trial_plays = 0
    task.trial_successes = 0.0
    if standing == MASTERED:
        # A find is what was mastered in the end: noise is found often, and never mastered. A
        # task that had lapsed does not count, or forgetting would keep probing alive forever.
        if task.origin != NO_ORIGIN:
            method.barren_rounds = 0.0
            _note_pace(method, float(task.practice))
            finds = method.near if task.origin == NEAR_ORIGIN else method.far
            finds.num_finds += 1.0
            task.origin = NO_ORIGIN
        task.practice = 0
        _update_neighbors(block, table, state, constants, slot, 1)
    elif was_mastered:
        _update_neighbors(block, table, state, constants, slot, -1)


@inlined
def may_go(state: State, constants: Constants, slot: int) -> bool:
    """Whether a task may make room: mastered, or probed long enough without becoming learnable."""
    task, settings = state.tasks[slot], constants.settings[0]
    if task.standing == MASTERED:
        return True
    enough = settings.eviction_plays * pool_scale(state.method[0], settings)
    tried = task.standing == PROBED and task.trial_plays >= enough
    return tried and not looks_mastered(shown_by(state, constants, slot), settings)


@inlined
def _need_of(task: TaskStanding, shown: PooledResults, method: Method, settings: Settings) -> float:
    """Return about the plays that a task in the zone still needs.

    In all it takes as many as others did, or twice as many as it has had: without anything else
    to go by, half of the way is done. What is left goes with the way to mastery.
    """
    takes = max(method.pace, float(settings.trial_episodes), float(task.practice))
    return takes * max(LEAST_NEED, 1.0 - mean_of(shown) / settings.mastery)


@inlined
def _worth(state: State, constants: Constants, slot: int, shown: PooledResults) -> float:
    """Return what practising a task is worth: how quickly it is learned, times what is left."""
    if not constants.settings[0].pools or state.tasks[slot].standing == PROBED:
        return 1.0
    mean = mean_of(shown)
    teaches = 4.0 * mean * (1.0 - mean)
    return worth(state.cells[int(constants.cells[slot])].trial) * teaches * teaches * (1.0 - mean)


@bare
def _count_stale(block: Words, table: int, state: State, constants: Constants, slot: int) -> None:
    """Count the plays of a slot that are in flight at a decision: they belong to no new trial."""
    share = share_in_flight(block, table, state, constants, slot)
    state.tasks[slot].num_stale = int(share * (state.method[0].num_envs - 1))


@inlined
def _judge(
    block: Words, table: int, state: State, constants: Constants, slot: int, counts: bool
) -> None:
    """Decide where a slot stands that was just played, and put it there."""
    task, settings, method = state.tasks[slot], constants.settings[0], state.method[0]
    shown = shown_by(state, constants, slot)
    standing = _standing_after(state, constants, slot, shown)
    decided = standing != task.standing or (counts and task.trial_plays == 0)
    if standing != task.standing:
        _change_standing(block, table, state, constants, slot, standing)
    if decided and method.num_envs > 1:
        _count_stale(block, table, state, constants, slot)
    in_zone = standing == IN_ZONE and is_active(block, slot)
    set_need(state, slot, _need_of(task, shown, method, settings) if in_zone else 0.0)
    place(block, table, state, constants, slot, 1, _worth(state, constants, slot, shown))


@inlined
def _judge_siblings(
    block: Words, table: int, state: State, constants: Constants, slot: int
) -> None:
    """Judge some other tasks of a slot's kind again, in turn: its result concerns them too."""
    kind, members = int(constants.cells[slot]), constants.members
    cell, first, end = state.cells[kind], int(members[kind]), int(members[kind + 1])
    for _ in range(min(NUM_SIBLINGS, end - first)):
        cell.cursor = cell.cursor + 1 if first + cell.cursor + 1 < end else 0
        other = int(members[first + cell.cursor])
        task = state.tasks[other]
        # One that stays in its queue keeps its turn.
        shown = shown_by(state, constants, other)
        if (
            task.standing == IN_ZONE
            or _standing_after(state, constants, other, shown) != task.standing
        ):
            _judge(block, table, state, constants, other, False)


@inlined
def observe_one(
    block: Words,
    table: int,
    state: State,
    constants: Constants,
    slot: int,
    success: float,
    episode_return: float,
) -> None:
    """Update one task from one episode. Call between begin and end, `settle` after the last."""
    task, settings, method = state.tasks[slot], constants.settings[0], state.method[0]
    keep = _keep(task, settings)
    if settings.pools:
        cell = state.cells[int(constants.cells[slot])]
        learn(cell, state.pooling[0], task, keep, success)
        watch(cell.trial, success)
    else:
        task.successes = task.successes * keep + success
        task.failures = task.failures * keep + (1.0 - success)
    counts = task.num_stale == 0
    if counts:
        task.trial_plays += 1
        task.trial_successes += success
    else:
        task.num_stale -= 1
    if task.standing == IN_ZONE:
        task.practice += 1
    elif task.standing == PROBED:
        _count_probe(state, constants, slot)
    _judge(block, table, state, constants, slot, counts)
    if settings.pools:
        _judge_siblings(block, table, state, constants, slot)
    turn_rounds(block, table, method)
    if settings.evicts and may_go(state, constants, slot):
        note(method.noted, slot)


@inlined
def settle(block: Words, table: int, state: State, constants: Constants) -> int:
    """Share out the draws by what the last records showed. Call between begin and end."""
    method = state.method[0]
    turn_rounds(block, table, method)
    set_shares(block, table, method, constants.settings[0])
    return settle_noted(block, table, state, constants)


@compiled
def settle_anew(block: Words, table: int, state: State, constants: Constants) -> None:
    """Call `settle` in a write of its own."""
    begin_write(block)
    settle(block, table, state, constants)
    end_write(block)


@bare
def observe(
    block: Words, table: int, state: State, constants: Constants, records: Records[RecordFields]
) -> int:
    """Learn from records, in order; see `observe_batch`."""
    return observe_batch(observe_one, settle, block, table, state, constants, records, True)
