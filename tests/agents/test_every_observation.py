"""Agents that see pictures, tiles, numbers and frames, through convolutions or a user's network."""

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agents.small_worlds import copied, live, same_state
from agents.visual_worlds import KINDS, SEEN, Visions, make
from stepladder.agents.base import AgentState
from stepladder.agents.player import make_player
from stepladder.agents.replay.agent import ReplayAgent
from stepladder.training.checkpoints.tensor_files import load_tensors, save_tensors

pytestmark = pytest.mark.parametrize("kind", KINDS)


def test_a_state_goes_on_exactly_and_touches_no_global_generator(kind: str, tmp_path: Path):
    before = torch.get_rng_state()
    agent, world = make(kind), Visions(3)
    live(agent, world, 17)
    state, same_world = agent.state(), copy.deepcopy(world)
    save_tensors(tmp_path / "agent.safetensors", state.tensors, {})
    numbers = json.loads(json.dumps(state.numbers))
    other = make(kind, seed=99)
    other.restore(AgentState(numbers, load_tensors(tmp_path / "agent.safetensors")[0]))
    assert same_state(agent.state(), other.state())
    assert live(agent, world, 12) == live(other, same_world, 12) > 0
    assert same_state(agent.state(), other.state())
    assert torch.equal(before, torch.get_rng_state())


def test_a_player_acts_as_its_agent_does_over_whole_episodes(kind: str):
    agent, world = make(kind), Visions(3)
    live(agent, world, 14)
    agent.drop_pending()
    world.is_playing[:] = True
    player = make_player(agent.description(), agent.weights(), 3)
    space = KINDS[kind][1]
    for _ in range(10):
        seen = world.seen
        player.load_weights(agent.weights())  # What is normalised by changes with every step.
        expected = agent.act_batch(seen, deterministic=True)
        assert np.array_equal(player.act_batch(seen), expected)
        assert all(space.contains(action) for action in expected)
        drawn = agent.act_batch(seen)
        assert all(space.contains(action) for action in drawn)
        step = world.step(drawn)
        agent.remember(step)
        # Its row that has reset begins anew.
        player.begin(~step.is_playing)
        if "recurrent" in kind:
            player._memory = agent.memories.now.clone()  # type: ignore[attr-defined]


def test_the_encoder_learns_with_the_rest(kind: str):
    agent, world = make(kind), Visions(3)
    before = agent.weights()
    live(agent, world, 24)
    after = agent.weights()
    learnt = [name for name in before if "network" in name and "encoder" in name]
    moved = [name for name in learnt if not torch.equal(before[name], after[name])]
    still = [name for name in learnt if name not in moved]
    assert len(moved) >= 4
    # A user's statistics of batches and frozen weights stay; all else is trained.
    assert all(any(word in name for word in ("running", "tracked", "frozen")) for name in still)


def test_bytes_stay_bytes_in_memory(kind: str):
    agent = make(kind)
    layout = agent.layout
    frame = 16 * 18 * 3 + 5 * 6 + 3 + 1
    assert (layout.frame_numbers, layout.frame_codes) == (2, frame)
    stack = layout.frame_stack
    if isinstance(agent, ReplayAgent):
        new = 1 if agent.config.num_step_returns == 1 else stack
        assert agent.memory.codes.dtype == torch.uint8
        assert agent.memory.codes.shape[1] == (stack + new) * frame
        assert agent.memory.floats.shape[1] < 4 * stack + 10
    else:
        rollout: Any = agent._parts()["rollout"]
        assert rollout.codes.dtype == torch.uint8
        assert rollout.codes.shape[2] == stack * frame


def test_a_damaged_state_changes_nothing(kind: str):
    agent, world = make(kind), Visions(3)
    live(agent, world, 8)
    good = copied(agent.state())
    bad = copied(agent.state())
    bad.tensors["history/codes."] = bad.tensors["history/codes."].to(torch.int16)
    with pytest.raises(ValueError, match=r"damaged: history/codes has the shape"):
        agent.restore(bad)
    assert same_state(agent.state(), good)
    assert SEEN.contains({key: part[0] for key, part in world.seen.items()})
