"""The plan: weights, groups, layers, versions, and what readers see."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepladder.errors import SnapshotError
from stepladder.plans import choosing, kernels
from stepladder.plans.plan import Grouping, Plan, aligned_words
from stepladder.plans.status import BEING_WRITTEN, NOTHING_ACTIVE

ALMOST_ONE = 1.0 - 2.0**-53


def make_plan(weights: list[float], groups: list[int] | None = None, num_dials: int = 0) -> Plan:
    groups = groups or [0] * len(weights)
    grouping = Grouping(np.array(groups, dtype=np.int64), max(groups) + 1)
    plan = Plan(len(weights), [grouping], num_dials, seed=0)
    with plan.writing() as block:
        kernels.fill_leaves(block, plan.tables[0], np.array(weights))
    return plan


def take_out(plan: Plan, slot: int) -> None:
    kernels.take_out(plan.block, np.array(plan.tables), slot)


def choose(plan: Plan, uniform: float) -> int:
    """Return the slot that a draw with this random number chooses."""
    block, values, table = plan.block, plan.block.view(np.float64), plan.tables[0]
    total = choosing.total_share(block, values, table)
    exploration = choosing.exploration_of(block, table, total)
    return choosing.choose(block, values, table, total, exploration, uniform)


def expected_probs(
    weights: np.ndarray, groups: np.ndarray, shares: np.ndarray, exploration: float
) -> np.ndarray:
    """Work out the probabilities with plain NumPy."""
    sums = np.array([weights[groups == group].sum() for group in range(len(shares))])
    live = np.where(sums > 0, shares, 0.0)
    if live.sum() <= 0:
        return np.full(len(weights), 1.0 / len(weights))
    by_group = live / live.sum()
    inside = np.divide(weights, sums[groups], out=np.zeros(len(weights)), where=sums[groups] > 0)
    return exploration / len(weights) + (1 - exploration) * by_group[groups] * inside


@pytest.mark.slow
def test_layers_may_split_the_slots_and_each_has_weights_of_its_own():
    groups = np.array([0, 1, 0, 1, 1], dtype=np.int64)
    plan = Plan(5, [Grouping(groups, 2, num_layers=2)], 0, seed=0)
    table = plan.tables[0]
    with plan.writing() as block:
        kernels.fill_leaves(block, table, np.array([1.0, 1.0, 3.0, 0.0, 1.0]), 0)
        kernels.fill_leaves(block, table, np.array([0.0, 2.0, 5.0, 6.0, 0.0]), 1)
        # Groups of the first layer, then those of the second.
        plan.shares(table)[:] = 0.4, 0.3, 0.2, 0.1
        kernels.set_leaf(block, table, 3, 2.0, 1)
    np.testing.assert_array_equal(plan.leaves(table)[1], [0.0, 2.0, 5.0, 2.0, 0.0])
    # 0.4 of the draws go 1 to 3 between slots 0 and 2, 0.3 are halved between 1 and 4; then 0.2 to
    # slot 2 alone, and 0.1 are halved between 1 and 3.
    expected = [0.1, 0.15 + 0.05, 0.3 + 0.2, 0.05, 0.15]
    np.testing.assert_allclose(plan.probs(), expected, rtol=1e-12)
    drawn = [choose(plan, uniform) for uniform in (0.05, 0.2, 0.5, 0.6, 0.8, 0.92, 0.97)]
    assert drawn == [0, 2, 1, 4, 2, 1, 3]
    take_out(plan, 2)
    assert plan.probs()[2] == 0.0
    assert plan.leaves(table)[:, 2].tolist() == [0.0, 0.0]


WEIGHTS = st.sampled_from([0.0, 0.0, 1e-9, 0.1, 0.25, 1.0, 3.0, 1e6])


@pytest.mark.slow
@settings(derandomize=True, max_examples=80, deadline=None)
@given(data=st.data(), num_slots=st.integers(1, 70), num_groups=st.integers(1, 5))
def test_probs_equal_numpy_for_any_weights_groups_and_updates(
    data: st.DataObject, num_slots: int, num_groups: int
):
    column = st.lists(WEIGHTS, min_size=num_slots, max_size=num_slots)
    weights = np.array(data.draw(column))
    groups = np.array(
        data.draw(st.lists(st.integers(0, num_groups - 1), min_size=num_slots, max_size=num_slots))
    )
    shares = np.array(data.draw(st.lists(WEIGHTS, min_size=num_groups, max_size=num_groups)))
    exploration = data.draw(st.sampled_from([0.0, 0.1, 1.0]))
    updates = data.draw(st.lists(st.tuples(st.integers(0, num_slots - 1), WEIGHTS), max_size=10))
    plan = Plan(num_slots, [Grouping(groups, num_groups)], 0, seed=0)
    table = plan.tables[0]
    with plan.writing() as block:
        kernels.fill_leaves(block, table, weights)
        plan.shares(table)[:] = shares
        plan.set_exploration(table, exploration)
        for slot, weight in updates:
            kernels.set_leaf(block, table, slot, weight)
            weights[slot] = weight
    np.testing.assert_array_equal(plan.leaves(table)[0], weights)
    expected = expected_probs(weights, groups, shares, exploration)
    np.testing.assert_allclose(plan.probs(), expected, rtol=1e-9, atol=1e-15)
    for uniform in (0.0, ALMOST_ONE, *np.linspace(0.01, 0.99, 23).tolist()):
        assert expected[choose(plan, uniform)] > 0


@settings(derandomize=True, max_examples=40, deadline=None)
@given(
    weights=st.lists(st.sampled_from([0.0, 0.1, 0.3, 1.0]), min_size=2, max_size=40),
    uniform=st.floats(0.0, ALMOST_ONE),
)
def test_a_slot_is_chosen_by_where_the_number_falls_in_the_running_sum(
    weights: list[float], uniform: float
):
    if sum(weights) == 0:
        return
    slot = choose(make_plan(weights), uniform)
    edges = np.concatenate([[0.0], np.cumsum(weights)]) / sum(weights)
    assert edges[slot] - 1e-9 <= uniform <= edges[slot + 1] + 1e-9
    assert weights[slot] > 0


@pytest.mark.parametrize(
    "weights",
    [
        # Found by search: in each of these the sums round so that the largest random number
        # runs past the last weight, into the padding of the tree.
        [1 / 3, 0.1, 3.0],
        [0.7, 1e-17, 3.0],
        [0.7, 0.1, 2.0, 0.2, 1e16],
        [0.3, 0.15, 1 / 3, 1 / 3, 1 / 3, 0.7, 3.0],
    ],
)
def test_a_rounding_error_past_the_end_stands_for_the_last_weight(weights: list[float]):
    assert choose(make_plan(weights), ALMOST_ONE) == len(weights) - 1
    padded = [0.0, 0.0, *weights, 0.0, 0.0, 0.0]
    assert padded[choose(make_plan(padded), ALMOST_ONE)] > 0


def test_numbers_on_an_edge_belong_to_the_slot_behind_it():
    assert choose(make_plan([0.0, 0.0, 1.0, 2.0, 0.0]), 0.0) == 2
    assert [choose(make_plan([1.0, 1.0, 0.0, 2.0]), u) for u in (0.25, 0.5)] == [1, 3]


def test_sums_are_the_same_bits_whatever_the_order_of_writes():
    rng = np.random.default_rng(3)
    weights = rng.random(1000) * 10.0 ** rng.integers(-8, 8, 1000)
    whole, stepwise = make_plan(weights.tolist()), make_plan([0.0] * 1000)
    with stepwise.writing() as block:
        for slot in rng.permutation(1000).tolist() * 2:
            kernels.set_leaf(block, stepwise.tables[0], slot, weights[slot])
    start = whole.tables[0]
    np.testing.assert_array_equal(whole.block[start:], stepwise.block[start:])


def test_changing_one_weight_touches_only_the_path_to_the_root():
    for num_slots, depth in ((1000, 10), (100_000, 17)):
        plan = make_plan([1.0] * num_slots)
        before = plan.block.copy()
        kernels.set_leaf(plan.block, plan.tables[0], num_slots // 2, 2.0)
        assert np.count_nonzero(plan.block != before) == depth + 1


def test_without_any_weight_all_active_slots_are_alike():
    plan = make_plan([0.0] * 5)
    assert plan.probs().tolist() == pytest.approx([0.2] * 5)
    take_out(plan, 1)
    assert plan.probs().tolist() == pytest.approx([0.25, 0.0, 0.25, 0.25, 0.25])
    assert {choose(plan, uniform) for uniform in (0.0, 0.3, 0.6, ALMOST_ONE)} == {0, 2, 3, 4}


def test_a_share_goes_to_the_other_groups_while_a_group_has_no_weight():
    plan = make_plan([1.0, 3.0, 0.0, 2.0], [0, 0, 1, 2])
    plan.shares(plan.tables[0])[:] = [0.5, 0.3, 0.2]
    # Group 1 has nothing to draw: 0.5 and 0.2 become 5/7 and 2/7.
    assert plan.probs().tolist() == pytest.approx([5 / 28, 15 / 28, 0.0, 2 / 7])


def test_layers_hold_every_slot_with_weights_of_their_own():
    plan = Plan(3, [Grouping.layers(3, 2)], 0, seed=0)
    table = plan.tables[0]
    with plan.writing() as block:
        kernels.fill_leaves(block, table, np.array([1.0, 1.0, 0.0]), 0)
        kernels.fill_leaves(block, table, np.array([0.0, 1.0, 3.0]), 1)
        plan.shares(table)[:] = [0.8, 0.2]
    assert plan.leaves(table).tolist() == [[1.0, 1.0, 0.0], [0.0, 1.0, 3.0]]
    assert plan.probs().tolist() == pytest.approx([0.4, 0.4 + 0.05, 0.15])
    take_out(plan, 1)
    assert plan.leaves(table).tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 3.0]]


def test_only_the_table_in_force_is_drawn_from():
    plan = Plan(2, [Grouping.single(2), Grouping.single(2)], 0, seed=0)
    with plan.writing() as block:
        kernels.fill_leaves(block, plan.tables[0], np.array([1.0, 0.0]))
        kernels.fill_leaves(block, plan.tables[1], np.array([0.0, 1.0]))
    assert plan.probs().tolist() == [1.0, 0.0]
    with plan.writing() as block:
        plan.header["table_at"] = plan.tables[1]
    assert plan.probs().tolist() == [0.0, 1.0]


def test_slots_taken_out_can_be_put_back():
    plan = make_plan([1.0] * 4)
    for slot in (2, 0, 2):
        take_out(plan, slot)
    assert sorted(plan.active.tolist()) == [1, 3]
    with plan.writing() as block:
        for slot in (0, 0, 1):
            kernels.put_in(block, slot)
    assert sorted(plan.active.tolist()) == [0, 1, 3]
    assert plan.probs()[2] == 0.0


def test_every_write_raises_the_version_by_one_also_when_it_fails():
    plan = make_plan([1.0])
    assert plan.version == 1
    with plan.writing():
        assert plan.header["sequence"] % 2 == 1
    with pytest.raises(KeyError), plan.writing():
        raise KeyError
    assert plan.version == 3
    assert plan.header["sequence"] == 6


def test_a_draw_brings_the_dials_of_its_version():
    plan = make_plan([1.0, 1.0], num_dials=2)
    with plan.writing():
        plan.dials[:] = [3.0, 0.25]
    dials = np.zeros(2)
    slot, generation, task_id, version, seed, tick = kernels.draw(plan.block, 0, 0, dials)
    assert (generation, task_id, version, tick) == (0, 0, 2, 0)
    assert slot in (0, 1)
    assert seed >= 0
    assert dials.tolist() == [3.0, 0.25]
    assert kernels.read_dials(plan.block, dials) == 2


def test_readers_are_told_that_the_plan_is_being_written():
    plan = make_plan([1.0], num_dials=1)
    kernels.begin_write(plan.block)
    assert kernels.draw(plan.block, 0, 0, np.zeros(1))[0] == BEING_WRITTEN
    assert kernels.read_dials(plan.block, np.zeros(1)) == BEING_WRITTEN
    kernels.end_write(plan.block)
    assert kernels.draw(plan.block, 0, 0, np.zeros(1))[0] == 0


def test_readers_are_told_that_nothing_is_active():
    plan = make_plan([1.0])
    take_out(plan, 0)
    assert kernels.draw(plan.block, 0, 0, np.zeros(0))[0] == NOTHING_ACTIVE
    assert plan.probs().tolist() == [0.0]


def test_one_env_draws_the_same_whatever_the_others_draw():
    plan = make_plan([1.0] * 50)
    alone = [kernels.draw(plan.block, 3, episode, np.zeros(0)) for episode in range(20)]
    mixed = []
    for episode in range(20):
        for env in range(5):
            drawn = kernels.draw(plan.block, env, episode, np.zeros(0))
            mixed += [drawn] if env == 3 else []
    assert alone == mixed
    assert len({drawn[0] for drawn in alone}) > 10
    assert len({drawn[4] for drawn in alone}) == 20


def test_a_plan_moves_to_other_memory_with_everything_in_it():
    plan = make_plan([1.0, 2.0, 3.0], num_dials=1)
    plan.slots["task_id"], plan.slots["generation"] = [10, 11, 12], [0, 1, 2]
    probs, old = plan.probs(), plan.block
    memory = aligned_words(len(plan.block) + 100)
    plan.move_to(memory)
    assert np.shares_memory(plan.block, memory)
    assert len(plan.block) == len(old)
    np.testing.assert_array_equal(plan.probs(), probs)
    assert (plan.task_ids.tolist(), plan.generations.tolist()) == ([10, 11, 12], [0, 1, 2])
    with plan.writing() as block:
        kernels.set_leaf(block, plan.tables[0], 0, 0.0)
    assert plan.probs()[0] == 0.0
    assert choosing.get_leaf(old, plan.tables[0], 0) == 1.0


def test_words_begin_a_cache_line():
    for num_words in (1, 7, 8, 1000):
        words = aligned_words(num_words)
        assert words.ctypes.data % 64 == 0
        assert len(words) == num_words
        assert not words.any()


def test_a_plan_takes_over_what_another_saved():
    old, new = make_plan([1.0, 2.0, 3.0], [0, 1, 0], 1), make_plan([0.0] * 3, [0, 1, 0], 1)
    take_out(old, 1)
    with old.writing():
        old.dials[:] = [7.0]
        old.shares(old.tables[0])[:] = [0.3, 0.7]
    saved = {
        "active": old.active.copy(),
        "dials": old.dials.copy(),
        "table0/leaves": old.leaves(old.tables[0]),
        "table0/shares": old.shares(old.tables[0]).copy(),
    }
    with new.writing():
        new.load(saved)
    new.header["sequence"] = old.header["sequence"]
    np.testing.assert_array_equal(old.block, new.block)
    np.testing.assert_array_equal(old.probs(), new.probs())


@pytest.mark.parametrize(
    "active",
    [None, np.array([0, 0]), np.array([0, 5]), np.array([-1]), np.array([0.0]), np.array([[0]])],
)
def test_impossible_lists_of_active_slots_are_refused(active: np.ndarray | None):
    plan = make_plan([1.0, 1.0])
    saved = {
        "dials": plan.dials.copy(),
        "table0/leaves": plan.leaves(plan.tables[0]),
        "table0/shares": plan.shares(plan.tables[0]).copy(),
    }
    if active is not None:
        saved["active"] = active
    with pytest.raises(SnapshotError, match="array 'active' of the snapshot: "):
        plan.load(saved)
