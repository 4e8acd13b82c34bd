"""Draw until the planner finds a plan, and one that is long enough for the stage.

Between the families, which draw what is nearly always solvable, and whoever needs a proof:
`generate` for tasks, `held_out.make` for the fixed sets. The number of the attempt is part of the
random stream, so a seed gives the same level on every machine.
"""

from __future__ import annotations

from collections.abc import Collection

from stepladder.errors import TaskError
from stepladder.games.ledge.generators.canvas import Unfit
from stepladder.games.ledge.generators.catalogue import GENERATORS, MIN_STEPS
from stepladder.games.ledge.generators.chance import Chance
from stepladder.games.ledge.level import Level
from stepladder.games.ledge.planner import Plan, solve
from stepladder.games.ledge.stages import STAGES, check_stage

MAX_ATTEMPTS = 100
"""Attempts after which a generator counts as broken; one or two are usual."""

_CHOICE_STREAM = 0
_LEVEL_STREAM = 1


def check_names(stage: str, generator: str | None) -> None:
    """Raise TaskError unless there is such a stage and, where one is named, such a generator."""
    check_stage(stage)
    if generator is not None and generator not in tuple(GENERATORS[stage]):
        raise TaskError(
            f"The stage {stage!r} has no generator {generator!r}; expected one of "
            f"{', '.join(GENERATORS[stage])}, or None for any. Choose one."
        )


def first_solvable(
    stage: str, seed: int, generator: str | None, taken: Collection[str] = ()
) -> tuple[Level, Plan]:
    """Return the first level of a seed that has a plan as long as its stage asks, and the plan.

    Args:
        stage: One of `STAGES`.
        seed: From 0 to 2**64 - 1.
        generator: One of the stage's generators; None leaves the choice to the seed.
        taken: Maps (rows joined by line breaks) that must not come out.

    Raises:
        TaskError: If there is no such stage or generator.
    """
    check_names(stage, generator)
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
            canvas = GENERATORS[stage][generator](chance)
            level = canvas.level(name, notes, mirrored=chance.happens(50))
        except Unfit:
            continue
        plan = solve(level)
        if plan is None or plan.num_steps < MIN_STEPS[stage]:
            continue
        if "\n".join(level.rows) not in taken:
            return level, plan
    raise TaskError(
        f"The generator {generator!r} of stage {stage!r} has found no solvable level for seed "
        f"{seed} in {MAX_ATTEMPTS} attempts; one is expected. Use another seed, and report this."
    )
