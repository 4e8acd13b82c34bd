"""What is drawn next: the layers of the frontier's weight table, and the rounds of tasks.

Below `kernels`, which decides where a task stands; here it is put where it belongs.

An active slot has its base weight in exactly one of seven layers:

    0       the zone: learnable now, drawn by weight alone
    1 or 2  far: probed, and no neighbour is mastered
    3 or 4  rest: mastered, and rehearsed
    5 or 6  near: probed, and a neighbour is mastered (there are no such layers without features)

Far, rest and near are queues of two layers each. One layer holds the slots whose turn is to come
in this round and has the queue's share of draws; the other holds those that had their turn, and has
none. A slot that was played goes to the waiting layer. When nothing is left to draw in the present
one, the two change roles, which is one number: that is the next round. So every task gets a turn
before any gets a second one, and a turn costs a walk up two trees however many tasks there are.
Envs that play at the same time draw from the same plan. If more of them are about to probe than
slots are left in the present layer, the rest of them draw from the waiting one.
"""

from typing import Annotated, NamedTuple

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.compiled import bare, inlined
from stepladder.curricula.batch_rule import Noted, Totals
from stepladder.curricula.frontier.config import FrontierConfig
from stepladder.curricula.pooled.labels import Label
from stepladder.curricula.pooled.pooling import Evidence, Pooling
from stepladder.plans.kernels import set_leaf
from stepladder.plans.layout import group_of, is_active, table_of
from stepladder.records import Count, Fields, Limits, Records, Shape, Share
from stepladder.saving.saved_array import MAX_COUNT

PROBED, IN_ZONE, MASTERED = 0, 1, 2
"""Where a task stands: not seen to be learnable, learnable now, mastered."""

ZONE_LAYER = 0
FAR, REST, NEAR = 0, 1, 2
"""Queues, in the order of their layers."""
NUM_FRONTIER_LAYERS = 7
NUM_LAYERS_WITHOUT_FEATURES = 5
NO_LAYER = -1

MAX_TRIAL = 2**40
"""No trial becomes longer."""

NO_ORIGIN, FAR_ORIGIN, NEAR_ORIGIN = 0, 1, 2
"""Where a find counts."""

PRIOR_PROBES = 10.0
PRIOR_NEAR_FINDS, PRIOR_FAR_FINDS = 1.0, 0.1
"""What probing near and far is taken to have found in `PRIOR_PROBES` probes: a feature worth
giving is taken to point the right way until probing says otherwise."""


class TaskStanding(Evidence):
    """What is known of a slot's task."""

    standing: Annotated[int, Limits(PROBED, MASTERED)]
    level: Share
    """Success rate of the last trial in the zone: what the next one must beat."""
    trial_length: Annotated[int, Limits(2, MAX_TRIAL)]
    """Plays that the present or next trial in the zone takes: the scale of this task."""
    trial_plays: Count
    """Plays of the present trial: the stay where the task stands, or the last part of it."""
    trial_successes: Annotated[float, Limits(0.0, MAX_COUNT)]
    layer: int
    origin: Annotated[int, Limits(NO_ORIGIN, NEAR_ORIGIN)]
    """Where a find of the last probe counts; none once it has been counted."""
    practice: Count
    """Plays in the zone since it was last mastered."""
    need: Annotated[float, Limits(0.0, MAX_COUNT)]
    """About the plays that it still needs in the zone; 0 elsewhere."""
    worth: Share
    """Its weight in its layer, beside the source's."""
    num_stale: Count
    """Results still to come of plays that were drawn before the present trial began."""


class Finds(Fields):
    """What probing one queue has found: tasks that were mastered in the end; both fade."""

    num_finds: Annotated[float, Limits(0.0, MAX_COUNT)]
    num_probes: Annotated[float, Limits(0.0, MAX_COUNT)]


class Method(Fields):
    """What is known about the whole pool."""

    totals: Totals
    noted: Noted
    sides: Annotated[Words, Shape(3), Limits(0, 1)]
    """Which layer of its two each queue draws from."""
    barren_rounds: Annotated[float, Limits(0.0, MAX_COUNT)]
    """Rounds of probing since the last find."""
    far: Finds
    near: Finds
    pace: Annotated[float, Limits(0.0, MAX_COUNT)]
    """Plays of practice that the tasks mastered of late have taken: the geometric mean of the last
    one and the mean before it. 0 if there were none."""
    need: Annotated[float, Limits(0.0, MAX_COUNT)]
    """Plays that all tasks in the zone still need."""
    num_envs: Count
    """Envs that play at the same time; 0 if that is not known."""


class Kind(Label):
    """What is known of all tasks of a kind."""

    cursor: Count
    """Position among its tasks of the one that was judged again last."""


class State(NamedTuple):
    """Everything that the method learns."""

    method: Records[Method]
    tasks: Records[TaskStanding]
    cells: Records[Kind]
    """All kinds of tasks; one that is never written if tasks stand for themselves."""
    pooling: Records[Pooling]


class Settings(FrontierConfig):
    """The config as kernels read it, with what follows from it."""

    keep: float  # pyright: ignore[reportIncompatibleMethodOverride]
    evidence: float  # pyright: ignore[reportIncompatibleMethodOverride]
    lapses_below: float
    evicts: bool
    pools: bool
    """Whether there are kinds of tasks that are judged together."""
    heaviest: float
    """The largest of the source's weights."""


class Constants(NamedTuple):
    """What stays the same, or follows from the rest."""

    settings: Records[Settings]
    weights: Floats
    """The source's weight of each slot's task."""
    cells: Words
    """Every slot's cell."""
    members: Words
    """Where every cell's list of slots begins, then the lists."""
    near: Words
    """How many neighbours of each slot are mastered; follows from the tasks."""
    links: Words
    """Where every slot's list of neighbours begins, then the lists; empty without features."""


@inlined
def layer_of(method: Method, queue: int, waits: int) -> int:
    """Return a queue's layer: the present round's, or (`waits` is 1) that of the next one."""
    return 1 + 2 * queue + (method.sides[queue] ^ waits)


@inlined
def place(
    block: Words,
    table: int,
    state: State,
    constants: Constants,
    slot: int,
    waits: int,
    worth: float = 1.0,
) -> None:
    """Put a slot into the layer of its standing and out of the one it was in.

    `waits` is 1 after a turn; 0 if the slot is to be drawn in the present round. `worth` is its
    weight there, beside the source's.
    """
    task, method = state.tasks[slot], state.method[0]
    if task.standing == IN_ZONE or (task.standing == MASTERED and constants.settings[0].pools):
        layer = ZONE_LAYER
    elif task.standing == MASTERED:
        layer = layer_of(method, REST, waits)
    else:
        layer = layer_of(method, NEAR if constants.near[slot] > 0 else FAR, waits)
    if task.layer == layer and task.worth == worth:
        return
    if task.layer >= 0 and task.layer != layer:
        set_leaf(block, table, slot, 0.0, task.layer)
    task.layer, task.worth = layer, worth
    # A task that no env can build may still get late results; it must not come back by them.
    weight = worth * constants.weights[slot] if is_active(block, slot) else 0.0
    set_leaf(block, table, slot, weight, layer)


@inlined
def set_need(state: State, slot: int, need: float) -> None:
    """Change how many plays a task still needs."""
    task, method = state.tasks[slot], state.method[0]
    method.need = max(0.0, method.need + need - task.need)
    task.need = need


@inlined
def pool_scale(method: Method, settings: Settings) -> float:
    """Return how many times longer tasks take than the shortest two trials; at least 1."""
    return max(1.0, 0.5 * method.pace / settings.trial_episodes)


@inlined
def _layer_total(block: Words, table: int, layer: int) -> float:
    """Return the sum of the weights in a layer."""
    return block.view(np.float64)[group_of(block, table, layer).tree_at + 1]


@inlined
def _total(block: Words, table: int, method: Method, queue: int, waits: int) -> float:
    """Return the sum of the weights in one of a queue's layers."""
    return _layer_total(block, table, layer_of(method, queue, waits))


@inlined
def _both(block: Words, table: int, method: Method, queue: int) -> float:
    """Return the sum of the weights in a queue."""
    return _total(block, table, method, queue, 0) + _total(block, table, method, queue, 1)


@inlined
def _probed_weight(block: Words, table: int, method: Method) -> float:
    """Return the sum of the weights of all tasks that are probed."""
    weight = _both(block, table, method, FAR)
    if table_of(block, table).num_layers == NUM_FRONTIER_LAYERS:
        weight += _both(block, table, method, NEAR)
    return weight


@inlined
def turn_rounds(block: Words, table: int, method: Method) -> None:
    """Begin the next round of every queue in which all have had their turn."""
    for queue in range((table_of(block, table).num_layers - 1) // 2):
        present = _total(block, table, method, queue, 0)
        waiting = _total(block, table, method, queue, 1)
        if present > 0.0 or waiting <= 0.0:
            continue
        method.sides[queue] ^= 1
        if queue != REST:
            # A queue of few tasks comes round often; a round of probing is one of all of them.
            method.barren_rounds += waiting / _probed_weight(block, table, method)


@inlined
def share_in_flight(
    block: Words, table: int, state: State, constants: Constants, slot: int
) -> float:
    """Return about the share of the plays in flight that are plays of this slot."""
    task, all_shares = state.tasks[slot], 0.0
    for other in range(table_of(block, table).num_layers):
        if _layer_total(block, table, other) > 0.0:
            all_shares += group_of(block, table, other).share
    total = _layer_total(block, table, task.layer)
    if all_shares <= 0.0 or total <= 0.0:
        return 1.0
    share = group_of(block, table, task.layer).share / all_shares
    own = task.worth * constants.weights[slot]
    return min(table_of(block, table).max_share, share * own / total)


@inlined
def _far_share(method: Method) -> float:
    """Return the share of probes for the far queue: that of its finds per probe."""
    near = (method.near.num_finds + PRIOR_NEAR_FINDS) / (method.near.num_probes + PRIOR_PROBES)
    far = (method.far.num_finds + PRIOR_FAR_FINDS) / (method.far.num_probes + PRIOR_PROBES)
    return far / (near + far)


@bare
def _divide(
    block: Words, table: int, method: Method, settings: Settings
) -> tuple[float, float, float]:
    """Return the shares of zone, probing and rehearsal; those that hold tasks add up to 1."""
    zone_weight = _layer_total(block, table, ZONE_LAYER)
    probed, rested = _probed_weight(block, table, method), _both(block, table, method, REST)
    # Probing that finds nothing round after round gives way to rehearsal, never quite.
    tired = min(1.0, settings.patience_rounds / max(1.0, method.barren_rounds))
    probing = settings.probing * tired
    rehearsal = settings.rehearsal
    rest = (probing if probed > 0.0 else 0.0) + (rehearsal if rested > 0.0 else 0.0)
    if rest <= 0.0:
        return 1.0, probing, rehearsal
    if zone_weight <= 0.0:
        return 1.0, probing / rest, rehearsal / rest
    zone = 1.0 / (1.0 + rest)
    if method.num_envs > 1:
        # More plays than these tasks need are not of use to them.
        zone = min(zone, method.need / method.num_envs)
    scale = (1.0 - zone) / rest
    return zone, probing * scale, rehearsal * scale


@inlined
def _share_queue(
    block: Words, table: int, method: Method, settings: Settings, queue: int, share: float
) -> None:
    """Give a queue its share: all of it to the present layer, or as much as that can use."""
    present = _total(block, table, method, queue, 0)
    part = 1.0
    if method.num_envs > 1 and present > 0.0:
        # No slot gets a second turn by the same plan, unless all of the queue get one.
        turns = present / settings.heaviest / max(1.0, share * method.num_envs)
        part = min(1.0, max(turns, present / _both(block, table, method, queue)))
    group_of(block, table, layer_of(method, queue, 0)).share = share * part
    group_of(block, table, layer_of(method, queue, 1)).share = share * (1.0 - part)


@inlined
def set_shares(block: Words, table: int, method: Method, settings: Settings) -> None:
    """Write every layer's share of draws; a layer without weights takes no part in any case."""
    zone, probing, rehearsal = _divide(block, table, method, settings)
    far_share = 1.0
    if table_of(block, table).num_layers == NUM_FRONTIER_LAYERS:
        if _total(block, table, method, NEAR, 0) > 0.0:
            has_far = _total(block, table, method, FAR, 0) > 0.0
            far_share = _far_share(method) if has_far else 0.0
        _share_queue(block, table, method, settings, NEAR, probing * (1.0 - far_share))
    group_of(block, table, ZONE_LAYER).share = zone
    _share_queue(block, table, method, settings, FAR, probing * far_share)
    _share_queue(block, table, method, settings, REST, rehearsal)
