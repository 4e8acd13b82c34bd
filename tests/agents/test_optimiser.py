"""Adam over one flat tensor, against torch's Adam over separate ones."""

import pytest
import torch
from torch import nn

from stepladder.agents.optimiser import Adam


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


def test_weights_can_be_loaded_and_are_followed_from_there_also_in_parts():
    one, two = network(), network()
    adam = Adam(one.parameters(), 0.01)
    # More parts than some of them have weights, as for a GPU.
    other = Adam(two.parameters(), 0.01, num_parts=32)
    for step in range(3):
        adam.minimise(one(inputs(step)).square().mean())
    two.load_state_dict(one.state_dict())
    other.load_state_dict(adam.state_dict())
    for net, own in ((one, adam), (two, other)):
        own.minimise(net(inputs(9)).square().mean())
    assert all(map(torch.allclose, one.parameters(), two.parameters()))
    assert adam.num_steps == other.num_steps == 4


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
