"""From steps to transitions, against episodes taken one by one."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from agents.small_worlds import SEEN, Noise
from stepladder.agents.base import VectorStep
from stepladder.agents.observations import Layout
from stepladder.agents.replay.memory import Rows
from stepladder.agents.replay.returns import Transitions

GAMMA = 0.5


def step(
    rewards: list[float],
    terminated: Any = False,
    truncated: Any = False,
    playing: Any = True,
    at: int = 0,
) -> VectorStep:
    """Return a step of so many envs; what is seen is the time."""
    count = len(rewards)

    def everywhere(value: Any) -> Any:
        return np.broadcast_to(value, (count,)).copy()

    return VectorStep(
        observations=np.full((count, 1), float(at), dtype=np.float32),
        actions=np.zeros(count),
        rewards=np.array(rewards),
        terminated=everywhere(terminated),
        truncated=everywhere(truncated),
        next_observations=np.full((count, 1), at + 1.0, dtype=np.float32),
        is_playing=everywhere(playing),
    )


def made(num_steps: int, num_envs: int = 1) -> Transitions:
    """Make what adds rewards up."""
    return Transitions(Layout(Box(-9.0, 9.0, (1,), np.float32)), num_envs, 1, num_steps, GAMMA)


def told(finished: list[Rows]) -> list[tuple[float, float, float, float]]:
    """Return the time, sum of rewards, discount and end of transitions, by time."""
    return sorted(
        (
            float(rows.numbers[i, 0]),
            float(rows.rewards[i]),
            float(rows.discounts[i]),
            float(rows.next_numbers[i, 0]),
        )
        for rows in finished
        for i in range(len(rows.rewards))
    )


def take(transitions: Transitions, happened: VectorStep) -> list[tuple[float, float, float, float]]:
    """Take a step; return what it has finished."""
    return told(taken(transitions, Layout(Box(-9.0, 9.0, (1,), np.float32)), happened))


def taken(transitions: Transitions, layout: Layout, happened: VectorStep) -> list[Rows]:
    """Take a step; return the transitions that it has finished."""
    seen = layout.pack(happened.observations), layout.pack(happened.next_observations)
    actions = np.zeros((len(happened.rewards), 1), dtype=np.float32)
    return transitions.take(happened, actions, *seen)


def test_single_steps_are_transitions_and_resets_are_none():
    one = made(1)
    assert take(one, step([3.0], at=0)) == [(0.0, 3.0, 0.5, 1.0)]
    assert take(one, step([4.0], truncated=True, at=1)) == [(1.0, 4.0, 0.5, 2.0)]
    assert take(one, step([0.0], playing=False, at=2)) == []
    assert take(one, step([5.0], terminated=True, at=3)) == [(3.0, 5.0, 0.0, 4.0)]


def test_three_steps_are_added_up_and_finished_at_an_end():
    three = made(3)
    assert take(three, step([1.0], at=0)) == []
    assert take(three, step([2.0], at=1)) == []
    # 1 + 2/2 + 4/4, and then a discount of 1/8.
    assert take(three, step([4.0], at=2)) == [(0.0, 3.0, 0.125, 3.0)]
    # 2 + 4/2 + 8/4; then 4 + 8/2, and 8 alone: nothing comes after an end.
    assert take(three, step([8.0], terminated=True, at=3)) == [
        (1.0, 6.0, 0.0, 4.0),
        (2.0, 8.0, 0.0, 4.0),
        (3.0, 8.0, 0.0, 4.0),
    ]
    assert take(three, step([0.0], playing=False, at=4)) == []
    assert take(three, step([1.0], at=5)) == []


def test_where_time_ran_out_the_last_value_counts_by_what_is_left():
    three = made(3)
    take(three, step([1.0], at=0))
    assert take(three, step([2.0], truncated=True, at=1)) == [
        (0.0, 2.0, 0.25, 2.0),
        (1.0, 2.0, 0.5, 2.0),
    ]


def test_an_end_in_one_env_is_none_in_another():
    three = made(3, 2)
    take(three, step([1.0, 10.0], at=0))
    assert take(three, step([2.0, 20.0], terminated=[True, False], at=1)) == [
        (0.0, 2.0, 0.0, 2.0),
        (1.0, 2.0, 0.0, 2.0),
    ]
    assert take(three, step([0.0, 40.0], playing=[False, True], at=2)) == [(0.0, 30.0, 0.125, 3.0)]


def test_what_was_pending_is_forgotten_when_asked():
    three = made(3)
    take(three, step([1.0], at=0))
    take(three, step([2.0], at=1))
    three.clear()
    assert take(three, step([4.0], at=2)) == []
    assert take(three, step([4.0], terminated=True, at=3)) == [
        (2.0, 6.0, 0.0, 4.0),
        (3.0, 4.0, 0.0, 4.0),
    ]


def slow(steps: list[VectorStep], num_steps: int, env: int) -> list[tuple[Any, ...]]:
    """Return the transitions of one env, worked out episode by episode."""
    found: list[tuple[Any, ...]] = []
    episode: list[VectorStep] = []
    for now in steps:
        if not now.is_playing[env]:
            continue
        episode.append(now)
        is_over = now.terminated[env] or now.truncated[env]
        firsts = range(len(episode)) if is_over else [len(episode) - num_steps]
        for first in firsts:
            part = episode[max(first, 0) : first + num_steps]
            if first < 0 or (is_over and first < len(episode) - num_steps):
                continue
            total = sum(GAMMA**age * float(one.rewards[env]) for age, one in enumerate(part))
            discount = 0.0 if now.terminated[env] else GAMMA ** len(part)
            begins: Any = part[0].observations
            ends: Any = now.next_observations
            found.append((*begins[env].tolist(), *ends[env].tolist(), total, discount))
        if is_over:
            episode = []
    return found


@pytest.mark.parametrize("num_steps", [1, 2, 5])
def test_transitions_of_many_envs_are_those_of_each_episode_by_itself(num_steps: int):
    num_envs = 6
    layout, world = Layout(SEEN), Noise(num_envs, seed=3)
    many = Transitions(layout, num_envs, 1, num_steps, GAMMA)
    steps, got = [], []
    for _ in range(80):
        happened = world.step(np.zeros(num_envs))
        # As some envs do, the array is used again for the next step.
        steps.append(replace(happened, observations=np.array(happened.observations)))
        for rows in taken(many, layout, happened):
            got += np.hstack(
                [rows.numbers, rows.next_numbers, rows.rewards[:, None], rows.discounts[:, None]]
            ).tolist()
    expected = [row for env in range(num_envs) for row in slow(steps, num_steps, env)]
    assert len(got) == len(expected) > 200
    np.testing.assert_allclose(sorted(got), np.array(sorted(expected)), rtol=1e-4, atol=1e-5)


def test_what_is_pending_comes_back_as_it_was():
    layout, world = Layout(Discrete(4)), made(3, 2)
    assert layout.num_numbers == 0
    other = made(3, 2)
    for at in range(7):
        take(world, step([at + 1.0, 2.0 * at], at=at))
    other.load_state_dict(world.state_dict())
    for at in range(7, 12):
        happened = step(
            [at + 1.0, 2.0 * at], at=at, truncated=[at == 9, False], playing=[at != 10, True]
        )
        assert take(world, happened) == take(other, happened) != []
