"""Compiled operations on the plan's block: write a weight, draw a slot, read the dials.

`plan` wraps these for Python; the curricula call the writers from their own kernels, and clients
call `draw`. Nothing here allocates, and nothing here grows with the number of tasks except the
functions named ``fill`` and ``copy``.

Readers need no lock. The sequence number is odd while the plan is being written; a reader that
finds it odd, or different after reading, reads again.
"""
# pyright: reportReturnType=false, reportArgumentType=false, reportUnknownVariableType=false
# pyright: reportAssignmentType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# Reason: NumPy's stubs do not know that an element of an integer array is an integer.

import numpy as np
import numpy.typing as npt

from stepladder.compiled import (
    compiled,
    fence_after_reads,
    fence_before_writes,
    inlined,
    load_acquire,
    store_release,
)
from stepladder.plans.philox import DRAW_STREAM, uniform_and_seed
from stepladder.plans.record import HOST_ENV, DrawArray

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
T_EXPLORATION, T_NUM_GROUPS, T_SHARES, T_TREES, T_CAPACITIES = 0, 1, 2, 3, 4
T_PLACES, T_SLOTS, T_SLOT_STARTS, T_LAYERS = 5, 6, 7, 8
TABLE_WORDS = 16

LEAF_BITS = 32
LEAF_MASK = (1 << LEAF_BITS) - 1
MAX_SPINS = 20_000

BEING_WRITTEN = -1
"""Drawn slot when the plan stayed odd for `MAX_SPINS` looks: the writer is busy or dead."""

NOTHING_ACTIVE = -2
"""Drawn slot when every task is quarantined."""


@inlined
def begin_write(block: Words) -> None:
    """Make the version odd: readers wait."""
    store_release(block, H_SEQUENCE, block[H_SEQUENCE] + 1)
    fence_before_writes()


@inlined
def end_write(block: Words) -> None:
    """Make the version even again, one higher than before the write."""
    store_release(block, H_SEQUENCE, block[H_SEQUENCE] + 1)


@inlined
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


@inlined
def set_leaf(block: Words, table: int, slot: int, weight: float, layer: int = 0) -> None:
    """Write one slot's weight and the sums above it. Call between begin and end."""
    values = block.view(np.float64)
    group, leaf = _place(block, table, slot, layer)
    tree = block[block[table + T_TREES] + group]
    node = block[block[table + T_CAPACITIES] + group] + leaf
    values[tree + node] = weight
    node >>= 1
    while node >= 1:
        # Recomputed, never adjusted by a difference: sums cannot drift, and a restored plan
        # has the same bits as one that was never stopped.
        values[tree + node] = values[tree + 2 * node] + values[tree + 2 * node + 1]
        node >>= 1


@compiled
def clear_slot(block: Words, table: int, slot: int) -> None:
    """Give a slot no weight anywhere in a table. Call between begin and end."""
    for layer in range(max(1, block[table + T_LAYERS])):
        set_leaf(block, table, slot, 0.0, layer)


@compiled
def get_leaf(block: Words, table: int, slot: int, layer: int = 0) -> float:
    """Return one slot's weight."""
    group, leaf = _place(block, table, slot, layer)
    tree = block[block[table + T_TREES] + group]
    return block.view(np.float64)[tree + block[block[table + T_CAPACITIES] + group] + leaf]


@compiled
def fill_leaves(block: Words, table: int, weights: Floats, layer: int = 0) -> None:
    """Write every slot's weight and all sums. Call between begin and end."""
    values = block.view(np.float64)
    for slot in range(len(weights)):
        group, leaf = _place(block, table, slot, layer)
        tree = block[block[table + T_TREES] + group]
        values[tree + block[block[table + T_CAPACITIES] + group] + leaf] = weights[slot]
    for group in range(block[table + T_NUM_GROUPS]):
        tree = block[block[table + T_TREES] + group]
        node = block[block[table + T_CAPACITIES] + group] - 1
        while node >= 1:
            values[tree + node] = values[tree + 2 * node] + values[tree + 2 * node + 1]
            node -= 1


@compiled
def copy_leaves(block: Words, table: int, weights: Floats) -> None:
    """Copy every slot's weights out of a table; shape ``(layers, num_slots)``."""
    for layer in range(weights.shape[0]):
        for slot in range(weights.shape[1]):
            weights[layer, slot] = get_leaf(block, table, slot, layer)


@inlined
def total_share(block: Words, values: Floats, table: int) -> float:
    """Return the sum of the shares of all groups that have a positive weight in them."""
    total = 0.0
    for group in range(block[table + T_NUM_GROUPS]):
        if values[block[block[table + T_TREES] + group] + 1] > 0.0:
            total += values[block[table + T_SHARES] + group]
    return total


@compiled
def _last_positive(values: Floats, tree: int, capacity: int) -> int:
    """Return the last leaf with a weight: what a rounding error past the end stands for."""
    node = 1
    while node < capacity:
        node *= 2
        if values[tree + node + 1] > 0.0:
            node += 1
    return node


@inlined
def _descend(block: Words, values: Floats, table: int, group: int, rest: float) -> int:
    """Follow the sum tree of one group down to a leaf, without branches to mispredict."""
    tree = block[block[table + T_TREES] + group]
    capacity = block[block[table + T_CAPACITIES] + group]
    node = 1
    while node < capacity:
        node *= 2
        left = values[tree + node]
        right = int(rest >= left)
        rest -= left * right
        node += right
    return node - capacity


@inlined
def _slot_of_leaf(block: Words, values: Floats, table: int, group: int, leaf: int) -> int:
    """Return the slot that a leaf stands for."""
    tree = block[block[table + T_TREES] + group]
    capacity = block[block[table + T_CAPACITIES] + group]
    if values[tree + capacity + leaf] <= 0.0:
        leaf = _last_positive(values, tree, capacity) - capacity
    # A reader that raced the writer may come out beside the group; it will draw again.
    if block[table + T_NUM_GROUPS] == 1 or block[table + T_LAYERS] > 0:
        return min(leaf, block[H_NUM_SLOTS] - 1)
    start = block[block[table + T_SLOT_STARTS] + group]
    end = block[block[table + T_SLOT_STARTS] + group + 1]
    return block[block[table + T_SLOTS] + min(start + leaf, end - 1)]


@inlined
def _split(
    block: Words, values: Floats, table: int, total: float, exploration: float, uniform: float
) -> tuple[int, float]:
    """Divide a random number: first exploration or not, then the group, then what is left.

    Returns:
        A group, and how far into its sum of weights to go; or, for exploration, minus one minus
        a position in the list of active slots, and 0.
    """
    if uniform < exploration:
        num_active = block[H_NUM_ACTIVE]
        return -1 - min(int(uniform / exploration * num_active), num_active - 1), 0.0
    rest = (uniform - exploration) / (1.0 - exploration) * total
    chosen, chosen_share = 0, 1.0
    for group in range(block[table + T_NUM_GROUPS]):
        share = values[block[table + T_SHARES] + group]
        if share > 0.0 and values[block[block[table + T_TREES] + group] + 1] > 0.0:
            chosen, chosen_share = group, share
            if rest < share:
                break
            rest -= share
    whole = values[block[block[table + T_TREES] + chosen] + 1]
    return chosen, min(rest / chosen_share, 1.0) * whole


@inlined
def _choose(
    block: Words, values: Floats, table: int, total: float, exploration: float, uniform: float
) -> int:
    """Choose a slot: a share of exploration over all active slots, the rest by weight."""
    group, rest = _split(block, values, table, total, exploration, uniform)
    if group < 0:
        return block[block[H_ACTIVE] - 1 - group]
    return _slot_of_leaf(block, values, table, group, _descend(block, values, table, group, rest))


@inlined
def _exploration(values: Floats, table: int, total: float) -> float:
    """Return the share of draws that ignore the weights: all of them if there are none."""
    return values[table + T_EXPLORATION] if total > 0.0 else 1.0


@inlined
def draw_seen(
    block: Words, values: Floats, env_index: int, episode_index: int, dials: Floats
) -> tuple[int, int, int, int, int, int]:
    """Do the work of `draw`, with the block seen as floats beside it."""
    uniform, seed = uniform_and_seed(block[H_SEED], env_index, episode_index, DRAW_STREAM)
    for _ in range(MAX_SPINS):
        before = load_acquire(block, H_SEQUENCE)
        if before & 1:
            continue
        if block[H_NUM_ACTIVE] <= 0:
            return NOTHING_ACTIVE, 0, 0, before >> 1, seed, 0
        table = block[H_TABLE]
        total = total_share(block, values, table)
        exploration = _exploration(values, table, total)
        slot = _choose(block, values, table, total, exploration, uniform)
        row = block[H_ROWS] + 2 * slot
        task_id, generation = block[row], block[row + 1]
        for dial in range(len(dials)):
            dials[dial] = values[block[H_DIALS] + dial]
        fence_after_reads()
        if load_acquire(block, H_SEQUENCE) == before:
            return slot, generation, task_id, before >> 1, seed, block[H_TICK]
    return BEING_WRITTEN, 0, 0, 0, 0, 0


@compiled
def draw(
    block: Words, env_index: int, episode_index: int, dials: Floats
) -> tuple[int, int, int, int, int, int]:
    """Draw for one episode; copy the dials of the same version into `dials`.

    Returns:
        Slot, generation, task id, plan version, seed and tick. The slot is `BEING_WRITTEN` or
        `NOTHING_ACTIVE` if nothing could be drawn.
    """
    return draw_seen(block, block.view(np.float64), env_index, episode_index, dials)


@compiled
def draw_for_host(block: Words, episode_index: int) -> tuple[int, ...]:
    """Draw for the host itself; return all fields of a draw."""
    values = block.view(np.float64)
    slot, generation, task_id, version, seed, tick = draw_seen(
        block, values, HOST_ENV, episode_index, values[:0]
    )
    return slot, generation, task_id, version, seed, tick, HOST_ENV, episode_index


@compiled
def draw_many_for_host(block: Words, first_episode: int, draws: DrawArray) -> bool:
    """Fill `draws` for the host itself; False if there is nothing to draw.

    The host is the only writer, so nothing can change on the way: what is the same for all
    draws is read once.
    """
    values = block.view(np.float64)
    if block[H_NUM_ACTIVE] <= 0:
        return False
    table = block[H_TABLE]
    total = total_share(block, values, table)
    exploration = _exploration(values, table, total)
    groups, rests = np.empty(len(draws), np.int64), np.empty(len(draws))
    for index in range(len(draws)):
        episode = first_episode + index
        uniform, seed = uniform_and_seed(block[H_SEED], HOST_ENV, episode, DRAW_STREAM)
        groups[index], rests[index] = _split(block, values, table, total, exploration, uniform)
        draws[index].seed = seed
    # A pass of its own: with nothing to mispredict, the processor walks several trees at once.
    for index in range(len(draws)):
        group = max(groups[index], 0)
        draws[index].slot = _descend(block, values, table, group, rests[index])
    for index in range(len(draws)):
        if groups[index] < 0:
            slot = block[block[H_ACTIVE] - 1 - groups[index]]
        else:
            slot = _slot_of_leaf(block, values, table, groups[index], draws[index].slot)
        draws[index].slot = slot
        draws[index].task_id = block[block[H_ROWS] + 2 * slot]
        draws[index].generation = block[block[H_ROWS] + 2 * slot + 1]
        draws[index].plan_version = block[H_SEQUENCE] >> 1
        draws[index].tick = block[H_TICK]
        draws[index].env_index = HOST_ENV
        draws[index].episode_index = first_episode + index
    return True


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
        fence_after_reads()
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
    total = total_share(block, values, table)
    exploration = _exploration(values, table, total)
    prob = exploration / block[H_NUM_ACTIVE]
    if total > 0.0:
        for layer in range(max(1, block[table + T_LAYERS])):
            weight = get_leaf(block, table, slot, layer)
            if weight > 0.0:
                group, _ = _place(block, table, slot, layer)
                share = values[block[table + T_SHARES] + group] / total
                whole = values[block[block[table + T_TREES] + group] + 1]
                # This quotient first: a product with a tiny weight would lose its digits.
                prob += (1.0 - exploration) * share * (weight / whole)
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
def take_out(block: Words, tables: Words, slot: int) -> None:
    """Take a slot out of play in one write, unless it is already."""
    if block[block[H_POSITIONS] + slot] < 0:
        return
    begin_write(block)
    for table in tables:
        clear_slot(block, table, slot)
    swap_out(block, slot)
    end_write(block)


@compiled
def swap_in(block: Words, slot: int) -> None:
    """Put a slot back on the list of active ones. Call between begin and end."""
    if block[block[H_POSITIONS] + slot] < 0:
        block[block[H_POSITIONS] + slot] = block[H_NUM_ACTIVE]
        block[block[H_ACTIVE] + block[H_NUM_ACTIVE]] = slot
        block[H_NUM_ACTIVE] += 1
