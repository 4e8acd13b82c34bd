"""Infos of single envs put together into the one dict of a vector env.

Takes what `group` has gathered, gives what Gymnasium's own vector envs give, key for key and type
for type: an array per key, and a mask ``_key`` of the envs that have it. Several times quicker,
because a key's arrays are made and looked up once per step rather than once per env.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

NumberedInfo = tuple[int, dict[str, Any]]
"""Row of an env, and the info it returned."""


def merge_infos(infos: Sequence[NumberedInfo], num_rows: int) -> dict[str, Any]:
    """Merge the infos of some envs, in env order, into arrays over all rows."""
    columns: dict[str, list[tuple[int, Any]]] = {}
    for row, info in infos:
        for key, value in info.items():
            column = columns.get(key)
            if column is None:
                columns[key] = [(row, value)]
            else:
                column.append((row, value))
    merged: dict[str, Any] = {}
    for key, column in columns.items():
        mask = np.zeros(num_rows, dtype=np.bool_)
        for row, _ in column:
            mask[row] = True
        merged[key] = _merge_column(key, column, num_rows)
        merged[f"_{key}"] = mask
    return merged


def _merge_column(key: str, column: list[tuple[int, Any]], num_rows: int) -> Any:
    first = column[0][1]
    if isinstance(first, dict) and key != "final_obs":
        return merge_infos(column, num_rows)
    # Observations of different envs stay apart, also where they would fit into one array.
    array = _empty(None if key == "final_obs" else first, num_rows)
    for row, value in column:
        array[row] = value
    return array


def _empty(value: Any, num_rows: int) -> Any:
    """Return an array for values like this one; what is no number becomes an object."""
    kind = type(value)
    if kind in (int, float, bool) or issubclass(kind, np.number):
        return np.zeros(num_rows, dtype=kind)
    if isinstance(value, np.ndarray):
        return np.zeros((num_rows, *value.shape), dtype=value.dtype)
    return np.full(num_rows, None, dtype=object)
