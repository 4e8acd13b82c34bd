"""What becomes of the rows of a worker that has died.

Pure reasoning for `ensemble`, which acts on it. What a worker had written before it died is valid,
row by row. A row between two episodes has lost nothing. An episode in flight is lost: the next step
of its row ends it as truncated, so that a training loop sees an ending like any other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from stepladder.envs.workers.control import STEP
from stepladder.envs.workers.group import ENDED, LOST

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Order:
    """An order that has been given and not been gathered yet."""

    kind: int
    seeds: list[int | None] | None = None
    options: dict[str, Any] | None = None


def states_after_death(
    rows: Sequence[int],
    num_done: int,
    *,
    mode: AutoresetMode,
    ended_before: Flags,
    ended_now: Flags,
) -> list[int]:
    """Return what the rows of a dead worker are in.

    Args:
        rows: Its rows of one batch.
        num_done: How many of them had carried out the step in flight; 0 if there is none.
        mode: When an env that has ended is reset.
        ended_before: Per row of the vector env whether it was between two episodes.
        ended_now: The same after the step in flight, for rows that have done it.
    """
    if mode == AutoresetMode.SAME_STEP:
        # A row that ended was reset within the step, so all of them were in an episode.
        return [LOST] * len(rows)
    return [
        ENDED if (ended_now if number < num_done else ended_before)[row] else LOST
        for number, row in enumerate(rows)
    ]


def num_rows_done(order: Order | None, is_done: bool, progress: int, num_rows: int) -> int:
    """Return how many rows of a lane had carried out a step that has not been gathered yet."""
    if order is None or order.kind != STEP:
        return 0
    return num_rows if is_done else progress
