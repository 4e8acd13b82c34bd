"""Observations, laid out for networks: numbers as they are, codes as one-hot.

Between vector envs, which return arrays or dicts of arrays, and the networks of the agents. Any
observation becomes at most two arrays: floats, and small integers that stand for kinds of
things (tiles, places), which memories store in one byte each.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Space
from torch import nn

from stepladder.errors import ConfigError

Observations = npt.NDArray[Any] | dict[str, npt.NDArray[Any]]
"""What a vector env returns: an array with a row per env, or several by name."""

MAX_CODES = 256
"""Codes fit into a byte; a Box of bytes with more values than this is a picture."""

MAX_KINDS = 64
"""A Box of integers with at most so many values holds codes; with more, numbers."""

CLIP = 10.0
"""Normalised numbers are clipped to this."""

LARGEST_SEEN = 3.5e38
"""Above the largest number of 32 bits, the type of observations."""

LARGEST_COUNT = 2.0**53
"""Above any number of rows."""

SMALLEST_SPREAD = 1e-4
"""Lower limit of the spread that numbers are divided by."""


class Seen(NamedTuple):
    """Observations on their way into a network; either part may have no columns."""

    numbers: torch.Tensor
    """Floats, of shape ``(rows, num_numbers)``."""

    codes: torch.Tensor
    """Bytes, of shape ``(rows, num_codes)``."""


class Layout:
    """Which column of a network's input each part of an observation is.

    Args:
        space: Of one env.

    Raises:
        ConfigError: A part of it is of a type that agents cannot observe.
    """

    def __init__(self, space: Space[Any]):
        parts = dict(space.spaces) if isinstance(space, Dict) else {"": space}
        self.is_dict = isinstance(space, Dict)
        self.number_keys: list[str] = []
        self.code_keys: list[str] = []
        self.kinds: list[int] = []
        """How many kinds each code column has."""
        self.starts: dict[str, int | npt.NDArray[np.int64]] = {}
        """The lowest codes of keys where they are not 0."""
        self.num_numbers = 0
        for key, part in parts.items():
            kinds, start = _kinds(part, key)
            if kinds:
                self.code_keys.append(key)
                self.kinds += kinds
                if np.any(start):
                    self.starts[key] = start
            else:
                self.number_keys.append(key)
                self.num_numbers += int(np.prod(part.shape or (1,)))
        self.num_codes = len(self.kinds)
        self.num_features = self.num_numbers + sum(self.kinds)
        """Columns of what goes into a network."""
        self.highest_codes = torch.tensor(self.kinds, dtype=torch.float64) - 1.0
        """Largest code of each column; the smallest is 0."""

    def pack(
        self, observations: Observations
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.uint8]]:
        """Return numbers and codes, with a row per env; may be the observations themselves."""
        if not (self.is_dict or self.num_codes):
            # The usual case, in every step.
            rows = np.asarray(observations)
            numbers = rows.reshape(len(rows), -1).astype(np.float32, copy=False)
            return numbers, np.zeros((len(rows), 0), dtype=np.uint8)
        parts: Any = observations if self.is_dict else {"": observations}
        num_rows = len(next(iter(parts.values())))
        numbers = _joined([parts[key] for key in self.number_keys], num_rows, np.float32)
        codes = _joined(
            [parts[key] - self.starts[key] if key in self.starts else parts[key]
             for key in self.code_keys],
            num_rows,
            np.uint8,
        )  # fmt: skip
        return numbers, codes

    def to_seen(self, observations: Observations, device: torch.device) -> Seen:
        """Return observations as tensors on a device."""
        numbers, codes = self.pack(observations)
        return Seen(
            torch.from_numpy(np.ascontiguousarray(numbers)).to(device),
            torch.from_numpy(np.ascontiguousarray(codes)).to(device),
        )


def _kinds(space: Space[Any], key: str) -> tuple[list[int], int | npt.NDArray[np.int64]]:
    """Return how many kinds each column has and the lowest codes; no columns if it is numbers."""
    if isinstance(space, Discrete) and space.n <= MAX_CODES:
        return [int(space.n)], int(space.start)
    if isinstance(space, MultiDiscrete) and (space.nvec <= MAX_CODES).all():
        return [int(count) for count in space.nvec.reshape(-1)], space.start.astype(np.int64)
    if isinstance(space, Box):
        if np.issubdtype(np.dtype(space.dtype), np.integer):
            low, high = int(space.low.min()), int(space.high.max())
            if high - low < MAX_KINDS:
                return [high - low + 1] * int(np.prod(space.shape)), low
        return [], 0
    where = f" under {key!r}" if key else ""
    # Spaces of other libraries may print functions and addresses.
    is_gymnasiums = type(space).__module__.startswith("gymnasium.")
    found = space if is_gymnasiums else type(space).__name__
    raise ConfigError(
        f"agents observe Box, Discrete (up to {MAX_CODES}) and MultiDiscrete spaces and dicts of "
        f"them; got {found}{where}. Wrap the env so that its observations are one of these."
    )


def _joined(parts: list[Any], num_rows: int, dtype: Any) -> npt.NDArray[Any]:
    flat = [np.asarray(part).reshape(num_rows, -1) for part in parts]
    if not flat:
        return np.zeros((num_rows, 0), dtype=dtype)
    if len(flat) == 1:
        return flat[0].astype(dtype, copy=False)
    return np.concatenate(flat, axis=1, dtype=dtype, casting="unsafe")


class Encoder(nn.Module):
    """Turns observations into one row of features per env.

    Args:
        layout: Of the observations.
        is_normalised: Whether numbers are brought to mean 0 and spread 1; see
            `update_normaliser`.
    """

    mean: torch.Tensor
    spread: torch.Tensor
    moments: torch.Tensor
    offsets: torch.Tensor

    saved_bounds: Mapping[str, tuple[float | torch.Tensor, float | torch.Tensor]]
    """Lowest and highest values in a saved state."""

    def __init__(self, layout: Layout, is_normalised: bool = False):
        super().__init__()
        self.num_features = layout.num_features
        self.is_normalised = is_normalised
        self.saved_bounds = {}
        self._has_codes = layout.num_codes > 0
        self._kinds = sum(layout.kinds)
        starts = np.cumsum([0, *layout.kinds])[:-1].astype(np.int64)
        self.register_buffer("offsets", torch.from_numpy(starts), persistent=False)
        if is_normalised:
            width = layout.num_numbers
            self.register_buffer("mean", torch.zeros(width))
            self.register_buffer("spread", torch.ones(width))
            # Count, mean and sum of squared deviations, in double: they run for millions of rows.
            self.register_buffer("moments", torch.zeros(2 * width + 1, dtype=torch.float64))
            lowest = torch.zeros_like(self.moments)
            lowest[1 : 1 + width] = -LARGEST_SEEN
            highest = torch.full_like(self.moments, LARGEST_SEEN**2 * LARGEST_COUNT)
            highest[0], highest[1 : 1 + width] = LARGEST_COUNT, LARGEST_SEEN
            self.saved_bounds = {
                "spread": (SMALLEST_SPREAD, LARGEST_SEEN),
                "moments": (lowest, highest),
            }

    def forward(self, seen: Seen) -> torch.Tensor:
        """Return features of shape ``(rows, num_features)``."""
        numbers = seen.numbers
        if self.is_normalised:
            numbers = ((numbers - self.mean) / self.spread).clamp(-CLIP, CLIP)
        if not self._has_codes:
            return numbers
        spots = seen.codes.long() + self.offsets
        shape = (*spots.shape[:-1], self._kinds)
        ones = torch.zeros(shape, device=spots.device).scatter_(-1, spots, 1.0)
        return torch.cat([numbers, ones], dim=-1)

    @torch.no_grad()
    def update_normaliser(self, numbers: torch.Tensor) -> None:
        """Include rows of numbers in mean and spread, after Chan et al. 1983."""
        if not self.is_normalised or not len(numbers):
            return
        width = self.mean.shape[0]
        rows = numbers.double()
        count, mean, squares = (
            self.moments[0],
            self.moments[1 : 1 + width],
            self.moments[1 + width :],
        )
        num_new, mean_new = len(rows), rows.mean(0)
        total = count + num_new
        shift = mean_new - mean
        squares += ((rows - mean_new) ** 2).sum(0) + shift**2 * (count * num_new / total)
        mean += shift * (num_new / total)
        count.copy_(total)
        self.mean.copy_(mean)
        self.spread.copy_((squares / total).sqrt().clamp_min(SMALLEST_SPREAD))
