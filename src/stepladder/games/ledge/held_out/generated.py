"""The levels of the set `test`, generated from seeds of their own.

Between `generators`, which make a level from a seed, and `held_out`. The seeds lie beyond those
that `generate` takes and beyond those of `validation`. A level must have the fingerprint that is
kept: a generator that has changed would otherwise change what final tables are about.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache

from stepladder.errors import TaskError
from stepladder.games.ledge.generators.catalogue import GENERATORS
from stepladder.games.ledge.generators.generate import first_solvable
from stepladder.games.ledge.held_out import (
    fingerprint,
    kept_fingerprints,
    validation_fingerprints,
)
from stepladder.games.ledge.level import STAGES, Level
from stepladder.tasks.task import MAX_SEED

PER_STAGE = 64
FIRST_SEED = MAX_SEED + 1 + 2**32


@cache
def generated_levels(stage: str) -> tuple[Level, ...]:
    """Return the levels of a stage; the generators take turns.

    Raises:
        TaskError: The generators make other levels than when the set was made.
    """
    kept = kept_fingerprints()
    earlier = [mark for other in STAGES[: STAGES.index(stage)] for mark in kept[other]]
    levels: list[Level] = []
    for level, mark in zip(draw(stage, earlier, len(kept[stage])), kept[stage], strict=True):
        if fingerprint(level) != mark:
            raise TaskError(
                f"the test level {level.name!r} of Ledge is not the one that the set was made "
                "with: generators, planner or physics have changed. Install an unchanged version, "
                "or make the set again (python -m stepladder.games.ledge.held_out.make)."
            )
        levels.append(level)
    return tuple(levels)


def draw(stage: str, earlier: Collection[str], count: int = PER_STAGE) -> Iterator[Level]:
    """Yield the levels of a stage; none is among those of `validation`, and none comes twice.

    Args:
        stage: One of the seven stages.
        earlier: Fingerprints of the levels of the stages before it.
        count: How many levels.
    """
    taken = {*validation_fingerprints(), *earlier}
    names = list(GENERATORS[stage])
    for number in range(count):
        level, _ = first_solvable(stage, FIRST_SEED + number, names[number % len(names)], taken)
        taken.add(fingerprint(level))
        yield level
