"""Actions of one choice and of several: probabilities, numbers of combinations, and back."""

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete

from agents.small_worlds import SEEN, Bandit
from stepladder.agents.choices import Choices, choices_of, combinations_of
from stepladder.agents.dddqn.config import DDDQNConfig
from stepladder.agents.dddqn.dddqn import DDDQN
from stepladder.agents.observations import Layout
from stepladder.agents.ppo.actor_critic import ActorCritic, draw_choices
from stepladder.agents.ppo.config import PPOConfig
from stepladder.errors import ConfigError

SPACES: list[Any] = [
    Discrete(5, start=-2),
    MultiDiscrete([3, 2, 4], start=[1, 0, -3]),
    MultiDiscrete([[2, 3], [3, 2]]),
    MultiBinary(4),
    MultiBinary((2, 2)),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_every_combination_is_an_action_and_back(space: Any):
    choices = combinations_of(space, "DDDQN")
    numbers = np.arange(choices.num_combinations)
    actions = choices.from_combinations(numbers)
    assert all(space.contains(action) for action in actions)
    assert len({action.tobytes() for action in actions}) == len(numbers)
    assert choices.to_combinations(actions).tolist() == numbers.tolist()


@pytest.mark.parametrize("space", SPACES[1:], ids=str)
def test_choices_are_drawn_and_weighed_as_independent_distributions(space: Any):
    config = PPOConfig(hidden_sizes=(8,))
    policy = ActorCritic(Layout(SEEN), space, config, torch.Generator().manual_seed(0))
    sizes = Choices(space).sizes
    outputs = torch.randn(1, sum(sizes), generator=torch.Generator().manual_seed(1))
    parts = [torch.distributions.Categorical(logits=part[0]) for part in outputs.split(sizes, -1)]
    logits = policy._logits(outputs)
    best = [int(part.probs.argmax()) for part in parts]
    assert logits.argmax(-1)[0].tolist() == best
    many = draw_choices(logits.expand(4_000, *logits.shape[1:]), torch.Generator().manual_seed(2))
    log_probs, entropies = policy.evaluate(outputs.expand(4_000, -1), many)
    expected = sum(part.log_prob(many[:, place]) for place, part in enumerate(parts))
    assert torch.allclose(log_probs, torch.as_tensor(expected), atol=1e-5)
    assert entropies[0].item() == pytest.approx(sum(part.entropy().item() for part in parts))
    for place, part in enumerate(parts):
        shares = torch.bincount(many[:, place], minlength=sizes[place]) / 4_000
        assert torch.allclose(shares, part.probs, atol=0.04)
    assert all(space.contains(action) for action in policy.to_env(many[:20]))


def test_too_many_combinations_and_no_choices_are_refused():
    with pytest.raises(ConfigError, match=r"at most 4,096; MultiBinary\(13\) has 8,192. Use PPO"):
        combinations_of(MultiBinary(13), "DDDQN")
    numbers = Box(-1.0, 1.0, (2,))
    assert choices_of(numbers) is None
    with pytest.raises(ConfigError, match="DDDQN needs actions that are choices"):
        combinations_of(numbers, "DDDQN")


def test_dddqn_learns_a_combination():
    def both_right(seen: Any, actions: Any) -> Any:
        return (actions == (seen[:, :2] > 0)).all(1).astype(float)

    config = DDDQNConfig(
        hidden_sizes=(16,), learning_rate=0.01, batch_size=32, buffer_size=1_000, warmup_steps=64,
        updates_per_step=0.25, epsilon_steps=600, target_every_updates=10,
    )  # fmt: skip
    agent, bandit = DDDQN(config, SEEN, MultiBinary(2), 8), Bandit(8, both_right)
    bandit.teach(agent, 130)
    assert bandit.examine(agent) > 0.95
