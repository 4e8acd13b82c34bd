"""Levels kept back for evaluation: a fixed set per stage.

`generators.generate` never returns one of them, so an agent cannot have practised them. Each header
says how many steps the planner needed.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from stepladder.games.ledge.level import STAGES, Level, check_stage

FOLDER = Path(__file__).parent / "files"
"""One folder per stage with one text file per level: a root for `FolderSource`."""


def held_out(stage: str) -> list[Level]:
    """Return the held-out levels of a stage, in order of name.

    Raises:
        TaskError: If there is no such stage.
    """
    files = sorted((FOLDER / check_stage(stage)).glob("*.txt"))
    return [Level.parse(file.read_text(encoding="utf-8"), f"{stage}/{file.name}") for file in files]


@cache
def held_out_maps() -> frozenset[str]:
    """Return the maps of all held-out levels, each with its rows joined by line breaks."""
    return frozenset("\n".join(level.rows) for stage in STAGES for level in held_out(stage))
