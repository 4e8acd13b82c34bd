"""Which games of an evaluation were one game, played several times.

Used by `playing`. A deterministic policy plays a game without chance the same way each time, so
that twenty repeats are one fact and not twenty. Whether a game contains chance, its env does not
say; so what was seen and got is compared, step by step.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


class Repeats:
    """Rows that have been alike so far, in groups.

    Args:
        groups: Rows that may play the same game, such as those of one task; next to each other.
    """

    def __init__(self, groups: Sequence[range]):
        self.alike = [rows for rows in groups if len(rows) > 1]
        """Groups whose rows have not differed yet."""

    def compare(self, values: Any, playing: npt.NDArray[np.bool_]) -> None:
        """Take note of what was seen or got in a step, in all rows; what has ended is left out.

        Args:
            values: An array with a row per game, or arrays in dicts and tuples.
            playing: Rows that are still in their first episode.
        """
        if not self.alike:
            return
        parts = list(_arrays(values))
        self.alike = [
            rows
            for rows in self.alike
            if _equal(playing, rows)
            and (not playing[rows.start] or all(_equal(part, rows) for part in parts))
        ]


def _equal(values: npt.NDArray[Any], rows: range) -> bool:
    """Return whether some rows are equal bit for bit."""
    if values.dtype == object:
        # Texts and graphs: two that are alike are not recognised.
        return False
    first = values[rows.start].tobytes()
    return all(values[row].tobytes() == first for row in rows[1:])


def _arrays(values: Any) -> Iterator[npt.NDArray[Any]]:
    """Yield all arrays; what is not an array, as one of objects."""
    if isinstance(values, Mapping):
        values = tuple(values.values())
    if isinstance(values, tuple):
        for part in values:
            yield from _arrays(part)
    else:
        yield values if isinstance(values, np.ndarray) else np.empty(0, dtype=object)
