"""Frames: which are seen together, and which never are."""

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete

from stepladder.agents.base import VectorStep, make_agent
from stepladder.agents.dddqn.config import DDDQNConfig
from stepladder.agents.dddqn.dddqn import DDDQN
from stepladder.agents.history import History
from stepladder.agents.observations import Layout
from stepladder.agents.ppo.config import PPOConfig
from stepladder.agents.vision.config import VisionConfig
from stepladder.errors import ConfigError

SPACE = Dict({"time": Box(0.0, 99.0, (1,), np.float32), "clock": Discrete(100)})
LAYOUT = Layout(SPACE, VisionConfig(), 3)


def at(*times: int) -> Any:
    """Return observations that say the time."""
    return {"time": np.array(times, np.float32)[:, None], "clock": np.array(times)}


def seen(history: History, *times: int) -> list[list[float]]:
    """Return the frames of each row, which numbers and codes agree on."""
    numbers, codes = history.pack(at(*times))
    assert np.array_equal(numbers, codes)
    return numbers.tolist()


def test_an_episode_begins_with_its_first_frame_and_never_sees_the_one_before():
    history = History(LAYOUT, 2)
    playing = np.array([True, True])
    for times, is_playing, expected in (
        ((1, 11), [True, True], [[1, 1, 1], [11, 11, 11]]),
        ((2, 12), [True, True], [[1, 1, 2], [11, 11, 12]]),
        # The last observation of the first row: the step after it only resets.
        ((3, 13), [False, True], [[1, 2, 3], [11, 12, 13]]),
        ((4, 14), [True, True], [[4, 4, 4], [12, 13, 14]]),
        ((5, 15), [True, True], [[4, 4, 5], [13, 14, 15]]),
    ):
        assert seen(history, *times) == expected
        assert seen(history, *times) == expected, "looking changes nothing"
        history.advance(history.pack(at(*times)), playing & is_playing)
    history.begin(np.array([False, True]))
    assert seen(history, 6, 16) == [[4, 5, 6], [16, 16, 16]]


def test_some_rows_move_on_alone():
    history, rows = History(LAYOUT, 3), np.array([0, 2])
    for times in ((1, 3), (2, 4)):
        packed = history.pack(at(*times), rows)
        history.advance(packed, np.array(True), rows)
    assert seen(history, 5, 6, 7) == [[1, 2, 5], [6, 6, 6], [3, 4, 7]]


def test_what_is_saved_comes_back_and_impossible_codes_do_not():
    history, other = History(LAYOUT, 2), History(LAYOUT, 2)
    history.advance(history.pack(at(8, 9)), np.array([True, True]))
    state = history.state_dict()
    other.load_state_dict(state)
    assert seen(other, 10, 11) == seen(history, 10, 11) == [[8, 8, 10], [9, 9, 11]]
    with pytest.raises(ValueError, match=r"codes\[0, 0\] is 200; expected a number from 0 to 99"):
        other.load_state_dict(state | {"codes": torch.full((2, 2), 200, dtype=torch.uint8)})


def test_more_frames_than_fit_are_refused():
    with pytest.raises(ConfigError, match="Lower frame_stack or num_envs"):
        History(Layout(Box(0, 255, (100, 100), np.uint8), VisionConfig(), 64), 10**9)


class Clocks:
    """Observations say the episode (hundreds) and the step in it; episodes last 2 to 6 steps."""

    def __init__(self, num_envs: int):
        self.episodes = 1 + np.arange(num_envs)
        self.steps = np.zeros(num_envs, dtype=np.int64)
        self.lengths = 2 + np.arange(num_envs) % 5
        self.playing = np.ones(num_envs, dtype=np.bool_)

    def look(self) -> Any:
        return (100.0 * self.episodes + self.steps).astype(np.float32)[:, None]

    def step(self, actions: Any) -> VectorStep:
        seen, playing = self.look(), self.playing
        self.episodes = np.where(playing, self.episodes, self.episodes + len(playing))
        self.steps = np.where(playing, self.steps + 1, 0)
        ended = playing & (self.steps == self.lengths)
        self.playing = ~ended
        never = np.zeros_like(ended)
        return VectorStep(seen, actions, np.ones(len(seen)), ended, never, self.look(), playing)


def frames_of(time: float) -> list[float]:
    """Return the three frames that are seen at a time of `Clocks`."""
    first = 100.0 * (time // 100)
    return [max(time - 2, first), max(time - 1, first), time]


@pytest.mark.parametrize("num_step_returns", [1, 2])
def test_a_memory_holds_the_frames_of_its_episodes(num_step_returns: int):
    config = DDDQNConfig(
        hidden_sizes=(4,), batch_size=8, buffer_size=500, warmup_steps=10**6, frame_stack=3,
        num_step_returns=num_step_returns,
    )  # fmt: skip
    agent, world = make_agent(config, Box(0.0, 1e6, (1,)), Discrete(2), 4), Clocks(4)
    for _ in range(40):
        agent.remember(world.step(agent.act_batch(world.look())))
    assert isinstance(agent, DDDQN)
    sample = agent.memory.at(torch.arange(agent.memory.size), agent.generator)
    assert agent.memory.size > 100
    for seen, after in zip(
        sample.seen.numbers.tolist(), sample.next_seen.numbers.tolist(), strict=True
    ):
        assert seen == frames_of(seen[-1])
        assert after == frames_of(after[-1])
        assert 1 <= after[-1] - seen[-1] <= num_step_returns


def test_a_rollout_holds_them_too_and_the_last_observations_of_episodes():
    config = PPOConfig(hidden_sizes=(4,), rollout_steps=120, minibatch_size=60, frame_stack=3)
    agent, world, num_last = make_agent(config, Box(0.0, 1e6, (1,)), Discrete(2), 4), Clocks(4), 0
    for _ in range(30):
        seen, playing = world.look(), world.playing
        packed = agent.history.pack(seen)[0].tolist()
        assert packed == [frames_of(time) for time in seen[:, 0].tolist()]
        num_last += int((~playing).sum())
        agent.remember(world.step(agent.act_batch(seen)))
    assert num_last > 10
    assert agent.learn() > 0
