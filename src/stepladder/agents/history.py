"""What an observation alone does not say of the episodes under way, in every row.

That is the frames before the present one, so that networks see several observations at once, and
the discounted return so far, whose spread rewards are divided by. Between `observations`, which
packs a frame, and the agents and players. Neither reaches into the episode before: at the
beginning of one, its first frame stands for those that are missing.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from stepladder.agents.observations import Layout, Observations, Packed, Seen, on_device
from stepladder.agents.room import FLOAT_BYTES, require_room
from stepladder.agents.saved_values import TensorSpec, check_state
from stepladder.arrays import Array

RowSelection = npt.NDArray[Any] | slice

ALL = slice(None)


class History:
    """The past frames and the return of the present episode, in every row.

    Args:
        layout: Of the observations.
        num_rows: Rows.
    """

    def __init__(self, layout: Layout, num_rows: int):
        self._layout, self._is_plain = layout, layout.frame_stack == 1
        num_past = layout.frame_stack - 1
        require_room(
            num_rows * num_past * (FLOAT_BYTES * layout.frame_numbers + layout.frame_codes),
            f"{layout.frame_stack} frames of {num_rows:,} envs",
            "Lower frame_stack or num_envs.",
        )
        # All columns of the oldest frame first.
        self._numbers = np.zeros((num_rows, num_past * layout.frame_numbers), dtype=np.float32)
        self._codes = np.zeros((num_rows, num_past * layout.frame_codes), dtype=np.uint8)
        self._is_new = np.ones(num_rows, dtype=np.bool_)
        self._returns = np.zeros(num_rows)

    def pack(self, observations: Observations, rows: RowSelection = ALL) -> Packed:
        """Return what networks see of some rows, the present frame last; nothing is changed."""
        frame = self._layout.pack(observations)
        if self._is_plain:
            return frame
        is_new = self._is_new[rows]
        numbers, codes = (
            _stacked(past[rows], now, is_new)
            for past, now in zip((self._numbers, self._codes), frame, strict=True)
        )
        return numbers, codes

    def seen(self, observations: Observations, device: torch.device) -> Seen:
        """Return what networks see of all rows, as tensors on a device; nothing is changed."""
        return on_device(self.pack(observations), device)

    def advance(self, packed: Packed, is_playing: Array, rows: RowSelection = ALL) -> None:
        """Let the present frames become past ones.

        Args:
            packed: What `pack` returned.
            is_playing: Whether the step belongs to an episode; where it only resets, a new one
                begins.
            rows: Which rows have been stepped.
        """
        if self._is_plain:
            return
        numbers, codes = packed
        self._numbers[rows] = numbers[:, self._layout.frame_numbers :]
        self._codes[rows] = codes[:, self._layout.frame_codes :]
        self._is_new[rows] = ~is_playing

    def add_rewards(
        self,
        rewards: Array,
        ended: Array,
        is_playing: Array,
        gamma: float,
        rows: RowSelection = ALL,
    ) -> torch.Tensor:
        """Return the discounted returns so far of those rows that play, one step later.

        Args:
            rewards: Of the step.
            ended: Whether the episode has ended.
            is_playing: Whether the step belongs to an episode.
            gamma: Discount per step.
            rows: Which rows have been stepped.
        """
        returns = np.where(is_playing, gamma * self._returns[rows] + rewards, 0.0)
        self._returns[rows] = np.where(ended, 0.0, returns)
        return torch.from_numpy(returns[is_playing])

    def past(self) -> tuple[Array, Array]:
        """Return the numbers and codes of the past frames."""
        return self._numbers, self._codes

    def continue_from(self, numbers: Array, codes: Array, begins: Array) -> None:
        """Continue after past frames, except where an episode begins.

        Raises:
            SnapshotError: They are not such frames.
        """
        state = {"numbers": numbers, "codes": codes, "is_new": begins, "returns": self._returns}
        self.load_state_dict({name: torch.as_tensor(one) for name, one in state.items()})

    def begin(self, rows: RowSelection = ALL) -> None:
        """Begin an episode in some rows."""
        self._is_new[rows] = True
        self._returns[rows] = 0.0

    def state_dict(self) -> dict[str, Any]:
        """Return copies of everything."""
        return {name: torch.from_numpy(array.copy()) for name, array in self._arrays().items()}

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Raise unless a state can be restored."""
        highest = self._layout.highest_codes[self._layout.frame_codes :]
        bounds: dict[str, Any] = {"codes": {"low": 0, "high": highest}}
        check_state(
            state,
            [
                TensorSpec.like(name, torch.from_numpy(array), **bounds.get(name, {}))
                for name, array in self._arrays().items()
            ],
        )

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state."""
        self.check_state(state)
        for name, array in self._arrays().items():
            array[...] = state[name].cpu().numpy()

    def _arrays(self) -> dict[str, Array]:
        return {
            "numbers": self._numbers,
            "codes": self._codes,
            "is_new": self._is_new,
            "returns": self._returns,
        }


def _stacked(past: Array, now: Array, is_new: Array) -> Array:
    """Return past columns and present ones; in new rows the present ones stand for all."""
    num_past = past.shape[1] // now.shape[1] if now.shape[1] else 0
    if is_new.any():
        past = np.where(is_new[:, None], np.tile(now, num_past), past)
    return np.concatenate([past, now], axis=1)
