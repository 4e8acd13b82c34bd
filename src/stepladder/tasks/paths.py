"""Dotted paths into a task's params: ``"puck.speed"`` is ``params["puck"]["speed"]``.

Used by sources that generate params, by the settings of a phase, and wherever a curriculum looks
at one parameter.
"""

from __future__ import annotations

from typing import Any, cast

from stepladder.errors import TaskError


def write_path(params: dict[str, Any], path: str, value: Any) -> None:
    """Write a value at a dotted path, in place, making the dicts on the way.

    Raises:
        TaskError: Something on the way is not a dict.
    """
    *folders, last = path.split(".")
    level = params
    for folder in folders:
        inner: object = level.setdefault(folder, {})
        if not isinstance(inner, dict):
            raise TaskError(
                f"The path {path!r} cannot be written: {folder!r} is a "
                f"{type(inner).__name__}, not a dict. Change the path or the params."
            )
        level = cast("dict[str, Any]", inner)
    level[last] = value


def read_path(params: dict[str, Any], path: str) -> Any:
    """Return the value at a dotted path.

    Raises:
        TaskError: There is nothing at that path.
    """
    value: Any = params
    for name in path.split("."):
        if not isinstance(value, dict) or name not in value:
            raise TaskError(
                f"There is no parameter {path!r}; the params have {sorted(params)}. "
                "Correct the path, or give the task that parameter."
            )
        value = cast("dict[str, Any]", value)[name]
    return value
