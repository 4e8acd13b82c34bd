"""PPO: what it learns from, what it leaves out, and what it remembers."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from agents.small_worlds import CHOICES, NUMBERS, SEEN, Bandit, Noise, live
from stepladder.agents.base import VectorStep
from stepladder.agents.ppo.config import PPOConfig
from stepladder.agents.ppo.memory_cells import CELLS
from stepladder.agents.ppo.ppo import PPO
from stepladder.agents.ppo.rollout import PLAYING_BIT
from stepladder.errors import ConfigError

QUICK: dict[str, Any] = {
    "hidden_sizes": (16,), "learning_rate": 0.02, "rollout_steps": 128, "minibatch_size": 64,
    "gamma": 0.9,
}  # fmt: skip


def made(num_envs: int = 8, actions: Any = CHOICES, **changes: Any) -> PPO:
    """Make an agent that learns quickly."""
    return PPO(PPOConfig(**{**QUICK, **changes}), SEEN, actions, num_envs)


# Learning.


def right_choice(seen: Any, actions: Any) -> Any:
    """Say 1 where the action is the one that the first number asks for."""
    return (actions == np.where(seen[:, 0] > 0, 1, 3)).astype(np.float64)


def nearness(seen: Any, actions: Any) -> Any:
    """Say how near an action is to where the first two numbers point."""
    return -((actions - np.where(seen[:, :2] > 0, 0.5, -1.5)) ** 2).sum(1)


@pytest.mark.parametrize("changes", [{}, {"share_layers": True, "activation": "relu"}])
def test_it_learns_what_to_choose(changes: dict[str, Any]):
    agent, bandit = made(**changes), Bandit(8, right_choice)
    untaught = bandit.examine(agent)
    bandit.teach(agent, 160)
    assert untaught < 0.8
    assert bandit.examine(agent) > 0.95


def test_it_learns_several_choices_at_once():
    def both_right(seen: Any, actions: Any) -> Any:
        wanted = np.stack([seen[:, 0] > 0, 1 + (seen[:, 1] > 0)], axis=1)
        return (actions == wanted).mean(1)

    agent, bandit = made(actions=MultiDiscrete([2, 4])), Bandit(8, both_right)
    bandit.teach(agent, 160)
    assert bandit.examine(agent) > 0.95


def test_it_learns_where_to_go():
    agent, bandit = made(actions=NUMBERS, entropy_coef=0.0), Bandit(8, nearness)
    untaught = bandit.examine(agent)
    bandit.teach(agent, 320)
    assert untaught < -1.5
    assert bandit.examine(agent) > -0.5


class Riddle:
    """Episodes of two steps: the answer is shown in the first and asked for in the second."""

    def __init__(self, num_envs: int, seed: int = 0):
        self._rng, self._num_envs = np.random.default_rng(seed), num_envs
        self.clock = self._rng.integers(2, size=num_envs)
        self.answers = self._rng.integers(2, size=num_envs)
        self.is_playing = np.ones(num_envs, dtype=np.bool_)
        self.num_right = self.num_asked = 0

    def look(self) -> Any:
        """Return the answer in the first step, and whether it is asked for now."""
        seen = np.zeros((self._num_envs, 3), dtype=np.float32)
        seen[:, 0] = np.where(self.clock == 0, 2.0 * self.answers - 1.0, 0.0)
        seen[:, 1] = self.clock == 1
        return seen

    def step(self, actions: Any) -> VectorStep:
        """Take the answers of those who are asked."""
        seen, playing = self.look(), self.is_playing
        asked = playing & (self.clock == 1)
        right = asked & (actions == self.answers)
        self.num_right, self.num_asked = self.num_right + right.sum(), self.num_asked + asked.sum()
        # The step that resets shows the next riddle.
        fresh = self._rng.integers(2, size=self._num_envs)
        self.answers = np.where(playing, self.answers, fresh)
        self.clock = np.where(playing, np.where(asked, 2, 1), 0)
        self.is_playing = ~asked
        rewards, never = right.astype(np.float64), np.zeros_like(asked)
        return VectorStep(seen, actions, rewards, asked, never, self.look(), playing)


def share_right(**settings: Any) -> float:
    """Return how often an agent is right in the end."""
    sizes = {"rollout_steps": 12 * 24, "minibatch_size": 12 * 12, "learning_rate": 0.03}
    agent = PPO(PPOConfig(**{**QUICK, **sizes, **settings}), SEEN, Discrete(2), 24)
    riddle = Riddle(24)
    for step in range(216):
        if step == 180:
            riddle.num_right = riddle.num_asked = 0
        agent.remember(riddle.step(agent.act_batch(riddle.look())))
        agent.learn()
    return riddle.num_right / riddle.num_asked


@pytest.mark.slow
def test_only_who_remembers_can_answer_what_was_shown_before():
    for cell in CELLS:
        assert share_right(recurrent=True, memory_cell=cell) > 0.9
    assert share_right() < 0.65


# What is learnt from.


def filled(agent: PPO, world: Noise) -> list[VectorStep]:
    """Play until the rollout is full, and do not learn yet."""
    steps = []
    while not agent.rollout.is_full:
        steps.append(world.step(agent.act_batch(world.seen)))
        agent.remember(steps[-1])
    return steps


def test_rewards_are_divided_by_the_spread_of_discounted_returns():
    agent, world, plain = made(normalise_rewards=True), Noise(8), []
    policy, returns, met = agent.policy(), np.zeros(8), list[float]()
    for _ in range(15):
        step = world.step(agent.act_batch(world.seen))
        agent.remember(replace(step, rewards=1e3 * step.rewards))
        returns = np.where(step.is_playing, 0.9 * returns + 1e3 * step.rewards, 0.0)
        met += returns[step.is_playing].tolist()
        plain.append(1e3 * step.rewards)
        row = agent.rollout.num_filled[0] - 1
        expected = np.clip(plain[-1] / np.std(met), -10.0, 10.0)
        playing = step.is_playing
        np.testing.assert_allclose(
            agent.rollout.rewards[row][playing], expected[playing], rtol=1e-4
        )
        returns[step.terminated | step.truncated] = 0.0
    # What they are divided by is a part of the policy.
    assert policy.state_dict()["rewards.spread"].item() == pytest.approx(np.std(met), rel=1e-5)


def test_advantages_are_those_of_each_episode_by_itself():
    agent, world = made(gae_lambda=0.8), Noise(8)
    filled(agent, world)
    agent.learn()
    steps = filled(agent, world)
    agent._learner.estimate()
    got = agent._learner.advantages

    def value(observations: Any) -> Any:
        seen = agent.layout.to_seen(observations, agent.device)
        with torch.no_grad():
            return agent.policy()(agent.policy().encoder(seen))[1].numpy()

    for env in range(8):
        later = 0.0
        for row in range(len(steps) - 1, -1, -1):
            step = steps[row]
            if not step.is_playing[env]:
                later = np.nan  # Nothing may look past it.
                continue
            after = 0.0 if step.terminated[env] else value(step.next_observations)[env]
            error = step.rewards[env] + 0.9 * after - value(step.observations)[env]
            is_over = step.terminated[env] or step.truncated[env]
            later = error if is_over else error + 0.9 * 0.8 * later
            assert got[row, env].item() == pytest.approx(later, abs=1e-5)
    assert not agent.rollout.has(PLAYING_BIT).all()


@pytest.mark.parametrize("recurrent", [False, True])
def test_nothing_is_learnt_from_a_step_that_resets(recurrent: bool):
    agents = [made(recurrent=recurrent, normalise_observations=True) for _ in range(2)]
    worlds = [Noise(8), Noise(8)]
    for _ in range(64):
        for agent, world, reward in zip(agents, worlds, (0.0, 1e6), strict=True):
            step = world.step(agent.act_batch(world.seen))
            rewards = np.where(step.is_playing, step.rewards, reward)
            agent.remember(replace(step, rewards=rewards))
            agent.learn()
    assert agents[0].num_updates > 8
    one, two = (agent.weights() for agent in agents)
    assert all(torch.equal(one[name], two[name]) for name in one)
    # Nor does it count for the mean of what is seen.
    assert agents[0].policy().encoder.moments[0].item() == agents[0].num_steps


@pytest.mark.parametrize("recurrent", [False, True])
def test_what_a_rollout_was_worth_is_asked_of_the_policy_that_played_it(recurrent: bool):
    agent, world = made(recurrent=recurrent, gae_lambda=0.8), Noise(8)
    filled(agent, world)
    agent.learn()  # The memory comes from the rollout before.
    policy, outputs = agent.policy(), list[torch.Tensor]()

    def note(_: Any, __: Any, said: Any) -> None:
        outputs.append(said)

    hook = policy.actions.register_forward_hook(note)
    filled(agent, world)
    hook.remove()
    assert agent.memories.first.abs().sum() > 0 or not recurrent
    agent._learner.estimate()
    rollout, playing = agent.rollout, agent.rollout.has(PLAYING_BIT)
    logits = torch.stack(outputs)
    expected = logits.log_softmax(-1).gather(-1, rollout.actions[..., None])[..., 0]
    assert not playing.all()
    assert torch.allclose(agent._learner.log_probs[playing], expected[playing], atol=1e-5)


@pytest.mark.parametrize("recurrent", [False, True])
@pytest.mark.parametrize("num_playing", [0, 1, 8])
def test_a_rollout_in_which_hardly_anybody_plays_does_no_harm(recurrent: bool, num_playing: int):
    # As many envs as steps in a rollout, and most of them reset in the same step.
    agent, world = made(recurrent=recurrent, rollout_steps=8, minibatch_size=1), Noise(8)
    never, playing = np.zeros(8, dtype=np.bool_), np.arange(8) < num_playing
    before = agent.weights()
    step = world.step(agent.act_batch(world.seen))
    agent.remember(replace(step, terminated=never, truncated=never, is_playing=playing))
    assert agent.learn() == 4 * num_playing
    after = agent.weights()
    assert all(torch.isfinite(tensor).all() for tensor in after.values())
    assert all(torch.equal(before[name], after[name]) for name in after) is (num_playing == 0)


def test_every_env_step_is_learnt_from_once_per_epoch():
    agent, world = made(minibatch_size=20), Noise(8)
    filled(agent, world)
    num_rows = [len(places) for places in agent._learner._rows()]
    assert sum(num_rows) == int(agent.rollout.has(PLAYING_BIT).sum())
    assert max(num_rows) - min(num_rows) <= 1
    assert abs(np.mean(num_rows) - 20) < 3


@pytest.mark.parametrize("recurrent", [False, True])
def test_updates_depend_on_steps_and_not_on_the_number_of_envs(recurrent: bool):
    counts = []
    for num_envs in (4, 8, 16):
        agent = made(num_envs, rollout_steps=64, minibatch_size=32, recurrent=recurrent)
        agent._learner._update = lambda places: {}
        world, never = Noise(num_envs), np.zeros(num_envs, dtype=np.bool_)
        for _ in range(640 // num_envs):
            step = world.step(agent.act_batch(world.seen))
            agent.remember(replace(step, terminated=never, truncated=never, is_playing=~never))
            agent.learn()
        counts.append(agent.num_updates)
    # Ten rollouts of two minibatches, four times each.
    assert counts == [80, 80, 80]


def test_a_rollout_is_as_long_as_asked_for_rounded_up_to_all_envs():
    assert made(num_envs=48).rollout.num_steps == 3
    assert made(num_envs=500).rollout.num_steps == 1


def test_the_learning_rate_falls_evenly_to_nothing():
    agent = made(anneal_learning_rate=True, anneal_steps=512)
    rates = []
    for _ in range(4):
        filled(agent, Noise(8))
        expected = 0.02 * max(0.0, 1.0 - agent.num_steps / 512)
        agent.learn()
        rates.append((agent._adam.learning_rate, expected))
    assert [rate for rate, _ in rates] == pytest.approx([expected for _, expected in rates])
    assert rates[-1][0] < 0.25 * rates[0][0]


# The past.


def test_an_episode_begins_without_the_past_of_the_one_before():
    agent, world = made(recurrent=True, rollout_steps=800), Noise(8)
    for _ in range(60):
        agent.remember(step := world.step(agent.act_batch(world.seen)))
        has_past = (agent.memories.now != 0.0).any(1).numpy()
        assert np.array_equal(has_past, step.is_playing)


def test_a_new_phase_begins_without_any_past():
    agent = made(recurrent=True)
    live(agent, Noise(8), 5)
    agent.drop_pending()
    assert (agent.memories.now == 0.0).all()
    assert (agent.memories.first == 0.0).all()
    assert agent.memory_stats() == {"share": 0.0}


def test_actions_that_are_neither_choices_nor_numbers_are_refused():
    with pytest.raises(ConfigError, match="PPO needs"):
        made(actions=Box(0, 3, (2,), np.int64))
