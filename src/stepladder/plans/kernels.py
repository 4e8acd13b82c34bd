"""Compiled operations on a plan: a draw, a weight, and the writer's side of each.

`plan.Plan` owns the block of words; `curricula` change it through these functions, clients in
`sync` draw with them. How a slot is chosen is in `choosing`, where everything lies in `layout`. A
reader takes no lock: the sequence
number is odd while the plan is being written, and a reader that saw it change draws again.
"""

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.compiled import (
    bare,
    compiled,
    fence_after_reads,
    fence_before_writes,
    inlined,
    load_acquire,
    store_release,
)
from stepladder.plans.choosing import (
    choose,
    counts_of,
    descend,
    exploration_of,
    get_leaf,
    limited,
    place,
    slot_of_leaf,
    split,
    total_share,
)
from stepladder.plans.layout import group_of, header_of, is_active, slot_of, table_of
from stepladder.plans.philox import DRAW_STREAM, uniform_and_seed
from stepladder.plans.record import HOST_ENV, DrawArray
from stepladder.plans.status import BEING_WRITTEN, NOTHING_ACTIVE

MAX_SPINS = 20_000


@inlined
def begin_write(block: Words) -> None:
    """Make the sequence odd: readers wait."""
    header = header_of(block)
    store_release(header, "sequence", header.sequence + 1)
    fence_before_writes()


@inlined
def end_write(block: Words) -> None:
    """Make the sequence even again; the version, half of it, is one higher than before."""
    header = header_of(block)
    store_release(header, "sequence", header.sequence + 1)


@inlined
def _set_node(values: Floats, tree: int, node: int, weight: float) -> None:
    """Write one node of a tree and the sums above it."""
    values[tree + node] = weight
    while node > 1:
        # Recomputed, never adjusted by a difference: sums cannot drift, and a restored plan
        # has the same bits as one that was never stopped. The sum so far stays in a register: to
        # read back what was just written would take longer than to add.
        weight += values[np.uint64(tree + (node ^ 1))]
        node >>= 1
        values[np.uint64(tree + node)] = weight


@inlined
def set_leaf(block: Words, table: int, slot: int, weight: float, layer: int = 0) -> None:
    """Write one slot's weight and the sums above it. Call between begin and end."""
    values = block.view(np.float64)
    group, leaf = place(block, table, slot, layer)
    own = group_of(block, table, group)
    _set_node(values, own.tree_at, own.capacity + leaf, weight)
    if own.target_tree_at > 0:
        counted = weight * counts_of(block, values, table, slot)
        _set_node(values, own.target_tree_at, own.capacity + leaf, counted)


@compiled
def fill_leaves(block: Words, table: int, weights: Floats, layer: int = 0) -> None:
    """Write every slot's weight and all sums. Call between begin and end."""
    values = block.view(np.float64)
    for slot in range(len(weights)):
        group, leaf = place(block, table, slot, layer)
        own = group_of(block, table, group)
        values[own.tree_at + own.capacity + leaf] = weights[slot]
        if own.target_tree_at > 0:
            counted = weights[slot] * counts_of(block, values, table, slot)
            values[own.target_tree_at + own.capacity + leaf] = counted
    for group in range(table_of(block, table).num_groups):
        own = group_of(block, table, group)
        _sum_tree(values, own.tree_at, own.capacity)
        if own.target_tree_at > 0:
            _sum_tree(values, own.target_tree_at, own.capacity)


@inlined
def _sum_tree(values: Floats, tree: int, capacity: int) -> None:
    """Write all sums of a tree from its leaves."""
    node = capacity - 1
    while node >= 1:
        values[tree + node] = values[tree + 2 * node] + values[tree + 2 * node + 1]
        node -= 1


@compiled
def set_target(block: Words, table: int, slot: int, counts: float) -> None:
    """Write how much an active slot counts, and all sums. Call between begin and end."""
    own = table_of(block, table)
    _set_node(block.view(np.float64), own.targets_at, own.targets_capacity + slot, counts)
    for layer in range(max(1, own.num_layers)):
        set_leaf(block, table, slot, get_leaf(block, table, slot, layer), layer)


@compiled
def fill_targets(block: Words, table: int, counts: Floats) -> None:
    """Write how much every slot counts, nothing if it is not active. Call between begin and end."""
    for slot in range(len(counts)):
        set_target(block, table, slot, counts[slot] if is_active(block, slot) else 0.0)


@compiled
def copy_leaves(block: Words, table: int, weights: Floats) -> None:
    """Copy every slot's weights out of a table; shape ``(layers, num_slots)``."""
    for layer in range(weights.shape[0]):
        for slot in range(weights.shape[1]):
            weights[layer, slot] = get_leaf(block, table, slot, layer)


@inlined
def draw_seen(
    block: Words, values: Floats, env_index: int, episode_index: int, dials: Floats
) -> tuple[int, int, int, int, int, int]:
    """Do the work of `draw`, given the block also as floats."""
    header = header_of(block)
    uniform, seed = uniform_and_seed(header.seed, env_index, episode_index, DRAW_STREAM)
    for _ in range(MAX_SPINS):
        before = load_acquire(header, "sequence")
        if before & 1:
            continue
        if header.num_active <= 0:
            return NOTHING_ACTIVE, 0, 0, before >> 1, seed, 0
        table = header.table_at
        total = total_share(block, values, table)
        exploration = exploration_of(block, table, total)
        slot = choose(block, values, table, total, exploration, uniform)
        if table_of(block, table).max_share < 1.0:
            slot = limited(block, values, table, total, exploration, slot, env_index, episode_index)
        held = slot_of(block, slot)
        task_id, generation = held.task_id, held.generation
        for dial in range(len(dials)):
            dials[dial] = values[header.dials_at + dial]
        fence_after_reads()
        if load_acquire(header, "sequence") == before:
            return slot, generation, task_id, before >> 1, seed, header.tick
    return BEING_WRITTEN, 0, 0, 0, 0, 0


@bare
def draw(
    block: Words, env_index: int, episode_index: int, dials: Floats
) -> tuple[int, int, int, int, int, int]:
    """Draw for one episode; copy the dials of the same version into `dials`.

    Returns:
        Slot, generation, task id, plan version, seed and tick. The slot is `BEING_WRITTEN` or
        `NOTHING_ACTIVE` if nothing could be drawn.
    """
    return draw_seen(block, block.view(np.float64), env_index, episode_index, dials)


@bare
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
    values, header = block.view(np.float64), header_of(block)
    if header.num_active <= 0:
        return False
    table = header.table_at
    total = total_share(block, values, table)
    exploration = exploration_of(block, table, total)
    has_limit = table_of(block, table).max_share < 1.0
    groups, rests = np.empty(len(draws), np.int64), np.empty(len(draws))
    for index in range(len(draws)):
        episode = first_episode + index
        uniform, seed = uniform_and_seed(header.seed, HOST_ENV, episode, DRAW_STREAM)
        groups[index], rests[index] = split(block, values, table, total, exploration, uniform)
        draws[index].seed = seed
    # A pass of its own: with nothing to mispredict, the processor walks several trees at once.
    for index in range(len(draws)):
        group = max(groups[index], 0)
        draws[index].slot = descend(block, values, table, group, rests[index])
    for index in range(len(draws)):
        drawn = draws[index]
        if groups[index] < 0:
            slot = int(block[header.active_at - 1 - groups[index]])
        else:
            slot = slot_of_leaf(block, values, table, groups[index], drawn.slot)
        if has_limit:
            episode = first_episode + index
            slot = limited(block, values, table, total, exploration, slot, HOST_ENV, episode)
        held = slot_of(block, slot)
        drawn.slot = slot
        drawn.task_id = held.task_id
        drawn.generation = held.generation
        drawn.plan_version = header.sequence >> 1
        drawn.tick = header.tick
        drawn.env_index = HOST_ENV
        drawn.episode_index = first_episode + index
    return True


@compiled
def read_dials(block: Words, dials: Floats) -> int:
    """Copy all dials of one version; return that version, or `BEING_WRITTEN`."""
    values, header = block.view(np.float64), header_of(block)
    for _ in range(MAX_SPINS):
        before = load_acquire(header, "sequence")
        if before & 1:
            continue
        for dial in range(len(dials)):
            dials[dial] = values[header.dials_at + dial]
        fence_after_reads()
        if load_acquire(header, "sequence") == before:
            return before >> 1
    return BEING_WRITTEN


@compiled
def take_out(block: Words, tables: Words, slot: int) -> None:
    """Take a slot out of play in one write, unless it is already: no weight, not active."""
    if not is_active(block, slot):
        return
    begin_write(block)
    for table in tables:
        own = table_of(block, table)
        for layer in range(max(1, own.num_layers)):
            set_leaf(block, table, slot, 0.0, layer)
        if own.targets_at > 0:
            _set_node(block.view(np.float64), own.targets_at, own.targets_capacity + slot, 0.0)
    header = header_of(block)
    positions, active = header.positions_at, header.active_at
    position, last = block[positions + slot], block[active + header.num_active - 1]
    block[active + position] = last
    block[positions + last] = position
    block[positions + slot] = -1
    header.num_active -= 1
    end_write(block)


@compiled
def put_in(block: Words, slot: int) -> None:
    """Make a slot active, unless it is already. Call between begin and end."""
    header = header_of(block)
    if not is_active(block, slot):
        block[header.positions_at + slot] = header.num_active
        block[header.active_at + header.num_active] = slot
        header.num_active += 1
