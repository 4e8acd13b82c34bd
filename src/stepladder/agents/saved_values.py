"""What a saved value must be: one spec per tensor and per number, checked before use.

Every memory, optimiser and network of `agents` describes its state with these; `base` checks all of
an agent's state first and assigns it only then, so that a refusal changes nothing.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from stepladder.errors import SnapshotError, shown

Bound = float | torch.Tensor
"""One limit for all values, or one for each entry of the last axis."""

MAX_INT64 = 2**63 - 1
"""Largest count that a saved state may hold."""


@dataclass(frozen=True, kw_only=True)
class TensorSpec:
    """A tensor of a known shape and type whose values are finite and within bounds."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    low: Bound = -math.inf
    high: Bound = math.inf
    """Smallest and largest value that is allowed."""

    @classmethod
    def like(
        cls, name: str, tensor: torch.Tensor, *, low: Bound = -math.inf, high: Bound = math.inf
    ) -> "TensorSpec":
        """Describe a tensor of the same shape and type as another one."""
        return cls(name=name, shape=tuple(tensor.shape), dtype=tensor.dtype, low=low, high=high)

    def check(self, value: object) -> None:
        """Raise unless a value is as described.

        Raises:
            SnapshotError: It is not; the message names the tensor and the value.
        """
        if not isinstance(value, torch.Tensor):
            raise SnapshotError(f"{self.name} must be a tensor; got {short(value)}.")
        if tuple(value.shape) != self.shape or value.dtype != self.dtype:
            raise SnapshotError(
                f"{self.name} has the shape {list(value.shape)} and the type {_dtype(value)}; "
                f"expected {list(self.shape)} and {str(self.dtype).removeprefix('torch.')}."
            )
        if value.dtype == torch.bool or not value.numel():
            return
        place = not_finite(value)
        if place is not None:
            raise SnapshotError(
                f"{self.name}{place} is {_item(value, place)}; expected a finite number."
            )
        self._check_range(value)

    def _check_range(self, value: torch.Tensor) -> None:
        has_columns = isinstance(self.low, torch.Tensor) or isinstance(self.high, torch.Tensor)
        # Extremes first: a mask of a memory of millions of rows would be as large as the memory.
        rows = value.reshape(-1, value.shape[-1]) if has_columns else value.reshape(-1)
        lows, highs = torch.aminmax(rows, dim=0)
        low, high = (self._there(bound, value) for bound in (self.low, self.high))
        if bool((lows.double() >= low).all()) and bool((highs.double() <= high).all()):
            return
        is_outside = (value.double() < low) | (value.double() > high)
        place = is_outside.nonzero()[0].tolist()
        column = place[-1] if has_columns else None
        raise SnapshotError(
            f"{self.name}{place} is {_item(value, place)}; expected a number from "
            f"{_limit(low, column)} to {_limit(high, column)}."
        )

    @staticmethod
    def _there(bound: Bound, value: torch.Tensor) -> torch.Tensor:
        # Rounded as the values are: 1e-4 in 32 bits is a little less than in 64.
        dtype = value.dtype if value.is_floating_point() else torch.float64
        there = torch.as_tensor(bound, dtype=torch.float64, device=value.device)
        return there.to(dtype).double()


@dataclass(frozen=True, kw_only=True)
class NumberSpec:
    """A number of plain JSON within bounds."""

    name: str
    kind: type[int] | type[float] | type[bool] = int
    low: float = 0
    high: float = MAX_INT64

    def check(self, value: object) -> None:
        """Raise unless a value is as described.

        Raises:
            SnapshotError: It is not; the message names the number and its value.
        """
        if self.kind is bool:
            if not isinstance(value, bool):
                raise SnapshotError(f"{self.name} is {short(value)}; expected true or false.")
            return
        allowed = (int, float) if self.kind is float else (int,)
        is_number = isinstance(value, allowed) and not isinstance(value, bool)
        # A comparison with NaN is false, and integers of any size compare exactly.
        if not is_number or not self.low <= value <= self.high:  # pyright: ignore[reportOperatorIssue]
            words = "an integer" if self.kind is int else "a number"
            raise SnapshotError(
                f"{self.name} is {short(value)}; expected {words} from {self.low} to {self.high}."
            )


Spec = TensorSpec | NumberSpec


def check_state(state: object, specs: Iterable[Spec]) -> None:
    """Raise unless a saved state has exactly the values that are described.

    Raises:
        SnapshotError: One is missing, is not known, or is not as described.
    """
    if not isinstance(state, Mapping):
        raise SnapshotError(f"a saved state must have values by name; got {short(state)}.")
    known: set[str] = set()
    for spec in specs:
        if spec.name not in state:
            raise SnapshotError(f"{spec.name} is missing.")
        spec.check(state[spec.name])
        known.add(spec.name)
    for name in state:
        if name not in known:
            raise SnapshotError(f"{short(name)} is not known; expected {', '.join(sorted(known))}.")


def module_specs(module: nn.Module) -> list[TensorSpec]:
    """Describe the state of a module: as it is now, and finite.

    A part of it may have ``saved_bounds``: lowest and highest values by the name of a tensor.
    """
    bounds = {
        f"{prefix}.{name}" if prefix else name: ends
        for prefix, part in module.named_modules()
        for name, ends in getattr(part, "saved_bounds", {}).items()
    }
    specs: list[TensorSpec] = []
    for name, tensor in module.state_dict().items():
        low, high = bounds.get(name, (-math.inf, math.inf))
        specs.append(TensorSpec.like(name, tensor, low=low, high=high))
    return specs


def load_module(module: torch.nn.Module, weights: Mapping[str, torch.Tensor]) -> None:
    """Copy weights into a module, in place.

    Raises:
        SnapshotError: They do not fit, or are not finite; the message names the tensor.
    """
    check_state(weights, module_specs(module))
    module.load_state_dict({name: tensor.detach() for name, tensor in weights.items()})


def check_numbers(numbers: Mapping[str, object], specs: Iterable[NumberSpec]) -> None:
    """Raise unless some of the numbers of a state are as described.

    Raises:
        SnapshotError: One is not.
    """
    for spec in specs:
        spec.check(numbers.get(spec.name))


def check_generator(state: object, generator: torch.Generator) -> None:
    """Raise unless a generator can continue from a saved state, or be seeded by it.

    Raises:
        SnapshotError: It is not the state of a generator.
    """
    if not isinstance(state, torch.Tensor) or state.dtype != torch.uint8 or state.ndim != 1:
        raise SnapshotError("the state of a generator must be a row of bytes.")
    if state.shape != generator.get_state().shape:
        return  # Of another kind of device; only a seed is made of it.
    trial = torch.Generator(generator.device)
    try:
        trial.set_state(state.cpu())
    except RuntimeError as error:
        raise SnapshotError(f"the state of a generator is damaged ({error}).") from error
    # A generator keeps the second of two normal numbers for the next call.
    for dtype in (torch.float32, torch.float64):
        kept = torch.randn(1, dtype=dtype, device=generator.device, generator=trial)
        if not bool(kept.isfinite().all()):
            raise SnapshotError(
                f"a generator would draw {kept.item()} first; expected a finite number."
            )


def restore_generator(generator: torch.Generator, state: torch.Tensor) -> None:
    """Let a generator continue where a state was taken.

    A generator on another kind of device cannot: it gets a new seed, another one each time.
    """
    state = state.cpu()
    if state.shape == generator.get_state().shape:
        generator.set_state(state)
    else:
        generator.manual_seed(generator.initial_seed() + int(state.sum()))


def check_rng(state: Any) -> None:
    """Raise unless NumPy's generator can continue from a saved state.

    Raises:
        SnapshotError: It is not the state of a PCG64 generator.
    """
    trial = np.random.default_rng(0).bit_generator
    try:
        trial.state = state
        # NumPy accepts an even increment, with which the numbers soon repeat.
        is_usable = (
            trial.state == state
            and state["has_uint32"] in (0, 1)
            and state["state"]["inc"] % 2 == 1
        )
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise SnapshotError(
            f"rng is not the state of a generator ({type(error).__name__}: {error})."
        ) from error
    if not is_usable:
        raise SnapshotError(f"rng is {short(state)}; expected the state of a PCG64 generator.")


def not_finite(tensor: torch.Tensor) -> list[int] | None:
    """Return where the first value lies that is not finite, or None."""
    if not tensor.is_floating_point() or not tensor.numel():
        return None
    # One pass without a mask: a sum is finite unless a term is not, or it overflows.
    if math.isfinite(tensor.detach().sum().item()):
        return None
    places = (~tensor.detach().isfinite()).nonzero()
    return places[0].tolist() if len(places) else None


def first_not_finite(tensors: Mapping[str, torch.Tensor]) -> str | None:
    """Return the name, the place and the value of the first number that is not finite, or None."""
    for name, tensor in tensors.items():
        place = not_finite(tensor)
        if place is not None:
            return f"{name}{place} is {_item(tensor, place)}"
    return None


def largest(tensor: torch.Tensor) -> float:
    """Return the largest absolute value of a tensor; 0 if it is empty, NaN if it has one."""
    return float(tensor.abs().max().item()) if tensor.numel() else 0.0


def short(value: object) -> str:
    """Return how a message shows a value."""
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {list(value.shape)}"
    return shown(value)


def _item(tensor: torch.Tensor, place: list[int]) -> float | int:
    return tensor[tuple(place)].item()


def _limit(bound: torch.Tensor, column: int | None) -> str:
    return f"{(bound if column is None or not bound.ndim else bound[column]).item():g}"


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def flatten(value: Any, prefix: str, tensors: dict[str, torch.Tensor]) -> Any:
    """Return a nested state as plain JSON, with its tensors put aside under names.

    Args:
        value: Dicts, lists, numbers, texts and tensors.
        prefix: Of the names.
        tensors: Where tensors are put; changed in place.
    """
    if isinstance(value, torch.Tensor):
        tensors[prefix] = value.detach()
        return {"tensor": prefix}
    if isinstance(value, Mapping):
        # JSON has no keys but texts, and optimisers number their parameters.
        pairs = [[key, flatten(entry, f"{prefix}{key}.", tensors)] for key, entry in value.items()]
        return {"pairs": pairs}
    if isinstance(value, list | tuple):
        entries = [
            flatten(entry, f"{prefix}{index}.", tensors) for index, entry in enumerate(value)
        ]
        return {"entries": entries, "is_tuple": isinstance(value, tuple)}
    return value


def unflatten(value: Any, tensors: Mapping[str, torch.Tensor]) -> Any:
    """Return what `flatten` was given."""
    if not isinstance(value, Mapping):
        return value
    if "tensor" in value:
        return tensors[value["tensor"]]
    if "pairs" in value:
        return {key: unflatten(entry, tensors) for key, entry in value["pairs"]}
    entries = [unflatten(entry, tensors) for entry in value["entries"]]
    return tuple(entries) if value["is_tuple"] else entries
