"""Which opponent plays which row now, and which draw it came from.

The part of `league` that runs in every step. Opponents are chosen elsewhere: this module gets the
choices, computes the actions of all rows of an opponent in one forward pass, and keeps the draw
that a result is credited to.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import Space

from stepladder.agents.base import Observations
from stepladder.agents.player import Player
from stepladder.errors import SnapshotError
from stepladder.plans.record import Draw
from stepladder.saving.saved_array import Part, SavedArray, restore_arrays
from stepladder.saving.saved_fields import read_list
from stepladder.saving.snapshot import Snapshot
from stepladder.training.opponents.member import Member
from stepladder.training.opponents.names import KINDS

NO_OPPONENT = -1


MakePlayer = Callable[..., Player]
"""The type of `make_player`."""


class Opponent:
    """One opponent and the rows that it plays, in one forward pass.

    Args:
        kind: How it was chosen: "newest", "pool", "archive" or "named".
        member: Its description and weights.
        player: Plays with these weights; has a row for every env.
    """

    def __init__(self, kind: str, member: Member, player: Player):
        self.kind, self.member, self.player = kind, member, player
        self._plays = np.zeros(player.num_rows, dtype=np.bool_)
        self.rows: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        """The rows that it plays, ascending."""

    def begin(self, rows: npt.NDArray[np.int64]) -> None:
        """Begin an episode in some rows, and continue in the others."""
        begun = np.zeros_like(self._plays)
        begun[rows] = True
        self.player.begin(begun)
        self.play_on(rows)

    def play_on(self, rows: npt.NDArray[np.int64]) -> None:
        """Play rows that are in the middle of their episodes."""
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


@dataclass(frozen=True)
class SavedOpponent:
    """What a snapshot says of one opponent beside its arrays."""

    key: str
    kind: str
    member: int
    """Its place among the members."""

    player: tuple[str, ...]
    """Names of its player's tensors."""


@dataclass(frozen=True)
class OpponentChoice:
    """The opponent of one episode."""

    kind: str
    """How it was chosen: "newest", "pool", "archive" or "named"."""

    key: str
    """Unique name of this opponent."""

    member: Member

    draw: Draw | None = None
    """The draw that a result is credited to, if it was drawn."""


class Lineup:
    """Which opponent plays which row.

    Args:
        num_envs: Rows of the vector env.
        space: Of one row's actions.
        make: Makes a player for all rows of a key and a member.
    """

    def __init__(self, num_envs: int, space: Space[Any], make: Callable[[str, Member], Player]):
        self.num_envs = num_envs
        self.opponents: dict[str, Opponent] = {}
        """Opponents that play, or have played and may do so again, by key."""
        self._space, self._make = space, make
        self._playing: list[str | None] = [None] * num_envs
        self._draws = np.zeros((num_envs, len(Draw._fields)), dtype=np.int64)

    def begin(self, choices: Mapping[int, OpponentChoice]) -> None:
        """Begin episodes in rows that have no opponent."""
        rows: dict[str, list[int]] = {}
        for row, choice in choices.items():
            if choice.key not in self.opponents:
                player = self._make(choice.key, choice.member)
                self.opponents[choice.key] = Opponent(choice.kind, choice.member, player)
            if choice.draw is not None:
                self._draws[row] = choice.draw
            self._playing[row] = choice.key
            rows.setdefault(choice.key, []).append(row)
        for key, its_rows in rows.items():
            self.opponents[key].begin(np.array(its_rows, dtype=np.int64))

    def act(self, observations: Observations, deterministic: bool) -> npt.NDArray[Any]:
        """Return the actions of all rows, zeros in rows without opponent; one pass per opponent."""
        actions = np.zeros((self.num_envs, *(self._space.shape or ())), self._space.dtype)
        for opponent in self.opponents.values():
            if len(opponent.rows):
                actions[opponent.rows] = opponent.act(observations, deterministic)
        return actions

    def playing(self, row: int) -> tuple[Opponent, Draw] | None:
        """Return the opponent of a row and the draw it came from; None if it has none."""
        key = self._playing[row]
        if key is None:
            return None
        return self.opponents[key], Draw(*self._draws[row].tolist())

    def leave(self, row: int) -> None:
        """End the episode of a row."""
        key = self._playing[row]
        if key is not None:
            self._playing[row] = None
            self.opponents[key].leave(row)

    def dismiss(self, is_needed: Callable[[Opponent], bool]) -> None:
        """Drop opponents that play no row and are not needed, with their weights."""
        for key, opponent in list(self.opponents.items()):
            if not len(opponent.rows) and not is_needed(opponent):
                del self.opponents[key]

    def snapshot(self, index_of: Callable[[Member], int]) -> Snapshot:
        """Return everything but the members themselves.

        Args:
            index_of: Where the caller keeps a member.
        """
        places = {key: place for place, key in enumerate(self.opponents)}
        playing = [NO_OPPONENT if key is None else places[key] for key in self._playing]
        arrays: dict[str, npt.NDArray[Any]] = {
            "playing": np.array(playing, dtype=np.int64),
            "draws": self._draws.copy(),
        }
        opponents: list[dict[str, Any]] = []
        for place, (key, one) in enumerate(self.opponents.items()):
            state = one.player.state()
            arrays.update({f"players/{place}/{name}": state[name].numpy() for name in state})
            opponents.append(
                {
                    "key": key,
                    "kind": one.kind,
                    "member": index_of(one.member),
                    "player": list(state),
                }
            )
        return Snapshot({"opponents": opponents}, arrays)

    def restore(self, snapshot: Snapshot, members: list[Member]) -> None:
        """Continue exactly where `snapshot` was made.

        Args:
            snapshot: What `snapshot` returned.
            members: Those that `index_of` gave the places of.

        May leave things half done when it raises.
        """
        arrays = snapshot.arrays
        saved = read_list(
            SavedOpponent, snapshot.state["opponents"], f"opponents of {snapshot.place}"
        )
        last = len(saved) - 1
        places = SavedArray(
            "playing",
            np.zeros(self.num_envs, dtype=np.int64),
            (Part("opponent", ..., NO_OPPONENT, last),),
        ).read(arrays, snapshot.place)
        draws = SavedArray("draws", self._draws)
        restore_arrays([draws], arrays, snapshot.place)
        self.opponents = {
            entry.key: self._restored(place, entry, arrays, members)
            for place, entry in enumerate(saved)
        }
        for place, opponent in enumerate(self.opponents.values()):
            opponent.play_on(np.flatnonzero(places == place))
        keys = list(self.opponents)
        self._playing = [None if place == NO_OPPONENT else keys[place] for place in places.tolist()]

    def _restored(
        self,
        place: int,
        entry: SavedOpponent,
        arrays: Mapping[str, npt.NDArray[Any]],
        members: list[Member],
    ) -> Opponent:
        if entry.kind not in KINDS or not 0 <= entry.member < len(members):
            raise SnapshotError(
                f"opponent {entry.key[:80]!r} is of kind {entry.kind[:80]!r} and member "
                f"{entry.member} of {len(members)}; expected one of {', '.join(KINDS)}. Use an "
                "older checkpoint."
            )
        member = members[entry.member]
        player = self._make(entry.key, member)
        player.restore(
            {
                name: torch.from_numpy(arrays[f"players/{place}/{name}"].copy())
                for name in entry.player
            }
        )
        return Opponent(entry.kind, member, player)
