"""Who is drawn next: the layers of the frontier's weight table, and the rounds tasks take turns in.

Below `frontier_kernels`, which decides where a task stands; here it is put where it belongs.

An active slot has its base weight in exactly one of seven layers:

    0       the zone: learnable now, drawn by weight alone
    1 or 2  far: probed, and no neighbour is mastered
    3 or 4  rest: mastered, and rehearsed
    5 or 6  near: probed, and a neighbour is mastered (there are no such layers without features)

Far, rest and near are queues of two layers each. One layer holds the slots whose turn is to come
in this round and has the queue's share of draws; the other holds those that had their turn, and has
none. A slot that was played goes to the waiting layer. When nothing is left to draw in the present
one, the two change roles, which is one number: that is the next round. So everybody gets a turn
before anybody gets a second one, and a turn costs a walk up two trees however many tasks there are.
(Envs that play at the same time draw from the same plan, so each round may repeat a few.)
"""
# pyright: reportReturnType=false, reportArgumentType=false
# Reason: NumPy's stubs do not know that an element of an integer array is an integer.

from typing import NamedTuple

import numpy as np

from stepladder.compiled import compiled, inlined
from stepladder.curricula.eviction import MAX_EVICTIONS
from stepladder.plans.kernels import (
    H_POSITIONS,
    T_SHARES,
    T_TREES,
    Floats,
    Words,
    set_leaf,
)

# Columns per slot; they fill one cache line. Successes and failures are discounted per play. The
# level is the success rate of the last trial in the zone: what the next one must beat. A trial is
# the stay in the present state, or the last part of it: its plays and its successes. The origin is
# where among the findings a find of the last probe counts; 0 once it has been counted.
SUCCESSES, FAILURES, STATE, LEVEL, TRIAL_PLAYS, TRIAL_SUCCESSES, LAYER, ORIGIN = range(8)
NUM_COLUMNS = 8

PROBED, IN_ZONE, MASTERED = 0, 1, 2
"""States: not seen to be learnable, learnable now, mastered."""

ZONE_LAYER = 0
FAR, REST, NEAR = 0, 1, 2
"""Queues, in the order of their layers."""
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

# Findings: rounds of probing since the last find; then per queue of probed tasks the finds, which
# are tasks that were mastered in the end, and the probes, both fading.
N_BARREN, N_FAR_FINDS, N_FAR_PROBES, N_NEAR_FINDS, N_NEAR_PROBES = range(5)
NUM_FINDINGS = 5

# Whole numbers: the counters, which layer of its two each queue draws from, slots to replace.
I_SIDES = 3
I_NUM_EVICTIONS = I_SIDES + 3
I_EVICTIONS = I_NUM_EVICTIONS + 1
NUM_INTS = I_EVICTIONS + MAX_EVICTIONS

PRIOR_PROBES = 10.0
PRIOR_NEAR_FINDS, PRIOR_FAR_FINDS = 1.0, 0.1
"""What probing near and far is taken to have found in `PRIOR_PROBES` probes: a feature worth
giving is taken to point the right way until probing says otherwise."""


class Board(NamedTuple):
    """Everything that the rules read and write, as `Frontier` owns it."""

    block: Words
    """The plan's block."""

    table: int
    """Where the frontier's weight table lies in the block."""

    rows: Floats
    """Columns per slot, as named above."""

    weights: Floats
    """The source's weight of each slot's task."""

    near: Words
    """How many neighbours of each slot are mastered."""

    links: Words
    """Where every slot's list of neighbours begins, then the lists; empty without features."""

    settings: Floats
    findings: Floats
    ints: Words


@inlined
def layer_of(ints: Words, queue: int, waits: int) -> int:
    """Return a queue's layer: the present round's, or (`waits` is 1) that of the next one."""
    return 1 + 2 * queue + (ints[I_SIDES + queue] ^ waits)


@inlined
def place(board: Board, slot: int, waits: int) -> None:
    """Put a slot into the layer of its state and out of the one it was in.

    Args:
        board: Where everything is. Changed in place.
        slot: Which one.
        waits: 1 after a turn; 0 if the slot is to be drawn in the present round.
    """
    row = board.rows[slot]
    if row[STATE] == IN_ZONE:
        layer = ZONE_LAYER
    elif row[STATE] == MASTERED:
        layer = layer_of(board.ints, REST, waits)
    else:
        layer = layer_of(board.ints, NEAR if board.near[slot] > 0 else FAR, waits)
    old = int(row[LAYER])
    if old == layer:
        return
    if old >= 0:
        set_leaf(board.block, board.table, slot, 0.0, old)
    row[LAYER] = layer
    # A task that no env can build may still get late results; it must not come back by them.
    active = board.block[board.block[H_POSITIONS] + slot] >= 0
    set_leaf(board.block, board.table, slot, board.weights[slot] if active else 0.0, layer)


@inlined
def _total(block: Words, table: int, ints: Words, queue: int, waits: int) -> float:
    """Return the sum of the weights in one of a queue's layers."""
    tree = block[block[table + T_TREES] + layer_of(ints, queue, waits)]
    return block.view(np.float64)[tree + 1]


@inlined
def turn_rounds(block: Words, table: int, findings: Floats, ints: Words, num_layers: int) -> None:
    """Begin the next round of every queue in which all have had their turn."""
    for queue in range((num_layers - 1) // 2):
        present = _total(block, table, ints, queue, 0)
        waiting = _total(block, table, ints, queue, 1)
        if present > 0.0 or waiting <= 0.0:
            continue
        ints[I_SIDES + queue] ^= 1
        # What is near is probed more often than the rest: its rounds count when there is no rest.
        far = _total(block, table, ints, FAR, 0) + _total(block, table, ints, FAR, 1)
        if queue == FAR or (queue == NEAR and far <= 0.0):
            findings[N_BARREN] += 1.0


@compiled
def _far_share(findings: Floats) -> float:
    """Return the share of probes for the far queue: that of its finds per probe."""
    near = (findings[N_NEAR_FINDS] + PRIOR_NEAR_FINDS) / (findings[N_NEAR_PROBES] + PRIOR_PROBES)
    far = (findings[N_FAR_FINDS] + PRIOR_FAR_FINDS) / (findings[N_FAR_PROBES] + PRIOR_PROBES)
    return far / (near + far)


@compiled
def set_shares(
    block: Words, table: int, settings: Floats, findings: Floats, ints: Words, num_layers: int
) -> None:
    """Write every layer's share of draws; a layer without weights takes no part in any case."""
    start = block[table + T_SHARES]
    shares = block.view(np.float64)[start : start + num_layers]
    shares[:] = 0.0
    # Probing that finds nothing round after round gives way to rehearsal, never quite.
    tired = min(1.0, settings[S_PATIENCE] / max(1.0, findings[N_BARREN]))
    probing = settings[S_PROBING] * tired
    far_share = 1.0
    if num_layers == NUM_LAYERS and _total(block, table, ints, NEAR, 0) > 0.0:
        has_far = _total(block, table, ints, FAR, 0) > 0.0
        far_share = _far_share(findings) if has_far else 0.0
        shares[layer_of(ints, NEAR, 0)] = probing * (1.0 - far_share)
    shares[ZONE_LAYER] = 1.0
    shares[layer_of(ints, FAR, 0)] = probing * far_share
    shares[layer_of(ints, REST, 0)] = settings[S_REHEARSAL]
