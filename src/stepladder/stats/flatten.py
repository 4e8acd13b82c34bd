"""The numbers in an info: nested dicts flattened, masks applied, everything else left out.

The lower half of `rollout`. Understands the info of one env, and the single dict that a Gymnasium
vector env returns for all of them: arrays with one entry per env, each with a mask ``_key`` that
says which envs have it.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from numbers import Real
from typing import Any, cast

import numpy as np

from stepladder.arrays import Flags
from stepladder.errors import ConfigError

NOT_METRICS = frozenset(
    {
        "curriculum_slot",
        "curriculum_generation",
        "curriculum_plan_version",
        "curriculum_plan_version_end",
        "final_obs",
        "final_observation",
        "terminal_observation",
        "task_class",
    }
)
"""Keys that hold numbers which measure nothing: which task it was, and what was seen last."""

MAX_DEPTH = 60
"""Deepest nesting of an info; anything deeper is taken for one that contains itself."""

FINAL_INFO = "final_info"
"""Where a vector env with same-step autoreset keeps the infos of the episodes that ended."""


def as_number(value: object) -> float | None:
    """Return a number, a truth value or an array or tensor of one element as a float, else None."""
    if not isinstance(value, Real):
        value = _single_element(value)
    if not isinstance(value, Real):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _single_element(value: Any) -> Any:
    # A tensor of another library counts by a method; none of them is imported here.
    is_array = isinstance(value, np.ndarray | np.generic)
    size: Any = getattr(value, "size" if is_array else "numel", None)
    size = size() if callable(size) else size
    whole: Any = value
    return whole.item() if size == 1 else None


def numbers_in(info: Mapping[Any, Any], is_vector: bool) -> Iterator[tuple[str, list[float]]]:
    """Yield the numbers in an info, by flattened key with ``/`` between the levels.

    A key may come several times; what several envs have reported comes in one list.

    Left out, because there is nothing to reduce: strings, None, objects, lists, NaN (no value),
    observations, and arrays of more than one element, unless they have one element per env.

    Args:
        info: The info of one env, or of a vector env.
        is_vector: Whether a one-dimensional array without a mask has one entry per env.

    Raises:
        ConfigError: It is nested without end.
    """
    return _walk(info, "", None, is_vector)


def _walk(
    info: Mapping[Any, Any], prefix: str, inherited: Flags | None, is_vector: bool, depth: int = 0
) -> Iterator[tuple[str, list[float]]]:
    if depth > MAX_DEPTH:
        raise ConfigError(
            f"an info is nested deeper than {MAX_DEPTH} levels, at {prefix[:40]!r}; does it "
            "contain itself? Leave that out of the info."
        )
    for raw, value in info.items():
        key = str(raw)
        if key in NOT_METRICS or _is_mask(info, key):
            continue
        own: Any = info.get(f"_{key}")
        mask = own.reshape(-1) if _is_bool_array(own) else inherited
        below = prefix if key == FINAL_INFO else f"{prefix}{key}/"
        if isinstance(value, Mapping):
            # Gymnasium's own wrappers mask a group as a whole, and not its members again.
            yield from _walk(cast("Mapping[Any, Any]", value), below, mask, is_vector, depth + 1)
            continue
        entries = _entries(value, mask, is_vector)
        if isinstance(entries, np.ndarray) and cast("Any", entries).dtype.kind in "fiub":
            # One pass over all envs: asking each entry for its type would take ten times as long.
            known = np.asarray(entries, dtype=np.float64)
            yield f"{prefix}{key}", known[~np.isnan(known)].tolist()
            continue
        for entry in entries:
            if isinstance(entry, Mapping):
                yield from _walk(cast("Mapping[Any, Any]", entry), below, None, False, depth + 1)
                continue
            number = as_number(entry)
            if number is not None and not math.isnan(number):
                yield f"{prefix}{key}", [number]


def _entries(value: Any, mask: Flags | None, is_vector: bool) -> Iterable[Any]:
    """Split what several envs have reported; what comes from one env stays whole."""
    num_entries = _length(value)
    if mask is not None:
        if num_entries == len(mask):
            if isinstance(value, np.ndarray) and cast("Any", value).ndim == 1:
                return cast("Any", value)[mask]
            return [value[index] for index in np.flatnonzero(mask)]
        return [value] if mask.any() else []
    if is_vector and num_entries is not None and len(value.shape) == 1:
        return value
    return [value]


def _length(value: Any) -> int | None:
    """Return the number of entries of an array or tensor, None for anything else."""
    if isinstance(value, np.ndarray) or callable(getattr(value, "numel", None)):
        shape: tuple[int, ...] = cast("Any", value).shape
        return int(shape[0]) if shape else None
    return None


def _is_bool_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and cast("Any", value).dtype == np.bool_


def _is_mask(info: Mapping[Any, Any], key: str) -> bool:
    if not key.startswith("_") or not _is_bool_array(info.get(key)):
        return False
    # A key that is not a string has a mask that is named after its text.
    return key[1:] in info or key[1:] in map(str, info)
