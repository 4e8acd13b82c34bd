"""Compiled operations on a plan: a draw, a weight, a probability, and the writer's side of each.

`plan.Plan` owns the block of words; `curricula` change it through these functions, clients in
`sync` draw with them. Where everything lies is in `layout`. A reader takes no lock: the sequence
number is odd while the plan is being written, and a reader that saw it change draws again.
"""

import numpy as np

from stepladder.compiled import (
    bare,
    compiled,
    fence_after_reads,
    fence_before_writes,
    inlined,
    load_acquire,
    store_release,
)
from stepladder.plans.layout import group_of, header_of, is_active, slot_of, table_of
from stepladder.plans.philox import DRAW_STREAM, uniform_and_seed
from stepladder.plans.record import HOST_ENV, DrawArray
from stepladder.plans.status import BEING_WRITTEN, NOTHING_ACTIVE
from stepladder.records import Floats, Words

LEAF_BITS = 32
LEAF_MASK = (1 << LEAF_BITS) - 1
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
def _place(block: Words, table: int, slot: int, layer: int) -> tuple[int, int]:
    """Return the group that holds a slot, and its leaf there.

    The groups of a table split the slots between them. With several layers, each has groups that
    do so, with weights of their own.
    """
    own = table_of(block, table)
    if own.layer_groups == 1:
        return layer, slot
    place = block[own.places_at + slot]
    return layer * own.layer_groups + (place >> LEAF_BITS), place & LEAF_MASK


@inlined
def set_leaf(block: Words, table: int, slot: int, weight: float, layer: int = 0) -> None:
    """Write one slot's weight and the sums above it. Call between begin and end."""
    values = block.view(np.float64)
    group, leaf = _place(block, table, slot, layer)
    own = group_of(block, table, group)
    tree, node = own.tree_at, own.capacity + leaf
    values[tree + node] = weight
    node >>= 1
    while node >= 1:
        # Recomputed, never adjusted by a difference: sums cannot drift, and a restored plan
        # has the same bits as one that was never stopped.
        values[tree + node] = values[tree + 2 * node] + values[tree + 2 * node + 1]
        node >>= 1


@compiled
def get_leaf(block: Words, table: int, slot: int, layer: int = 0) -> float:
    """Return one slot's weight."""
    group, leaf = _place(block, table, slot, layer)
    own = group_of(block, table, group)
    return block.view(np.float64)[own.tree_at + own.capacity + leaf]


@compiled
def fill_leaves(block: Words, table: int, weights: Floats, layer: int = 0) -> None:
    """Write every slot's weight and all sums. Call between begin and end."""
    values = block.view(np.float64)
    for slot in range(len(weights)):
        group, leaf = _place(block, table, slot, layer)
        own = group_of(block, table, group)
        values[own.tree_at + own.capacity + leaf] = weights[slot]
    for group in range(table_of(block, table).num_groups):
        own = group_of(block, table, group)
        tree, node = own.tree_at, own.capacity - 1
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
    for group in range(table_of(block, table).num_groups):
        own = group_of(block, table, group)
        if values[own.tree_at + 1] > 0.0:
            total += own.share
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
    own = group_of(block, table, group)
    tree, capacity = own.tree_at, own.capacity
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
    own, whole = group_of(block, table, group), table_of(block, table)
    if values[own.tree_at + own.capacity + leaf] <= 0.0:
        leaf = _last_positive(values, own.tree_at, own.capacity) - own.capacity
    # A reader that raced the writer may end outside the group; it will draw again.
    if whole.layer_groups == 1:
        return min(leaf, header_of(block).num_slots - 1)
    return block[whole.members_at + own.first_member + min(leaf, own.num_members - 1)]


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
        num_active = header_of(block).num_active
        return -1 - min(int(uniform / exploration * num_active), num_active - 1), 0.0
    rest = (uniform - exploration) / (1.0 - exploration) * total
    chosen, chosen_share = 0, 1.0
    for group in range(table_of(block, table).num_groups):
        own = group_of(block, table, group)
        share = own.share
        if share > 0.0 and values[own.tree_at + 1] > 0.0:
            chosen, chosen_share = group, share
            if rest < share:
                break
            rest -= share
    whole = values[group_of(block, table, chosen).tree_at + 1]
    return chosen, min(rest / chosen_share, 1.0) * whole


@inlined
def _choose(
    block: Words, values: Floats, table: int, total: float, exploration: float, uniform: float
) -> int:
    """Choose a slot: a share of exploration over all active slots, the rest by weight."""
    group, rest = _split(block, values, table, total, exploration, uniform)
    if group < 0:
        return block[header_of(block).active_at - 1 - group]
    return _slot_of_leaf(block, values, table, group, _descend(block, values, table, group, rest))


@inlined
def _exploration(block: Words, table: int, total: float) -> float:
    """Return the share of draws that ignore the weights: all of them if there are none."""
    return table_of(block, table).exploration if total > 0.0 else 1.0


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
        exploration = _exploration(block, table, total)
        slot = _choose(block, values, table, total, exploration, uniform)
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
    exploration = _exploration(block, table, total)
    groups, rests = np.empty(len(draws), np.int64), np.empty(len(draws))
    for index in range(len(draws)):
        episode = first_episode + index
        uniform, seed = uniform_and_seed(header.seed, HOST_ENV, episode, DRAW_STREAM)
        groups[index], rests[index] = _split(block, values, table, total, exploration, uniform)
        draws[index].seed = seed
    # A pass of its own: with nothing to mispredict, the processor walks several trees at once.
    for index in range(len(draws)):
        group = max(groups[index], 0)
        draws[index].slot = _descend(block, values, table, group, rests[index])
    for index in range(len(draws)):
        drawn = draws[index]
        if groups[index] < 0:
            slot = int(block[header.active_at - 1 - groups[index]])
        else:
            slot = _slot_of_leaf(block, values, table, groups[index], drawn.slot)
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
def prob_of(block: Words, slot: int) -> float:
    """Return the probability of one slot at the next draw."""
    values, header = block.view(np.float64), header_of(block)
    if not is_active(block, slot):
        return 0.0
    table = header.table_at
    total = total_share(block, values, table)
    exploration = _exploration(block, table, total)
    prob = exploration / header.num_active
    if total > 0.0:
        for layer in range(max(1, table_of(block, table).num_layers)):
            weight = get_leaf(block, table, slot, layer)
            if weight > 0.0:
                group, _ = _place(block, table, slot, layer)
                own = group_of(block, table, group)
                # This quotient first: a product with a tiny weight would lose its digits.
                prob += (
                    (1.0 - exploration) * (own.share / total) * (weight / values[own.tree_at + 1])
                )
    return prob


@compiled
def fill_probs(block: Words, probs: Floats) -> None:
    """Write the probability of every slot."""
    for slot in range(len(probs)):
        probs[slot] = prob_of(block, slot)


@compiled
def take_out(block: Words, tables: Words, slot: int) -> None:
    """Take a slot out of play in one write, unless it is already: no weight, not active."""
    if not is_active(block, slot):
        return
    begin_write(block)
    for table in tables:
        for layer in range(max(1, table_of(block, table).num_layers)):
            set_leaf(block, table, slot, 0.0, layer)
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
