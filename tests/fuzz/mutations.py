"""Small changes to bytes, JSON and arrays: a flipped bit, a field with another value, a cut."""

import copy
import json
from typing import Any

import numpy as np

FLOATS = (np.nan, np.inf, -np.inf, -0.0, 1e300, -1e300, 1e-320, -1.0, 0.5, 1.5, 1e6, -1e7, 1e18)
INTEGERS = (
    -1,
    -2,
    1,
    2,
    3,
    64,
    65,
    255,
    256,
    65_536,
    2**31,
    10**9,
    2**53,
    2**62,
    2**63 - 1,
    -(2**63),
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    -1,
    0,
    1,
    7,
    2**31,
    2**63,
    10**30,
    10**400,
    -0.5,
    0.5,
    1e308,
    1e-320,
    "",
    "x",
    "\x1b[31mred\x07",
    "../../outside",
    "/",
    "x" * 5000,
    [],
    {},
    [None],
    [[1, 2], "x"],
    {"x": {}},
)


def change_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    """Flip a bit, overwrite, insert, remove or cut."""
    changed = bytearray(data)
    if not changed:
        return bytes(rng.integers(0, 256, 5, dtype=np.uint8))
    at = int(rng.integers(len(changed)))
    length = int(rng.integers(1, 17))
    kind = int(rng.integers(8))
    if kind < 4:
        changed[at] ^= 1 << int(rng.integers(8))
    elif kind == 4:
        changed[at : at + length] = bytes(rng.integers(0, 256, length, dtype=np.uint8))
    elif kind == 5:
        del changed[at : at + length]
    elif kind == 6:
        changed[at:at] = bytes(rng.integers(0, 256, length, dtype=np.uint8))
    else:
        del changed[at:]
    return bytes(changed)


def change_array(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Change one element, one bit, the shape or the type."""
    kind = int(rng.integers(12))
    if kind == 0:
        return array.reshape(-1)[: max(0, array.size - 1)].copy()
    if kind == 1 and array.dtype.names is None:
        with np.errstate(all="ignore"):
            return array.astype(rng.choice(["f4", "f8", "i4", "i8", "u1", "?", "U3"]))
    if kind == 2:
        return np.repeat(array, 2, axis=0) if array.ndim else np.stack([array, array])
    changed = np.array(array, order="C", copy=True)
    if changed.size == 0:
        return np.zeros((1, *changed.shape[1:]), dtype=changed.dtype)
    if kind < 7:
        flat = changed.reshape(-1).view(np.uint8)
        flat[int(rng.integers(len(flat)))] ^= np.uint8(1 << int(rng.integers(8)))
        return changed
    _change_element(changed.reshape(-1), rng)
    return changed


def _change_element(flat: np.ndarray, rng: np.random.Generator) -> None:
    index = int(rng.integers(len(flat)))
    view: Any = flat
    while view.dtype.names:
        view = view[str(rng.choice(view.dtype.names))]
        if view.ndim > 1:
            view = view.reshape(len(view), -1)[:, int(rng.integers(view[0].size))]
    with np.errstate(all="ignore"):
        if view.dtype.kind == "f":
            value = float(rng.choice(FLOATS)) if rng.random() < 0.7 else view[index] + rng.normal()
            view[index] = value
        elif view.dtype.kind in "iu":
            near = int(view[index]) + int(rng.integers(-2, 3))
            value = int(INTEGERS[rng.integers(len(INTEGERS))]) if rng.random() < 0.7 else near
            limits = np.iinfo(view.dtype)
            view[index] = min(max(value, limits.min), limits.max)
        elif view.dtype.kind == "b":
            view[index] = not view[index]


def change_json(document: Any, rng: np.random.Generator) -> Any:
    """Return a copy of a JSON document in which one place is another value, gone or new."""
    changed = copy.deepcopy(document)
    places = list(_places(changed))
    if not places:
        return VALUES[int(rng.integers(len(VALUES)))]
    holder, key = places[int(rng.integers(len(places)))]
    kind = int(rng.integers(10))
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[str(rng.integers(100))] = holder[key]
    elif kind == 2 and isinstance(holder, list):
        holder.append(copy.deepcopy(holder[key]))
    elif kind == 3:
        other, at = places[int(rng.integers(len(places)))]
        holder[key] = copy.deepcopy(other[at]) if other is not holder else None
    elif kind == 4 and isinstance(holder[key], int | float) and not isinstance(holder[key], bool):
        holder[key] = holder[key] + int(rng.integers(-3, 4))
    elif kind == 5:
        deep: Any = 0
        for _ in range(int(rng.integers(1, 300))):
            deep = [deep]
        holder[key] = deep
    else:
        holder[key] = VALUES[int(rng.integers(len(VALUES)))]
    return changed


def _places(value: Any) -> Any:
    if isinstance(value, dict):
        for key in value:
            yield value, key
            yield from _places(value[key])
    elif isinstance(value, list):
        for index in range(len(value)):
            yield value, index
            yield from _places(value[index])


def change_json_text(text: str, rng: np.random.Generator) -> str:
    """Change a JSON file: mostly a field, sometimes its characters."""
    if rng.random() < 0.2:
        return change_bytes(text.encode(), rng).decode(errors="surrogateescape")
    if rng.random() < 0.02:
        return "[" * 100_000
    return json.dumps(change_json(json.loads(text), rng))
