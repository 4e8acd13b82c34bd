"""When an agent with a memory learns, and how much."""

from typing import Any

import pytest

from agents.small_worlds import Noise, live, make
from stepladder.agents.replay.agent import ReplayAgent

KINDS = ("dddqn", "dddqn, prioritised, 3 steps", "sac", "sac, pink, 2 steps")


def idle(kind: str, num_envs: int, **changes: Any) -> ReplayAgent:
    """Make an agent whose updates are counted and do nothing."""
    agent = make(kind, num_envs, **changes)
    assert isinstance(agent, ReplayAgent)
    agent._do_update = dict  # pyright: ignore[reportAttributeAccessIssue]
    return agent


@pytest.mark.parametrize("ratio", [1.0, 0.3, 2.5])
@pytest.mark.parametrize("num_envs", [1, 4, 8])
@pytest.mark.parametrize("kind", ["dddqn", "sac"])
def test_updates_depend_on_env_steps_and_not_on_the_number_of_envs(
    kind: str, num_envs: int, ratio: float
):
    agent = idle(kind, num_envs, updates_per_step=ratio, warmup_steps=11)
    world, updates = Noise(num_envs), 0
    while agent.num_steps < 160:
        updates += live(agent, world, 1)
    assert updates == agent.num_updates
    assert 0.0 <= agent.updates_due < 1.0
    # Eleven steps of warm-up bring none; every later one brings its share.
    assert updates + agent.updates_due == pytest.approx(ratio * (agent.num_steps - 11))


@pytest.mark.parametrize("num_envs", [1, 4, 8])
def test_returns_over_several_steps_delay_the_first_update_and_change_no_ratio(num_envs: int):
    agent, world = idle(KINDS[1], num_envs, updates_per_step=0.5), Noise(num_envs)
    live(agent, world, 40 // num_envs)
    steps, updates = agent.num_steps, agent.num_updates + agent.updates_due
    live(agent, world, 160 // num_envs)
    grown = agent.num_updates + agent.updates_due - updates
    assert grown == pytest.approx(0.5 * (agent.num_steps - steps))
    assert 0.5 * (steps - 8 - 2 * num_envs - 8) <= updates <= 0.5 * (steps - 8)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_learnt_from_a_memory_smaller_than_a_batch(kind: str):
    agent, world = idle(kind, 4, batch_size=32, warmup_steps=0), Noise(4)
    while agent.memory.size < 32:
        assert agent.num_updates == 0
        live(agent, world, 1)
    assert live(agent, world, 4) > 0


def test_a_warm_up_begins_again_when_all_was_forgotten():
    agent, world = idle("sac", 4, warmup_steps=20), Noise(4)
    live(agent, world, 20)
    before = agent.num_updates
    assert before > 0
    agent.forget()
    assert agent.memory.size == 0
    assert agent.is_warming_up
    start = agent.num_steps
    while agent.num_steps - start < 20:
        assert live(agent, world, 1) == 0
    assert live(agent, world, 10) > 0
    # It explores as it has learnt to, not at random as in the beginning.
    assert not agent.acts_at_random


def test_fractions_of_updates_are_owed_and_not_lost():
    agent, world = idle("dddqn", 1, updates_per_step=0.25), Noise(1)
    per_step = [live(agent, world, 1) for _ in range(60)]
    assert set(per_step) == {0, 1}
    assert sum(per_step) == int(0.25 * (agent.num_steps - 8))


def test_a_memory_says_how_full_it_is():
    agent, world = idle("sac", 4), Noise(4)
    assert agent.memory_stats() == {"size": 0.0, "share": 0.0}
    live(agent, world, 60)
    assert agent.memory_stats() == {"size": 64.0, "share": 1.0}
