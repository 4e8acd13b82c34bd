"""Compiled operations on the plan's block: write a weight, draw a slot, read the dials.

`plan` wraps these for Python; the curricula call the writers from their own kernels, and clients
call `draw`. Nothing here allocates, and nothing here grows with the number of tasks except the
functions named ``fill`` and ``copy``.

Readers need no lock. The sequence number is odd while the plan is being written; a reader that
finds it odd, or different after reading, reads again.
"""
# pyright: reportReturnType=false, reportArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# Reason: NumPy's stubs do not know that an element of an integer array is an integer.

import numpy as np
import numpy.typing as npt

from stepladder.compiled import compiled, fence, load_acquire, store_release
from stepladder.curricula.philox import DRAW_STREAM, uniform_and_seed
from stepladder.curricula.record import DrawArray

Words = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

LAYOUT = 1
"""Version of the block's layout; a client refuses any other."""

# Header, by word.
H_LAYOUT, H_SEQUENCE, H_TICK, H_SEED = 0, 1, 2, 3
H_NUM_SLOTS, H_NUM_ACTIVE, H_TABLE, H_NUM_DIALS = 4, 5, 6, 7
H_DIALS, H_ROWS, H_ACTIVE, H_POSITIONS = 8, 9, 10, 11
HEADER_WORDS = 16

# Weight table, by word from its start.
T_EXPLORATION, T_NUM_GROUPS, T_SHARES, T_ROOTS, T_CAPACITIES = 0, 1, 2, 3, 4
T_PLACES, T_SLOTS, T_SLOT_STARTS, T_LAYERS = 5, 6, 7, 8
TABLE_WORDS = 16

LEAF_BITS = 32
LEAF_MASK = (1 << LEAF_BITS) - 1
MAX_SPINS = 20_000

BEING_WRITTEN = -1
"""Drawn slot when the plan stayed odd for `MAX_SPINS` looks: the writer is busy or dead."""

NOTHING_ACTIVE = -2
"""Drawn slot when every task is quarantined."""


@compiled
def begin_write(block: Words) -> None:
    """Make the version odd: readers wait."""
    store_release(block, H_SEQUENCE, block[H_SEQUENCE] + 1)
    fence()


@compiled
def end_write(block: Words) -> None:
    """Make the version even again, one higher than before the write."""
    store_release(block, H_SEQUENCE, block[H_SEQUENCE] + 1)


@compiled
def _place(block: Words, table: int, slot: int, layer: int) -> tuple[int, int]:
    """Return the group that holds a slot, and its leaf there.

    The groups of a table either split the slots between them, or (then they are called layers)
    each hold all of them with weights of their own.
    """
    if block[table + T_LAYERS] > 0:
        return layer, slot
    if block[table + T_NUM_GROUPS] == 1:
        return 0, slot
    place = block[block[table + T_PLACES] + slot]
    return place >> LEAF_BITS, place & LEAF_MASK


@compiled
def set_leaf(block: Words, table: int, slot: int, weight: float, layer: int = 0) -> None:
    """Write one slot's weight and the sums above it. Call between begin and end."""
    values = block.view(np.float64)
    group, leaf = _place(block, table, slot, layer)
    root = block[block[table + T_ROOTS] + group]
    node = (block[block[table + T_CAPACITIES] + group] - 1) // 7 + leaf
    values[root + node] = weight
    while node > 0:
        node = (node - 1) >> 3
        first = root + 8 * node + 1
        # Recomputed, never adjusted by a difference: sums cannot drift, and a restored plan
        # has the same bits as one that was never stopped.
        total = 0.0
        for child in range(8):
            total += values[first + child]
        values[root + node] = total


@compiled
def clear_slot(block: Words, table: int, slot: int) -> None:
    """Give a slot no weight anywhere in a table. Call between begin and end."""
    for layer in range(max(1, block[table + T_LAYERS])):
        set_leaf(block, table, slot, 0.0, layer)


@compiled
def get_leaf(block: Words, table: int, slot: int, layer: int = 0) -> float:
    """Return one slot's weight."""
    group, leaf = _place(block, table, slot, layer)
    root = block[block[table + T_ROOTS] + group]
    capacity = block[block[table + T_CAPACITIES] + group]
    return block.view(np.float64)[root + (capacity - 1) // 7 + leaf]


@compiled
def fill_leaves(block: Words, table: int, weights: Floats, layer: int = 0) -> None:
    """Write every slot's weight and all sums. Call between begin and end."""
    values = block.view(np.float64)
    for slot in range(len(weights)):
        group, leaf = _place(block, table, slot, layer)
        root = block[block[table + T_ROOTS] + group]
        capacity = block[block[table + T_CAPACITIES] + group]
        values[root + (capacity - 1) // 7 + leaf] = weights[slot]
    for group in range(block[table + T_NUM_GROUPS]):
        root = block[block[table + T_ROOTS] + group]
        node = (block[block[table + T_CAPACITIES] + group] - 1) // 7 - 1
        while node >= 0:
            total = 0.0
            for child in range(8):
                total += values[root + 8 * node + 1 + child]
            values[root + node] = total
            node -= 1


@compiled
def copy_leaves(block: Words, table: int, weights: Floats) -> None:
    """Copy every slot's weights out of a table; shape ``(layers, num_slots)``."""
    for layer in range(weights.shape[0]):
        for slot in range(weights.shape[1]):
            weights[layer, slot] = get_leaf(block, table, slot, layer)


@compiled
def total_share(block: Words, table: int) -> float:
    """Return the sum of the shares of all groups that have a positive weight in them."""
    values = block.view(np.float64)
    total = 0.0
    for group in range(block[table + T_NUM_GROUPS]):
        if values[block[block[table + T_ROOTS] + group]] > 0.0:
            total += values[block[table + T_SHARES] + group]
    return total


@compiled
def _descend(block: Words, table: int, group: int, uniform: float) -> int:
    """Follow the sum tree of one group down to a slot."""
    values = block.view(np.float64)
    root = block[block[table + T_ROOTS] + group]
    num_inner = (block[block[table + T_CAPACITIES] + group] - 1) // 7
    rest = uniform * values[root]
    node = 0
    while node < num_inner:
        first = 8 * node + 1
        chosen = -1
        for child in range(first, first + 8):
            weight = values[root + child]
            if weight > 0.0:
                # Kept so that a rounding error past the last child ends on a positive weight.
                chosen = child
                if rest < weight:
                    break
                rest -= weight
        node = chosen if chosen >= 0 else first
    leaf = node - num_inner
    if block[table + T_NUM_GROUPS] == 1 or block[table + T_LAYERS] > 0:
        return min(leaf, block[H_NUM_SLOTS] - 1)
    start = block[block[table + T_SLOT_STARTS] + group]
    end = block[block[table + T_SLOT_STARTS] + group + 1]
    # A reader that raced the writer may come out beside the group; it will draw again.
    return block[block[table + T_SLOTS] + min(start + leaf, end - 1)]


@compiled
def _choose(block: Words, uniform: float) -> int:
    """Choose a slot: a share of exploration over all active slots, the rest by weight."""
    values = block.view(np.float64)
    table = block[H_TABLE]
    num_active = block[H_NUM_ACTIVE]
    exploration = values[table + T_EXPLORATION]
    total = total_share(block, table)
    if total <= 0.0:
        exploration = 1.0
    if uniform < exploration:
        position = min(int(uniform / exploration * num_active), num_active - 1)
        return block[block[H_ACTIVE] + position]
    rest = (uniform - exploration) / (1.0 - exploration) * total
    chosen, chosen_share = 0, 1.0
    for group in range(block[table + T_NUM_GROUPS]):
        share = values[block[table + T_SHARES] + group]
        if share > 0.0 and values[block[block[table + T_ROOTS] + group]] > 0.0:
            chosen, chosen_share = group, share
            if rest < share:
                break
            rest -= share
    return _descend(block, table, chosen, min(rest / chosen_share, 1.0))


@compiled
def draw(
    block: Words, env_index: int, episode_index: int, dials: Floats
) -> tuple[int, int, int, int, int, int]:
    """Draw for one episode; copy the dials of the same version into `dials`.

    Returns:
        Slot, generation, task id, plan version, seed and tick. The slot is `BEING_WRITTEN` or
        `NOTHING_ACTIVE` if nothing could be drawn.
    """
    values = block.view(np.float64)
    uniform, seed = uniform_and_seed(block[H_SEED], env_index, episode_index, DRAW_STREAM)
    for _ in range(MAX_SPINS):
        before = load_acquire(block, H_SEQUENCE)
        if before & 1:
            continue
        if block[H_NUM_ACTIVE] <= 0:
            return NOTHING_ACTIVE, 0, 0, before >> 1, seed, 0
        slot = _choose(block, uniform)
        task_id = block[block[H_ROWS] + 2 * slot]
        generation = block[block[H_ROWS] + 2 * slot + 1]
        for dial in range(len(dials)):
            dials[dial] = values[block[H_DIALS] + dial]
        fence()
        if load_acquire(block, H_SEQUENCE) == before:
            return slot, generation, task_id, before >> 1, seed, block[H_TICK]
    return BEING_WRITTEN, 0, 0, 0, 0, 0


@compiled
def draw_many(
    block: Words, env_index: int, first_episode: int, dials: Floats, draws: DrawArray
) -> int:
    """Fill `draws` with consecutive episodes of one env; return the last slot or its error."""
    slot = 0
    for index in range(len(draws)):
        slot, generation, task_id, version, seed, tick = draw(
            block, env_index, first_episode + index, dials
        )
        draws[index].slot = slot
        draws[index].generation = generation
        draws[index].task_id = task_id
        draws[index].plan_version = version
        draws[index].seed = seed
        draws[index].tick = tick
        draws[index].env_index = env_index
        draws[index].episode_index = first_episode + index
    return slot


@compiled
def read_dials(block: Words, dials: Floats) -> int:
    """Copy all dials of one version; return that version, or `BEING_WRITTEN`."""
    values = block.view(np.float64)
    for _ in range(MAX_SPINS):
        before = load_acquire(block, H_SEQUENCE)
        if before & 1:
            continue
        for dial in range(len(dials)):
            dials[dial] = values[block[H_DIALS] + dial]
        fence()
        if load_acquire(block, H_SEQUENCE) == before:
            return before >> 1
    return BEING_WRITTEN


@compiled
def prob_of(block: Words, slot: int) -> float:
    """Return the probability of one slot at the next draw."""
    values = block.view(np.float64)
    if block[block[H_POSITIONS] + slot] < 0:
        return 0.0
    table = block[H_TABLE]
    total = total_share(block, table)
    exploration = values[table + T_EXPLORATION] if total > 0.0 else 1.0
    prob = exploration / block[H_NUM_ACTIVE]
    if total > 0.0:
        for layer in range(max(1, block[table + T_LAYERS])):
            weight = get_leaf(block, table, slot, layer)
            if weight > 0.0:
                group, _ = _place(block, table, slot, layer)
                share = values[block[table + T_SHARES] + group] / total
                whole = values[block[block[table + T_ROOTS] + group]]
                prob += (1.0 - exploration) * share * weight / whole
    return prob


@compiled
def fill_probs(block: Words, probs: Floats) -> None:
    """Write the probability of every slot."""
    for slot in range(len(probs)):
        probs[slot] = prob_of(block, slot)


@compiled
def swap_out(block: Words, slot: int) -> None:
    """Take a slot off the list of active ones. Call between begin and end."""
    positions, active = block[H_POSITIONS], block[H_ACTIVE]
    position = block[positions + slot]
    if position >= 0:
        last = block[active + block[H_NUM_ACTIVE] - 1]
        block[active + position] = last
        block[positions + last] = position
        block[positions + slot] = -1
        block[H_NUM_ACTIVE] -= 1


@compiled
def swap_in(block: Words, slot: int) -> None:
    """Put a slot back on the list of active ones. Call between begin and end."""
    if block[block[H_POSITIONS] + slot] < 0:
        block[block[H_POSITIONS] + slot] = block[H_NUM_ACTIVE]
        block[block[H_ACTIVE] + block[H_NUM_ACTIVE]] = slot
        block[H_NUM_ACTIVE] += 1
