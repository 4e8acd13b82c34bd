"""What all agents have in common, each tested with all that can be switched on."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agents.small_worlds import (
    CHOICES,
    KINDS,
    NUMBERS,
    SEEN,
    Noise,
    copied,
    live,
    make,
    same_state,
)
from stepladder.agents.base import AgentState
from stepladder.agents.player import make_player
from stepladder.errors import SnapshotError
from stepladder.training.checkpoints.tensor_files import load_tensors, save_tensors

pytestmark = pytest.mark.parametrize("kind", KINDS)


def space_of(kind: str) -> Any:
    """Return the action space."""
    return KINDS[kind][1]


def test_actions_have_a_row_per_env_and_are_possible(kind: str):
    agent, world = make(kind), Noise(4)
    for _ in range(14):
        actions = agent.act_batch(world.seen)
        assert actions.shape == (4, *space_of(kind).shape)
        assert all(space_of(kind).contains(action) for action in actions)
        agent.remember(world.step(actions))
        agent.learn()
    best = agent.act_batch(world.seen, deterministic=True)
    assert all(space_of(kind).contains(action) for action in best)


def test_rows_that_see_the_same_explore_by_themselves(kind: str):
    num_rows = 64
    agent = make(kind, num_rows)
    seen = np.zeros((num_rows, 3), dtype=np.float32)
    actions = agent.act_batch(seen)
    if space_of(kind) is CHOICES:
        assert len(set(actions.tolist())) == 3
        again = agent.act_batch(seen)
        assert not np.array_equal(actions, again)
    else:
        # Some lie at the bounds.
        assert len(set(map(tuple, actions.tolist()))) > 0.7 * num_rows
        correlation = np.corrcoef(actions[:, 0], actions[:, 1])[0, 1]
        assert abs(correlation) < 0.5


def test_deterministic_actions_are_the_same_every_time_and_draw_nothing(kind: str):
    agent, world = make(kind), Noise(4)
    live(agent, world, 20)
    before = copied(agent.state())
    actions = agent.act_batch(world.seen, deterministic=True)
    for _ in range(3):
        assert np.array_equal(actions, agent.act_batch(world.seen, deterministic=True))
    assert same_state(before, agent.state())
    same = agent.act_batch(np.zeros((4, 3), dtype=np.float32), deterministic=True)
    if "recurrent" not in kind:
        assert (same == same[0]).all()


def test_two_agents_of_one_seed_are_equal_and_of_another_are_not(kind: str):
    agents = [make(kind, seed=seed) for seed in (3, 3, 4)]
    for agent in agents:
        live(agent, Noise(4), 14)
        assert agent.num_updates > 0
    assert same_state(agents[0].state(), agents[1].state())
    assert not same_state(agents[0].state(), agents[2].state())


@pytest.mark.parametrize("num_steps", [5, 14])
def test_a_state_goes_on_exactly(kind: str, num_steps: int, tmp_path: Path):
    agent, world = make(kind), Noise(4)
    live(agent, world, num_steps)
    state = agent.state()
    save_tensors(tmp_path / "agent.safetensors", state.tensors, {})
    numbers = json.loads(json.dumps(state.numbers))
    other, same_world = make(kind, seed=99), Noise(4)
    same_world.__dict__.update(world.__dict__)
    same_world._rng = np.random.default_rng()
    same_world._rng.bit_generator.state = world._rng.bit_generator.state
    other.restore(AgentState(numbers, load_tensors(tmp_path / "agent.safetensors")[0]))
    assert same_state(agent.state(), other.state())
    assert live(agent, world, 12) == live(other, same_world, 12) > 0
    assert same_state(agent.state(), other.state())
    assert agent.take_losses() == other.take_losses() != {}


def test_a_state_from_another_kind_of_device_goes_on_with_other_chances(kind: str):
    agent, world = make(kind), Noise(4)
    live(agent, world, 14)
    state = agent.state()
    state.tensors["random/torch"] = torch.arange(16, dtype=torch.uint8)  # As on a GPU.
    other = make(kind)
    other.restore(state)
    assert other.num_updates == agent.num_updates
    assert live(other, world, 12) > 0


def test_restoring_leaves_nothing_of_what_was_learnt_in_between(kind: str):
    agent = make(kind)
    live(agent, Noise(4), 20)
    state = copied(agent.state())
    live(agent, Noise(4, seed=7), 12)
    assert not same_state(agent.state(), state)
    agent.restore(state)
    assert same_state(agent.state(), state)


def test_a_state_of_another_agent_is_refused(kind: str):
    agent = make(kind)
    state = agent.state()
    for other in (make(kind, num_envs=5), make(kind, gamma=0.5)):
        with pytest.raises(SnapshotError):
            other.restore(state)
    state.tensors = {
        name: tensor for name, tensor in state.tensors.items() if name != "random/torch"
    }
    with pytest.raises(SnapshotError, match="damaged"):
        make(kind).restore(state)


def test_no_global_generator_is_touched(kind: str):
    torch.manual_seed(1)
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002, it is the global one that is watched
    before = torch.get_rng_state(), random.getstate()
    legacy: Any = np.random.get_state()  # noqa: NPY002
    agent = make(kind)
    live(agent, Noise(4), 14)
    player = make_player(agent.description(), agent.weights(), 4)
    player.act_batch(np.zeros((4, 3), dtype=np.float32), deterministic=False)
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == random.getstate()
    assert np.array_equal(legacy[1], np.random.get_state()[1])  # noqa: NPY002, as above


def test_weights_are_copies_and_enough_to_play_alike(kind: str):
    agent, world = make(kind), Noise(4)
    live(agent, world, 12)
    weights = agent.weights()
    player = make_player(agent.description(), weights, 4)
    if "recurrent" in kind:
        agent.forget()  # The player has no past.
    expected = agent.act_batch(world.seen, deterministic=True)
    assert np.array_equal(player.act_batch(world.seen), expected)
    kept = {name: tensor.clone() for name, tensor in weights.items()}
    live(agent, world, 12)
    assert all(torch.equal(weights[name], kept[name]) for name in weights)
    assert any(not torch.equal(weights[name], new) for name, new in agent.weights().items())


def test_a_description_names_everything_in_plain_json(kind: str):
    agent = make(kind)
    description = agent.description()
    assert description["type"] == agent.config.kind
    assert description["observation_space"]["shape"] == list(SEEN.shape)
    assert description["action_space"]["space"] == (
        "box" if space_of(kind) is NUMBERS else "discrete"
    )


def test_what_is_forgotten_is_not_learnt_from(kind: str):
    agent, world = make(kind), Noise(4)
    live(agent, world, 14)
    before = agent.weights()
    updates = agent.num_updates
    agent.forget()
    # A warm-up of eight steps, or a rollout of 32, begins again.
    assert live(agent, world, 1) == 0
    assert agent.num_updates == updates
    assert all(
        torch.equal(before[name], new)
        for name, new in agent.weights().items()
        if "encoder" not in name
    )
    assert live(agent, world, 10) > 0
