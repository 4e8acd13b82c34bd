"""Soft actor-critic: two critics, a learned temperature, and pink noise if asked for.

After Haarnoja et al. 2018, "Soft actor-critic algorithms and applications". For continuous actions,
such as forces. `training` feeds it; `arithmetic` has the formulas.

Do not use it where actions are choices (`dddqn`, `ppo`), or where envs are so quick that updates
are the bottleneck: `ppo` makes more of many cheap steps.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import Box, Space
from torch import nn

from stepladder.agents.arithmetic import soft_targets, squashed_sample
from stepladder.agents.base import VectorStep
from stepladder.agents.config import SACConfig
from stepladder.agents.gradients import squashed_gradient
from stepladder.agents.mirror import Mirror
from stepladder.agents.networks import GaussianActor, TwinCritic, spread_of
from stepladder.agents.noise import PinkNoise
from stepladder.agents.observations import Layout, Observations, Seen
from stepladder.agents.optimiser import Adam, flattened
from stepladder.agents.policy import Policy
from stepladder.agents.repetition import Repetition
from stepladder.agents.replay import Sample
from stepladder.agents.replaying import ReplayAgent
from stepladder.agents.saved_values import NumberSpec
from stepladder.errors import ConfigError

MAX_LOG_TEMPERATURE = 88.0
"""Beyond this, the temperature is not a number of 32 bits."""


class SACPolicy(Policy):
    """What is needed to act.

    Args:
        layout: Of what is seen.
        action_space: A Box with bounds.
        config: The settings.
        generator: What weights are drawn from.
    """

    centre: torch.Tensor
    reach: torch.Tensor

    def __init__(
        self,
        layout: Layout,
        action_space: Space[Any],
        config: SACConfig,
        generator: torch.Generator,
    ):
        super().__init__()
        if not isinstance(action_space, Box) or not action_space.is_bounded("both"):
            raise ConfigError(
                f"SAC needs actions that are numbers with bounds (Box); got {action_space}. Use "
                "PPO or DDDQN, or bound the actions."
            )
        if not (action_space.low < action_space.high).all():
            raise ConfigError(
                f"SAC needs actions whose lower bound is below the upper one; got {action_space}. "
                "Leave dimensions out that cannot move."
            )
        self.shape = action_space.shape
        self.num_dims = int(np.prod(self.shape))
        low, high = (
            torch.as_tensor(bound.reshape(-1), dtype=torch.float32)
            for bound in (action_space.low, action_space.high)
        )
        self.register_buffer("centre", 0.5 * low + 0.5 * high, persistent=False)
        self.register_buffer("reach", 0.5 * high - 0.5 * low, persistent=False)
        self.actor = GaussianActor(
            layout, self.num_dims, config.hidden_sizes, config.normalise_observations, generator
        )

    def choose(self, seen: Seen, noise: torch.Tensor | None) -> torch.Tensor:
        """Return actions within the env's bounds; without noise, the most likely ones."""
        mean, log_std = self.actor(seen)
        raw = mean if noise is None else torch.addcmul(mean, log_std.exp(), noise)
        return torch.addcmul(self.centre, self.reach, raw.tanh())

    def act(
        self, seen: Seen, memory: torch.Tensor, generator: torch.Generator, deterministic: bool
    ) -> tuple[npt.NDArray[Any], torch.Tensor]:
        """Choose an action in every row; nothing is remembered."""
        noise = None
        if not deterministic:
            shape = (len(seen.numbers), self.num_dims)
            noise = torch.randn(shape, device=seen.numbers.device, generator=generator)
        actions = self.choose(seen, noise).cpu().numpy()
        return actions.reshape(len(actions), *self.shape), memory


class SAC(ReplayAgent):
    """Learns continuous actions from what it remembers; see `ReplayAgent` for the arguments."""

    config: SACConfig  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(
        self,
        config: SACConfig,
        observation_space: Space[Any],
        action_space: Space[Any],
        num_envs: int,
        *,
        device: str | torch.device = "cpu",
        seed: int = 0,
        mirror: Mirror | None = None,
    ):
        layout, first = Layout(observation_space), torch.Generator().manual_seed(seed)
        self._policy = SACPolicy(layout, action_space, config, first)
        num_dims = self._policy.num_dims
        super().__init__(
            config, observation_space, action_space, num_envs,
            num_action_columns=num_dims, device=device, seed=seed, mirror=mirror,
        )  # fmt: skip
        self._policy.to(self.device)
        self._centre: npt.NDArray[np.float32] = self._policy.centre.cpu().numpy()
        self._reach: npt.NDArray[np.float32] = self._policy.reach.cpu().numpy()
        width = layout.num_features + num_dims
        self.critic = TwinCritic(width, config.hidden_sizes, first).to(self.device)
        self.target = TwinCritic(width, config.hidden_sizes, first).to(self.device)
        self.target.load_state_dict(self.critic.state_dict())
        self.target.requires_grad_(False)
        self.log_temperature = nn.Parameter(
            torch.tensor(math.log(config.initial_temperature), device=self.device)
        )
        given = config.target_entropy
        self._target_entropy = -float(num_dims) if given is None else float(given)
        rate = config.learning_rate
        self._actor_adam = Adam(self._policy.parameters(), rate)
        self._critic_adam = Adam(self.critic.parameters(), rate)
        self._temperature_adam = Adam([self.log_temperature], rate)
        self._target_weights = flattened(list(self.target.parameters()))
        self._pink = (
            PinkNoise(num_envs, num_dims, config.pink_steps, self.rng)
            if config.noise == "pink"
            else None
        )
        self._do_update = Repetition(self._update, self.device, self.generator)

    # Playing.

    def policy(self) -> SACPolicy:
        """Return what chooses actions."""
        return self._policy

    @torch.inference_mode()
    def act_batch(
        self, observations: Observations, deterministic: bool = False
    ) -> npt.NDArray[np.float32]:
        """Choose an action in every env, in one forward pass, each exploring by itself."""
        seen = self.layout.to_seen(observations, self.device)
        num_rows = len(seen.numbers)
        if not deterministic and self.acts_at_random:
            shares = torch.rand(
                num_rows, self._policy.num_dims, device=self.device, generator=self.generator
            )
            actions = self._policy.centre + self._policy.reach * (2.0 * shares - 1.0)
        else:
            noise = None if deterministic else self._noise(num_rows)
            actions = self._policy.choose(seen, noise)
        return actions.cpu().numpy().reshape(num_rows, *self._policy.shape)

    def _noise(self, num_rows: int) -> torch.Tensor:
        if self._pink is not None:
            return torch.from_numpy(self._pink.draw()).to(self.device)
        shape = (num_rows, self._policy.num_dims)
        return torch.randn(shape, device=self.device, generator=self.generator)

    # Learning.

    def remember(self, step: VectorStep) -> None:
        """Take in what happened; noise begins anew in envs whose episode has ended, only there."""
        super().remember(step)
        if self._pink is not None:
            self._pink.begin(step.terminated | step.truncated)

    def forget(self) -> None:
        """Drop everything that was remembered; noise begins anew everywhere."""
        super().forget()
        self._begin_noise()

    def drop_pending(self) -> None:
        """Forget transitions that are not finished; noise begins anew everywhere."""
        super().drop_pending()
        self._begin_noise()

    def _begin_noise(self) -> None:
        if self._pink is not None:
            self._pink.begin(np.ones(self.num_envs, dtype=np.bool_))

    def _remembered_actions(self, actions: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        flat: Any = np.asarray(actions, dtype=np.float32).reshape(self.num_envs, -1)
        return (flat - self._centre) / self._reach

    def _meet(self, numbers: torch.Tensor) -> None:
        self._policy.actor.encoder.meet(numbers)

    @torch.no_grad()
    def _update(self) -> dict[str, torch.Tensor]:
        """Do one update of critics, actor and temperature."""
        config, memory, encoder = self.config, self.memory, self._policy.actor.encoder
        sample = memory.at(memory.draw(config.batch_size, self.generator), self.generator)
        temperature = self.log_temperature.exp()
        shape = (2, config.batch_size, self._policy.num_dims)
        noise = torch.randn(shape, device=self.device, generator=self.generator)
        features = encoder(sample.seen)
        targets = self._targets(sample, encoder(sample.next_seen), noise[0], temperature)
        kept = self.critic.keep(torch.cat([features, sample.actions], dim=1))
        values = kept[-1]
        errors = values - targets
        self.critic.back(kept, errors / config.batch_size)
        self._critic_adam.step()
        actor_loss, entropy = self._follow_critics(features, noise[1], temperature)
        if config.learn_temperature:
            # The loss is the temperature's logarithm times this difference.
            assert self.log_temperature.grad is not None
            self.log_temperature.grad.copy_(entropy - self._target_entropy)
            self._temperature_adam.step()
        self._target_weights.lerp_(self._critic_adam.weights, config.tau)
        return {
            "critic": 0.5 * errors.square().mean(1).sum(),
            "actor": actor_loss,
            "temperature": temperature,
            "entropy": entropy,
            "value": values.mean(),
        }

    def _targets(
        self,
        sample: Sample,
        features: torch.Tensor,
        noise: torch.Tensor,
        temperature: torch.Tensor,
    ) -> torch.Tensor:
        """Return what the critics should say, given the features of the next states."""
        mean, log_std = spread_of(self._policy.actor.said(features))
        actions, log_probs = squashed_sample(mean, log_std, noise)
        values = self.target(torch.cat([features, actions], dim=1))
        return soft_targets(sample.rewards, sample.discounts, values, log_probs, temperature)

    def _follow_critics(
        self, features: torch.Tensor, noise: torch.Tensor, temperature: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Do one step of the actor towards what the critics value; return its loss and entropy."""
        actor, num_rows = self._policy.actor, len(features)
        kept = actor.keep(features)
        mean, log_std = spread_of(kept[-1])
        actions, log_probs = squashed_sample(mean, log_std, noise)
        judged = self.critic.keep(torch.cat([features, actions], dim=1))
        values, lower = judged[-1].min(0, keepdim=True)
        # Only the lower of the two values counts.
        by_value = torch.zeros_like(judged[-1]).scatter_(0, lower, -1.0 / num_rows)
        by_action = self.critic.to_inputs(judged, by_value)[:, features.shape[1] :]
        by_mean, by_spread = squashed_gradient(
            by_action, actions, log_std, noise, temperature / num_rows
        )
        is_within = log_std == kept[-1][:, self._policy.num_dims :]
        actor.back(kept, torch.cat([by_mean, by_spread * is_within], dim=1))
        self._actor_adam.step()
        return (temperature * log_probs - values[0]).mean(), -log_probs.mean()

    # Saving.

    def _optimisers(self) -> dict[str, Adam]:
        return {
            "critics": self._critic_adam,
            "actor": self._actor_adam,
            "temperature": self._temperature_adam,
        }

    def _parts(self) -> dict[str, Any]:
        noise = {} if self._pink is None else {"noise": self._pink}
        return super()._parts() | noise | {
            "critic": self.critic,
            "target": self.target,
            "optimiser/actor": self._actor_adam,
            "optimiser/critic": self._critic_adam,
            "optimiser/temperature": self._temperature_adam,
        }  # fmt: skip

    def _numbers(self) -> dict[str, Any]:
        return super()._numbers() | {"log_temperature": float(self.log_temperature.detach())}

    def _number_specs(self) -> list[NumberSpec]:
        limit = NumberSpec(
            name="log_temperature", kind=float, low=-MAX_LOG_TEMPERATURE, high=MAX_LOG_TEMPERATURE
        )
        return [*super()._number_specs(), limit]

    def _set_numbers(self, numbers: Mapping[str, Any]) -> None:
        super()._set_numbers(numbers)
        with torch.no_grad():
            self.log_temperature.fill_(numbers["log_temperature"])
