"""Observations, laid out for networks: numbers as they are, codes as one-hot, pictures as bytes.

Between vector envs, which return arrays or dicts of arrays, and the networks of the agents. Any
observation becomes at most two arrays: floats, and bytes. Bytes are small integers that stand for
kinds of things (tiles, places), and the pictures that `encoders` reads with convolutions.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space
from torch import nn

from stepladder.agents.networks.coded import Coded
from stepladder.agents.networks.normalising import CLIP, SavedBounds, add_rows, new_moments
from stepladder.agents.vision.config import VisionConfig
from stepladder.agents.vision.grids import MAX_KINDS, Grid, grid_of, num_values_of
from stepladder.errors import ConfigError

Observations = npt.NDArray[Any] | dict[str, npt.NDArray[Any]]
"""What a vector env returns: an array with a row per env, or several by name."""

Packed = tuple[npt.NDArray[np.float32], npt.NDArray[np.uint8]]
"""Numbers and codes, with a row per env."""

MAX_CODES = 256
"""Codes fit into a byte."""


class Seen(NamedTuple):
    """Observations on their way into a network; either part may have no columns."""

    numbers: torch.Tensor
    """Floats, of shape ``(rows, num_numbers)``."""

    codes: torch.Tensor
    """Bytes, of shape ``(rows, num_codes)``."""


@dataclass(frozen=True)
class ObservationPart:
    """One part of an observation: its place in a frame."""

    key: str
    """Its name in a dict of observations."""

    shape: tuple[int, ...]
    kinds: tuple[int, ...]
    """How many kinds each of its code columns has; none if it is numbers."""

    start: int | npt.NDArray[np.int64]
    """The lowest code."""

    grid: Grid | None = None
    """How convolutions read it, if they do."""

    first_column: int = 0
    """Among the numbers or codes of a frame."""

    @property
    def columns(self) -> slice:
        """Its columns among the numbers or codes of a frame."""
        width = len(self.kinds) or math.prod(self.shape)
        return slice(self.first_column, self.first_column + width)

    @cached_property
    def is_shifted(self) -> bool:
        """Whether the lowest code is not 0."""
        return bool(np.any(self.start))


class Layout:
    """Which column of a network's input each part of an observation is.

    Args:
        space: Of one env.
        vision: How pictures and tiles are read; None flattens them.
        frame_stack: Frames that are seen at once. All columns of the oldest come first.

    Raises:
        ConfigError: A part of it is of a type that agents cannot observe.
    """

    def __init__(self, space: Space[Any], vision: VisionConfig | None = None, frame_stack: int = 1):
        parts = dict(space.spaces) if isinstance(space, Dict) else {"": space}
        self.space, self.is_dict = space, isinstance(space, Dict)
        self.frame_stack = frame_stack
        self.doubts: list[str] = []
        """What the settings of pictures may be wrong about, in sentences."""
        found = [self._part(part, key, vision) for key, part in parts.items()]
        numbers = [part for part in found if not part.kinds]
        flat = [part for part in found if part.kinds and part.grid is None]
        grids = [part for part in found if part.grid is not None]
        self.numbers, self.frame_numbers = _in_columns(numbers)
        # Those that convolutions read come last.
        self.codes, self.frame_codes = _in_columns([*flat, *grids])
        self.grids = [part for part in self.codes if part.grid is not None]
        self.kinds = [count for part in flat for count in part.kinds] * frame_stack
        """How many kinds each one-hot column has."""
        self.num_flat = len(self.kinds) // frame_stack
        """Code columns of a frame that are one-hot."""
        self.num_numbers = self.frame_numbers * frame_stack
        self.num_codes = self.frame_codes * frame_stack
        self.num_plain = self.num_numbers + sum(self.kinds)
        """Columns of what goes into a network without convolutions."""
        self.num_features = self.num_plain + sum(
            part.grid.features for part in self.grids if part.grid
        )
        """Columns of what goes into a network."""
        kinds = [count for part in self.codes for count in part.kinds] * frame_stack
        self.highest_codes = torch.tensor(kinds, dtype=torch.float64) - 1.0
        """Largest code of each column; the smallest is 0."""

    def _part(self, space: Space[Any], key: str, vision: VisionConfig | None) -> ObservationPart:
        if isinstance(space, Box) and vision is not None:
            grid, doubts = grid_of(space, key, vision, self.frame_stack)
            self.doubts += doubts
            if grid is not None:
                kinds = (grid.num_values,) * grid.size
                return ObservationPart(key, grid.shape, kinds, int(space.low.min()), grid)
        kinds, start = _kinds(space, key)
        return ObservationPart(key, space.shape or (), tuple(kinds), start)

    def pack(self, observations: Observations) -> Packed:
        """Return a frame of every env; may be the observations themselves."""
        if not (self.is_dict or self.num_codes):
            # The usual case, in every step.
            rows = np.asarray(observations)
            numbers = rows.reshape(len(rows), -1).astype(np.float32, copy=False)
            return numbers, np.zeros((len(rows), 0), dtype=np.uint8)
        parts: Any = observations if self.is_dict else {"": observations}
        num_rows = len(next(iter(parts.values())))
        numbers = _joined([parts[part.key] for part in self.numbers], num_rows, np.float32)
        codes = _joined(
            [parts[part.key] - part.start if part.is_shifted else parts[part.key]
             for part in self.codes],
            num_rows,
            np.uint8,
        )  # fmt: skip
        return numbers, codes

    def to_seen(self, observations: Observations, device: torch.device) -> Seen:
        """Return a frame of every env as tensors on a device."""
        return on_device(self.pack(observations), device)


def on_device(packed: Packed, device: torch.device) -> Seen:
    """Return packed observations as tensors on a device."""
    numbers, codes = packed
    return Seen(
        torch.from_numpy(np.ascontiguousarray(numbers)).to(device),
        torch.from_numpy(np.ascontiguousarray(codes)).to(device),
    )


def _in_columns(parts: list[ObservationPart]) -> tuple[list[ObservationPart], int]:
    """Return parts with their columns, one after the other, and the number of columns."""
    placed: list[ObservationPart] = []
    start = 0
    for part in parts:
        placed.append(replace(part, first_column=start))
        start = placed[-1].columns.stop
    return placed, start


def _kinds(space: Space[Any], key: str) -> tuple[list[int], int | npt.NDArray[np.int64]]:
    """Return how many kinds each column has and the lowest codes; no columns if it is numbers."""
    if isinstance(space, Discrete) and space.n <= MAX_CODES:
        return [int(space.n)], int(space.start)
    if isinstance(space, MultiDiscrete) and (space.nvec <= MAX_CODES).all():
        return [int(count) for count in space.nvec.reshape(-1)], space.start.astype(np.int64)
    if isinstance(space, MultiBinary):
        return [2] * int(np.prod(space.shape)), 0
    if isinstance(space, Box):
        num_values = num_values_of(space)
        if num_values is not None and num_values <= MAX_KINDS:
            return [num_values] * int(np.prod(space.shape)), int(space.low.min())
        return [], 0
    where = f" under {key!r}" if key else ""
    # Spaces of other libraries may print functions and addresses.
    is_gymnasiums = type(space).__module__.startswith("gymnasium.")
    found = space if is_gymnasiums else type(space).__name__
    raise ConfigError(
        f"agents observe Box, Discrete (up to {MAX_CODES}), MultiDiscrete and MultiBinary spaces "
        f"and dicts of them; got {found}{where}. Wrap the env so that its observations are one of "
        "these."
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

    saved_bounds: SavedBounds

    learns: ClassVar[bool] = False
    """Whether it has weights."""

    is_own: ClassVar[bool] = False
    """Whether a user has written a part of it."""

    def __init__(self, layout: Layout, is_normalised: bool = False):
        super().__init__()
        self.num_features = layout.num_plain
        self.is_normalised = is_normalised
        self.saved_bounds = {}
        self.is_exported = False
        """Whether the first layer always reads columns: other programs know plain products only."""
        self._has_codes, self._has_grids = layout.num_flat > 0, bool(layout.grids)
        self._frame_stack, self._num_flat = layout.frame_stack, layout.num_flat
        self._kinds = sum(layout.kinds)
        starts = np.cumsum([0, *layout.kinds])[:-1].astype(np.int64)
        self.register_buffer("offsets", torch.from_numpy(starts), persistent=False)
        self._code_offsets = starts
        if is_normalised:
            width = layout.num_numbers
            self.register_buffer("mean", torch.zeros(width))
            self.register_buffer("spread", torch.ones(width))
            moments, self.saved_bounds = new_moments(width)
            self.register_buffer("moments", moments)

    def forward(self, seen: Seen) -> torch.Tensor:
        """Return features of shape ``(rows, num_features)``."""
        return self.join(self.prepare(seen))

    def prepare(self, seen: Seen) -> Seen:
        """Return observations with normalised numbers, which are made once per rollout."""
        return Seen(self._normalised(seen.numbers), seen.codes)

    @property
    def gives_codes(self) -> bool:
        """Whether the first layer gets codes as they are, on the CPU."""
        return self._has_codes and not self.learns

    def inputs(self, prepared: Seen) -> torch.Tensor | Coded:
        """Return what the first layer reads of what `prepare` returned."""
        if self.is_exported or not self.gives_codes or prepared.codes.device.type != "cpu":
            return self.join(prepared)
        return Coded(prepared.numbers, prepared.codes, self._code_offsets)

    def _normalised(self, numbers: torch.Tensor) -> torch.Tensor:
        if not self.is_normalised:
            return numbers
        return ((numbers - self.mean) / self.spread).clamp(-CLIP, CLIP)

    def _split(self, codes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the codes that are one-hot, and those of grids."""
        if not self._has_grids:
            return codes, codes[..., :0]
        frames = codes.unflatten(-1, (self._frame_stack, -1))
        return frames[..., : self._num_flat].flatten(-2), frames[..., self._num_flat :].flatten(-2)

    def _plain(self, prepared: Seen) -> tuple[torch.Tensor, torch.Tensor]:
        """Return numbers with one-hot codes, and the bytes that convolutions read."""
        numbers, codes = prepared
        codes, grids = self._split(codes)
        if not self._has_codes:
            return numbers, grids
        spots = codes.long() + self.offsets
        shape = (*spots.shape[:-1], self._kinds)
        ones = torch.zeros(shape, device=spots.device).scatter_(-1, spots, 1.0)
        return torch.cat([numbers, ones], dim=-1), grids

    def join(self, prepared: Seen) -> torch.Tensor:
        """Return features of what `prepare` returned."""
        return self._plain(prepared)[0]

    @torch.no_grad()
    def update_normaliser(self, numbers: torch.Tensor) -> None:
        """Include rows of numbers in mean and spread."""
        if self.is_normalised and len(numbers):
            mean, spread = add_rows(self.moments, numbers)
            self.mean.copy_(mean)
            self.spread.copy_(spread)
