"""Soft actor-critic: two critics, a learned temperature, and pink noise if asked for.

After Haarnoja et al. 2018, "Soft actor-critic algorithms and applications". For continuous actions,
such as those of hockey. `training` feeds it; `arithmetic` has the formulas.

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
from stepladder.agents.mirror import Mirror
from stepladder.agents.networks import GaussianActor, TwinCritic
from stepladder.agents.noise import PinkNoise
from stepladder.agents.observations import Layout, Observations, Seen
from stepladder.agents.optimiser import Adam, flattened
from stepladder.agents.repetition import Repetition
from stepladder.agents.replaying import ReplayAgent
from stepladder.errors import ConfigError


class SACPolicy(nn.Module):
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
        self._centre, self._reach = (
            bound.cpu().numpy() for bound in (self._policy.centre, self._policy.reach)
        )
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
        flat = np.asarray(actions, dtype=np.float32).reshape(self.num_envs, -1)
        return (flat - self._centre) / self._reach

    def _meet(self, numbers: torch.Tensor) -> None:
        self._policy.actor.encoder.meet(numbers)

    def _update(self) -> dict[str, torch.Tensor]:
        """Do one update of critics, actor and temperature."""
        config, actor, memory = self.config, self._policy.actor, self.memory
        sample = memory.at(memory.draw(config.batch_size, self.generator), self.generator)
        temperature = self.log_temperature.detach().exp()
        shape = (config.batch_size, self._policy.num_dims)
        with torch.no_grad():
            features, next_features = actor.encoder(sample.seen), actor.encoder(sample.next_seen)
            noise = torch.randn(2, *shape, device=self.device, generator=self.generator)
            actions, log_probs = squashed_sample(*actor.of_features(next_features), noise[0])
            next_values = self.target(torch.cat([next_features, actions], dim=1))
            targets = soft_targets(
                sample.rewards, sample.discounts, next_values, log_probs, temperature
            )
        values = self.critic(torch.cat([features, sample.actions], dim=1))
        errors = values.detach() - targets
        self._critic_adam.follow([values], [errors / config.batch_size])

        actions, log_probs = squashed_sample(*actor.of_features(features), noise[1])
        value = self.critic.frozen(torch.cat([features, actions], dim=1)).amin(0)
        actor_loss = (temperature * log_probs - value).mean()
        self._actor_adam.follow([actor_loss])

        entropy = -log_probs.detach().mean()
        if config.learn_temperature:
            # Of a loss that is the temperature's logarithm times this difference.
            missing = entropy - self._target_entropy
            self._temperature_adam.follow([self.log_temperature], [missing])
        self._target_weights.lerp_(self._critic_adam.weights, config.tau)
        return {
            "critic": 0.5 * errors.square().mean(1).sum(),
            "actor": actor_loss.detach(),
            "temperature": temperature,
            "entropy": entropy,
            "value": values.detach().mean(),
        }

    # Saving.

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

    def _set_numbers(self, numbers: Mapping[str, Any]) -> None:
        super()._set_numbers(numbers)
        with torch.no_grad():
            self.log_temperature.fill_(numbers["log_temperature"])
