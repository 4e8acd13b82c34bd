"""Slots that count: what is drawn and told when a table leans to them."""

from typing import Any

import numpy as np
import pytest

from stepladder.plans import choosing, kernels
from stepladder.plans.plan import Grouping, Plan
from stepladder.plans.record import DRAW_DTYPE


def make_plan(
    weights: list[float],
    counts: list[float],
    other_share: float,
    *,
    groups: list[int] | None = None,
    max_share: float = 1.0,
    exploration: float = 0.0,
) -> Plan:
    of_slot = np.array(groups or [0] * len(weights), dtype=np.int64)
    grouping = Grouping(of_slot, int(of_slot.max()) + 1, has_target=True)
    plan = Plan(len(weights), [grouping], 0, seed=5)
    (table,) = plan.tables
    with plan.writing() as block:
        kernels.fill_leaves(block, table, np.array(weights))
        kernels.fill_targets(block, table, np.array(counts))
        plan.set_exploration(table, exploration)
        plan.set_max_share(table, max_share)
        plan.table(table)["other_share"] = other_share
    return plan


def test_what_does_not_count_is_drawn_less():
    # 1, 2 and 3, of which the first two are worth a half and three quarters.
    plan = make_plan([1.0, 2.0, 3.0], [0.0, 0.5, 1.0], 0.5)
    assert plan.probs().tolist() == pytest.approx([0.5 / 5, 1.5 / 5, 3 / 5])


def test_groups_lean_by_what_they_hold():
    # Shares of one half: the first group counts half, the second three quarters.
    plan = make_plan([1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0], 0.5, groups=[0, 0, 1, 1])
    assert plan.probs().tolist() == pytest.approx([0.2, 0.2, 0.2, 0.4])


def test_exploration_stays_even():
    plan = make_plan([1.0, 1.0], [0.0, 1.0], 0.25, exploration=0.4)
    assert plan.probs().tolist() == pytest.approx([0.2 + 0.6 * 0.2, 0.2 + 0.6 * 0.8])


def test_what_is_above_the_largest_share_leans_too():
    # .2 and .8 of which .3 are over: a fifth of it for the first, four fifths for the second.
    plan = make_plan([1.0, 1.0], [0.0, 1.0], 0.25, max_share=0.5)
    assert plan.probs().tolist() == pytest.approx([0.2 + 0.06, 0.5 + 0.24])


def test_without_weights_the_target_is_drawn():
    assert make_plan([0.0, 0.0], [0.0, 1.0], 0.25).probs().tolist() == pytest.approx([0.2, 0.8])


def test_a_share_of_one_draws_as_if_there_were_no_target():
    plan, other = (
        make_plan([1.0, 2.0, 3.0], [0.0, 0.5, 1.0], 1.0),
        Plan(3, [Grouping.single(3)], 0, 5),
    )
    with other.writing() as block:
        kernels.fill_leaves(block, other.tables[0], np.array([1.0, 2.0, 3.0]))
    assert plan.probs().tolist() == other.probs().tolist()
    assert draws_of(plan, 1000).tolist() == draws_of(other, 1000).tolist()


def draws_of(plan: Plan, count: int = 100_000) -> Any:
    draws = np.zeros(count, dtype=DRAW_DTYPE)
    assert kernels.draw_many_for_host(plan.block, 0, draws)
    return draws["slot"]


@pytest.mark.parametrize("exploration", [0.0, 0.3])
@pytest.mark.parametrize("max_share", [1.0, 0.2])
@pytest.mark.parametrize("groups", [None, [0, 0, 1, 1, 2]])
@pytest.mark.parametrize("weights", [[1.0, 2.0, 0.0, 4.0, 0.5], [0.0] * 5])
def test_draws_follow_probs(weights: Any, groups: Any, max_share: float, exploration: float):
    settings: Any = {"groups": groups, "max_share": max_share, "exploration": exploration}
    plan = make_plan(weights, [0.0, 1.0, 0.3, 0.0, 0.5], 0.05, **settings)
    kernels.take_out(plan.block, np.array(plan.tables), 1)
    probs, slots = plan.probs(), draws_of(plan)
    assert probs.sum() == pytest.approx(1.0, abs=1e-12)
    assert probs[1] == 0.0
    counts = np.bincount(slots, minlength=len(probs))
    spread = np.sqrt(len(slots) * probs * (1.0 - probs))
    assert np.all(np.abs(counts - len(slots) * probs) <= 4.5 * spread)
    told = [choosing.prob_of(plan.block, slot) for slot in range(len(probs))]
    assert told == pytest.approx(probs.tolist(), abs=1e-15)


def test_another_task_in_a_slot_counts_as_it_does():
    plan = make_plan([1.0, 1.0], [0.0, 1.0], 0.25)
    with plan.writing() as block:
        kernels.set_target(block, plan.tables[0], 0, 1.0)
    assert plan.probs().tolist() == pytest.approx([0.5, 0.5])
