"""Where a curriculum stands, in a few words: its stage, its phase, or how much is mastered."""

from collections.abc import Mapping, Sequence
from typing import Any

from stepladder.dashboard.queries.standing import curriculum_of, last_value
from stepladder.runs import RunReader


def place(reader: RunReader) -> dict[str, Any] | None:
    """Return ``{"kind", "index", "count", "name"}`` of the stage or phase; None without either."""
    with reader.database() as database:
        stage = last_value(database, "env_curriculum_stats/stage")
        phase = last_value(database, "env_curriculum_stats/phase")
    settings = curriculum_of(reader.config)
    if phase is not None:
        return _place("phase", phase, names_of(settings.get("phases")))
    if stage is not None:
        return _place("stage", stage, names_of(settings.get("stages")))
    return None


def names_of(entries: Any) -> list[str]:
    """Return the names of stages or phases in the order of the config; empty if there are none."""
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        return []
    names: list[str] = []
    for entry in entries:
        name = entry.get("name") if isinstance(entry, Mapping) else entry
        names.append(name if isinstance(name, str) else "")
    return names


def _place(kind: str, position: float, names: Sequence[str]) -> dict[str, Any]:
    index = int(position) if position == position else 0
    name = names[index] if 0 <= index < len(names) else ""
    return {"kind": kind, "index": index, "count": len(names), "name": name}
