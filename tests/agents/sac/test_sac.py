"""SAC: what it explores, learns and balances."""

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box

from agents.small_worlds import CHOICES, NUMBERS, SEEN, Bandit, Noise, live
from stepladder.agents.sac.config import SACConfig
from stepladder.agents.sac.sac import SAC
from stepladder.errors import ConfigError

QUICK: dict[str, Any] = {
    "hidden_sizes": (16,), "learning_rate": 0.01, "batch_size": 32, "buffer_size": 1_000,
    "warmup_steps": 64, "updates_per_step": 0.25, "tau": 0.05, "initial_temperature": 0.1,
}  # fmt: skip


def made(num_envs: int = 8, **changes: Any) -> SAC:
    """Make an agent that learns quickly."""
    return SAC(SACConfig(**{**QUICK, **changes}), SEEN, NUMBERS, num_envs)


def nearness(seen: Any, actions: Any) -> Any:
    """Say how near an action is to where the first two numbers point, within its bounds."""
    wanted = np.where(seen[:, :2] > 0, 0.5, -1.5)
    return -((actions - wanted) ** 2).sum(1)


@pytest.mark.parametrize(
    "changes", [{}, {"noise": "pink", "pink_steps": 50}, {"normalise_observations": True}]
)
def test_it_learns_where_to_go(changes: dict[str, Any]):
    agent, bandit = made(**changes), Bandit(8, nearness)
    untaught = bandit.examine(agent)
    bandit.teach(agent, 130)
    assert untaught < -1.5
    assert bandit.examine(agent) > -0.3


def test_before_it_has_learnt_it_acts_evenly_within_the_bounds():
    agent = made(num_envs=1_000)
    actions = agent.act_batch(np.zeros((1_000, 3), dtype=np.float32))
    # From -2 to 1, evenly: mean -0.5, spread 3 / sqrt(12).
    assert actions.mean(0).tolist() == pytest.approx([-0.5, -0.5], abs=0.1)
    assert actions.std(0).tolist() == pytest.approx([0.866, 0.866], abs=0.05)
    assert actions.min() >= -2.0
    assert actions.max() <= 1.0


def test_actions_are_remembered_between_minus_1_and_1():
    agent = made(num_envs=3)
    remembered = agent._remembered_actions(np.array([[-2.0, 1.0], [-0.5, -0.5], [1.0, -2.0]]))
    assert remembered.tolist() == [[-1.0, 1.0], [0.0, 0.0], [1.0, -1.0]]


def test_actions_of_any_shape_come_back_in_it():
    space = Box(-1.0, 1.0, (2, 2), np.float32)
    agent = SAC(SACConfig(**QUICK), SEEN, space, 3)
    actions = agent.act_batch(np.zeros((3, 3), dtype=np.float32))
    assert actions.shape == (3, 2, 2)
    assert agent._remembered_actions(actions).shape == (3, 4)


def test_the_temperature_follows_the_entropy_that_is_aimed_at():
    for target, falls in ((-50.0, True), (50.0, False)):
        agent = made(target_entropy=target)
        live(agent, Noise(8), 20)
        assert (agent.log_temperature.exp().item() < 0.1) is falls
    agent = made(learn_temperature=False)
    live(agent, Noise(8), 20)
    assert agent.log_temperature.exp().item() == pytest.approx(0.1)


def test_the_targets_follow_the_critics_by_their_share():
    agent, world = made(tau=0.25, updates_per_step=1.0), Noise(8)
    live(agent, world, 9)
    old = [parameter.clone() for parameter in agent.target.parameters()]
    agent._do_update()
    for before, target, critic in zip(
        old, agent.target.parameters(), agent.critic.parameters(), strict=True
    ):
        assert torch.allclose(target, 0.75 * before + 0.25 * critic, atol=1e-6)


def test_the_two_critics_differ():
    agent = made()
    inputs = torch.randn(5, 5, generator=torch.Generator().manual_seed(0))
    one, two = agent.critic(inputs)
    assert not torch.allclose(one, two)


def test_pink_noise_begins_anew_where_an_episode_ends_and_only_there():
    agent, world = made(noise="pink", pink_steps=40), Noise(8)
    live(agent, world, 14)  # Beyond the warm-up, in which noise is not asked for.
    assert agent._pink is not None
    for _ in range(10):
        before = agent._pink._series.copy()
        step = world.step(agent.act_batch(world.seen))
        agent.remember(step)
        changed = (agent._pink._series != before).any(axis=(1, 2))
        assert changed.tolist() == (step.terminated | step.truncated).tolist()


def test_pink_noise_begins_anew_everywhere_with_a_new_phase():
    for method in ("forget", "drop_pending"):
        agent = made(noise="pink", pink_steps=40)
        live(agent, Noise(8), 14)
        assert agent._pink is not None
        before = agent._pink._series.copy()
        getattr(agent, method)()
        assert (agent._pink._series != before).any(axis=(1, 2)).all()


@pytest.mark.parametrize("space", [CHOICES, Box(-np.inf, 1.0, (2,), np.float32)])
def test_actions_without_bounds_are_refused(space: Any):
    with pytest.raises(ConfigError, match="numbers with bounds"):
        SAC(SACConfig(), SEEN, space, 1)


def test_a_spread_at_its_bound_is_not_pushed_farther():
    agent = made(num_envs=8)
    Bandit(8, nearness).teach(agent, 20)
    heads = agent.policy().actor.heads
    with torch.no_grad():
        heads.weight[2:] = 0.0
        heads.bias[2:] = torch.tensor([5.0, 0.0])
    agent._update()
    # The bias of the heads comes last, but for the temperature.
    assert agent._actor_adam._gradient[-3] == 0.0
    assert agent._actor_adam._gradient[-2] != 0.0
