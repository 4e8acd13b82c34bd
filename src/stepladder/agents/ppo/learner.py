"""What PPO learns from a full rollout: advantages, minibatches, and one update after the other.

Between `rollout` and `ppo`, which says when. On a GPU nothing depends on how many steps only reset
an env: such steps have no weight, so that all sizes are fixed and an update is recorded once as a
CUDA graph. On the CPU they are left out.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import torch

from stepladder.agents.arithmetic import (
    advantages_of,
    clipped_policy_loss,
    squared_error,
    standardised,
    weighted_mean,
)
from stepladder.agents.networks.coded import Coded
from stepladder.agents.networks.optimiser import Adam
from stepladder.agents.observations import Seen
from stepladder.agents.ppo.actor_critic import ActorCritic
from stepladder.agents.ppo.config import PPOConfig
from stepladder.agents.ppo.memories import Memories
from stepladder.agents.ppo.rollout import (
    BEGINS_BIT,
    ENDED_BIT,
    PLAYING_BIT,
    TERMINATED_BIT,
    Rollout,
)
from stepladder.agents.replay.repetition import Figures, Repetition

HOST_ROWS, DEVICE_ROWS = 8_192, 65_536
"""Env steps whose values are computed at once."""


class Minibatch(NamedTuple):
    """The data of one update; the first axis is env steps, or steps and envs if recurrent."""

    seen: Seen
    """With normalised numbers."""

    actions: torch.Tensor
    log_probs: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor
    flags: torch.Tensor


class Learner:
    """Updates a policy with rollouts.

    Args:
        config: The settings.
        policy: Is updated.
        adam: Its optimiser.
        rollout: What is learnt from.
        memories: What the policy remembered when the rollout began.
        generator: Source of random numbers, on the device.
        rng: Another one, for the order of sequences.
        has_fixed_sizes: Whether steps that only reset are there without weight, rather than left
            out; updates can be recorded then.
    """

    def __init__(
        self,
        config: PPOConfig,
        policy: ActorCritic,
        adam: Adam,
        rollout: Rollout,
        memories: Memories,
        generator: torch.Generator,
        rng: np.random.Generator,
        *,
        has_fixed_sizes: bool,
    ):
        self._config, self._policy, self._adam = config, policy, adam
        self._rollout, self._memories = rollout, memories
        self._generator, self._rng = generator, rng
        self._has_fixed_sizes = has_fixed_sizes
        cells, device = (rollout.num_steps, rollout.num_envs), rollout.device
        self.values = torch.zeros((rollout.num_steps + 1, rollout.num_envs), device=device)
        """Of every observation."""
        self.log_probs = torch.zeros(cells, device=device)
        """Of every action, when it was chosen."""
        self.advantages = torch.zeros(cells, device=device)
        self._numbers = rollout.numbers
        if policy.encoder.is_normalised:
            self._numbers = torch.zeros_like(rollout.numbers)
        width = policy.num_memory
        self.pasts = torch.zeros((*cells, width), device=device)
        """What was remembered before every step."""
        self._estimate = Repetition(self._estimated, device, generator, config.precision)
        self._updates: dict[torch.Size, tuple[torch.Tensor, Repetition]] = {}

    # What the rollout was worth.

    @torch.no_grad()
    def estimate(self) -> None:
        """Compute values, log-probabilities and advantages of the rollout.

        Only now, for all steps at once: the policy has not changed since it acted.
        """
        self._estimate()

    def _estimated(self) -> Figures:
        rollout, config = self._rollout, self._config
        if self._numbers is not rollout.numbers:
            self._numbers.copy_(self._policy.encoder.prepare(rollout.seen).numbers)
        if self._policy.is_recurrent:
            self._unroll()
        else:
            self._look()
        advantages_of(
            *(rollout.rewards, self.values, rollout.has(TERMINATED_BIT), rollout.has(ENDED_BIT)),
            *(config.gamma, config.gae_lambda, self.advantages),
        )
        return {}

    def _parts(self) -> Iterator[tuple[slice, torch.Tensor | Coded]]:
        """Yield what the first layer reads of the whole rollout, some steps at a time."""
        rollout, encoder = self._rollout, self._policy.encoder
        most = HOST_ROWS if rollout.device.type == "cpu" else DEVICE_ROWS
        if encoder.learns:
            most = min(most, self._config.minibatch_size)
        num_steps = max(1, most // rollout.num_envs)
        for start in range(0, rollout.num_steps + 1, num_steps):
            part = slice(start, start + num_steps)
            yield part, encoder.inputs(Seen(self._numbers[part], rollout.codes[part]))

    def _look(self) -> None:
        """Compute values and log-probabilities."""
        policy = self._policy
        for part, inputs in self._parts():
            outputs, self.values[part] = policy(inputs)
            actions = self._rollout.actions[part]
            self.log_probs[part] = policy.evaluate(outputs[: len(actions)], actions)[0]

    def _unroll(self) -> None:
        """Do the same for a policy with memory, one step after the other."""
        rollout, policy = self._rollout, self._policy
        hidden = torch.cat([policy.trunk(inputs) for _, inputs in self._parts()])
        # The step after one that only resets is the first of its episode.
        begins = torch.cat([rollout.has(BEGINS_BIT), ~rollout.has(PLAYING_BIT)[-1:]])
        outputs, self.values[:], past = policy.recall(hidden, self._memories.first, begins)
        self.log_probs[:] = policy.evaluate(outputs[:-1], rollout.actions)[0]
        self.pasts[0], self.pasts[1:] = self._memories.first, past[:-2]

    # Minibatches: places of env steps in the rollout, counted step by step.

    def learn(self) -> Iterator[Figures]:
        """Do all updates, one after the other; yield the figures of each."""
        for _ in range(self._config.num_epochs):
            places = self._sequences() if self._policy.is_recurrent else self._rows()
            for chosen in places:
                yield self._update(chosen)

    def _rows(self) -> Iterator[torch.Tensor]:
        """Yield the places of single env steps, in random order."""
        rollout = self._rollout
        if self._has_fixed_sizes:
            rows, count = None, rollout.num_cells
        else:
            rows = rollout.has(PLAYING_BIT).flatten().nonzero().squeeze(1)
            count = len(rows)
        if not count:
            return  # A rollout of one step in which all envs reset.
        order = torch.randperm(count, device=rollout.device, generator=self._generator)
        num_batches = max(1, round(count / self._config.minibatch_size))
        yield from (order if rows is None else rows[order]).tensor_split(num_batches)

    def _sequences(self) -> Iterator[torch.Tensor]:
        """Yield the places of consecutive steps of some envs, of shape ``(steps, envs)``.

        With fewer envs than minibatches, the steps are divided too; each part begins with the
        memory at its first step.
        """
        rollout = self._rollout
        num_batches = max(1, round(rollout.num_cells / self._config.minibatch_size))
        # The fewest cuts of time that give exactly this number of minibatches.
        num_cuts = next(
            cuts
            for cuts in range(1, num_batches + 1)
            if num_batches % cuts == 0 and num_batches <= cuts * rollout.num_envs
        )
        num_groups = num_batches // num_cuts
        num_cuts = min(num_cuts, rollout.num_steps)
        device = rollout.device
        times = torch.arange(rollout.num_steps, device=device).tensor_split(num_cuts)
        envs = torch.randperm(rollout.num_envs, device=device, generator=self._generator)
        groups = envs.tensor_split(num_groups)
        for number in self._rng.permutation(num_cuts * num_groups).tolist():
            steps, group = times[number // num_groups], groups[number % num_groups]
            places = steps[:, None] * rollout.num_envs + group
            if (
                self._has_fixed_sizes
                or self._at(rollout.flags, places).bitwise_and(PLAYING_BIT).any()
            ):
                yield places

    @staticmethod
    def _at(tensor: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """Return the entries of a tensor over steps and envs at some places."""
        flat = tensor.flatten(0, 1).index_select(0, places.flatten())
        return flat if places.ndim == 1 else flat.unflatten(0, places.shape)

    # Updates.

    def _update(self, places: torch.Tensor) -> Figures:
        """Do one update with the env steps at some places."""
        if not self._has_fixed_sizes:
            return self._updated(places)
        if places.shape not in self._updates:
            here = places.clone()
            update = partial(self._updated, here)
            repeated = Repetition(
                update, self._rollout.device, self._generator, self._config.precision
            )
            self._updates[places.shape] = here, repeated
        here, update = self._updates[places.shape]
        here.copy_(places)
        # The next update writes over the figures of this one.
        return {name: figure.clone() for name, figure in update().items()}

    def _updated(self, places: torch.Tensor) -> Figures:
        batch, policy, config = self.minibatch(places), self._policy, self._config
        inputs = policy.encoder.inputs(batch.seen)
        weights = None
        if self._has_fixed_sizes or policy.is_recurrent:
            weights = ((batch.flags & PLAYING_BIT) > 0).float()
        if policy.is_recurrent:
            past, begins = self._at(self.pasts, places[0]), (batch.flags & BEGINS_BIT) > 0
            outputs, values, _ = policy.unroll(inputs, past, begins)
        else:
            outputs, values = policy(inputs)
        log_probs, entropies = policy.evaluate(outputs, batch.actions)
        advantages = batch.advantages
        if config.normalise_advantages:
            advantages = standardised(advantages, weights)
        policy_loss, ratios = clipped_policy_loss(
            log_probs, batch.log_probs, advantages, config.clip, weights
        )
        value_loss = squared_error(values, batch.returns, weights)
        entropy = weighted_mean(entropies, weights)
        self._adam.minimise(
            policy_loss + config.value_coef * value_loss - config.entropy_coef * entropy
        )
        is_clipped = ((ratios.detach() - 1.0).abs() > config.clip).float()
        return {
            "policy": policy_loss.detach(),
            "value": value_loss.detach(),
            "entropy": entropy.detach(),
            "clipped_share": weighted_mean(is_clipped, weights),
        }

    def minibatch(self, places: torch.Tensor) -> Minibatch:
        """Return the env steps at some places."""
        rollout = self._rollout

        def at(tensor: torch.Tensor) -> torch.Tensor:
            return self._at(tensor, places)

        advantages = at(self.advantages)
        return Minibatch(
            seen=Seen(at(self._numbers), at(rollout.codes)),
            actions=at(rollout.actions),
            log_probs=at(self.log_probs),
            advantages=advantages,
            returns=advantages + at(self.values),
            flags=at(rollout.flags),
        )
