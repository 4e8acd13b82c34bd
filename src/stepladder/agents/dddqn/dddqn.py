"""Dueling double deep Q-network, optionally with prioritised replay and n-step returns.

After Mnih et al. 2015 (replay and targets), van Hasselt et al. 2016 (double), Wang et al. 2016
(dueling), Schaul et al. 2016 (priorities). For discrete actions; an action of several choices is
one of all combinations. `training` calls it; `arithmetic` has the formulas.

Do not use it for continuous actions (`sac`), or where the best policy is stochastic.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import Space
from torch.nn.functional import mse_loss, smooth_l1_loss

from stepladder.agents.arithmetic import double_q_targets
from stepladder.agents.choices import combinations_of
from stepladder.agents.dddqn.config import DDDQNConfig
from stepladder.agents.dddqn.priorities import Priorities, importance
from stepladder.agents.networks.encoders import make_encoder
from stepladder.agents.networks.layers import DuelingNetwork
from stepladder.agents.networks.normalising import ReturnNormaliser
from stepladder.agents.networks.optimiser import Adam
from stepladder.agents.observations import Layout, Observations, Seen
from stepladder.agents.policy import Policy
from stepladder.agents.replay.agent import ReplayAgent
from stepladder.agents.replay.memory import Sample
from stepladder.agents.replay.mirror import Mirror
from stepladder.agents.replay.repetition import Repetition

LOSS_FUNCTIONS = {"huber": smooth_l1_loss, "mse": mse_loss}


class DDDQNPolicy(Policy):
    """The network that chooses actions; see `Policy` for the arguments."""

    def __init__(
        self,
        layout: Layout,
        action_space: Space[Any],
        config: DDDQNConfig,
        generator: torch.Generator,
    ):
        super().__init__()
        self.choices = combinations_of(action_space, "DDDQN")
        self.num_actions = self.choices.num_combinations
        self._epsilon = config.epsilon_final
        encoder = make_encoder(layout, config, generator)
        self.network = DuelingNetwork(encoder, 1 + self.num_actions, config.hidden_sizes, generator)
        self.rewards = ReturnNormaliser() if config.normalise_rewards else None

    def choose(self, seen: Seen) -> torch.Tensor:
        """Return the number of the best combination of choices in every row."""
        return self.network.advantages(seen).argmax(-1)

    def act(
        self, seen: Seen, memory: torch.Tensor, generator: torch.Generator, deterministic: bool
    ) -> tuple[npt.NDArray[Any], torch.Tensor]:
        """Choose an action in every row, some at random if it explores; nothing is remembered."""
        actions = self.choose(seen)
        if not deterministic:
            options = {"device": actions.device, "generator": generator}
            explores = torch.rand(len(actions), **options) < self._epsilon
            random = torch.randint(self.num_actions, (len(actions),), **options)
            actions = torch.where(explores, random, actions)
        return self.choices.from_combinations(actions.cpu().numpy()), memory

    def best_actions(self, seen: Seen, memory: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the best action of every row as the env takes it; nothing is remembered."""
        return self.choices.taken_combinations(self.choose(seen)), memory


class DDDQN(ReplayAgent):
    """Learns discrete actions from replay; see `ReplayAgent` for the arguments."""

    config: DDDQNConfig  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(
        self,
        config: DDDQNConfig,
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
        self._policy = DDDQNPolicy(layout, action_space, config, first)
        super().__init__(
            config, observation_space, action_space, num_envs,
            num_action_columns=1, num_choices=self._policy.num_actions,
            device=device, seed=seed, mirror=mirror,
        )  # fmt: skip
        self._policy.to(self.device)
        self.target = DDDQNPolicy(layout, action_space, config, first).network.to(self.device)
        self.target.load_state_dict(self._policy.network.state_dict())
        self.target.requires_grad_(False)
        self._adam = Adam(
            self._policy.parameters(), config.learning_rate, max_grad_norm=config.max_grad_norm
        )
        self._priorities = (
            Priorities(self.memory.capacity, config.priority_exponent)
            if config.prioritised
            else None
        )
        # A user's network may do what cannot be recorded.
        is_recorded = not self._policy.network.encoder.is_own
        plain = Repetition(
            self._plain_update, self.device, self.generator, config.precision, is_recorded
        )
        self._do_update = plain if self._priorities is None else self._prioritised_update

    @property
    def epsilon(self) -> float:
        """Current share of random actions."""
        config = self.config
        done = min(1.0, self.num_steps / config.epsilon_steps)
        return config.epsilon_start + done * (config.epsilon_final - config.epsilon_start)

    # Acting.

    def policy(self) -> DDDQNPolicy:
        """Return the network that chooses actions."""
        return self._policy

    @torch.inference_mode()
    def act_batch(
        self, observations: Observations, deterministic: bool = False
    ) -> npt.NDArray[np.int64]:
        """Choose an action in every env, in one forward pass; each env explores on its own."""
        policy, to_env = self._policy, self._policy.choices.from_combinations
        seen = self.history.seen(observations, self.device)
        if deterministic:
            return to_env(policy.choose(seen).cpu().numpy())
        # The best action of an untrained network does not explore.
        share = 1.0 if self.acts_at_random else self.epsilon
        explores = self.rng.random(len(seen.numbers)) < share
        random = self.rng.integers(policy.num_actions, size=int(explores.sum()))
        if explores.all():
            return to_env(random)
        actions = policy.choose(seen).cpu().numpy()
        actions[explores] = random
        return to_env(actions)

    # Learning.

    def _remembered_actions(self, actions: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        return self._policy.choices.to_combinations(actions).astype(np.float32)[:, None]

    def _added(self, places: npt.NDArray[np.int64]) -> None:
        if self._priorities is not None:
            self._priorities.add(places)

    def _update_normaliser(self, numbers: torch.Tensor) -> None:
        self._policy.network.encoder.update_normaliser(numbers)

    def _plain_update(self) -> dict[str, torch.Tensor]:
        """Do one update with transitions that are drawn uniformly."""
        places = self.memory.draw(self.config.batch_size, self.generator)
        return self._follow(self._at(places), None)[0]

    def _prioritised_update(self) -> dict[str, torch.Tensor]:
        """Do one update with transitions drawn by priority; update their priorities."""
        assert self._priorities is not None
        config = self.config
        places, probs = self._priorities.draw(self.rng.random(config.batch_size))
        done = min(1.0, self.num_updates / config.priority_correction_updates)
        correction = config.priority_correction + done * (1.0 - config.priority_correction)
        weights = importance(probs, self.memory.size, correction).astype(np.float32)
        sample = self._at(torch.from_numpy(places).to(self.device))
        figures, errors = self._follow(sample, torch.from_numpy(weights).to(self.device))
        # Before errors become priorities. Copying them waits for the device in any case.
        self._require_update(figures)
        self._priorities.update(places, errors.cpu().numpy())
        return figures

    def _follow(
        self, sample: Sample, weights: torch.Tensor | None
    ) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        """Do one step along the gradient of the loss; return figures and errors.

        Args:
            sample: Transitions.
            weights: Of their losses; None is 1 for all.
        """
        network = self._policy.network
        with torch.no_grad():
            targets = double_q_targets(
                sample.rewards,
                sample.discounts,
                # The best advantage is that of the best value.
                network.advantages(sample.next_seen),
                self.target(sample.next_seen),
            )
        values = network(sample.seen).gather(1, sample.actions.long()).squeeze(1)
        losses = LOSS_FUNCTIONS[self.config.loss](values, targets, reduction="none")
        loss = (losses if weights is None else losses * weights).mean()
        self._adam.minimise(loss)
        values = values.detach()
        errors = values - targets
        return {"q": loss.detach(), "value": values.mean(), "error": errors.abs().mean()}, errors

    def _after_update(self) -> None:
        if self.num_updates % self.config.target_every_updates == 0:
            self._copy_to_target()

    @torch.no_grad()
    def _copy_to_target(self) -> None:
        for old, new in zip(
            self.target.state_dict().values(),
            self._policy.network.state_dict().values(),
            strict=True,
        ):
            old.copy_(new)

    def load_weights(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Act with other weights from now on, also during warm-up; the target gets them too."""
        super().load_weights(weights)
        self._copy_to_target()

    def forget(self) -> None:
        """Drop all stored transitions and their priorities."""
        super().forget()
        if self._priorities is not None:
            self._priorities.clear()

    def memory_stats(self) -> dict[str, float]:
        """Return how full the memory is, and the share of random actions."""
        return {**super().memory_stats(), "epsilon": self.epsilon}

    # Saving.

    def _optimisers(self) -> dict[str, Adam]:
        return {"network": self._adam}

    def _check_parts(self, states: Mapping[str, Any]) -> None:
        super()._check_parts(states)
        if self._priorities is not None:
            self._priorities.check_size(states["priorities"], states["memory"]["size"])

    def _parts(self) -> dict[str, Any]:
        priorities = {} if self._priorities is None else {"priorities": self._priorities}
        return super()._parts() | priorities | {"target": self.target, "optimiser": self._adam}
