"""The largest share of one slot: what is drawn, what is told, and what stays as it was."""

import numpy as np
import pytest

from stepladder.plans import choosing, kernels
from stepladder.plans.plan import Grouping, Plan
from stepladder.plans.record import DRAW_DTYPE, HOST_ENV


def make_plan(weights: list[float], max_share: float = 1.0, exploration: float = 0.0) -> Plan:
    plan = Plan(len(weights), [Grouping.single(len(weights))], 0, seed=5)
    with plan.writing() as block:
        kernels.fill_leaves(block, plan.tables[0], np.array(weights))
        plan.set_exploration(plan.tables[0], exploration)
        plan.set_max_share(plan.tables[0], max_share)
    return plan


def layered_plan(max_share: float) -> Plan:
    """Slot 0 has .5 of the first layer and all of the second: .7 + .15 = .85."""
    plan = Plan(3, [Grouping.layers(3, 2)], 0, seed=5)
    with plan.writing() as block:
        kernels.fill_leaves(block, plan.tables[0], np.array([1.0, 1.0, 0.0]), 0)
        kernels.fill_leaves(block, plan.tables[0], np.array([1.0, 0.0, 0.0]), 1)
        plan.shares(plan.tables[0])[:] = [0.3, 0.7]
        plan.set_max_share(plan.tables[0], max_share)
    return plan


def draws_of(plan: Plan, count: int = 100_000) -> np.ndarray:
    draws = np.zeros(count, dtype=DRAW_DTYPE)
    assert kernels.draw_many_for_host(plan.block, 0, draws)
    return draws["slot"]


def test_what_is_above_the_limit_is_spread_evenly():
    # .8, .1 and .1: of .8, .4 are kept; the other .4 are a tenth each for four slots.
    plan = make_plan([8.0, 1.0, 1.0, 0.0], max_share=0.4)
    assert plan.probs().tolist() == pytest.approx([0.5, 0.2, 0.2, 0.1])
    # Two are above: .25 and .15 are over, a tenth each.
    plan = make_plan([0.5, 0.4, 0.1, 0.0], max_share=0.25)
    assert plan.probs().tolist() == pytest.approx([0.35, 0.35, 0.2, 0.1])


def test_the_weights_of_all_layers_count_together():
    assert layered_plan(1.0).probs().tolist() == pytest.approx([0.85, 0.15, 0.0])
    assert layered_plan(0.4).probs().tolist() == pytest.approx([0.55, 0.3, 0.15])


def test_a_limit_below_an_even_share_gives_even_shares():
    assert make_plan([9.0, 1.0], max_share=0.01).probs().tolist() == pytest.approx([0.5] * 2)
    assert make_plan([1.0] * 4, max_share=0.01).probs().tolist() == pytest.approx([0.25] * 4)


@pytest.mark.parametrize(
    "plan",
    [
        make_plan([8.0, 1.0, 1.0, 0.0], max_share=0.4),
        make_plan([8.0, 1.0, 1.0, 0.0], max_share=0.4, exploration=0.3),
        make_plan([0.5, 0.4, 0.1, 0.0], max_share=0.25),
        make_plan([0.0, 0.0, 0.0], max_share=0.1),
        layered_plan(0.4),
    ],
)
def test_draws_follow_probs(plan: Plan):
    probs, slots = plan.probs(), draws_of(plan)
    assert probs.sum() == pytest.approx(1.0, abs=1e-12)
    counts = np.bincount(slots, minlength=len(probs))
    spread = np.sqrt(len(slots) * probs * (1.0 - probs))
    assert np.all(np.abs(counts - len(slots) * probs) <= 4.5 * spread)
    told = [choosing.prob_of(plan.block, slot) for slot in range(len(probs))]
    assert told == pytest.approx(probs.tolist(), abs=1e-15)


def test_one_draw_at_a_time_equals_many_at_once():
    plan = make_plan([8.0, 1.0, 1.0, 0.0], max_share=0.4)
    none: np.ndarray = np.zeros(0)
    single = [kernels.draw(plan.block, HOST_ENV, index, none)[0] for index in range(300)]
    assert single == draws_of(plan, 300).tolist()


def test_only_draws_above_the_limit_change():
    free, bound = make_plan([8.0, 1.0, 1.0, 0.0]), make_plan([8.0, 1.0, 1.0, 0.0], max_share=0.4)
    before, after = draws_of(free), draws_of(bound)
    assert np.array_equal(after[before != 0], before[before != 0])
    # Half of them, and a quarter of the other half is slot 0 again.
    assert (after[before == 0] == 0).mean() == pytest.approx(0.625, abs=0.01)


def test_slots_out_of_play_get_nothing_of_what_is_left_over():
    plan = make_plan([8.0, 1.0, 1.0, 0.0], max_share=0.4)
    kernels.take_out(plan.block, np.array(plan.tables), 3)
    # .4 of .8 are over, and three slots are left.
    assert plan.probs().tolist() == pytest.approx([0.4 + 0.4 / 3, 0.1 + 0.4 / 3, 0.1 + 0.4 / 3, 0])
    assert set(draws_of(plan, 1000).tolist()) == {0, 1, 2}
