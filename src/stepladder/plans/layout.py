"""Where everything in a plan lies: its header, slots, weight tables and groups, each a record.

A plan is one block of 64-bit words, so that it can lie in shared memory and be sent whole. `plan`
writes the layout once, `kernels` read and change the numbers in it. A field whose name ends in
``_at`` is the word of the block at which something begins.
"""

from stepladder.arrays import Words
from stepladder.compiled import inlined, record_at
from stepladder.records import Fields

PLAN_LAYOUT_VERSION = 3
"""Version of this layout; a client refuses any other."""


class Header(Fields):
    """The first words of a plan."""

    layout: int
    sequence: int
    """Twice the plan's version; odd while it is being written."""
    tick: int
    """Number of collections in which the host found records."""
    seed: int
    num_slots: int
    num_active: int
    table_at: int
    """The weight table that is in force."""
    num_dials: int
    dials_at: int
    slots_at: int
    active_at: int
    """Active slots, in no particular order."""
    positions_at: int
    """Per slot its position among the active ones; -1 if it is quarantined."""


class Slot(Fields):
    """What a slot holds."""

    task_id: int
    generation: int


class Table(Fields):
    """A weight table: how the slots are split into groups."""

    exploration: float
    """Share of draws that ignore the weights."""
    max_share: float
    """Largest share of draws that the weights may give to one slot; 1 is no limit."""
    other_share: float
    """What the weight of a slot that does not count is worth, in (0, 1]; 1 if all are alike."""
    targets_at: int
    """A tree of how much each slot counts, in [0, 1], 0 if it is not active; 0 without a target."""
    targets_capacity: int
    """Leaves of that tree, one per slot, a power of two."""
    num_groups: int
    num_layers: int
    """If positive, so many sets of groups, each of which holds all slots with weights of its own;
    then such a set is a layer. Its groups follow those of the layer before."""
    layer_groups: int
    """Groups of a layer; of the whole table, if it has no layers."""
    groups_at: int
    places_at: int
    """Per slot its group and its leaf there, packed; only if groups split the slots."""
    members_at: int
    """Slots group by group, in the order of their leaves; only if groups split the slots."""


class Group(Fields):
    """Some slots of a table, or all of them, with a sum tree of their weights."""

    share: float
    """How often the group is drawn, relative to the other groups."""
    tree_at: int
    """The tree: node 1 is the root, the children of node n are 2n and 2n + 1."""
    target_tree_at: int
    """A tree of each weight times how much its slot counts; 0 if there is no target."""
    capacity: int
    """Leaves of each tree, a power of two."""
    first_member: int
    num_members: int


HEADER, SLOT, TABLE, GROUP = Header.dtype, Slot.dtype, Table.dtype, Group.dtype
HEADER_WORDS, SLOT_WORDS = Header.num_words, Slot.num_words
TABLE_WORDS, GROUP_WORDS = Table.num_words, Group.num_words


@inlined
def header_of(block: Words) -> Header:
    """Return the header of a plan."""
    return record_at(block, 0, HEADER)


@inlined
def slot_of(block: Words, slot: int) -> Slot:
    """Return what a slot holds."""
    return record_at(block, header_of(block).slots_at + SLOT_WORDS * slot, SLOT)


@inlined
def table_of(block: Words, table: int) -> Table:
    """Return the weight table that begins at a word."""
    return record_at(block, table, TABLE)


@inlined
def group_of(block: Words, table: int, group: int) -> Group:
    """Return one group of a weight table."""
    return record_at(block, table_of(block, table).groups_at + GROUP_WORDS * group, GROUP)


@inlined
def is_active(block: Words, slot: int) -> bool:
    """Whether a slot may be drawn."""
    return block[header_of(block).positions_at + slot] >= 0
