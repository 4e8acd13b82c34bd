"""A rollout: the latest steps of every env.

Filled step by step by `ppo`, learnt from when full, then emptied.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from stepladder.agents.base import VectorStep
from stepladder.agents.divergence import Extent
from stepladder.agents.observations import Layout
from stepladder.agents.room import FLOAT_BYTES, require_room
from stepladder.agents.saved_values import NumberSpec, TensorSpec, check_state, largest


class Rollout:
    """Some steps of every env, in arrays of shape ``(num_steps, num_envs, ...)``.

    Args:
        layout: Of the observations.
        num_steps: Steps.
        num_envs: Envs.
        num_action_columns: Numbers per action; 0 for a discrete one.
        num_choices: Number of discrete actions; 0 for continuous ones.
    """

    def __init__(
        self,
        layout: Layout,
        num_steps: int,
        num_envs: int,
        num_action_columns: int,
        num_choices: int = 0,
    ):
        self._layout, self._num_choices = layout, num_choices
        self.num_steps, self.num_filled = num_steps, 0
        cells = (num_steps, num_envs)
        self.num_cells = num_steps * num_envs
        row_bytes = FLOAT_BYTES * (layout.num_numbers + num_action_columns + 4) + layout.num_codes
        require_room(
            num_steps * num_envs * row_bytes,
            f"a rollout of {num_steps:,} steps of {num_envs:,} envs",
            "Lower rollout_steps or num_envs.",
        )
        # One row more, for the observations after the last step.
        self.numbers = np.zeros((num_steps + 1, num_envs, layout.num_numbers), dtype=np.float32)
        self.codes = np.zeros((num_steps + 1, num_envs, layout.num_codes), dtype=np.uint8)
        is_choice = num_action_columns == 0
        shape = cells if is_choice else (*cells, num_action_columns)
        self.actions: npt.NDArray[Any] = np.zeros(shape, np.int64 if is_choice else np.float32)
        self.rewards = np.zeros(cells, dtype=np.float32)
        self.terminated = np.zeros(cells, dtype=np.bool_)
        self.ended = np.zeros(cells, dtype=np.bool_)
        self.is_playing = np.zeros(cells, dtype=np.bool_)
        self.begins = np.zeros(cells, dtype=np.bool_)
        """Whether the step is the first of its episode."""
        self.has_reset = np.zeros(num_envs, dtype=np.bool_)
        """Whether the latest step has only reset the env."""

    @property
    def is_full(self) -> bool:
        """Whether all steps are there."""
        return self.num_filled == self.num_steps

    def add(
        self,
        numbers: npt.NDArray[np.float32],
        codes: npt.NDArray[np.uint8],
        actions: npt.NDArray[Any],
        step: VectorStep,
    ) -> None:
        """Store one step of all envs, whose actions are the raw outputs of the network."""
        row = self.num_filled
        self.numbers[row], self.codes[row] = numbers, codes
        self.actions[row] = actions
        self.rewards[row] = step.rewards
        self.terminated[row] = step.terminated
        np.logical_or(step.terminated, step.truncated, out=self.ended[row])
        self.is_playing[row] = step.is_playing
        self.begins[row] = self.has_reset
        np.logical_not(step.is_playing, out=self.has_reset)
        self.num_filled = row + 1

    def keep_last(self, numbers: npt.NDArray[np.float32], codes: npt.NDArray[np.uint8]) -> None:
        """Store the observations after the last step."""
        self.numbers[-1], self.codes[-1] = numbers, codes

    def extent(self) -> Extent:
        """Return how large the stored rewards and numbers are."""
        num_rows = self.num_filled
        rewards, numbers = self.rewards[:num_rows], self.numbers[:num_rows]
        return Extent(*(largest(torch.from_numpy(part)) for part in (rewards, numbers)))

    def clear(self) -> None:
        """Empty the rollout; whether an env has just been reset is kept."""
        self.num_filled = 0

    def state_dict(self) -> dict[str, Any]:
        """Return the steps so far."""
        tensors = {
            name: torch.from_numpy(array[: self.num_filled]) for name, array in self._arrays()
        }
        reset = torch.from_numpy(self.has_reset.copy())
        return {"num_filled": self.num_filled, "has_reset": reset, **tensors}

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Raise unless a state can be restored."""
        count = NumberSpec(name="num_filled", high=self.num_steps - 1)
        count.check(state.get("num_filled"))
        bounds: dict[str, Any] = {"codes": {"low": 0, "high": self._layout.highest_codes}}
        if self._num_choices:
            bounds["actions"] = {"low": 0, "high": self._num_choices - 1}
        arrays = [
            TensorSpec.like(
                name, torch.from_numpy(array[: state["num_filled"]]), **bounds.get(name, {})
            )
            for name, array in self._arrays()
        ]
        reset = TensorSpec.like("has_reset", torch.from_numpy(self.has_reset))
        check_state(state, [count, reset, *arrays])

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state."""
        self.check_state(state)
        num_filled = self.num_filled = state["num_filled"]
        self.has_reset[:] = state["has_reset"].numpy()
        for name, array in self._arrays():
            array[:num_filled] = state[name].numpy()

    def _arrays(self) -> list[tuple[str, npt.NDArray[Any]]]:
        return [
            (name, getattr(self, name))
            for name in (
                "numbers", "codes", "actions", "rewards", "terminated", "ended", "is_playing",
                "begins",
            )
        ]  # fmt: skip
