"""A rollout: the latest steps of every env, on the device of the agent.

Filled step by step through `acting`, learnt from by `learner` when full, then emptied. Its tensors
stay where they are, so that a recorded update finds them.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from stepladder.agents.base import VectorStep
from stepladder.agents.divergence import Extent
from stepladder.agents.observations import Layout, Packed, Seen
from stepladder.agents.room import FLOAT_BYTES, require_room
from stepladder.agents.saved_values import NumberSpec, TensorSpec, check_state, largest
from stepladder.arrays import Bytes

TERMINATED_BIT, ENDED_BIT, PLAYING_BIT, BEGINS_BIT = 1, 2, 4, 8
"""Flags of a step: its episode terminated; ended in any way; it belongs to an episode, rather than
only resets; it is the first one of its episode."""


class Rollout:
    """Some steps of every env, in tensors of shape ``(num_steps, num_envs, ...)``.

    Args:
        layout: Of the observations.
        num_steps: Steps.
        num_envs: Envs.
        num_action_columns: Numbers or choices per action; 0 for a single choice.
        highest_choices: Largest index of each choice; None if actions are numbers.
        device: Where.
    """

    def __init__(
        self,
        layout: Layout,
        num_steps: int,
        num_envs: int,
        num_action_columns: int,
        highest_choices: torch.Tensor | None = None,
        device: torch.device | str = "cpu",
    ):
        self._layout, self._highest_choices = layout, highest_choices
        self.num_steps, self.num_envs = num_steps, num_envs
        self.num_cells = num_steps * num_envs
        self.num_filled = [0]
        """Steps that are there, of each group of envs that takes its turn by itself."""
        self.device = torch.device(device)
        row_bytes = FLOAT_BYTES * (layout.num_numbers + num_action_columns + 1) + layout.num_codes
        require_room(
            num_steps * num_envs * row_bytes,
            f"a rollout of {num_steps:,} steps of {num_envs:,} envs",
            "Lower rollout_steps or num_envs.",
            self.device,
        )
        cells = (num_steps, num_envs)
        # One row more, for the observations after the last step.
        self.numbers = self._zeros((num_steps + 1, num_envs, layout.num_numbers), torch.float32)
        self.codes = self._zeros((num_steps + 1, num_envs, layout.num_codes), torch.uint8)
        self.actions = self._zeros(
            (*cells, num_action_columns) if num_action_columns else cells,
            torch.float32 if highest_choices is None else torch.int64,
        )
        self.rewards = self._zeros(cells, torch.float32)
        self.flags = self._zeros(cells, torch.uint8)
        self.has_reset = np.zeros(num_envs, dtype=np.bool_)
        """Whether the latest step has only reset the env."""
        # Written through NumPy where it can: torch takes three times as long over a few rows.
        self._arrays: dict[str, npt.NDArray[Any]] = {}
        if self.device.type == "cpu":
            self._arrays = {name: tensor.numpy() for name, tensor in self._tensors().items()}

    def _zeros(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        return torch.zeros(shape, dtype=dtype, device=self.device)

    @property
    def is_full(self) -> bool:
        """Whether all steps are there."""
        return min(self.num_filled) == self.num_steps

    def has(self, flag: int) -> torch.Tensor:
        """Return whether each step has a flag."""
        return (self.flags & flag) > 0

    @property
    def seen(self) -> Seen:
        """All observations."""
        return Seen(self.numbers, self.codes)

    # Filling; through arrays on the CPU, elsewhere through tensors on the host that may be pinned.

    def put(self, name: str, row: int, envs: slice, values: npt.NDArray[Any]) -> None:
        """Write one step of some envs into a tensor; only on the CPU."""
        self._arrays[name][row, envs] = values

    def send(self, name: str, row: int, envs: slice, values: torch.Tensor) -> None:
        """Copy one step of some envs into a tensor without waiting for the copy."""
        getattr(self, name)[row, envs].copy_(values, non_blocking=True)

    def put_seen(self, row: int, envs: slice, packed: Packed) -> None:
        """Write what some envs see; only on the CPU."""
        numbers, codes = packed
        self._arrays["numbers"][row, envs], self._arrays["codes"][row, envs] = numbers, codes

    def store_seen(self, row: torch.Tensor, envs: slice, seen: Seen, actions: torch.Tensor) -> None:
        """Write what some envs see and do, in a row whose number is on the device too."""
        parts = {"numbers": seen.numbers, "codes": seen.codes, "actions": actions}
        for name, part in parts.items():
            getattr(self, name)[:, envs].index_copy_(0, row, part[None])

    def flags_of(self, step: VectorStep, envs: slice) -> Bytes:
        """Return the flags of a step of some envs; the next call is about the step after it."""
        terminated, playing = step.terminated.view(np.uint8), step.is_playing.view(np.uint8)
        ended = terminated | step.truncated.view(np.uint8)
        begins = self.has_reset[envs].view(np.uint8)
        flags = (
            terminated * TERMINATED_BIT
            | ended * ENDED_BIT
            | playing * PLAYING_BIT
            | begins * BEGINS_BIT
        )
        self.has_reset[envs] = ~step.is_playing
        return flags

    def clear(self) -> None:
        """Empty the rollout; whether an env has just been reset is kept."""
        self.num_filled = [0] * len(self.num_filled)

    def extent(self) -> Extent:
        """Return how large the stored rewards and numbers are."""
        count = min(self.num_filled)
        return Extent(*(largest(part[:count]) for part in (self.rewards, self.numbers)))

    # Saving: between two steps of all envs, when all groups have as many steps.

    def state_dict(self) -> dict[str, Any]:
        """Return the steps so far."""
        count = self.num_filled[0]
        tensors = {name: tensor[:count] for name, tensor in self._tensors().items()}
        reset = torch.from_numpy(self.has_reset.copy())
        return {"num_filled": count, "has_reset": reset, **tensors}

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Raise unless a state can be restored."""
        count = NumberSpec(name="num_filled", high=self.num_steps - 1)
        count.check(state.get("num_filled"))
        bounds: dict[str, Any] = {
            "codes": {"low": 0, "high": self._layout.highest_codes},
            "flags": {"low": 0, "high": TERMINATED_BIT | ENDED_BIT | PLAYING_BIT | BEGINS_BIT},
        }
        if self._highest_choices is not None:
            high = self._highest_choices
            bounds["actions"] = {"low": 0, "high": high if len(high) > 1 else float(high)}
        specs = [
            TensorSpec.like(name, tensor[: state["num_filled"]], **bounds.get(name, {}))
            for name, tensor in self._tensors().items()
        ]
        reset = TensorSpec.like("has_reset", torch.from_numpy(self.has_reset))
        check_state(state, [count, reset, *specs])

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state."""
        self.check_state(state)
        count = state["num_filled"]
        self.num_filled = [count] * len(self.num_filled)
        self.has_reset[:] = state["has_reset"].cpu().numpy()
        for name, tensor in self._tensors().items():
            tensor[:count].copy_(state[name])

    def _tensors(self) -> dict[str, torch.Tensor]:
        return {
            "numbers": self.numbers,
            "codes": self.codes,
            "actions": self.actions,
            "rewards": self.rewards,
            "flags": self.flags,
        }
