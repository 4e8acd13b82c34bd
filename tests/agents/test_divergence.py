"""An agent that is no longer finite stops at once, says why, and hands nothing out."""

from typing import Any

import numpy as np
import pytest
import torch

from agents.small_worlds import KINDS, Noise, live, make
from stepladder.agents.base import Agent, VectorStep
from stepladder.agents.divergence import Extent, divergence
from stepladder.agents.networks.optimiser import Adam
from stepladder.errors import DivergenceError


def live_with(agent: Agent, num_steps: int, scale: float, seed: int = 0) -> None:
    """Let an agent live where rewards are multiplied."""
    world = Noise(4, seed)
    for _ in range(num_steps):
        step = world.step(agent.act_batch(world.seen))
        rewards: Any = (step.rewards * scale).astype(np.float32)
        agent.remember(VectorStep(**{**vars(step), "rewards": rewards}))
        agent.learn()


@pytest.mark.parametrize("kind", KINDS)
def test_rewards_that_overflow_stop_the_agent_and_its_weights_stay_finite(kind: str):
    # Huber's loss would bear such rewards.
    changes: dict[str, Any] = {"loss": "mse"} if "dddqn" in kind else {}
    agent = make(kind, **changes)
    with pytest.raises(DivergenceError, match=r"^update 1: .*Lower reward_scale") as caught:
        live_with(agent, 40, 1e30)
    assert caught.value.update == 1
    assert "Rewards in memory are up to" in str(caught.value)
    # The weights themselves were kept from it.
    assert all(tensor.isfinite().all() for tensor in agent.policy().state_dict().values())


@pytest.mark.parametrize("kind", KINDS)
def test_an_agent_with_a_bad_weight_is_neither_saved_nor_played_with(kind: str):
    agent = make(kind)
    live(agent, Noise(4), 12)
    name, weight = list(agent.policy().named_parameters())[-1]
    with torch.no_grad():
        weight.view(-1)[0] = float("inf")
    with pytest.raises(DivergenceError, match=rf"{name}\[0(, 0)?\] is inf"):
        agent.weights()
    with pytest.raises(DivergenceError, match="is inf"):
        agent.state()


@pytest.mark.parametrize("kind", KINDS)
def test_an_agent_with_a_bad_optimiser_is_not_saved(kind: str):
    agent = make(kind)
    live(agent, Noise(4), 12)
    next(iter(agent._optimisers().values())).state_dict()["squares"][0] = float("nan")
    with pytest.raises(DivergenceError, match=r"optimiser.*squares.*\[0\] is nan"):
        agent.state()


def test_a_temperature_that_overflows_stops_the_agent():
    agent: Any = make("sac")
    with torch.no_grad():
        agent.log_temperature.fill_(1e4)
    with pytest.raises(DivergenceError, match=r"is (inf|nan)"):
        live(agent, Noise(4), 14)


def test_the_update_is_counted_from_the_first_of_all():
    agent = make("ppo")
    done = live(agent, Noise(4), 14)
    assert done == agent.num_updates > 0
    with pytest.raises(DivergenceError, match=rf"^update {done + 1}: "):
        live_with(agent, 40, 1e30, seed=1)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e30])
def test_an_optimiser_stays_where_it_was_from_a_bad_gradient_on(bad: float):
    parameter = torch.nn.Parameter(torch.ones(3))
    adam = Adam([parameter], 0.1, max_grad_norm=10.0)
    adam.minimise(parameter.sum())
    before, state = parameter.detach().clone(), {k: v.clone() for k, v in adam.state_dict().items()}
    adam.minimise((parameter * torch.tensor([1.0, bad, 1.0])).sum())
    assert adam.has_stopped
    adam.minimise(parameter.sum())
    assert torch.equal(parameter, before)
    assert all(torch.equal(state[name], kept) for name, kept in adam.state_dict().items())
    assert adam.num_steps == 1
    adam.load_state_dict(state)
    adam.minimise(parameter.sum())
    assert (adam.has_stopped, adam.num_steps) == (False, 2)


def test_what_helps_depends_on_what_is_large():
    for extent, fix in (
        (Extent(1e9, 1.0), "Lower reward_scale"),
        (Extent(float("nan"), 1.0), "Lower reward_scale"),
        (Extent(1.0, 1e9), "Set normalise_observations"),
        (Extent(1.0, 1.0), r"Lower learning_rate of the agent \(now 0.5\)"),
    ):
        with pytest.raises(DivergenceError, match=fix):
            raise divergence(7, "losses/value is inf", extent, 0.5)
