"""Soft actor-critic: two critics, a learned temperature, optionally pink noise.

After Haarnoja et al. 2018, "Soft actor-critic algorithms and applications". For continuous actions,
such as forces. `training` calls it; `arithmetic` has the formulas.

Do not use it for discrete actions (`dddqn`, `ppo`), or where envs are so fast that updates are the
bottleneck: `ppo` makes better use of many cheap steps.
"""

import math
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import Box, Space
from torch import nn

from stepladder.agents.arithmetic import soft_targets
from stepladder.agents.base import VectorStep
from stepladder.agents.networks.encoders import make_encoder
from stepladder.agents.networks.layers import GaussianActor, TwinCritic
from stepladder.agents.networks.normalising import ReturnNormaliser
from stepladder.agents.networks.optimiser import Adam, flatten_parameters
from stepladder.agents.observations import Layout, Observations, Seen
from stepladder.agents.policy import Policy
from stepladder.agents.replay.agent import ReplayAgent
from stepladder.agents.replay.memory import Sample
from stepladder.agents.replay.mirror import Mirror
from stepladder.agents.replay.repetition import Repetition
from stepladder.agents.sac.config import SACConfig
from stepladder.agents.sac.noise import PinkNoise
from stepladder.agents.saved_values import NumberSpec
from stepladder.errors import ConfigError

MAX_LOG_TEMPERATURE = 88.0
"""Beyond this, the temperature overflows 32 bits."""


class SACPolicy(Policy):
    """The network that chooses actions within bounds; see `Policy` for the arguments."""

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
        encoder = make_encoder(layout, config, generator)
        self.actor = GaussianActor(encoder, 2 * self.num_dims, config.hidden_sizes, generator)
        self.rewards = ReturnNormaliser() if config.normalise_rewards else None

    def choose(self, seen: Seen, noise: torch.Tensor | None) -> torch.Tensor:
        """Return actions within the env's bounds; without noise, the most likely ones."""
        mean, log_std = self.actor(self.actor.encoder(seen))
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

    def best_actions(self, seen: Seen, memory: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the most likely action of every row; nothing is remembered."""
        return self.choose(seen, None).reshape(-1, *self.shape), memory


class SAC(ReplayAgent):
    """Learns continuous actions from replay; see `ReplayAgent` for the arguments."""

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
        layout = config.layout(observation_space)
        first = torch.Generator().manual_seed(seed)
        self._policy = SACPolicy(layout, action_space, config, first)
        num_dims = self._policy.num_dims
        super().__init__(
            config, observation_space, action_space, num_envs,
            num_action_columns=num_dims, device=device, seed=seed, mirror=mirror,
        )  # fmt: skip
        self._policy.to(self.device)
        self._centre: npt.NDArray[np.float32] = self._policy.centre.cpu().numpy()
        self._reach: npt.NDArray[np.float32] = self._policy.reach.cpu().numpy()
        encoder = self._policy.actor.encoder
        width = encoder.num_features + num_dims
        self.critic = TwinCritic(width, config.hidden_sizes, first).to(self.device)
        self.target = TwinCritic(width, config.hidden_sizes, first).to(self.device)
        self.target.load_state_dict(self.critic.state_dict())
        self.target.requires_grad_(False)
        # What the encoder learns, it learns from the critics, which have a target of it too.
        self.target_encoder = deepcopy(encoder).requires_grad_(False) if encoder.learns else None
        self.log_temperature = nn.Parameter(
            torch.tensor(math.log(config.initial_temperature), device=self.device)
        )
        given = config.target_entropy
        self._target_entropy = -float(num_dims) if given is None else float(given)
        rate = config.learning_rate
        learnt = [one for one in encoder.parameters() if one.requires_grad]
        actor = self._policy.actor
        self.log_temperature.requires_grad_(config.learn_temperature)
        self._actor_adam = Adam(
            [*actor.trunk.parameters(), *actor.heads.parameters(), self.log_temperature], rate
        )
        self._critic_adam = Adam([*self.critic.parameters(), *learnt], rate)
        self._target_weights = flatten_parameters(
            [*self.target.parameters(), *self._target_learnt()]
        )
        self._pink = (
            PinkNoise(num_envs, num_dims, config.pink_steps, self.rng)
            if config.noise == "pink"
            else None
        )
        # A user's network may do what cannot be recorded.
        is_recorded = not encoder.is_own
        self._do_update = Repetition(
            self._update, self.device, self.generator, config.precision, is_recorded
        )

    def _target_learnt(self) -> list[nn.Parameter]:
        """Return the weights of the target encoder that follow those that are trained."""
        if self.target_encoder is None:
            return []
        pairs = zip(
            self._policy.actor.encoder.parameters(), self.target_encoder.parameters(), strict=True
        )
        return [twin for own, twin in pairs if own.requires_grad]

    # Acting.

    def policy(self) -> SACPolicy:
        """Return the network that chooses actions."""
        return self._policy

    @torch.inference_mode()
    def act_batch(
        self, observations: Observations, deterministic: bool = False
    ) -> npt.NDArray[np.float32]:
        """Choose an action in every env, in one forward pass; each env explores on its own."""
        seen = self.history.seen(observations, self.device)
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
        """Store one step of all envs; restart the noise of envs whose episode has ended."""
        super().remember(step)
        if self._pink is not None:
            self._pink.begin(step.terminated | step.truncated)

    def forget(self) -> None:
        """Drop all stored transitions and restart all noise."""
        super().forget()
        self._restart_noise()

    def drop_pending(self) -> None:
        """Drop transitions that are not complete and restart all noise."""
        super().drop_pending()
        self._restart_noise()

    def _restart_noise(self) -> None:
        if self._pink is not None:
            self._pink.begin(np.ones(self.num_envs, dtype=np.bool_))

    def _remembered_actions(self, actions: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        flat: Any = np.asarray(actions, dtype=np.float32).reshape(self.num_envs, -1)
        return (flat - self._centre) / self._reach

    def _update_normaliser(self, numbers: torch.Tensor) -> None:
        self._policy.actor.encoder.update_normaliser(numbers)

    def _update(self) -> dict[str, torch.Tensor]:
        """Do one update of critics, actor and temperature."""
        config, memory = self.config, self.memory
        sample = self._at(memory.draw(config.batch_size, self.generator))
        temperature = self.log_temperature.detach().exp()
        shape = (2, config.batch_size, self._policy.num_dims)
        noise = torch.randn(shape, device=self.device, generator=self.generator)

        critic_loss, value, features = self._critic_loss(sample, noise[0], temperature)
        self._critic_adam.minimise(critic_loss)
        actor_loss, temperature_loss, entropy = self._actor_loss(features, noise[1], temperature)
        # Neither depends on the other's weights: one step for both.
        self._actor_adam.minimise(actor_loss + temperature_loss)
        with torch.no_grad():
            self._target_weights.lerp_(self._critic_adam.weights, config.tau)
        return {
            "critic": critic_loss.detach(),
            "actor": actor_loss.detach(),
            "temperature": temperature,
            "entropy": entropy,
            "value": value,
        }

    def _critic_loss(
        self, sample: Sample, noise: torch.Tensor, temperature: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the critics' loss, their mean value, and what the actor reads."""
        features = self._policy.actor.encoder(sample.seen)
        values = self.critic(torch.cat([features, sample.actions], dim=1))
        errors = values - self._targets(sample, noise, temperature)
        loss = 0.5 * errors.square().mean(1).sum()
        return loss, values.detach().mean(), features.detach()

    def _actor_loss(
        self, features: torch.Tensor, noise: torch.Tensor, temperature: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the losses of the actor and of the temperature, and the entropy."""
        actions, log_probs = self._policy.actor.sample(features, noise)
        lower = self.critic(torch.cat([features, actions], dim=1)).min(0).values
        entropy = -log_probs.detach().mean()
        loss = (temperature * log_probs - lower).mean()
        return loss, self.log_temperature * (entropy - self._target_entropy), entropy

    @torch.no_grad()
    def _targets(
        self, sample: Sample, noise: torch.Tensor, temperature: torch.Tensor
    ) -> torch.Tensor:
        """Return what the critics should predict."""
        encoder = self._policy.actor.encoder
        prepared = encoder.prepare(sample.next_seen)
        features = encoder.join(prepared)
        actions, log_probs = self._policy.actor.sample(features, noise)
        if self.target_encoder is not None:
            features = self.target_encoder.join(prepared)
        values = self.target(torch.cat([features, actions], dim=1))
        return soft_targets(sample.rewards, sample.discounts, values, log_probs, temperature)

    def load_weights(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Act with other weights from now on, also during warm-up."""
        super().load_weights(weights)
        if self.target_encoder is not None:
            self.target_encoder.load_state_dict(self._policy.actor.encoder.state_dict())

    # Saving.

    def _optimisers(self) -> dict[str, Adam]:
        return {
            "critics": self._critic_adam,
            "actor": self._actor_adam,
        }

    def _parts(self) -> dict[str, Any]:
        others = {"noise": self._pink, "target_encoder": self.target_encoder}
        return super()._parts() | {
            **{name: part for name, part in others.items() if part is not None},
            "critic": self.critic,
            "target": self.target,
            "optimiser/actor": self._actor_adam,
            "optimiser/critic": self._critic_adam,
        }  # fmt: skip

    def _numbers(self) -> dict[str, Any]:
        return {"log_temperature": float(self.log_temperature.detach())}

    def _number_specs(self) -> list[NumberSpec]:
        most = MAX_LOG_TEMPERATURE
        return [NumberSpec(name="log_temperature", kind=float, low=-most, high=most)]

    def _set_numbers(self, numbers: Mapping[str, Any]) -> None:
        with torch.no_grad():
            self.log_temperature.fill_(numbers["log_temperature"])
