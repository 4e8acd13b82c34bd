"""Make a level from a stage and a seed.

The way from a task to a level: `source.level_of` calls it when the task is first played.
"""

from __future__ import annotations

from stepladder.games.ledge.generators.attempts import first_solvable
from stepladder.games.ledge.held_out.levels import held_out_maps
from stepladder.games.ledge.level import Level
from stepladder.tasks.plain import whole_number
from stepladder.tasks.task import MAX_SEED


def generate(stage: str, seed: int, generator: str | None = None) -> Level:
    """Make a level that can be solved; the planner has proved it.

    Args:
        stage: One of the seven stages.
        seed: From 0 to 2**63 - 1. The same seed gives the same level on every machine, and no
            seed gives a held-out level: these come from seeds beyond, and a level that happens to
            be equal to one of them is drawn again.
        generator: One of the stage's generators; None leaves the choice to the seed.

    Raises:
        TaskError: If there is no such stage or generator, or the seed is out of range.
    """
    seed = whole_number(seed, "The seed of a level", 0, MAX_SEED)
    return first_solvable(stage, seed, generator, held_out_maps())[0]
