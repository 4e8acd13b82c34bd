"""Make the held-out sets: ``python -m stepladder.games.ledge.held_out.make``.

Run once when the generators have changed; the files are part of the package. The seeds lie beyond
those that `generate` takes, and the generators of a stage take turns.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from stepladder.games.ledge.generators.catalogue import GENERATORS
from stepladder.games.ledge.generators.generate import first_solvable
from stepladder.games.ledge.held_out import (
    FINGERPRINTS,
    FOLDER,
    fingerprint,
    held_out_fingerprints,
    kept_fingerprints,
    validation_fingerprints,
)
from stepladder.games.ledge.held_out.generated import draw
from stepladder.games.ledge.level import STAGES
from stepladder.tasks.task import MAX_SEED

PER_STAGE = 16
FIRST_SEED = MAX_SEED + 1


def make(folder: Path = FOLDER, per_stage: int = PER_STAGE) -> None:
    """Write all levels of `validation`, in place of the files in the folder."""
    for stage in STAGES:
        (folder / stage).mkdir(parents=True, exist_ok=True)
        for old in (folder / stage).glob("*.txt"):
            old.unlink()
        names = list(GENERATORS[stage])
        taken: set[str] = set()
        for i in range(per_stage):
            generator = names[i % len(names)]
            level, solution = first_solvable(stage, FIRST_SEED + i, generator, taken)
            taken.add(fingerprint(level))
            level = replace(level, notes=(*level.notes, ("plan_steps", str(solution.num_steps))))
            file = folder / stage / f"{i:02}_{generator}.txt"
            file.write_text(level.text, encoding="utf-8")


def make_test(file: Path = FINGERPRINTS) -> None:
    """Write the fingerprints of all levels of `test`, given those of `validation`."""
    marks: dict[str, list[str]] = {}
    for stage in STAGES:
        earlier = [mark for others in marks.values() for mark in others]
        marks[stage] = [fingerprint(level) for level in draw(stage, earlier)]
    file.write_text(json.dumps(marks, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    make()
    for cached in (validation_fingerprints, kept_fingerprints, held_out_fingerprints):
        cached.cache_clear()
    make_test()
