"""Policy and value in one module: what is said, and what it is made into."""

from typing import Any

import numpy as np
import pytest
import torch

from agents.small_worlds import CHOICES, NUMBERS, SEEN
from stepladder.agents.observations import Layout, Seen
from stepladder.agents.ppo.actor_critic import ActorCritic, draw_choices
from stepladder.agents.ppo.config import PPOConfig
from stepladder.agents.ppo.memory_cells import CELLS

LAYOUT = Layout(SEEN)


def made(actions: Any = CHOICES, **changes: Any) -> ActorCritic:
    """Make a policy."""
    config = PPOConfig(hidden_sizes=(8,), **changes)
    return ActorCritic(LAYOUT, actions, config, torch.Generator().manual_seed(0))


def seen(*shape: int) -> Seen:
    """Return something to look at."""
    numbers = torch.randn(*shape, 3, generator=torch.Generator().manual_seed(1))
    return Seen(numbers, torch.zeros(*shape, 0, dtype=torch.uint8))


def test_choices_are_drawn_as_often_as_they_are_likely():
    probs = torch.tensor([0.1, 0.6, 0.0, 0.3])
    draws = draw_choices(probs.log().expand(20_000, 4), torch.Generator().manual_seed(0))
    shares = torch.bincount(draws, minlength=4) / 20_000
    assert shares.tolist() == pytest.approx(probs.tolist(), abs=0.015)
    assert shares[2] == 0.0


@pytest.mark.parametrize("actions", [CHOICES, NUMBERS])
@torch.inference_mode()
def test_actions_have_the_log_probs_and_entropies_of_torch_distributions(actions: Any):
    policy, look = made(actions), seen(50)
    with torch.no_grad():
        # A policy begins as good as even; here it has opinions.
        policy.actions.weight *= 100.0
    raw, _ = policy.play(look, policy.first_memory(50), torch.Generator().manual_seed(2), False)
    outputs, values = policy(policy.encoder(look))
    assert values.shape == (50,)
    if actions is CHOICES:
        there: Any = torch.distributions.Categorical(logits=outputs)
        log_probs, entropy = there.log_prob(raw), there.entropy()
    else:
        there = torch.distributions.Normal(outputs, policy.log_std.exp())
        log_probs, entropy = there.log_prob(raw).sum(-1), there.entropy().sum(-1)[0]
    own_log_probs, own_entropy = policy.evaluate(outputs, raw)
    assert torch.allclose(own_log_probs, log_probs, atol=1e-5)
    assert torch.allclose(own_entropy, entropy, atol=1e-5)


def test_numbers_are_cut_off_at_the_bounds_and_choices_count_from_their_start():
    raw = torch.tensor([[-9.0, 0.25], [0.5, 9.0]])
    assert made(NUMBERS).to_env(raw).tolist() == [[-2.0, 0.25], [0.5, 1.0]]
    assert made(CHOICES).to_env(torch.tensor([0, 2])).tolist() == [1, 3]


@pytest.mark.parametrize("cell", CELLS)
@torch.inference_mode()
def test_steps_at_once_are_steps_one_by_one(cell: str):
    policy, look = made(recurrent=True, memory_cell=cell), seen(6, 4)
    begins = torch.zeros(6, 4, dtype=torch.bool)
    begins[3, 1] = begins[0, 2] = True
    first = torch.ones(4, 8) * 0.3
    outputs, _, memories = policy.unroll(policy.encoder(look), first, begins)
    memory, generator = first, torch.Generator()
    for step in range(6):
        memory = memory * ~begins[step][:, None]
        now = Seen(look.numbers[step], look.codes[step])
        choices, memory = policy.play(now, memory, generator, True)
        assert torch.equal(choices, outputs[step].argmax(-1))
        assert torch.allclose(memories[step], memory, atol=1e-6)


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_has_the_gradients_of_its_formula(cell: str):
    made_cell = CELLS[cell](3, torch.Generator().manual_seed(1)).double()
    generator = torch.Generator().manual_seed(2)
    hidden, memory = (
        torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)
        for shape in ((4, 2, 3), (2, 3))
    )
    goes_on = torch.ones(4, 2, 1, dtype=torch.float64)
    goes_on[2, 1] = 0.0
    assert torch.autograd.gradcheck(made_cell.unroll, (hidden, memory, goes_on))
    # The same through the cell's single steps, to its weights.
    together = made_cell.unroll(hidden, memory, goes_on)[0]
    one_by_one = []
    for step in range(4):
        output, memory = made_cell.step(hidden[step], memory * goes_on[step])
        one_by_one.append(output)
    weights = list(made_cell.parameters())
    for own, expected in zip(
        torch.autograd.grad(together.square().sum(), weights),
        torch.autograd.grad(torch.stack(one_by_one).square().sum(), weights),
        strict=True,
    ):
        assert torch.allclose(own, expected)


def test_policy_and_value_share_layers_when_asked_and_where_they_remember():
    assert "value_trunk.0.weight" in made().state_dict()
    assert "value_trunk.0.weight" not in made(share_layers=True).state_dict()
    assert "value_trunk.0.weight" not in made(recurrent=True).state_dict()


def test_an_untaught_policy_prefers_nothing():
    policy = made()
    probs = policy(policy.encoder(seen(20)))[0].softmax(-1)
    assert np.allclose(probs.detach().numpy(), 1 / 3, atol=0.02)
