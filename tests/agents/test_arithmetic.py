"""The formulas, against numbers worked out by hand."""

import math

import numpy as np
import pytest
import torch

from stepladder.agents.arithmetic import (
    advantages_of,
    clipped_policy_loss,
    double_q_targets,
    dueling_values,
    normal_entropy,
    normal_log_probs,
    soft_targets,
    squashed_sample,
    standardised,
)


def test_dueling_values_take_the_mean_advantage_off():
    values = dueling_values(torch.tensor([[2.0]]), torch.tensor([[1.0, 3.0, 5.0]]))
    # The mean is 3: 2 + 1 - 3, 2 + 3 - 3, 2 + 5 - 3.
    assert values.tolist() == [[0.0, 2.0, 4.0]]


def test_a_double_target_asks_one_network_for_the_choice_and_the_other_for_its_worth():
    targets = double_q_targets(
        torch.tensor([1.0, 1.0]),
        torch.tensor([0.5, 0.0]),
        next_online=torch.tensor([[1.0, 9.0], [1.0, 9.0]]),
        next_target=torch.tensor([[7.0, 4.0], [7.0, 4.0]]),
    )
    # The best of the target alone would be 7; and nothing follows an end.
    assert targets.tolist() == [3.0, 1.0]


def test_a_squashed_sample_has_the_density_of_a_change_of_variables():
    mean, log_std, noise = (
        torch.tensor([[0.3, -2.0]]),
        torch.tensor([[-0.5, 0.7]]),
        torch.tensor([[1.2, -0.4]]),
    )
    actions, log_probs = squashed_sample(mean, log_std, noise)
    raw = mean + log_std.exp() * noise
    density = torch.distributions.Normal(mean, log_std.exp()).log_prob(raw)
    expected = (density - torch.log(1.0 - raw.tanh() ** 2)).sum(-1)
    assert torch.allclose(actions, raw.tanh())
    assert torch.allclose(log_probs, expected, atol=1e-5)


def test_a_squashed_sample_keeps_its_digits_far_from_the_middle():
    _, log_probs = squashed_sample(
        torch.tensor([[30.0]]), torch.tensor([[0.0]]), torch.tensor([[0.0]])
    )
    # log(1 - tanh(30)^2) is log 4 - 60, where 1 - tanh^2 itself is 0 in floats.
    expected = -0.5 * math.log(2.0 * math.pi) - (math.log(4.0) - 60.0)
    assert log_probs.item() == pytest.approx(expected, rel=1e-6)


def test_a_soft_target_takes_the_lower_critic_and_pays_for_entropy():
    targets = soft_targets(
        torch.tensor([1.0, 1.0]),
        torch.tensor([0.9, 0.0]),
        torch.tensor([[4.0, 4.0], [3.0, 5.0]]),
        torch.tensor([-2.0, -2.0]),
        torch.tensor(0.5),
    )
    # 1 + 0.9 (3 + 0.5 * 2); and nothing follows an end.
    assert targets.tolist() == pytest.approx([4.6, 1.0])


def test_densities_and_entropies_of_normal_numbers_are_those_of_torch():
    generator = torch.Generator().manual_seed(0)
    actions, mean = (torch.randn(5, 3, generator=generator) for _ in range(2))
    log_std = torch.tensor([-1.0, 0.0, 0.5])
    normal = torch.distributions.Normal(mean, log_std.exp())
    assert torch.allclose(
        normal_log_probs(actions, mean, log_std), normal.log_prob(actions).sum(-1)
    )
    assert torch.allclose(normal_entropy(log_std), normal.entropy().sum(-1)[0])


def test_advantages_of_three_steps_worked_out_by_hand():
    # gamma 0.5, lambda 0.5. Values 1, 2, 4 and then 8.
    rewards, values = (
        torch.tensor([[1.0], [0.0], [2.0]]),
        torch.tensor([[1.0], [2.0], [4.0], [8.0]]),
    )
    never = torch.zeros(3, 1, dtype=torch.bool)
    got = advantages_of(rewards, values, never, never, 0.5, 0.5)
    # Errors: 1 + 1 - 1 = 1; 0 + 2 - 2 = 0; 2 + 4 - 4 = 2. From the end: 2, 0.5, 1.125.
    assert got[:, 0].tolist() == [1.125, 0.5, 2.0]
    # The second step terminates: nothing comes after it. Errors: 1, -2, 2.
    over = torch.tensor([[False], [True], [False]])
    assert advantages_of(rewards, values, over, over, 0.5, 0.5)[:, 0].tolist() == [0.5, -2.0, 2.0]
    # It is cut off: the next value still counts, the next advantage does not. Errors: 1, 0, 2.
    assert advantages_of(rewards, values, never, over, 0.5, 0.5)[:, 0].tolist() == [1.0, 0.0, 2.0]


def slow_advantages(episode: dict[str, np.ndarray], gamma: float, gae_lambda: float) -> list[float]:
    """Return the advantages of one episode, each as a sum over all later errors."""
    rewards, values = episode["rewards"], episode["values"]
    errors = [
        rewards[step] + gamma * values[step + 1] - values[step] for step in range(len(rewards))
    ]
    return [
        sum(
            (gamma * gae_lambda) ** (later - step) * errors[later]
            for later in range(step, len(errors))
        )
        for step in range(len(errors))
    ]


def test_advantages_with_next_step_autoreset_are_those_of_each_episode_by_itself():
    rng = np.random.default_rng(0)
    num_steps, num_envs, gamma, gae_lambda = 60, 5, 0.97, 0.9
    rewards, values = (
        rng.normal(size=(num_steps, num_envs)),
        rng.normal(size=(num_steps + 1, num_envs)),
    )
    is_playing = np.ones((num_steps, num_envs), dtype=bool)
    terminated, truncated = np.zeros((2, num_steps, num_envs), dtype=bool)
    expected = np.full((num_steps, num_envs), np.nan)
    for env in range(num_envs):
        first = 0
        for step in range(num_steps):
            if step and (terminated | truncated)[step - 1, env]:
                is_playing[step, env], rewards[step, env], first = False, 0.0, step + 1
                continue
            chance = rng.random()
            terminated[step, env], truncated[step, env] = chance < 0.1, 0.1 <= chance < 0.2
            if chance < 0.2 or step == num_steps - 1:
                last = 0.0 if terminated[step, env] else values[step + 1, env]
                episode = {
                    "rewards": rewards[first : step + 1, env],
                    "values": np.append(values[first : step + 1, env], last),
                }
                expected[first : step + 1, env] = slow_advantages(episode, gamma, gae_lambda)
    got = advantages_of(
        *(torch.from_numpy(part) for part in (rewards, values, terminated, terminated | truncated)),
        gamma,
        gae_lambda,
    ).numpy()
    assert np.array_equal(np.isnan(expected), ~is_playing)
    assert (~is_playing).sum() > 20
    np.testing.assert_allclose(got[is_playing], expected[is_playing], atol=1e-5)


def test_the_clipped_loss_gains_nothing_beyond_its_clip():
    old, advantages = torch.zeros(4), torch.tensor([1.0, 1.0, -1.0, -1.0])
    log_probs = torch.tensor([1.5, 0.5, 1.5, 0.5]).log()
    loss, ratios = clipped_policy_loss(log_probs, old, advantages, 0.2)
    assert ratios.tolist() == pytest.approx([1.5, 0.5, 1.5, 0.5])
    # Better and more likely: cut at 1.2. Better and less likely: 0.5. Worse: -1.5 and, cut, -0.8.
    assert loss.item() == pytest.approx(-(1.2 + 0.5 - 1.5 - 0.8) / 4)


def test_standardised_numbers_have_mean_0_and_spread_1():
    numbers = standardised(torch.tensor([1.0, 2.0, 3.0, 6.0]))
    assert numbers.mean().item() == pytest.approx(0.0, abs=1e-6)
    assert numbers.std().item() == pytest.approx(1.0)
    assert standardised(torch.tensor([5.0])).tolist() == [0.0]
    assert standardised(torch.tensor([5.0, 5.0])).tolist() == [0.0, 0.0]
