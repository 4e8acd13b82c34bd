"""What every agent stands on: nested states made flat, and devices."""

import json
from typing import Any

import pytest
import torch

from agents.small_worlds import Noise, live, make
from stepladder.agents.base import make_agent
from stepladder.agents.config import AgentConfig
from stepladder.agents.room import checked_device
from stepladder.agents.saved_values import flatten, unflatten
from stepladder.errors import ConfigError, SnapshotError


def test_a_nested_state_becomes_plain_json_and_named_tensors():
    state: Any = {
        "state": {0: {"step": torch.tensor(3.0)}, 1: {"step": torch.tensor(4.0)}},
        "groups": [{"betas": (0.9, 0.999), "params": [0, 1], "fused": None}],
        "empty": {},
        "name": "x",
    }
    tensors: dict[str, torch.Tensor] = {}
    structure = json.loads(json.dumps(flatten(state, "optimiser/", tensors)))
    assert len(tensors) == 2
    assert all(name.startswith("optimiser/") for name in tensors)
    again = unflatten(structure, tensors)
    assert again["state"][1]["step"].item() == 4.0
    assert again["groups"] == state["groups"]
    assert isinstance(again["groups"][0]["betas"], tuple)
    assert (again["empty"], again["name"]) == ({}, "x")


def test_no_two_tensors_have_one_name():
    for kind in ("sac, pink, 2 steps", "dddqn, prioritised, 3 steps", "ppo, recurrent"):
        agent = make(kind)
        live(agent, Noise(4), 14)
        state = agent.state()
        text = json.dumps(state.numbers["structure"])
        named = text.count('{"tensor": ')
        # Beside these are the weights, the figures of updates, and torch's generator.
        rest = ("weights/", "losses/", "random/")
        assert named == sum(not name.startswith(rest) for name in state.tensors)


def test_figures_of_updates_are_handed_out_once():
    agent = make("sac")
    live(agent, Noise(4), 14)
    assert set(agent.take_losses()) == {"critic", "actor", "temperature", "entropy", "value"}
    assert agent.take_losses() == {}


@pytest.mark.parametrize("device", ["tpu", "mps", "cuda:99", 3])
def test_a_device_that_is_not_there_is_refused(device: Any):
    with pytest.raises(ConfigError, match="device"):
        checked_device(device)


def test_auto_is_some_device():
    assert checked_device("auto").type in ("cpu", "cuda")


def test_damaged_numbers_are_refused():
    agent = make("sac")
    state = agent.state()
    del state.numbers["structure"]["memory"]
    with pytest.raises(SnapshotError, match="damaged"):
        agent.restore(state)


def test_a_config_of_no_kind_makes_no_agent():
    with pytest.raises(ConfigError, match="describes no agent"):
        make_agent(AgentConfig(), make("sac").observation_space, make("sac").action_space, 1)
