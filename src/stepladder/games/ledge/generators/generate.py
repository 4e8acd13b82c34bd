"""Make a level from a stage and a seed.

`source.level_of` calls `generate` when a task is first played; `held_out.make` makes the fixed
sets. Generators draw what is nearly always solvable; here levels are drawn until the planner finds
a solution that is long enough for the stage. The number of the attempt is part of the random
stream, so a seed gives the same level on every machine.
"""

from __future__ import annotations

from collections.abc import Collection

from stepladder.errors import TaskError
from stepladder.games.ledge.generators.catalogue import GENERATORS, MIN_STEPS
from stepladder.games.ledge.generators.chance import Chance
from stepladder.games.ledge.generators.sketch import Unfit
from stepladder.games.ledge.held_out import fingerprint, held_out_fingerprints
from stepladder.games.ledge.level import STAGES, Level, check_stage
from stepladder.games.ledge.planner import Solution, solve
from stepladder.tasks.plain import checked_integer
from stepladder.tasks.task import MAX_SEED

MAX_ATTEMPTS = 100
"""Attempts after which a generator counts as broken; one or two are usual."""

_CHOICE_STREAM = 0
_LEVEL_STREAM = 1


def first_solvable(
    stage: str, seed: int, generator: str | None, taken: Collection[str] = ()
) -> tuple[Level, Solution]:
    """Return the first level of a seed whose solution is long enough, and that solution.

    Seeds go up to 2**64 - 1; for the other arguments see `generate`. Levels whose `fingerprint` is
    in `taken` are left out.
    """
    check_stage(stage)
    if generator is not None and generator not in list(GENERATORS[stage]):
        raise TaskError(
            f"The stage {stage!r} has no generator {generator!r}; expected one of "
            f"{', '.join(GENERATORS[stage])}, or None for any. Choose one."
        )
    stage_index = STAGES.index(stage)
    names = list(GENERATORS[stage])
    if generator is None:
        generator = Chance(seed, _CHOICE_STREAM, stage_index).pick(names)
    name = f"{stage}/{generator}/{seed}"
    notes = (("stage", stage), ("generator", generator), ("seed", str(seed)))
    streams = (_LEVEL_STREAM, stage_index, names.index(generator))
    for attempt in range(MAX_ATTEMPTS):
        chance = Chance(seed, *streams, attempt)
        try:
            sketch = GENERATORS[stage][generator].draw(chance)
            level = sketch.level(name, notes, mirrored=chance.happens(50))
        except Unfit:
            continue
        solution = solve(level)
        if solution is None or solution.num_steps < MIN_STEPS[stage]:
            continue
        if fingerprint(level) not in taken:
            return level, solution
    raise TaskError(
        f"The generator {generator!r} of stage {stage!r} has found no solvable level for seed "
        f"{seed} in {MAX_ATTEMPTS} attempts; one is expected. Use another seed, and report this."
    )


def generate(stage: str, seed: int, generator: str | None = None) -> Level:
    """Make a level that the planner has solved.

    Args:
        stage: One of the seven stages.
        seed: From 0 to 2**63 - 1. The same seed gives the same level on every machine, and no
            seed gives a held-out level: these come from seeds beyond, and a level that happens to
            be equal to one of them is drawn again.
        generator: One of the stage's generators; None leaves the choice to the seed.

    Raises:
        TaskError: If there is no such stage or generator, or the seed is out of range.
    """
    seed = checked_integer(seed, "The seed of a level", 0, MAX_SEED)
    return first_solvable(stage, seed, generator, held_out_fingerprints())[0]
