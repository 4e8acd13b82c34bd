"""Proximal policy optimisation, with a memory of the episode if asked for.

After Schulman et al. 2017. For choices and for numbers. `training` feeds it; `arithmetic` has the
formulas. With next-step autoreset the row after an ending holds the last observation of the
episode: its value is at hand where time ran out, and the row itself is not learnt from.

Do not use it where env steps are dear: what it has seen once it does not remember.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import Space

from stepladder.agents.actor_critic import ActorCritic, Slopes
from stepladder.agents.arithmetic import advantages_of, clipped_policy_loss, standardised
from stepladder.agents.base import Agent, VectorStep
from stepladder.agents.config import PPOConfig
from stepladder.agents.divergence import Extent
from stepladder.agents.gradients import clipped_policy_slopes
from stepladder.agents.observations import Observations, Seen
from stepladder.agents.optimiser import Adam
from stepladder.agents.rollout import Rollout
from stepladder.agents.saved_values import TensorSpec, check_state


class Batch(NamedTuple):
    """What one update learns from; the first axis is env steps, or steps and envs if recurrent."""

    seen: Seen
    actions: torch.Tensor
    log_probs: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor


class Part(NamedTuple):
    """Which steps of which envs a recurrent policy learns from at once."""

    times: slice
    envs: torch.Tensor


class PPO(Agent):
    """Learns from what has just been played; see `Agent` for the arguments."""

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
        self._said: npt.NDArray[Any] | None = None

    # Playing.

    def policy(self) -> ActorCritic:
        """Return what chooses actions."""
        return self._policy

    @torch.inference_mode()
    def act_batch(
        self, observations: Observations, deterministic: bool = False
    ) -> npt.NDArray[Any]:
        """Choose an action in every env, in one forward pass, each exploring by itself."""
        seen = self.layout.to_seen(observations, self.device)
        said = self._policy.play(seen, self._memory, self.generator, deterministic)
        if not deterministic:
            self._memory = said.memory
            self._said = said.raw.cpu().numpy()
        return self._policy.to_env(said.raw)

    # Learning.

    def remember(self, step: VectorStep) -> None:
        """Take in what happened in one step of all envs; the agent must have chosen the actions."""
        assert self._said is not None, "remember follows act_batch"
        numbers, codes = self.layout.pack(step.observations)
        self.rollout.add(numbers, codes, self._said, step)
        self._said = None
        self.num_steps += int(np.count_nonzero(step.is_playing))
        if self._policy.is_recurrent:
            # The step that resets belongs to no episode: the next one begins without a past.
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
            # Once for all updates: there, every look has to be waited for.
            self.check_finite()
        # Only now: what was played and what is learnt from it must be seen alike.
        self._meet()
        self.rollout.clear()
        self._first_memory = self._memory.clone()
        return count

    def _meet(self) -> None:
        if self.config.normalise_observations:
            numbers = self.rollout.numbers[:-1][self.rollout.is_playing]
            self._policy.encoder.meet(torch.from_numpy(numbers).to(self.device))

    @torch.no_grad()
    def _whole(self) -> Batch:
        """Return the rollout with its advantages, of shape ``(steps, envs, ...)``.

        What every action was worth is only asked now, of all steps at once: the policy has not
        changed since it played.
        """
        rollout, config = self.rollout, self.config
        seen = Seen(*(self._there(part) for part in (rollout.numbers, rollout.codes)))
        if self._policy.is_recurrent:
            begins = self._there(np.concatenate([rollout.begins, rollout.has_reset[None]]))
            heads, past = self._policy.unroll(seen, self._first_memory, begins)
            self._pasts = torch.cat([self._first_memory[None], past[:-1]])
        else:
            heads = self._policy(seen)
        actions, values = self._there(rollout.actions), heads[..., -1]
        advantages = advantages_of(
            self._there(rollout.rewards),
            values,
            self._there(rollout.terminated),
            self._there(rollout.ended),
            config.gamma,
            config.gae_lambda,
        )
        return Batch(
            Seen(seen.numbers[:-1], seen.codes[:-1]),
            actions,
            self._policy.judge(heads[:-1], actions)[0],
            advantages,
            advantages + values[:-1],
        )

    def _there(self, array: npt.NDArray[Any]) -> torch.Tensor:
        return torch.from_numpy(array).to(self.device)

    def _rows(self, whole: Batch) -> Iterator[tuple[Batch, Part | None]]:
        """Yield minibatches of single env steps, in an order of chance."""
        rows = self._there(np.flatnonzero(self.rollout.is_playing))
        if not len(rows):
            return  # All envs have reset, in a rollout of one step.
        order = torch.randperm(len(rows), device=self.device, generator=self.generator)
        flat = _each(whole, lambda part: part.flatten(0, 1))
        num_batches = max(1, round(len(rows) / self.config.minibatch_size))
        for places in rows[order].tensor_split(num_batches):
            yield _each(flat, lambda part, places=places: part.index_select(0, places)), None

    def _sequences(self, whole: Batch) -> Iterator[tuple[Batch, Part | None]]:
        """Yield minibatches of some envs' steps in a row: a memory is learnt by going through them.

        Where there are fewer envs than minibatches, time is cut too; a part begins with what was
        remembered there.
        """
        rollout, config = self.rollout, self.config
        num_batches = max(1, round(rollout.num_cells / config.minibatch_size))
        # As few cuts as make exactly so many parts.
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
            part = Part(times[number // num_groups], groups[number % num_groups])
            if rollout.is_playing[part.times][:, part.envs.cpu().numpy()].any():
                yield _each(whole, lambda all, part=part: all[part.times][:, part.envs]), part

    def _update(self, chosen: tuple[Batch, Part | None]) -> dict[str, torch.Tensor]:
        """Do one update on a minibatch."""
        (batch, part), policy = chosen, self._policy
        if part is None:
            with torch.no_grad():
                heads, kept = policy.keep(batch.seen)
                gradient, by_spread, figures = self._gradients(heads, batch)
                policy.back(kept, gradient, by_spread)
                self._adam.step()
            return figures
        times, envs = part
        mask = self._there(self.rollout.is_playing)[times][:, envs]
        begins = self._there(self.rollout.begins)[times][:, envs]
        heads = policy.unroll(batch.seen, self._pasts[times.start, envs], begins)[0][mask]
        gradient, by_spread, figures = self._gradients(heads, _each(batch, lambda all: all[mask]))
        if by_spread is None:
            self._adam.follow([heads], [gradient])
        else:
            self._adam.follow([heads, policy.log_std], [gradient, by_spread])
        return figures

    @torch.no_grad()
    def _gradients(
        self, heads: torch.Tensor, batch: Batch
    ) -> tuple[torch.Tensor, torch.Tensor | None, dict[str, torch.Tensor]]:
        """Return the gradients of the loss, as `ActorCritic.gradients` does, and its figures."""
        config = self.config
        log_probs, entropy, values = self._policy.judge(heads, batch.actions)
        advantages = batch.advantages
        if config.normalise_advantages:
            advantages = standardised(advantages)
        policy_loss, ratios = clipped_policy_loss(
            log_probs, batch.log_probs, advantages, config.clip
        )
        errors = values - batch.returns
        slopes = Slopes(
            clipped_policy_slopes(ratios, advantages, config.clip),
            errors * (2.0 * config.value_coef / len(errors)),
            -config.entropy_coef / len(errors),
        )
        far = ((ratios - 1.0).abs() > config.clip).float().mean()
        figures = {
            "policy": policy_loss, "value": errors.square().mean(), "entropy": entropy.mean(),
            "clipped_share": far,
        }  # fmt: skip
        return *self._policy.gradients(heads, batch.actions, slopes), figures

    def load_weights(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Play with other weights from now on; what others have played is not learnt from."""
        super().load_weights(weights)
        self.forget()

    def forget(self) -> None:
        """Drop the rollout that is under way; all envs begin anew."""
        self.rollout.clear()
        self._said = None
        self._memory = self._policy.first_memory(self.num_envs)
        self._first_memory = self._memory.clone()

    def drop_pending(self) -> None:
        """Drop the rollout that is under way: its last steps lead nowhere."""
        self.forget()

    def memory_stats(self) -> dict[str, float]:
        """Return how full the rollout is."""
        return {"share": self.rollout.num_filled / self.rollout.num_steps}

    # Saving.

    def _optimisers(self) -> dict[str, Adam]:
        return {"policy and value networks": self._adam}

    def _extent(self) -> Extent:
        return self.rollout.extent()

    def _parts(self) -> dict[str, Any]:
        return {"rollout": self.rollout, "optimiser": self._adam, "past": _Past(self)}

    def _numbers(self) -> dict[str, Any]:
        return {}

    def _set_numbers(self, numbers: Mapping[str, Any]) -> None:
        self._said = None


class _Past:
    """What a recurrent policy remembers now, and remembered when the rollout began."""

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


def _each(batch: Batch, change: Any) -> Batch:
    """Return a batch each of whose tensors was changed."""
    seen = Seen(*(change(part) for part in batch.seen))
    return Batch(seen, *(change(part) for part in batch[1:]))
