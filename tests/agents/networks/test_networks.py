"""Layers, heads and how weights begin."""

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box
from torch import nn

from stepladder.agents.arithmetic import LOG_STD_MAX, LOG_STD_MIN
from stepladder.agents.networks.layers import (
    DuelingNetwork,
    GaussianActor,
    Linear,
    Trunk,
    TwinCritic,
    orthogonal,
)
from stepladder.agents.observations import Encoder, Layout, Seen

LAYOUT = Layout(Box(-1.0, 1.0, (3,), np.float32))


def chance(seed: int = 0) -> torch.Generator:
    """Return a generator."""
    return torch.Generator().manual_seed(seed)


def seen(num_rows: int = 4) -> Seen:
    """Return something to look at."""
    return Seen(
        torch.randn(num_rows, 3, generator=chance(1)), torch.zeros(num_rows, 0, dtype=torch.uint8)
    )


@pytest.mark.parametrize(("num_in", "num_out"), [(3, 8), (8, 3), (5, 5)])
def test_weights_begin_orthogonal(num_in: int, num_out: int):
    weights = orthogonal(num_in, num_out, 2.0, chance())
    assert weights.shape == (num_out, num_in)
    short = weights.T @ weights if num_in <= num_out else weights @ weights.T
    assert torch.allclose(short, 4.0 * torch.eye(min(num_in, num_out)), atol=1e-5)


def test_a_trunk_has_an_activation_after_every_layer():
    layers = Trunk(3, (8, 4), "tanh", chance())
    assert [type(layer) for layer in layers] == [Linear, nn.Tanh, Linear, nn.Tanh]
    assert layers(torch.ones(2, 3)).shape == (2, 4)


def test_the_values_of_a_dueling_network_average_to_the_states_value():
    network = DuelingNetwork(Encoder(LAYOUT), 5, (8,), chance())
    values = network(seen())
    heads = network.heads(network.trunk(seen().numbers))
    assert values.shape == (4, 4)
    assert torch.allclose(values.mean(1), heads[:, 0], atol=1e-6)


def test_an_actors_spread_stays_within_bounds():
    actor = GaussianActor(Encoder(LAYOUT), 4, (8,), chance())
    with torch.no_grad():
        actor.heads.bias[:] = torch.tensor([0.0, 0.0, 1e3, -1e3])
    mean, log_std = actor(seen().numbers)
    assert mean.shape == (4, 2)
    assert log_std[:, 0].tolist() == [LOG_STD_MAX] * 4
    assert log_std[:, 1].tolist() == [LOG_STD_MIN] * 4


def test_twin_critics_are_two_networks_computed_at_once():
    critic, inputs = TwinCritic(3, (8, 4), chance()), seen().numbers
    values = critic(inputs)
    assert values.shape == (2, 4)
    for twin in range(2):
        hidden = inputs
        for index, (weight, bias) in enumerate(zip(critic.weights, critic.biases, strict=True)):
            hidden = hidden @ weight[twin] + bias[twin]
            hidden = hidden if index == 2 else hidden.relu()
        assert torch.allclose(values[twin], hidden[:, 0], atol=1e-6)
    assert not torch.allclose(values[0], values[1])


def test_weights_depend_on_the_generator_alone():
    torch.manual_seed(3)
    one = DuelingNetwork(Encoder(LAYOUT), 5, (8,), chance(5)).state_dict()
    torch.manual_seed(4)
    two = DuelingNetwork(Encoder(LAYOUT), 5, (8,), chance(5)).state_dict()
    assert all(torch.equal(one[name], two[name]) for name in one)
