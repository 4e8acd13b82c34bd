"""Adam over one flat tensor, against torch's Adam over separate ones."""

import math

import pytest
import torch
from torch import nn

from stepladder.agents.networks.optimiser import Adam


def network() -> nn.Sequential:
    """Return a small network, the same every time."""
    layers = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in layers.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return layers


def inputs(step: int) -> torch.Tensor:
    """Return what the network is shown."""
    return torch.randn(5, 3, generator=torch.Generator().manual_seed(step))


@pytest.mark.parametrize("max_grad_norm", [None, 0.5])
def test_it_takes_the_steps_of_torchs_adam_with_clipped_gradients(max_grad_norm: float | None):
    ours, theirs = network(), network()
    adam = Adam(ours.parameters(), 0.01, eps=1e-5, max_grad_norm=max_grad_norm)
    peer = torch.optim.Adam(theirs.parameters(), lr=0.01, eps=1e-5)
    for step in range(20):
        adam.minimise(ours(inputs(step)).square().mean())
        peer.zero_grad()
        theirs(inputs(step)).square().mean().backward()
        if max_grad_norm is not None:
            nn.utils.clip_grad_norm_(theirs.parameters(), max_grad_norm)
        peer.step()
    for own, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(own, other, atol=1e-6)


def test_weights_can_be_loaded_and_are_followed_from_there():
    one, two = network(), network()
    adam, other = Adam(one.parameters(), 0.01), Adam(two.parameters(), 0.01)
    for step in range(3):
        adam.minimise(one(inputs(step)).square().mean())
    two.load_state_dict(one.state_dict())
    other.load_state_dict(adam.state_dict())
    for net, own in ((one, adam), (two, other)):
        own.minimise(net(inputs(9)).square().mean())
    assert all(map(torch.equal, one.parameters(), two.parameters()))


@pytest.mark.parametrize("num_parts", [3, 32])
def test_in_parts_it_takes_the_same_steps_and_loads_the_same_states(num_parts: int):
    # 26 weights: parts of unequal size, and parts of none.
    one, two = network(), network()
    adam, other = Adam(one.parameters(), 0.01), Adam(two.parameters(), 0.01, num_parts=num_parts)
    for step in range(3):
        for net, own in ((one, adam), (two, other)):
            own.minimise(net(inputs(step)).square().mean())
    assert torch.allclose(adam.weights, other.weights, rtol=0.0, atol=1e-7)
    three = network()
    again = Adam(three.parameters(), 0.01, num_parts=num_parts)
    three.load_state_dict(two.state_dict())
    again.load_state_dict(other.state_dict())
    for net, own in ((one, adam), (three, again)):
        own.minimise(net(inputs(9)).square().mean())
    assert again.num_steps == 4
    assert torch.allclose(adam.weights, again.weights, rtol=0.0, atol=1e-7)


def test_in_parts_it_stops_at_a_gradient_that_is_not_finite():
    net = network()
    adam = Adam(net.parameters(), 0.01, num_parts=32)
    adam.minimise(net(inputs(0)).square().mean())
    expected = adam.weights.clone()
    adam.minimise(net(inputs(1)).square().mean() * math.inf)
    adam.minimise(net(inputs(2)).square().mean())
    assert adam.has_stopped
    assert adam.num_steps == 1
    assert torch.equal(adam.weights, expected)


def test_another_learning_rate_holds_from_the_next_step_on():
    net = network()
    adam = Adam(net.parameters(), 0.01)
    adam.minimise(net(inputs(0)).square().mean())
    # As on a GPU: what a recorded update reads stays the same tensor.
    for rate in (adam._rate, torch.tensor(0.01)):
        adam._rate = rate
        adam.learning_rate = 0.0
        before = adam.weights.clone()
        adam.minimise(net(inputs(1)).square().mean())
        assert torch.equal(adam.weights, before)
        adam.learning_rate = 0.01
        adam.minimise(net(inputs(1)).square().mean())
        assert not torch.equal(adam.weights, before)
    assert adam._rate is rate


def test_a_state_of_another_network_is_refused():
    adam = Adam(network().parameters(), 0.01)
    other = Adam(nn.Linear(2, 2).parameters(), 0.01)
    with pytest.raises(ValueError, match="shape"):
        adam.load_state_dict(other.state_dict())


def test_a_new_optimiser_changes_no_weights_and_has_done_no_steps():
    untouched, ours = network(), network()
    adam = Adam(ours.parameters(), 0.01)
    assert all(map(torch.equal, ours.parameters(), untouched.parameters()))
    assert adam.num_steps == 0
    assert not any(tensor.any() for tensor in adam.state_dict().values())


def test_the_learning_rate_can_change_between_steps():
    ours = network()
    adam = Adam(ours.parameters(), 0.01)
    adam.learning_rate = 0.0
    before = [parameter.clone() for parameter in ours.parameters()]
    adam.minimise(ours(inputs(0)).sum())
    assert all(map(torch.equal, ours.parameters(), before))
    adam.learning_rate = 0.5
    adam.minimise(ours(inputs(1)).sum())
    assert not any(map(torch.equal, ours.parameters(), before))
