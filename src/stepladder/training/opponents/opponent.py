"""One opponent in front of the rows that it plays.

Between `member`, who could play, and `league`, which knows who plays where. However many rows it
plays, they take one forward pass.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from stepladder.agents.base import Observations
from stepladder.agents.player import Player
from stepladder.training.opponents.member import Member

MakePlayer = Callable[..., Player]
"""What `make_player` is."""


class Opponent:
    """Somebody who plays.

    Args:
        kind: How it was chosen: "newest", "pool", "archive" or "named".
        member: Who it is.
        player: What plays, with a row for every env.
    """

    def __init__(self, kind: str, member: Member, player: Player):
        self.kind, self.member, self.player = kind, member, player
        self._plays = np.zeros(player.num_rows, dtype=np.bool_)
        self.rows: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        """The rows that it plays, ascending."""

    def begin(self, rows: npt.NDArray[np.int64]) -> None:
        """Begin an episode in some rows, and go on in the others."""
        begun = np.zeros_like(self._plays)
        begun[rows] = True
        self.player.begin(begun)
        self.play_on(rows)

    def play_on(self, rows: npt.NDArray[np.int64]) -> None:
        """Take on rows in the middle of their episodes."""
        self._plays[rows] = True
        self.rows = np.flatnonzero(self._plays)

    def leave(self, row: int) -> None:
        """Stop playing a row."""
        self._plays[row] = False
        self.rows = np.flatnonzero(self._plays)

    def act(self, observations: Observations, deterministic: bool) -> npt.NDArray[Any]:
        """Choose an action in each of its rows, given what is seen in all rows."""
        return self.player.act_batch(
            of_rows(observations, self.rows), deterministic=deterministic, rows=self.rows
        )


def of_rows(observations: Observations, rows: npt.NDArray[np.int64]) -> Observations:
    """Return some rows of what is seen."""
    if isinstance(observations, dict):
        return {name: part[rows] for name, part in observations.items()}
    return observations[rows]
