"""Make the held-out levels: ``python -m stepladder.games.ledge.held_out.make``.

Run once when the generators have changed; the files are part of the package. The seeds lie beyond
those that `generate` takes, and the generators of a stage take turns.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from stepladder.games.ledge.generators.catalogue import GENERATORS
from stepladder.games.ledge.generators.generate import first_solvable
from stepladder.games.ledge.held_out import FOLDER
from stepladder.games.ledge.level import STAGES
from stepladder.tasks.task import MAX_SEED

PER_STAGE = 16
FIRST_SEED = MAX_SEED + 1


def make(folder: Path = FOLDER, per_stage: int = PER_STAGE) -> None:
    """Write all held-out levels, in place of the files in the folder."""
    for stage in STAGES:
        (folder / stage).mkdir(parents=True, exist_ok=True)
        for old in (folder / stage).glob("*.txt"):
            old.unlink()
        names = list(GENERATORS[stage])
        maps: set[str] = set()
        for i in range(per_stage):
            generator = names[i % len(names)]
            level, solution = first_solvable(stage, FIRST_SEED + i, generator, maps)
            maps.add("\n".join(level.rows))
            level = replace(level, notes=(*level.notes, ("plan_steps", str(solution.num_steps))))
            file = folder / stage / f"{i:02}_{generator}.txt"
            file.write_text(level.text, encoding="utf-8")


if __name__ == "__main__":
    make()
