"""The names of the stages, in order.

Known to the generators, to the held-out levels and to the source of tasks.
"""

from stepladder.errors import TaskError

STAGES = (
    "simplest",
    "simpler",
    "simple",
    "medium",
    "complex",
    "exploration",
    "mine_heavy",
)
"""Difficulty rises over the first five; exploration is large, mine_heavy is full of mines."""


def check_stage(stage: str) -> str:
    """Return the stage, or raise TaskError if there is none of that name."""
    if stage not in STAGES:
        raise TaskError(
            f"There is no stage {stage!r}; expected one of {', '.join(STAGES)}. Choose one."
        )
    return stage
