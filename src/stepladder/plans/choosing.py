"""How a slot is chosen by its weight: groups by their shares, then down a sum tree to a leaf.

Below `kernels`, which makes a draw of it. Where everything lies is in `layout`. Nothing here
writes. A reader may race the writer: then what it finds is of no use, and it must not look outside
the block.
"""

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.compiled import compiled, inlined
from stepladder.plans.layout import Group, group_of, header_of, is_active, table_of
from stepladder.plans.philox import LIMIT_STREAM, uniform_and_seed

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


@inlined
def get_leaf(block: Words, table: int, slot: int, layer: int = 0) -> float:
    """Return one slot's weight."""
    group, leaf = place(block, table, slot, layer)
    own = group_of(block, table, group)
    return block.view(np.float64)[own.tree_at + own.capacity + leaf]


@inlined
def lean(values: Floats, own: Group, other_share: float) -> float:
    """Return the part of a group's weight that counts: what counts itself, and a share of the rest.

    Call it for groups with a positive weight; it is 1 where all slots are alike.
    """
    if other_share >= 1.0:
        return 1.0
    part = values[own.target_tree_at + 1] / values[own.tree_at + 1]
    return other_share + (1.0 - other_share) * part


@inlined
def total_share(block: Words, values: Floats, table: int) -> float:
    """Return the sum of the shares of all groups that have a positive weight in them.

    A share counts as far as the slots of the group do.
    """
    total, other_share = 0.0, table_of(block, table).other_share
    for group in range(table_of(block, table).num_groups):
        own = group_of(block, table, group)
        if values[own.tree_at + 1] > 0.0:
            total += own.share * lean(values, own, other_share)
    return total


@inlined
def counts_of(block: Words, values: Floats, table: int, slot: int) -> float:
    """Return how much a slot of a table with a target counts."""
    own = table_of(block, table)
    return values[own.targets_at + own.targets_capacity + slot]


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
    """Follow the sum tree of one group down to a leaf, without branches to mispredict.

    An index of type `uint64` is not looked at for counting from the end, which shows here.
    """
    own, other_share = group_of(block, table, group), table_of(block, table).other_share
    tree, capacity = own.tree_at, own.capacity
    node = 1
    if other_share < 1.0:
        return _descend_to_target(values, tree, own.target_tree_at, capacity, other_share, rest)
    while node < capacity:
        node *= 2
        left = values[np.uint64(tree + node)]
        after = rest - left
        right = rest >= left
        rest = after if right else rest
        node += int(right)
    return node - capacity


@compiled
def _descend_to_target(
    values: Floats, tree: int, target_tree: int, capacity: int, other_share: float, rest: float
) -> int:
    """Do the same with weights that count as far as their slots do: two trees, walked as one."""
    node, part = 1, 1.0 - other_share
    while node < capacity:
        node *= 2
        left = other_share * values[tree + node] + part * values[target_tree + node]
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
def even_position(block: Words, values: Floats, table: int, uniform: float) -> int:
    """Return the position of an active slot, all being alike as far as they count."""
    header, own = header_of(block), table_of(block, table)
    if own.other_share < 1.0:
        others = own.other_share * header.num_active
        aimed = (1.0 - own.other_share) * values[own.targets_at + 1]
        uniform *= 1.0 + aimed / others
        if uniform >= 1.0 and aimed > 0.0:
            rest = min(1.0, (uniform - 1.0) * others / aimed) * values[own.targets_at + 1]
            tree, capacity = own.targets_at, own.targets_capacity
            slot = _descend_to_target(values, tree, tree, capacity, 1.0, rest)
            if values[tree + capacity + slot] <= 0.0:
                slot = _last_positive(values, tree, capacity) - capacity
            position = block[header.positions_at + min(slot, header.num_slots - 1)]
            return max(0, min(position, header.num_active - 1))
    return max(0, min(int(uniform * header.num_active), header.num_active - 1))


@inlined
def even_prob(block: Words, values: Floats, table: int, slot: int) -> float:
    """Return the probability of an active slot at such a draw."""
    header, own = header_of(block), table_of(block, table)
    if own.other_share >= 1.0:
        return 1.0 / header.num_active
    counts = own.other_share + (1.0 - own.other_share) * counts_of(block, values, table, slot)
    aimed = (1.0 - own.other_share) * values[own.targets_at + 1]
    return counts / (own.other_share * header.num_active + aimed)


@inlined
def split(
    block: Words, values: Floats, table: int, total: float, exploration: float, uniform: float
) -> tuple[int, float]:
    """Divide a random number: first exploration or not, then the group, then what is left.

    Returns:
        A group, and how far into its sum of weights to go; or, for exploration, minus one minus
        a position in the list of active slots, and 0.
    """
    if total <= 0.0:
        return -1 - even_position(block, values, table, uniform), 0.0
    if uniform < exploration:
        num_active = header_of(block).num_active
        return -1 - min(int(uniform / exploration * num_active), num_active - 1), 0.0
    rest = (uniform - exploration) / (1.0 - exploration) * total
    chosen, chosen_share = 0, 1.0
    other_share = table_of(block, table).other_share
    for group in range(table_of(block, table).num_groups):
        own = group_of(block, table, group)
        if own.share > 0.0 and values[own.tree_at + 1] > 0.0:
            share = own.share * lean(values, own, other_share)
            chosen, chosen_share = group, share
            if rest < share:
                break
            rest -= share
    own = group_of(block, table, chosen)
    whole = values[own.tree_at + 1] * lean(values, own, other_share)
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
    values, own = block.view(np.float64), group_of(block, table, group)
    whole = values[own.tree_at + 1]
    if not whole > 0.0:
        return -1
    whole *= lean(values, own, table_of(block, table).other_share)
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
    if total <= 0.0:
        return even_prob(block, values, table, slot)
    prob = exploration / header_of(block).num_active
    whole, counts = table_of(block, table), 1.0
    if whole.other_share < 1.0:
        aimed = counts_of(block, values, table, slot)
        counts = whole.other_share + (1.0 - whole.other_share) * aimed
    for layer in range(max(1, whole.num_layers)):
        group, leaf = place(block, table, slot, layer)
        own = group_of(block, table, group)
        weight = values[own.tree_at + own.capacity + leaf]
        if weight > 0.0:
            # This quotient first: a product with a tiny weight would lose its digits.
            part = (1.0 - exploration) * (own.share / total)
            prob += part * (weight / values[own.tree_at + 1]) * counts
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
    active slots are drawn alike, as far as they count. So no slot gets more than m and its part of
    what is left over.
    """
    prob = prob_by_weight(block, values, table, total, exploration, slot)
    kept = table_of(block, table).max_share / prob
    if kept >= 1.0:
        return slot
    header = header_of(block)
    uniform, _ = uniform_and_seed(header.seed, env_index, episode_index, LIMIT_STREAM)
    if uniform < kept:
        return slot
    position = even_position(block, values, table, (uniform - kept) / (1.0 - kept))
    return block[header.active_at + position]


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
    return min(prob, limit) + excess * even_prob(block, values, table, slot)


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
            slot = block[header.active_at + index]
            probs[slot] += excess * even_prob(block, values, table, slot)
