"""Gradients by formula, against autograd."""

from typing import Any

import pytest
import torch

from stepladder.agents.arithmetic import (
    clipped_policy_loss,
    dueling_values,
    normal_log_probs,
)
from stepladder.agents.gradients import (
    choice_gradient,
    clipped_policy_slopes,
    dueling_gradient,
    normal_gradient,
    through_relu,
    through_tanh,
)


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    """Return numbers of chance."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def test_the_gradient_of_dueling_values_is_that_of_autograd():
    heads, slopes = numbers(5, 4).requires_grad_(), numbers(5, seed=1)
    actions = torch.tensor([[0], [2], [1], [1], [0]])
    values = dueling_values(heads[:, :1], heads[:, 1:]).gather(1, actions)[:, 0]
    (expected,) = torch.autograd.grad(values, heads, slopes)
    assert torch.allclose(dueling_gradient(slopes, actions, 3), expected, atol=1e-6)


def test_the_slopes_of_a_clipped_policy_loss_are_those_of_autograd():
    log_probs, old = (0.3 * numbers(64)).requires_grad_(), 0.3 * numbers(64, seed=1)
    advantages = numbers(64, seed=2)
    loss, ratios = clipped_policy_loss(log_probs, old, advantages, 0.2)
    (expected,) = torch.autograd.grad(loss, log_probs)
    assert (expected == 0.0).any()
    slopes = clipped_policy_slopes(ratios.detach(), advantages, 0.2)
    assert torch.allclose(slopes, expected, atol=1e-7)


def test_the_gradient_of_choices_is_that_of_autograd():
    logits, slopes = numbers(6, 3).requires_grad_(), numbers(6, seed=1)
    actions = torch.tensor([0, 1, 2, 2, 1, 0])
    log_probs = logits.log_softmax(-1)
    entropies = -(log_probs.exp() * log_probs).sum(-1)
    chosen = log_probs.gather(1, actions[:, None])[:, 0]
    (expected,) = torch.autograd.grad((chosen * slopes).sum() - 0.3 * entropies.sum(), logits)
    got = choice_gradient(log_probs.detach(), actions, slopes, -0.3)
    assert torch.allclose(got, expected, atol=1e-6)


def test_the_gradients_of_normal_numbers_are_those_of_autograd():
    mean, log_std = numbers(6, 2).requires_grad_(), numbers(2, seed=1).requires_grad_()
    actions, slopes = numbers(6, 2, seed=2), numbers(6, seed=3)
    log_probs = normal_log_probs(actions, mean, log_std)
    expected = torch.autograd.grad(log_probs, (mean, log_std), slopes)
    got = normal_gradient(actions, mean.detach(), log_std.detach(), slopes)
    assert all(torch.allclose(*pair, atol=1e-5) for pair in zip(got, expected, strict=True))


@pytest.mark.parametrize(
    ("activation", "through"), [(torch.relu, through_relu), (torch.tanh, through_tanh)]
)
def test_the_gradients_of_activations_are_those_of_autograd(activation: Any, through: Any):
    inputs, gradient = numbers(6, 3).requires_grad_(), numbers(6, 3, seed=1)
    outputs = activation(inputs)
    (expected,) = torch.autograd.grad(outputs, inputs, gradient)
    assert torch.allclose(through(gradient, outputs.detach()), expected, atol=1e-6)
