"""Proximal policy optimisation, optionally recurrent.

After Schulman et al. 2017. For choices, one or several, and for numbers. `training` calls it;
`arithmetic` has the formulas. With next-step autoreset the row after the end of an episode holds
its last observation: the value to bootstrap from is there when an episode is truncated, and the row
itself is not learnt from.

Do not use it where env steps are expensive: each rollout is used once and then dropped.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import Space

from stepladder.agents.base import Agent, VectorStep
from stepladder.agents.divergence import Extent
from stepladder.agents.networks.optimiser import Adam
from stepladder.agents.observations import Observations, Packed, on_device
from stepladder.agents.ppo.acting import BatchActor, DeviceBatchActor, HostBatchActor
from stepladder.agents.ppo.actor_critic import ActorCritic
from stepladder.agents.ppo.config import PPOConfig
from stepladder.agents.ppo.learner import Learner
from stepladder.agents.ppo.memories import Memories
from stepladder.agents.ppo.rollout import PLAYING_BIT, Rollout


class PPO(Agent):
    """Learns from the latest rollout; see `Agent` for the arguments."""

    config: PPOConfig  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(
        self,
        config: PPOConfig,
        observation_space: Space[Any],
        action_space: Space[Any],
        num_envs: int,
        *,
        device: str | torch.device = "cpu",
        seed: int = 0,
    ):
        super().__init__(
            config, observation_space, action_space, num_envs, device=device, seed=seed
        )
        first = torch.Generator().manual_seed(seed)
        self._policy = ActorCritic(self.layout, action_space, config, first).to(self.device)
        self._adam = Adam(
            self._policy.parameters(), config.learning_rate, eps=1e-5,
            max_grad_norm=config.max_grad_norm,
        )  # fmt: skip
        num_steps = -(-config.rollout_steps // num_envs)
        self.rollout = Rollout(
            self.layout, num_steps, num_envs, self._policy.num_action_columns,
            None if self._policy.choices is None else self._policy.choices.highest,
            self.device,
        )  # fmt: skip
        self.memories = Memories(self._policy.first_memory(num_envs))
        self.use_device(self.device.type != "cpu")

    def use_device(self, is_used: bool) -> None:
        """Act and learn as on a GPU, or as on the CPU; a GPU needs the former."""
        self._group_class: type[BatchActor] = DeviceBatchActor if is_used else HostBatchActor
        self._learner = Learner(
            self.config, self._policy, self._adam, self.rollout, self.memories,
            self.generator, self.rng, has_fixed_sizes=is_used,
        )  # fmt: skip
        self.take_turns([slice(0, self.num_envs)])

    def take_turns(self, groups: Sequence[slice]) -> None:
        """Play groups of envs in turn; before anything is remembered."""
        self._groups = [
            self._group_class(envs, self._policy, self.rollout, self.memories, self.generator)
            for envs in groups
        ]
        self.rollout.num_filled = [0] * len(groups)
        self._begun: list[Packed | None] = [None] * len(groups)
        """Of each group: what actions were begun for."""
        self._ahead: list[Observations | None] = [None] * len(groups)
        """The same as the env gave it, if they were begun ahead and are not taken yet."""
        self._latest: list[Any] = [None] * len(groups)
        """Of each group: what it saw after the last step of a rollout."""

    # Acting.

    def policy(self) -> ActorCritic:
        """Return the network that chooses actions."""
        return self._policy

    def act_batch(
        self, observations: Observations, deterministic: bool = False, group: int = 0
    ) -> npt.NDArray[Any]:
        """Choose an action in every env, in one forward pass; each env explores on its own.

        Where actions are begun ahead, those for what the last step has led to are ready.
        """
        chosen = self._groups[group]
        if deterministic:
            return self._best(observations, chosen)
        if self._ahead[group] is None or self._ahead[group] is not observations:
            self._begin(observations, group)
        self._ahead[group] = None
        return self._policy.to_env(torch.from_numpy(chosen.finish()))

    @torch.inference_mode()
    def _best(self, observations: Observations, group: BatchActor) -> npt.NDArray[Any]:
        seen = on_device(self.history.pack(observations, group.envs), self.device)
        memory = self.memories.now[group.envs]
        return self._policy.to_env(self._policy.play(seen, memory, self.generator, True)[0])

    def _begin(self, observations: Observations, group: int) -> None:
        """Begin to choose actions."""
        packed = self.history.pack(observations, self._groups[group].envs)
        self._begun[group] = packed
        self._groups[group].begin(packed, self.rollout.num_filled[group])

    def _begin_ahead(self, observations: Observations, group: int) -> None:
        """Begin to choose actions that will be asked for, where that saves time."""
        if self._groups[group].acts_ahead:
            self._begin(observations, group)
            self._ahead[group] = observations

    # Learning.

    def remember(self, step: VectorStep) -> None:
        """Store one step of all envs, or of a group; its actions must come from `act_batch`."""
        number, rollout = step.group, self.rollout
        group, begun = self._groups[number], self._begun[number]
        assert begun is not None, "remember follows act_batch"
        self._begun[number] = None
        self._follow_step(step, begun, group.envs)
        group.end_step(rollout.num_filled[number], step)
        rollout.num_filled[number] += 1
        self.num_steps += int(np.count_nonzero(step.is_playing))
        if rollout.num_filled[number] == rollout.num_steps:
            group.keep_last(self.history.pack(step.next_observations, group.envs))
            self._latest[number] = step.next_observations
        else:
            self._begin_ahead(step.next_observations, number)

    def learn(self) -> int:
        """Learn from a rollout once it is full; return the number of updates."""
        if not self.rollout.is_full:
            return 0
        config, count = self.config, 0
        if config.anneal_learning_rate:
            left = max(0.0, 1.0 - self.num_steps / config.anneal_steps)
            self._adam.learning_rate = config.learning_rate * left
        self._learner.estimate()
        for figures in self._learner.learn():
            count += 1
            self._note(**figures)
            if self.device.type == "cpu":
                self._require_update(figures)
        self.num_updates += count
        if self.device.type != "cpu":
            # Once for all updates: each check waits for the device.
            self.check_finite()
        # Only now: acting and learning must normalise a rollout in the same way.
        self._update_normaliser()
        self.rollout.clear()
        if self.on_rollout is not None:
            self.on_rollout(self._learner.advantages.cpu().numpy())
        self.memories.begin_rollout()
        for number, observations in enumerate(self._latest):
            self._begin_ahead(observations, number)
        return count

    def _update_normaliser(self) -> None:
        if self.config.normalise_observations:
            rollout = self.rollout
            numbers = rollout.numbers[:-1][rollout.has(PLAYING_BIT)]
            self._policy.encoder.update_normaliser(numbers)

    def load_weights(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Act with other weights from now on; the rollout of the old ones is dropped."""
        super().load_weights(weights)
        self.forget()

    def forget(self) -> None:
        """Drop the current rollout and all memory; all envs must be reset."""
        self._begun = [None] * len(self._groups)
        self._ahead = [None] * len(self._groups)
        self.rollout.clear()
        self.history.begin()
        self.memories.clear()

    def drop_pending(self) -> None:
        """Drop the current rollout: its episodes will not be continued."""
        self.forget()

    def memory_stats(self) -> dict[str, float]:
        """Return the share of the rollout that is filled."""
        return {"share": min(self.rollout.num_filled) / self.rollout.num_steps}

    # Saving.

    def _optimisers(self) -> dict[str, Adam]:
        return {"policy and value networks": self._adam}

    def _extent(self) -> Extent:
        return self.rollout.extent()

    def _parts(self) -> dict[str, Any]:
        return {"rollout": self.rollout, "optimiser": self._adam, "past": self.memories}
