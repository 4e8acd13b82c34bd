"""Proximal policy optimisation, optionally recurrent.

After Schulman et al. 2017. For discrete and continuous actions. `training` calls it; `arithmetic`
has the formulas. With next-step autoreset the row after the end of
an episode holds its last observation: the value to bootstrap from is there when an episode is
truncated, and the row itself is not learnt from.

Do not use it where env steps are expensive: each rollout is used once and then dropped.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import Space
from torch.nn.functional import mse_loss

from stepladder.agents.arithmetic import advantages_of, clipped_policy_loss, standardised
from stepladder.agents.base import Agent, VectorStep
from stepladder.agents.divergence import Extent
from stepladder.agents.observations import Observations, Seen
from stepladder.agents.optimiser import Adam
from stepladder.agents.ppo.actor_critic import ActorCritic
from stepladder.agents.ppo.config import PPOConfig
from stepladder.agents.ppo.rollout import Rollout
from stepladder.agents.saved_values import TensorSpec, check_state


class Minibatch(NamedTuple):
    """The data of one update; the first axis is env steps, or steps and envs if recurrent."""

    features: torch.Tensor
    actions: torch.Tensor
    log_probs: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor

    def each(self, change: Callable[[torch.Tensor], torch.Tensor]) -> "Minibatch":
        """Return a batch with a change applied to each of its tensors."""
        return Minibatch(*map(change, self))


class SequencePart(NamedTuple):
    """Which steps of which envs are one minibatch of a recurrent policy."""

    times: slice
    envs: torch.Tensor


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
            num_choices=self._policy.num_outputs if self._policy.is_choice else 0,
        )  # fmt: skip
        self._memory = self._policy.first_memory(num_envs)
        self._first_memory = self._memory.clone()
        self._pasts = self._first_memory[None]
        self._raw_actions: npt.NDArray[Any] | None = None

    # Acting.

    def policy(self) -> ActorCritic:
        """Return the network that chooses actions."""
        return self._policy

    @torch.inference_mode()
    def act_batch(
        self, observations: Observations, deterministic: bool = False
    ) -> npt.NDArray[Any]:
        """Choose an action in every env, in one forward pass; each env explores on its own."""
        seen = self.layout.to_seen(observations, self.device)
        raw, memory = self._policy.play(seen, self._memory, self.generator, deterministic)
        if not deterministic:
            self._memory, self._raw_actions = memory, raw.cpu().numpy()
        return self._policy.to_env(raw)

    # Learning.

    def remember(self, step: VectorStep) -> None:
        """Store one step of all envs; its actions must come from `act_batch`."""
        assert self._raw_actions is not None, "remember follows act_batch"
        numbers, codes = self.layout.pack(step.observations)
        self.rollout.add(numbers, codes, self._raw_actions, step)
        self._raw_actions = None
        self.num_steps += int(np.count_nonzero(step.is_playing))
        if self._policy.is_recurrent:
            # The step that resets belongs to no episode: the next one begins with empty memory.
            with torch.inference_mode():
                self._memory[torch.from_numpy(~step.is_playing).to(self.device)] = 0.0
        if self.rollout.is_full:
            self.rollout.keep_last(*self.layout.pack(step.next_observations))

    def learn(self) -> int:
        """Learn from a rollout once it is full; return the number of updates."""
        if not self.rollout.is_full:
            return 0
        config, count = self.config, 0
        if config.anneal_learning_rate:
            left = max(0.0, 1.0 - self.num_steps / config.anneal_steps)
            self._adam.learning_rate = config.learning_rate * left
        whole = self._whole()
        for _ in range(config.num_epochs):
            batches = self._sequences(whole) if self._policy.is_recurrent else self._rows(whole)
            for figures in map(self._update, batches):
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
            self.on_rollout(whole.advantages.cpu().numpy())
        self._first_memory = self._memory.clone()
        return count

    def _update_normaliser(self) -> None:
        if self.config.normalise_observations:
            numbers = self.rollout.numbers[:-1][self.rollout.is_playing]
            self._policy.encoder.update_normaliser(torch.from_numpy(numbers).to(self.device))

    @torch.no_grad()
    def _whole(self) -> Minibatch:
        """Return the rollout with its advantages, of shape ``(steps, envs, ...)``.

        Values are computed only now, for all steps at once: the policy has not changed since it
        acted.
        """
        rollout, config, policy = self.rollout, self.config, self._policy
        seen = Seen(*(self._to_device(part) for part in (rollout.numbers, rollout.codes)))
        features = policy.encoder(seen)
        if policy.is_recurrent:
            begins = self._to_device(np.concatenate([rollout.begins, rollout.has_reset[None]]))
            outputs, values, past = policy.unroll(features, self._first_memory, begins)
            self._pasts = torch.cat([self._first_memory[None], past[:-1]])
        else:
            outputs, values = policy(features)
        actions = self._to_device(rollout.actions)
        advantages = advantages_of(
            self._to_device(rollout.rewards),
            values,
            self._to_device(rollout.terminated),
            self._to_device(rollout.ended),
            config.gamma,
            config.gae_lambda,
        )
        log_probs = policy.evaluate(outputs[:-1], actions)[0]
        return Minibatch(features[:-1], actions, log_probs, advantages, advantages + values[:-1])

    def _to_device(self, array: npt.NDArray[Any]) -> torch.Tensor:
        return torch.from_numpy(array).to(self.device)

    def _rows(self, whole: Minibatch) -> Iterator[tuple[Minibatch, SequencePart | None]]:
        """Yield minibatches of single env steps, in random order."""
        rows = self._to_device(np.flatnonzero(self.rollout.is_playing))
        if not len(rows):
            return  # A rollout of one step in which all envs reset.
        order = torch.randperm(len(rows), device=self.device, generator=self.generator)
        flat = whole.each(lambda part: part.flatten(0, 1))
        num_batches = max(1, round(len(rows) / self.config.minibatch_size))
        for places in rows[order].tensor_split(num_batches):
            yield flat.each(lambda part, places=places: part.index_select(0, places)), None

    def _sequences(self, whole: Minibatch) -> Iterator[tuple[Minibatch, SequencePart | None]]:
        """Yield minibatches of consecutive steps of some envs, as a recurrent policy needs them.

        With fewer envs than minibatches, the steps are divided too; each part begins with the
        memory at its first step.
        """
        rollout, config = self.rollout, self.config
        num_batches = max(1, round(rollout.num_cells / config.minibatch_size))
        # The fewest cuts of time that give exactly this number of minibatches.
        num_cuts = next(
            cuts
            for cuts in range(1, num_batches + 1)
            if num_batches % cuts == 0 and num_batches <= cuts * self.num_envs
        )
        num_groups = num_batches // num_cuts
        num_cuts = min(num_cuts, rollout.num_steps)
        times = [slice(int(cut[0]), int(cut[-1]) + 1)
                 for cut in np.array_split(np.arange(rollout.num_steps), num_cuts)]  # fmt: skip
        envs = torch.randperm(self.num_envs, device=self.device, generator=self.generator)
        groups = envs.tensor_split(num_groups)
        order = self.rng.permutation(num_cuts * num_groups)
        for number in order.tolist():
            part = SequencePart(times[number // num_groups], groups[number % num_groups])
            if rollout.is_playing[part.times][:, part.envs.cpu().numpy()].any():
                yield whole.each(lambda all, part=part: all[part.times][:, part.envs]), part

    def _update(self, chosen: tuple[Minibatch, SequencePart | None]) -> dict[str, torch.Tensor]:
        """Do one update on a minibatch."""
        (batch, part), config, policy = chosen, self.config, self._policy
        if part is None:
            outputs, values = policy(batch.features)
        else:
            times, envs = part
            mask = self._to_device(self.rollout.is_playing)[times][:, envs]
            begins = self._to_device(self.rollout.begins)[times][:, envs]
            past = self._pasts[times.start, envs]
            outputs, values, _ = policy.unroll(batch.features, past, begins)
            outputs, values, batch = outputs[mask], values[mask], batch.each(lambda all: all[mask])
        log_probs, entropies = policy.evaluate(outputs, batch.actions)
        advantages = batch.advantages
        if config.normalise_advantages:
            advantages = standardised(advantages)
        policy_loss, ratios = clipped_policy_loss(
            log_probs, batch.log_probs, advantages, config.clip
        )
        value_loss, entropy = mse_loss(values, batch.returns), entropies.mean()
        self._adam.minimise(
            policy_loss + config.value_coef * value_loss - config.entropy_coef * entropy
        )
        clipped_share = ((ratios.detach() - 1.0).abs() > config.clip).float().mean()
        return {
            "policy": policy_loss.detach(),
            "value": value_loss.detach(),
            "entropy": entropy.detach(),
            "clipped_share": clipped_share,
        }

    def load_weights(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Act with other weights from now on; the rollout of the old ones is dropped."""
        super().load_weights(weights)
        self.forget()

    def forget(self) -> None:
        """Drop the current rollout and all memory; all envs must be reset."""
        self.rollout.clear()
        self._raw_actions = None
        self._memory = self._policy.first_memory(self.num_envs)
        self._first_memory = self._memory.clone()

    def drop_pending(self) -> None:
        """Drop the current rollout: its episodes will not be continued."""
        self.forget()

    def memory_stats(self) -> dict[str, float]:
        """Return the share of the rollout that is filled."""
        return {"share": self.rollout.num_filled / self.rollout.num_steps}

    # Saving.

    def _optimisers(self) -> dict[str, Adam]:
        return {"policy and value networks": self._adam}

    def _extent(self) -> Extent:
        return self.rollout.extent()

    def _parts(self) -> dict[str, Any]:
        return {"rollout": self.rollout, "optimiser": self._adam, "past": _Past(self)}


class _Past:
    """The memory of a recurrent policy: now, and when the rollout began."""

    def __init__(self, agent: PPO):
        self._agent = agent

    def state_dict(self) -> dict[str, Any]:
        return {"now": self._agent._memory.clone(), "first": self._agent._first_memory.clone()}

    def check_state(self, state: Mapping[str, Any]) -> None:
        check_state(
            state, [TensorSpec.like(name, kept.cpu()) for name, kept in self.state_dict().items()]
        )

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.check_state(state)
        self._agent._memory = state["now"].to(self._agent.device).clone()
        self._agent._first_memory = state["first"].to(self._agent.device).clone()
