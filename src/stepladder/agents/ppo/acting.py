"""How a group of envs is played: what it sees goes into the rollout, its actions come back.

Called by `ppo`. On the CPU an action is computed when it is asked for. On a GPU everything is only
enqueued: what is seen is copied from pinned memory, the policy runs as a CUDA graph, and actions
come back while the caller steps other envs. Both fill the same rollout.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch

from stepladder.agents.base import VectorStep
from stepladder.agents.observations import Packed, Seen
from stepladder.agents.ppo.actor_critic import ActorCritic
from stepladder.agents.ppo.memories import Memories
from stepladder.agents.ppo.rollout import PLAYING_BIT, Rollout
from stepladder.agents.replay.repetition import Repetition
from stepladder.arrays import Array


class BatchActor(ABC):
    """Envs that are stepped together.

    Args:
        envs: Which.
        policy: Chooses actions.
        rollout: Is filled.
        memories: Of the policy.
        generator: Source of random numbers.
    """

    acts_ahead: bool
    """Whether actions are best begun before they are asked for."""

    def __init__(
        self,
        envs: slice,
        policy: ActorCritic,
        rollout: Rollout,
        memories: Memories,
        generator: torch.Generator,
    ):
        self.envs, self._policy, self._rollout = envs, policy, rollout
        self._generator = generator
        self._now, self._after = memories.now[envs], memories.after[envs]

    @abstractmethod
    def begin(self, packed: Packed, row: int) -> None:
        """Begin to choose actions; what is seen and done goes into a row of the rollout."""

    @abstractmethod
    def finish(self) -> Array:
        """Return the actions that were begun, as the network gives them."""

    @abstractmethod
    def end_step(self, row: int, step: VectorStep) -> None:
        """Store what a step led to, and let memories follow it.

        Rewards are divided by the spread of returns, if the policy has one.
        """

    @abstractmethod
    def keep_last(self, packed: Packed) -> None:
        """Store what is seen after the last step of a rollout."""


class HostBatchActor(BatchActor):
    """Envs of an agent on the CPU; see `BatchActor` for the arguments."""

    acts_ahead = False

    @torch.inference_mode()
    def begin(self, packed: Packed, row: int) -> None:
        """Choose actions."""
        self._rollout.put_seen(row, self.envs, packed)
        seen = Seen(*(torch.from_numpy(np.ascontiguousarray(part)) for part in packed))
        raw, memory = self._policy.play(seen, self._now, self._generator, False)
        if self._policy.is_recurrent:
            self._after.copy_(memory)
        self._raw: Array = raw.numpy()
        self._rollout.put("actions", row, self.envs, self._raw)

    def finish(self) -> Array:
        """Return the actions."""
        return self._raw

    def end_step(self, row: int, step: VectorStep) -> None:
        """Store what a step led to."""
        rollout, rewards, spread = self._rollout, step.rewards, self._policy.rewards
        if spread is not None:
            rewards = spread.scaled(torch.as_tensor(rewards)).numpy()
        rollout.put("rewards", row, self.envs, rewards)
        rollout.put("flags", row, self.envs, rollout.flags_of(step, self.envs))
        if self._policy.is_recurrent:
            # The step that resets belongs to no episode: the next one begins with empty memory.
            torch.mul(self._after, torch.from_numpy(step.is_playing)[:, None], out=self._now)

    def keep_last(self, packed: Packed) -> None:
        """Store what is seen after the last step."""
        self._rollout.put_seen(self._rollout.num_steps, self.envs, packed)


class DeviceBatchActor(BatchActor):
    """Envs of an agent on a GPU, which is not waited for until actions are needed.

    It runs on the CPU too, where nothing is recorded; see `BatchActor` for the arguments.
    """

    acts_ahead = True

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        rollout = self._rollout
        self._is_cuda = rollout.device.type == "cuda"
        # What is copied to the device and back; it must not be written before the copy is done.
        self._numbers, self._codes = (
            self._on_host(part[0, self.envs]) for part in (rollout.numbers, rollout.codes)
        )
        self._raw = self._on_host(rollout.actions[0, self.envs])
        self._rewards, self._flags = (
            self._on_host(part[0, self.envs]) for part in (rollout.rewards, rollout.flags)
        )
        self._row = self._on_host(torch.zeros(1, dtype=torch.int64))
        # The same on the device, for a recorded graph to find.
        self._seen = Seen(
            rollout.numbers[0, self.envs].clone(), rollout.codes[0, self.envs].clone()
        )
        self._row_there = torch.zeros(1, dtype=torch.int64, device=rollout.device)
        self._act = Repetition(
            self._choose, rollout.device, self._generator, self._policy.precision
        )
        self._done = torch.cuda.Event() if self._is_cuda else None

    def _on_host(self, like: torch.Tensor) -> torch.Tensor:
        return torch.empty(like.shape, dtype=like.dtype, pin_memory=self._is_cuda)

    def begin(self, packed: Packed, row: int) -> None:
        """Enqueue all that choosing actions takes."""
        self._await()
        self._stage(packed)
        self._row[0] = row
        self._row_there.copy_(self._row, non_blocking=True)
        for there, part in zip(self._seen, (self._numbers, self._codes), strict=True):
            there.copy_(part, non_blocking=True)
        self._raw.copy_(self._act()["raw"], non_blocking=True)
        if self._done is not None:
            self._done.record()

    def _stage(self, packed: Packed) -> None:
        for there, part in zip((self._numbers, self._codes), packed, strict=True):
            np.copyto(there.numpy(), part)

    @torch.no_grad()
    def _choose(self) -> dict[str, torch.Tensor]:
        raw, memory = self._policy.play(self._seen, self._now, self._generator, False)
        self._after.copy_(memory)
        self._rollout.store_seen(self._row_there, self.envs, self._seen, raw)
        return {"raw": raw}

    def _await(self) -> None:
        """Wait for the copies under way."""
        if self._done is not None:
            self._done.synchronize()

    def finish(self) -> Array:
        """Wait for the actions and return them."""
        self._await()
        return self._raw.numpy().copy()

    def end_step(self, row: int, step: VectorStep) -> None:
        """Enqueue the copy of what a step led to."""
        rollout = self._rollout
        np.copyto(self._rewards.numpy(), step.rewards, casting="same_kind")
        np.copyto(self._flags.numpy(), rollout.flags_of(step, self.envs))
        rollout.send("rewards", row, self.envs, self._rewards)
        rollout.send("flags", row, self.envs, self._flags)
        spread = self._policy.rewards
        if spread is not None:
            rewards = rollout.rewards[row, self.envs]
            rewards.copy_(spread.scaled(rewards))
        if self._policy.is_recurrent:
            playing = (rollout.flags[row, self.envs] & PLAYING_BIT) > 0
            torch.mul(self._after, playing[:, None], out=self._now)

    def keep_last(self, packed: Packed) -> None:
        """Enqueue the copy of what is seen after the last step."""
        self._stage(packed)
        row = self._rollout.num_steps
        self._rollout.send("numbers", row, self.envs, self._numbers)
        self._rollout.send("codes", row, self.envs, self._codes)
        if self._done is not None:
            self._done.record()
