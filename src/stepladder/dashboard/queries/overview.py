"""All runs at a glance: one row each; a run that cannot be read says why in its row."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from stepladder.dashboard.queries.curves import curve
from stepladder.dashboard.queries.damage import naming_damage
from stepladder.dashboard.queries.held_out import ends_of_whole
from stepladder.dashboard.queries.places import place
from stepladder.dashboard.queries.standing import (
    kind_of_curriculum,
    last_value,
    metric_id,
    standing,
    subject,
)
from stepladder.dashboard.queries.sweeps import sweep_folders
from stepladder.dashboard.run_index import RunIndex
from stepladder.errors import StepladderError
from stepladder.runs import RunReader
from stepladder.visible import one_visible_line

SPARK_POINTS = 40
_GOODNESS = (
    "evaluation/success",
    "evaluation/win_rate",
    "overview/held_out_success",
    "overview/mastered_fraction",
    "env_info/curriculum_success",
    "overview/reward",
)
"""What a small curve of a run shows: the first of these that it has."""


def overview(index: RunIndex, params: Mapping[str, str]) -> dict[str, Any]:
    """Return a row for every run."""
    rows: list[dict[str, Any]] = []
    for name, folder in index.scan().items():
        try:
            with naming_damage(folder):
                rows.append({"name": name, **_known_row(index, name)})
        except (StepladderError, OSError) as error:
            rows.append({"name": name, "problem": one_visible_line(error)})
    found = sweep_folders(index)
    return {
        "runs": rows,
        "folders": [folder.name for folder in index.folders],
        "num_sweeps": len(found),
        "opens": _opened_first(index, found),
    }


def _opened_first(index: RunIndex, found: Mapping[str, Path]) -> dict[str, str] | None:
    """Return the page that is meant by an address without one: that of the only folder.

    None if there are several, or if the folder holds runs and is none itself.
    """
    if len(index.folders) > 1:
        return None
    (folder,) = index.folders
    for page, named in (("run", index.found), ("sweep", found)):
        if folder in named.values():
            return {"page": page, "name": next(n for n, path in named.items() if path == folder)}
    return None


def _known_row(index: RunIndex, name: str) -> dict[str, Any]:
    """Return the row of a run; of one that has ended, the same until its files change."""
    stamp = index.stamp(name)
    known = index.rows.get(name)
    if known is not None and known[0] == stamp:
        return known[1]
    made = row(index.reader(name))
    if made["status"] in ("finished", "stopped", "crashed"):
        index.rows[name] = stamp, made
    return made


def row(reader: RunReader) -> dict[str, Any]:
    """Return what the overview says of one run."""
    with reader.database() as database:
        success = last_value(database, "env_info/curriculum_success")
        spark: dict[str, Any] | None = None
        for name in _GOODNESS:
            number = metric_id(database, name)
            if number is not None:
                spark = {"name": name, **curve(database, number, SPARK_POINTS)}
                break
    return {
        **asdict(standing(reader)),
        "kind": reader.kind,
        "subject": subject(reader.config),
        "curriculum": kind_of_curriculum(reader.config),
        "seed": reader.seed,
        "created": reader.info.created,
        "version": reader.info.version,
        "place": place(reader),
        "held_out": _held_out(reader),
        "success": success,
        "spark": spark,
    }


def _held_out(reader: RunReader) -> dict[str, Any] | None:
    measured = ends_of_whole(reader)
    if not measured:
        return None
    step, (value, low, high), figure = measured[-1]
    return {"value": value, "low": low, "high": high, "step": step, "figure": figure}
