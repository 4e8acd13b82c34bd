"""Noise that is correlated in time, which explores farther than independent noise.

Used by `sac` for pink noise (Eberhard et al. 2023). Every env has its own process, which restarts
when an episode ends.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from stepladder.agents.room import FLOAT_BYTES, require_room
from stepladder.agents.saved_values import TensorSpec, check_state
from stepladder.arrays import Floats32


class PinkNoise:
    """Pink noise of unit variance, one process per env and action dimension.

    Args:
        num_envs: Envs.
        num_dims: Dimensions of an action.
        num_steps: Steps after which a process restarts by itself.
        rng: Source of random numbers.
    """

    def __init__(self, num_envs: int, num_dims: int, num_steps: int, rng: np.random.Generator):
        self._rng = rng
        require_room(
            num_envs * num_steps * num_dims * FLOAT_BYTES,
            f"pink noise of {num_steps:,} steps in {num_envs:,} envs",
            "Lower pink_steps or num_envs.",
        )
        self._series: Floats32 = np.zeros((num_envs, num_steps, num_dims), dtype=np.float32)
        self._clock = np.zeros(num_envs, dtype=np.int64)
        self.begin(np.ones(num_envs, dtype=np.bool_))

    def draw(self) -> Floats32:
        """Return the next noise of every env, of shape ``(num_envs, num_dims)``."""
        over = self._clock >= self._series.shape[1]
        if over.any():
            self.begin(over)
        noise = self._series[np.arange(len(self._clock)), self._clock]
        self._clock += 1
        return noise

    def begin(self, rows: npt.NDArray[np.bool_]) -> None:
        """Restart the processes of some envs."""
        count = int(rows.sum())
        if count:
            _, num_steps, num_dims = self._series.shape
            self._series[rows] = pink_series(count, num_steps, num_dims, self._rng)
            self._clock[rows] = 0

    def state_dict(self) -> dict[str, Any]:
        """Return the state of every process."""
        return {
            "series": torch.from_numpy(self._series.copy()),
            "clock": torch.from_numpy(self._clock.copy()),
        }

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Raise unless a state can be restored."""
        series = TensorSpec(name="series", shape=self._series.shape, dtype=torch.float32)
        clock = TensorSpec(
            name="clock", shape=self._clock.shape, dtype=torch.int64,
            low=0, high=self._series.shape[1],
        )  # fmt: skip
        check_state(state, [series, clock])

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state."""
        self.check_state(state)
        self._series[...] = state["series"].numpy()
        self._clock[...] = state["clock"].numpy()


def pink_series(count: int, num_steps: int, num_dims: int, rng: np.random.Generator) -> Floats32:
    """Return independent pink series of unit variance, of shape ``(count, num_steps, num_dims)``.

    Made in the frequency domain (Timmer and König 1995): power falls as one over frequency; the
    lowest frequency, which would be infinite, is that of one period.
    """
    num_bins = num_steps // 2 + 1
    frequencies = np.maximum(np.arange(num_bins), 1) / num_steps
    amplitudes = frequencies**-0.5
    shape = (count, num_dims, num_bins)
    real, imaginary = rng.standard_normal(shape), rng.standard_normal(shape)
    # The mean, and at even length the highest frequency, have no phase.
    imaginary[..., 0] = 0.0
    real[..., 0] *= np.sqrt(2.0)
    if num_steps % 2 == 0:
        imaginary[..., -1] = 0.0
        real[..., -1] *= np.sqrt(2.0)
    series = np.fft.irfft((real + 1j * imaginary) * amplitudes, n=num_steps, axis=-1)
    weights = amplitudes.copy()
    weights[1 : (num_steps + 1) // 2] *= np.sqrt(2.0)
    spread = np.sqrt(2.0) * np.sqrt((weights**2).sum()) / num_steps
    return np.ascontiguousarray((series / spread).transpose(0, 2, 1), dtype=np.float32)
