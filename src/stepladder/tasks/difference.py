"""Say in words how two descriptions of task sets differ.

Used by `pool` when a snapshot belongs to other tasks: "fingerprints differ" helps nobody.
"""

from __future__ import annotations

from typing import Any, cast

_MAX_LABELS_NAMED = 5


def name_difference(saved: dict[str, Any], current: dict[str, Any]) -> str:
    """Return what differs, most telling first: task numbers, label counts, else the first field.

    Args:
        saved: Description kept in a snapshot, plain JSON.
        current: Description of the source at hand, plain JSON.
    """
    differences: list[str] = []
    if saved.get("num_tasks") != current.get("num_tasks"):
        differences.append(
            f"number of tasks: {_count(saved.get('num_tasks'))} in the snapshot, "
            f"{_count(current.get('num_tasks'))} here"
        )
    differences += _label_differences(saved.get("label_counts"), current.get("label_counts"))
    if not differences:
        path, before, now = _first_difference(saved, current, "")
        differences.append(f"{path}: {_cut(before)} in the snapshot, {_cut(now)} here")
    return "; ".join(differences)


def _count(num_tasks: Any) -> str:
    return "no end" if num_tasks is None else str(num_tasks)


def _label_differences(saved: Any, current: Any) -> list[str]:
    if not isinstance(saved, dict) or not isinstance(current, dict):
        return []
    before, now = cast("dict[str, Any]", saved), cast("dict[str, Any]", current)
    differing = [lbl for lbl in dict.fromkeys([*before, *now]) if before.get(lbl) != now.get(lbl)]
    words = [
        f"label {label!r}: {before.get(label, 0)} tasks in the snapshot, {now.get(label, 0)} here"
        for label in differing[:_MAX_LABELS_NAMED]
    ]
    if len(differing) > _MAX_LABELS_NAMED:
        words.append(f"{len(differing) - _MAX_LABELS_NAMED} more labels differ")
    return words


def _first_difference(saved: Any, current: Any, path: str) -> tuple[str, Any, Any]:
    """Return dotted path and both values of the first place where two plain values differ."""
    before, now = _as_fields(saved), _as_fields(current)
    if before is not None and now is not None:
        for key in dict.fromkeys([*before, *now]):
            inner = f"{path}.{key}" if path else key
            if key not in before or key not in now:
                return inner, before.get(key, "nothing"), now.get(key, "nothing")
            if before[key] != now[key]:
                return _first_difference(before[key], now[key], inner)
    return path or "description", saved, current


def _as_fields(value: Any) -> dict[str, Any] | None:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    if isinstance(value, list):
        return {str(i): item for i, item in enumerate(cast("list[Any]", value))}
    return None


def _cut(value: Any, length: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= length else text[: length - 3] + "..."
