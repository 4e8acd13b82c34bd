"""How a slot is chosen by its weight: groups by their shares, then down a sum tree to a leaf.

Below `kernels`, which makes a draw of it. Where everything lies is in `layout`. Nothing here
writes. A reader may race the writer: then what it finds is of no use, and it must not look outside
the block.
"""

import numpy as np

from stepladder.compiled import compiled, inlined
from stepladder.plans.layout import group_of, header_of, is_active, table_of
from stepladder.plans.philox import LIMIT_STREAM, uniform_and_seed
from stepladder.records import Floats, Words

LEAF_BITS = 32
LEAF_MASK = (1 << LEAF_BITS) - 1


@inlined
def place(block: Words, table: int, slot: int, layer: int) -> tuple[int, int]:
    """Return the group that holds a slot, and its leaf there.

    The groups of a table split the slots between them. With several layers, each has groups that
    do so, with weights of their own.
    """
    own = table_of(block, table)
    if own.layer_groups == 1:
        return layer, slot
    place = block[own.places_at + slot]
    return layer * own.layer_groups + (place >> LEAF_BITS), place & LEAF_MASK


@compiled
def get_leaf(block: Words, table: int, slot: int, layer: int = 0) -> float:
    """Return one slot's weight."""
    group, leaf = place(block, table, slot, layer)
    own = group_of(block, table, group)
    return block.view(np.float64)[own.tree_at + own.capacity + leaf]


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
def descend(block: Words, values: Floats, table: int, group: int, rest: float) -> int:
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
def slot_of_leaf(block: Words, values: Floats, table: int, group: int, leaf: int) -> int:
    """Return the slot that a leaf stands for."""
    own, whole = group_of(block, table, group), table_of(block, table)
    if values[own.tree_at + own.capacity + leaf] <= 0.0:
        leaf = _last_positive(values, own.tree_at, own.capacity) - own.capacity
    # A reader that raced the writer may end outside the group; it will draw again.
    if whole.layer_groups == 1:
        return min(leaf, header_of(block).num_slots - 1)
    return block[whole.members_at + own.first_member + min(leaf, own.num_members - 1)]


@inlined
def split(
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
def choose(
    block: Words, values: Floats, table: int, total: float, exploration: float, uniform: float
) -> int:
    """Choose a slot: a share of exploration over all active slots, the rest by weight."""
    group, rest = split(block, values, table, total, exploration, uniform)
    if group < 0:
        return block[header_of(block).active_at - 1 - group]
    return slot_of_leaf(block, values, table, group, descend(block, values, table, group, rest))


@compiled
def draw_from_group(block: Words, table: int, group: int, uniform: float) -> int:
    """Return the slot that a number in [0, 1) stands for in one group, by weight; -1 if empty.

    For the host, which alone writes the plan.
    """
    values = block.view(np.float64)
    whole = values[group_of(block, table, group).tree_at + 1]
    if not whole > 0.0:
        return -1
    leaf = descend(block, values, table, group, uniform * whole)
    return slot_of_leaf(block, values, table, group, leaf)


@inlined
def exploration_of(block: Words, table: int, total: float) -> float:
    """Return the share of draws that ignore the weights: all of them if there are none."""
    return table_of(block, table).exploration if total > 0.0 else 1.0


@inlined
def prob_by_weight(
    block: Words, values: Floats, table: int, total: float, exploration: float, slot: int
) -> float:
    """Return the probability with which `choose` chooses a slot."""
    if not is_active(block, slot):
        return 0.0
    prob = exploration / header_of(block).num_active
    if total > 0.0:
        for layer in range(max(1, table_of(block, table).num_layers)):
            group, leaf = place(block, table, slot, layer)
            own = group_of(block, table, group)
            weight = values[own.tree_at + own.capacity + leaf]
            if weight > 0.0:
                # This quotient first: a product with a tiny weight would lose its digits.
                prob += (
                    (1.0 - exploration) * (own.share / total) * (weight / values[own.tree_at + 1])
                )
    return prob


@compiled
def limited(
    block: Words,
    values: Floats,
    table: int,
    total: float,
    exploration: float,
    slot: int,
    env_index: int,
    episode_index: int,
) -> int:
    """Return a chosen slot, or any other in place of one that is chosen too often.

    A slot with a probability p above the table's largest share m is kept in m of p cases; else all
    active slots are drawn alike. So no slot gets more than m and its part of what is left over.
    """
    prob = prob_by_weight(block, values, table, total, exploration, slot)
    kept = table_of(block, table).max_share / prob
    if kept >= 1.0:
        return slot
    header = header_of(block)
    uniform, _ = uniform_and_seed(header.seed, env_index, episode_index, LIMIT_STREAM)
    if uniform < kept:
        return slot
    position = int((uniform - kept) / (1.0 - kept) * header.num_active)
    return block[header.active_at + max(0, min(position, header.num_active - 1))]


@compiled
def prob_of(block: Words, slot: int) -> float:
    """Return the probability of one slot at the next draw; with a limit, this takes a pass."""
    values, table = block.view(np.float64), header_of(block).table_at
    total = total_share(block, values, table)
    exploration = exploration_of(block, table, total)
    prob = prob_by_weight(block, values, table, total, exploration, slot)
    limit = table_of(block, table).max_share
    if limit >= 1.0 or not is_active(block, slot):
        return prob
    excess = 0.0
    for other in range(header_of(block).num_slots):
        other_prob = prob_by_weight(block, values, table, total, exploration, other)
        excess += max(0.0, other_prob - limit)
    return min(prob, limit) + excess / header_of(block).num_active


@compiled
def fill_probs(block: Words, probs: Floats) -> None:
    """Write the probability of every slot."""
    values, header = block.view(np.float64), header_of(block)
    table = header.table_at
    total = total_share(block, values, table)
    exploration = exploration_of(block, table, total)
    limit, excess = table_of(block, table).max_share, 0.0
    for slot in range(len(probs)):
        prob = prob_by_weight(block, values, table, total, exploration, slot)
        probs[slot] = prob
        if limit < 1.0:
            excess += max(0.0, prob - limit)
            probs[slot] = min(prob, limit)
    if excess > 0.0:
        for index in range(header.num_active):
            probs[block[header.active_at + index]] += excess / header.num_active
