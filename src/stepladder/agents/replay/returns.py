"""From vector steps to transitions, over one step or several.

Between `Agent.remember` and `memory`. A transition never joins two episodes: the step after an
ending is left out, and transitions that are pending when an episode ends are completed there.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from stepladder.agents.base import VectorStep
from stepladder.agents.observations import Layout, Packed
from stepladder.agents.replay.memory import Rows
from stepladder.agents.room import FLOAT_BYTES, require_room
from stepladder.agents.saved_values import NumberSpec, TensorSpec, check_state
from stepladder.arrays import Floats32


class Transitions:
    """Sums rewards over a number of steps, in every env by itself.

    Args:
        layout: Of the observations.
        num_envs: Envs.
        num_action_columns: Numbers per action.
        num_steps: Steps of a transition; shorter ones are made where an episode ends.
        gamma: Discount per step.
        num_choices: Number of discrete actions; 0 for continuous ones.
    """

    def __init__(
        self,
        layout: Layout,
        num_envs: int,
        num_action_columns: int,
        num_steps: int,
        gamma: float,
        num_choices: int = 0,
    ):
        self._num_choices = num_choices
        self._layout, self._num_steps, self._gamma = layout, num_steps, gamma
        length = num_steps if num_steps > 1 else 0
        row_bytes = FLOAT_BYTES * (layout.num_numbers + num_action_columns + 1) + layout.num_codes
        require_room(
            length * num_envs * row_bytes,
            f"returns over {num_steps:,} steps of {num_envs:,} envs",
            "Lower num_step_returns or num_envs.",
        )
        self._numbers = np.zeros((length, num_envs, layout.num_numbers), dtype=np.float32)
        self._codes = np.zeros((length, num_envs, layout.num_codes), dtype=np.uint8)
        self._actions = np.zeros((length, num_envs, num_action_columns), dtype=np.float32)
        self._rewards = np.zeros((length, num_envs), dtype=np.float32)
        self._num_pending = np.zeros(num_envs, dtype=np.int64)
        self._clock = 0

    def take(
        self, step: VectorStep, actions: Floats32, before: Packed, after: Packed
    ) -> list[Rows]:
        """Return the transitions that a step completes.

        Args:
            step: One step of all envs.
            actions: As they are stored, of shape ``(num_envs, columns)``.
            before: What was seen before the step, packed.
            after: What is seen after it.
        """
        (numbers, codes), (next_numbers, next_codes) = before, after
        rewards = np.asarray(step.rewards, dtype=np.float32)
        lasts = (~step.terminated).astype(np.float32)
        if self._num_steps == 1:
            rows = Rows(
                numbers, codes, actions, rewards, lasts * np.float32(self._gamma),
                next_numbers, next_codes,
            )  # fmt: skip
            are_all = np.count_nonzero(step.is_playing) == len(rewards)
            return [rows if are_all else _chosen(rows, step.is_playing)]
        return self._fold(
            step, Rows(numbers, codes, actions, rewards, lasts, next_numbers, next_codes)
        )

    def _fold(self, step: VectorStep, now: Rows) -> list[Rows]:
        length, spot = self._num_steps, self._clock % self._num_steps
        self._numbers[spot], self._codes[spot] = now.numbers, now.codes
        self._actions[spot], self._rewards[spot] = now.actions, now.rewards
        self._clock += 1
        pending, ended = self._num_pending, step.terminated | step.truncated
        pending[:] = np.where(step.is_playing, np.minimum(pending + 1, length), 0)
        sums, finished = np.zeros_like(now.rewards), []
        for age in range(length):
            past = (spot - age) % length
            sums = self._rewards[past] + np.float32(self._gamma) * sums
            is_done = (pending > age) & (ended | (age == length - 1))
            if is_done.any():
                discount = np.float32(self._gamma ** (age + 1))
                rows = Rows(
                    self._numbers[past], self._codes[past], self._actions[past], sums,
                    now.discounts * discount, now.next_numbers, now.next_codes,
                )  # fmt: skip
                finished.append(_chosen(rows, is_done))
        pending[:] = np.where(ended, 0, np.minimum(pending, length - 1))
        return finished

    def clear(self) -> None:
        """Drop what is pending."""
        self._num_pending.fill(0)

    def state_dict(self) -> dict[str, Any]:
        """Return what is pending."""
        return {
            "clock": self._clock,
            **{name: torch.from_numpy(array.copy()) for name, array in self._arrays().items()},
        }

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Raise unless a state can be restored."""
        bounds: dict[str, Any] = {
            "codes": {"low": 0, "high": self._layout.highest_codes},
            "num_pending": {"low": 0, "high": self._num_steps - 1},
        }
        if self._num_choices:
            bounds["actions"] = {"low": 0, "high": self._num_choices - 1}
        arrays = [
            TensorSpec.like(name, torch.from_numpy(array), **bounds.get(name, {}))
            for name, array in self._arrays().items()
        ]
        check_state(state, [NumberSpec(name="clock"), *arrays])

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state."""
        self.check_state(state)
        self._clock = state["clock"]
        for name, array in self._arrays().items():
            array[...] = state[name].numpy()

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {
            "numbers": self._numbers,
            "codes": self._codes,
            "actions": self._actions,
            "rewards": self._rewards,
            "num_pending": self._num_pending,
        }


def _chosen(rows: Rows, mask: npt.NDArray[np.bool_]) -> Rows:
    parts: list[Any] = [part[mask] for part in rows]
    return Rows(*parts)
