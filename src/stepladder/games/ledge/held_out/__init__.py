"""Levels kept back: `validation`, for evaluations on the way, and `test`, for final tables.

`generators.generate` and `edits` never give one of them, so an agent cannot have practised them.
`validation` is kept as text; the header of each level says how many steps the planner needed. Of
`test` only fingerprints are kept: its levels are generated again when they are asked for
(`generated`), and must be the same.
"""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from pathlib import Path

from stepladder.errors import TaskError, shown
from stepladder.files import parsed_json
from stepladder.games.ledge.level import STAGES, Level, check_stage

VALIDATION, TEST = SETS = ("validation", "test")
"""The sets; trainings use the first only."""

FOLDER = Path(__file__).parent / VALIDATION
"""One folder per stage with one text file per level: a root for `FolderSource`."""

FINGERPRINTS = Path(__file__).parent / "test.json"
"""Fingerprints of the levels of `test`, by stage."""


def held_out(stage: str, levels: str = VALIDATION) -> list[Level]:
    """Return the held-out levels of a stage, in order of name.

    Args:
        stage: One of the seven stages.
        levels: Which set: ``"validation"`` or ``"test"``.

    Raises:
        TaskError: If there is no such stage or set.
    """
    check_stage(stage)
    if levels == VALIDATION:
        return _from_files(stage)
    if levels == TEST:
        # Loaded here: generators must know the fingerprints.
        from stepladder.games.ledge.held_out.generated import generated_levels

        return list(generated_levels(stage))
    raise TaskError(f"levels must be {' or '.join(SETS)}; got {shown(levels)}. Correct it.")


def _from_files(stage: str) -> list[Level]:
    files = sorted((FOLDER / stage).glob("*.txt"))
    return [Level.parse(file.read_text(encoding="utf-8"), f"{stage}/{file.name}") for file in files]


def fingerprint(level: Level) -> str:
    """Return what identifies the map of a level, whatever its name and notes."""
    return blake2b("\n".join(level.rows).encode(), digest_size=8).hexdigest()


@cache
def validation_fingerprints() -> frozenset[str]:
    """Return the fingerprints of all levels of `validation`."""
    return frozenset(fingerprint(level) for stage in STAGES for level in _from_files(stage))


@cache
def kept_fingerprints() -> dict[str, list[str]]:
    """Return the fingerprints of the levels of `test`, in their order, by stage."""
    return parsed_json(FINGERPRINTS.read_text(encoding="utf-8"))


@cache
def held_out_fingerprints() -> frozenset[str]:
    """Return the fingerprints of all held-out levels: which no training may use."""
    return validation_fingerprints().union(*kept_fingerprints().values())
