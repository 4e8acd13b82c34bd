"""Compiled rules of the frontier: where a task stands, and who is probed or rehearsed next.

Called by `frontier`, which owns the arrays. A record changes one task's numbers, moves it between
layers of the weight table (a walk from leaf to root each) and touches its few neighbours; nothing
grows with the number of tasks.
"""
# pyright: reportReturnType=false, reportArgumentType=false
# Reason: NumPy's stubs do not know that an element of an integer array is an integer.

import numpy as np

from stepladder.compiled import compiled
from stepladder.curricula.eviction import ALL_DONE, MAX_EVICTIONS, SOME_TO_REPLACE, note
from stepladder.curricula.kernels import (
    H_POSITIONS,
    H_ROWS,
    T_SHARES,
    T_TREES,
    Floats,
    Words,
    begin_write,
    end_write,
    set_leaf,
)
from stepladder.curricula.record import RecordArray, first_bad_record

# Columns per slot; they fill one cache line. Successes and failures are discounted per play.
# A trial is the stay in the present state: its plays, and its successes. The origin says which
# kind of probing is to be credited when the task is mastered.
SUCCESSES, FAILURES, STATE, LEVEL, TRIAL_PLAYS, TRIAL_SUCCESSES, LAYER, ORIGIN = range(8)
NUM_COLUMNS = 8

PROBED, IN_ZONE, MASTERED = 0, 1, 2
"""States: not seen to be learnable, learnable now, mastered."""

# Layers of the weight table. Probed and mastered tasks take turns: a slot that was played waits in
# the next round's layer until the present round's is empty.
ZONE_LAYER = 0
FAR, REST, NEAR = 0, 1, 2
"""Classes that take turns: probed tasks, mastered tasks, probed tasks near a mastered one."""
NUM_LAYERS = 7
NUM_LAYERS_WITHOUT_FEATURES = 5

# Settings.
(
    S_KEEP,
    S_MASTERY,
    S_LAPSE,
    S_EVIDENCE,
    S_PROBING,
    S_REHEARSAL,
    S_TRIAL,
    S_PROMOTE_Z,
    S_STUCK_Z,
    S_PATIENCE,
    S_EVICTS,
    S_EVICT_PLAYS,
) = range(12)
NUM_SETTINGS = 12

# Numbers that change: rounds of probing since something was last found; per class of probed tasks
# what was found and how many probes it took.
N_BARREN, N_FAR_FINDS, N_FAR_PROBES, N_NEAR_FINDS, N_NEAR_PROBES = range(5)
NUM_NUMBERS = 5

# Whole numbers: the counters, which of its two layers each class draws from, slots to replace.
I_SIDES = 3
I_NUM_EVICTIONS = I_SIDES + 3
I_EVICTIONS = I_NUM_EVICTIONS + 1
NUM_INTS = I_EVICTIONS + MAX_EVICTIONS

LEAST_SUCCESSES = 0.5
"""Discounted successes below which a task has shown nothing: one success, one half-life ago."""

PRIOR = 0.2
"""Successes and failures that a task is taken to have had before the first play."""

LEAST_VARIANCE = 0.01
"""Of a single play: no task's success is believed to be steadier than one in a hundred."""

KEEP_YIELD = 0.99
"""How much of what probing found is remembered with every further probe."""

PRIOR_PROBES = 10.0
PRIOR_NEAR_FINDS, PRIOR_FAR_FINDS = 1.0, 0.1
"""What probing near and far is taken to have found in `PRIOR_PROBES` probes: a feature worth
giving is taken to point the right way until probing says otherwise."""


@compiled
def mean_of(row: Floats) -> float:
    """Return the discounted success rate of a task, a little towards one half."""
    return (row[SUCCESSES] + PRIOR) / (row[SUCCESSES] + row[FAILURES] + 2.0 * PRIOR)


@compiled
def is_mastered(row: Floats, settings: Floats) -> bool:
    """Whether a task nearly always succeeds, over enough plays to say so."""
    enough = row[SUCCESSES] + row[FAILURES] >= settings[S_EVIDENCE]
    return enough and mean_of(row) >= settings[S_MASTERY]


@compiled
def layer_of(ints: Words, kind: int, is_next: int) -> int:
    """Return the layer of a class: the present round's, or the next one's."""
    return 1 + 2 * kind + (ints[I_SIDES + kind] ^ is_next)


@compiled
def _move(block: Words, table: int, rows: Floats, weights: Floats, slot: int, layer: int) -> None:
    """Put a slot into one layer and out of the one it was in."""
    row = rows[slot]
    old = int(row[LAYER])
    if old == layer:
        return
    if old >= 0:
        set_leaf(block, table, slot, 0.0, old)
    row[LAYER] = layer
    active = block[block[H_POSITIONS] + slot] >= 0
    set_leaf(block, table, slot, weights[slot] if active else 0.0, layer)


@compiled
def place(
    block: Words,
    table: int,
    rows: Floats,
    weights: Floats,
    near: Words,
    ints: Words,
    slot: int,
    is_next: int,
) -> None:
    """Move a slot to the layer of its state."""
    state = int(rows[slot, STATE])
    if state == IN_ZONE:
        layer = ZONE_LAYER
    elif state == MASTERED:
        layer = layer_of(ints, REST, is_next)
    else:
        layer = layer_of(ints, NEAR if near[slot] > 0 else FAR, is_next)
    _move(block, table, rows, weights, slot, layer)


@compiled
def _total(block: Words, table: int, layer: int) -> float:
    """Return the sum of a layer's weights."""
    return block.view(np.float64)[block[block[table + T_TREES] + layer] + 1]


@compiled
def settle(
    block: Words, table: int, settings: Floats, numbers: Floats, ints: Words, num_layers: int
) -> None:
    """Begin the next round of every class whose present one is over; then set all shares."""
    shares = block.view(np.float64)[block[table + T_SHARES] :]
    num_classes = (num_layers - 1) // 2
    for kind in range(num_classes):
        if (
            _total(block, table, layer_of(ints, kind, 0)) <= 0.0
            and _total(block, table, layer_of(ints, kind, 1)) > 0.0
        ):
            ints[I_SIDES + kind] ^= 1
            if kind == FAR:
                numbers[N_BARREN] += 1.0
        shares[layer_of(ints, kind, 1)] = 0.0
    # Probing that finds nothing round after round gives way to rehearsal, never quite.
    probing = settings[S_PROBING] * min(1.0, settings[S_PATIENCE] / max(1.0, numbers[N_BARREN]))
    far_share = 1.0
    if num_classes > NEAR and _total(block, table, layer_of(ints, NEAR, 0)) > 0.0:
        near_probes = numbers[N_NEAR_PROBES] + PRIOR_PROBES
        near_yield = (numbers[N_NEAR_FINDS] + PRIOR_NEAR_FINDS) / near_probes
        far_probes = numbers[N_FAR_PROBES] + PRIOR_PROBES
        far_yield = (numbers[N_FAR_FINDS] + PRIOR_FAR_FINDS) / far_probes
        far_share = far_yield / (near_yield + far_yield)
        if _total(block, table, layer_of(ints, FAR, 0)) <= 0.0:
            far_share = 0.0
        shares[layer_of(ints, NEAR, 0)] = probing * (1.0 - far_share)
    shares[ZONE_LAYER] = 1.0
    shares[layer_of(ints, FAR, 0)] = probing * far_share
    shares[layer_of(ints, REST, 0)] = settings[S_REHEARSAL]


@compiled
def _tell_neighbours(
    block: Words,
    table: int,
    rows: Floats,
    weights: Floats,
    near: Words,
    links: Words,
    ints: Words,
    slot: int,
    change: int,
) -> None:
    """Let the neighbours of a slot know that it was mastered (1) or no longer is (-1).

    `links` holds the start of every slot's list, then the lists: empty without features.
    """
    if len(links) == 0:
        return
    for index in range(links[slot], links[slot + 1]):
        other = links[index]
        before = near[other]
        near[other] += change
        if rows[other, STATE] == PROBED and (before > 0) != (near[other] > 0):
            place(block, table, rows, weights, near, ints, other, 0)


@compiled
def _count_probe(numbers: Floats, kind: int) -> None:
    """Count one probe of a kind; what was found long ago counts less and less."""
    numbers[kind] *= KEEP_YIELD
    numbers[kind + 1] = numbers[kind + 1] * KEEP_YIELD + 1.0


@compiled
def _after_probe(row: Floats, settings: Floats) -> int:
    """Return the state of a probed task after a play: it is found once it beats its old level."""
    count = row[SUCCESSES] + row[FAILURES]
    if row[SUCCESSES] / count >= settings[S_MASTERY]:
        # As good as mastered: probing goes on until that is sure, practice would be wasted.
        return MASTERED if is_mastered(row, settings) else PROBED
    level = row[LEVEL]
    noise = np.sqrt(max(level * (1.0 - level), LEAST_VARIANCE) / count)
    beaten = row[SUCCESSES] / count > level + settings[S_PROMOTE_Z] * noise
    return IN_ZONE if beaten and row[SUCCESSES] > LEAST_SUCCESSES else PROBED


@compiled
def _after_practice(row: Floats, settings: Floats, numbers: Floats) -> int:
    """Return the state of a task in the zone after a play: mastered, lost again, stuck, or same."""
    if is_mastered(row, settings):
        return MASTERED
    if row[SUCCESSES] < LEAST_SUCCESSES:
        row[LEVEL] = 0.0
        return PROBED
    if row[TRIAL_PLAYS] < settings[S_TRIAL]:
        return IN_ZONE
    rate = row[TRIAL_SUCCESSES] / row[TRIAL_PLAYS]
    noise = np.sqrt(max(rate * (1.0 - rate), LEAST_VARIANCE) / row[TRIAL_PLAYS])
    moved = rate - row[LEVEL] >= settings[S_STUCK_Z] * noise
    row[LEVEL], row[TRIAL_PLAYS], row[TRIAL_SUCCESSES] = rate, 0.0, 0.0
    if moved:
        numbers[N_BARREN] = 0.0
    return IN_ZONE if moved else PROBED


@compiled
def _note_eviction(row: Floats, settings: Floats, ints: Words, slot: int) -> None:
    """Note a slot for replacement: mastered, or probed long enough without a trace of success."""
    if settings[S_EVICTS] == 0.0:
        return
    barren = row[STATE] == PROBED and row[TRIAL_PLAYS] >= settings[S_EVICT_PLAYS]
    if barren or row[STATE] == MASTERED:
        note(ints, I_NUM_EVICTIONS, slot)


@compiled
def absorb_one(
    block: Words,
    table: int,
    rows: Floats,
    weights: Floats,
    near: Words,
    links: Words,
    settings: Floats,
    numbers: Floats,
    ints: Words,
    slot: int,
    generation: int,
    success: float,
    length: int,
) -> None:
    """Learn from one valid record. Call between begin and end, `settle` afterwards."""
    ints[0] += 1
    ints[1] += length
    if generation != block[block[H_ROWS] + 2 * slot + 1]:
        ints[2] += 1
        return
    row = rows[slot]
    state = int(row[STATE])
    row[SUCCESSES] = row[SUCCESSES] * settings[S_KEEP] + success
    row[FAILURES] = row[FAILURES] * settings[S_KEEP] + (1.0 - success)
    row[TRIAL_PLAYS] += 1.0
    row[TRIAL_SUCCESSES] += success
    if state == PROBED:
        kind = N_NEAR_FINDS if near[slot] > 0 else N_FAR_FINDS
        _count_probe(numbers, kind)
        new = _after_probe(row, settings)
        row[ORIGIN] = 0.0 if new == PROBED else float(kind)
    elif state == IN_ZONE:
        new = _after_practice(row, settings, numbers)
    else:
        new = MASTERED if mean_of(row) >= settings[S_LAPSE] else IN_ZONE
        if new == IN_ZONE:
            row[LEVEL] = min(row[LEVEL], mean_of(row))
    if new != state:
        row[STATE], row[TRIAL_PLAYS], row[TRIAL_SUCCESSES] = new, 0.0, 0.0
        if new == MASTERED:
            numbers[N_BARREN] = 0.0
            if row[ORIGIN] > 0.0:
                numbers[int(row[ORIGIN])] += 1.0
                row[ORIGIN] = 0.0
            _tell_neighbours(block, table, rows, weights, near, links, ints, slot, 1)
        elif state == MASTERED:
            _tell_neighbours(block, table, rows, weights, near, links, ints, slot, -1)
    place(block, table, rows, weights, near, ints, slot, 1)
    _note_eviction(row, settings, ints, slot)


@compiled
def absorb(
    block: Words,
    table: int,
    rows: Floats,
    weights: Floats,
    near: Words,
    links: Words,
    settings: Floats,
    numbers: Floats,
    ints: Words,
    num_layers: int,
    records: RecordArray,
) -> int:
    """Learn from records, in order.

    Returns:
        `ALL_DONE`, `SOME_TO_REPLACE`, or the index of a bad record with nothing changed.
    """
    bad = first_bad_record(records, len(rows), True)
    if bad >= 0 or len(records) == 0:
        return bad
    begin_write(block)
    for index in range(len(records)):
        record = records[index]
        absorb_one(
            block,
            table,
            rows,
            weights,
            near,
            links,
            settings,
            numbers,
            ints,
            record.slot,
            record.generation,
            record.success,
            record.length,
        )
    settle(block, table, settings, numbers, ints, num_layers)
    end_write(block)
    return SOME_TO_REPLACE if ints[I_NUM_EVICTIONS] > 0 else ALL_DONE
