"""Who plays which row at this moment, and which draw that came from.

The part of `league` that is busy in every step. It knows nothing of how opponents are chosen: it is
told who plays where, asks each for the actions of all its rows at once, and remembers what a
result has to be credited to.
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
from stepladder.training.opponents.opponent import Opponent
from stepladder.training.opponents.reports import KINDS

NOBODY = -1


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
class Choice:
    """Who is to play an episode."""

    kind: str
    """How it was chosen: "newest", "pool", "archive" or "named"."""

    key: str
    """What tells this opponent from all others."""

    member: Member

    draw: Draw | None = None
    """What a result is credited to, where somebody keeps count."""


class Lineup:
    """Who plays where.

    Args:
        num_envs: Rows of the vector env.
        space: Of one row's actions.
        make: Makes a player for all rows of a key and a member.
    """

    def __init__(self, num_envs: int, space: Space[Any], make: Callable[[str, Member], Player]):
        self.num_envs = num_envs
        self.opponents: dict[str, Opponent] = {}
        """Everybody who plays or has played and may do so again, by key."""
        self._space, self._make = space, make
        self._playing: list[str | None] = [None] * num_envs
        self._draws = np.zeros((num_envs, len(Draw._fields)), dtype=np.int64)

    def begin(self, choices: Mapping[int, Choice]) -> None:
        """Let episodes begin, in rows that nobody plays."""
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
        """Return the actions of all rows, zeros where nobody plays; one pass per opponent."""
        actions = np.zeros((self.num_envs, *(self._space.shape or ())), self._space.dtype)
        for opponent in self.opponents.values():
            if len(opponent.rows):
                actions[opponent.rows] = opponent.act(observations, deterministic)
        return actions

    def playing(self, row: int) -> tuple[Opponent, Draw] | None:
        """Return who plays a row, and the draw that came from; None if nobody does."""
        key = self._playing[row]
        if key is None:
            return None
        return self.opponents[key], Draw(*self._draws[row].tolist())

    def leave(self, row: int) -> None:
        """Let an episode be over."""
        key = self._playing[row]
        if key is not None:
            self._playing[row] = None
            self.opponents[key].leave(row)

    def dismiss(self, is_needed: Callable[[Opponent], bool]) -> None:
        """Let go of those who play nowhere and are not needed; their weights go with them."""
        for key, opponent in list(self.opponents.items()):
            if not len(opponent.rows) and not is_needed(opponent):
                del self.opponents[key]

    def snapshot(self, index_of: Callable[[Member], int]) -> Snapshot:
        """Return everything but the members themselves.

        Args:
            index_of: Where the caller keeps a member.
        """
        places = {key: place for place, key in enumerate(self.opponents)}
        playing = [NOBODY if key is None else places[key] for key in self._playing]
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
            (Part("opponent", ..., NOBODY, last),),
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
        self._playing = [None if place == NOBODY else keys[place] for place in places.tolist()]

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
