"""Saves a batch of games in the middle of its episodes, and continues exactly there.

Mixed into `batch.GameVectorEnv`. All of a game's state is in arrays, so a snapshot consists of
those arrays and the content of the tasks; it needs no pickle and can go to another process. With a
curriculum it is a part of the snapshot that `envs.CurriculumVectorEnv` makes: the host saves tasks
and draws, and the table of slots is left out, because it fills again as tasks are drawn.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from stepladder.errors import ConfigError, SnapshotError, TaskError
from stepladder.games.assignments import Assignments
from stepladder.plans.status import PLAYING
from stepladder.saving.saved_array import Part, SavedArray, copy_arrays, restore_arrays
from stepladder.saving.snapshot import Snapshot, difference, require_snapshot
from stepladder.tasks import Task


class Saving(Assignments):
    """Saves and restores envs in mid-game."""

    _sent: bool
    _has_begun_once: bool

    @abstractmethod
    def game_arrays(self) -> list[SavedArray]:
        """Describe the arrays of this game that outlive a step."""

    def check_games(self, arrays: Mapping[str, npt.NDArray[Any]], place: str) -> None:
        """Raise `SnapshotError` if arrays disagree with each other, each being possible."""

    @abstractmethod
    def game_settings(self) -> dict[str, Any]:
        """Return the settings that a snapshot must share with the envs it is restored to."""

    @abstractmethod
    def task_settings(self) -> dict[str, Any]:
        """Return the arguments of these envs that change what a task means; plain values."""

    def snapshot(self) -> Snapshot:
        """Return everything needed to continue exactly here, episodes in flight included.

        Raises:
            ConfigError: A curriculum chooses the tasks; its wrapper makes the snapshot.
        """
        self._check_alone()
        return self.save_games()

    def restore(self, snapshot: Snapshot) -> None:
        """Continue exactly where a snapshot was made; no reset is needed.

        What the envs saw last is in ``buffers.observations``.

        Raises:
            SnapshotError: It was made with other settings, or is damaged. Then nothing has changed.
        """
        self._check_alone()
        require_snapshot(snapshot)
        self.read_games(snapshot)()

    def save_games(self) -> Snapshot:
        """Return the games in flight; with a curriculum, without what its host saves."""
        tasks = self._save_tasks() if self.link is None else {}
        arrays = copy_arrays(self._saved_arrays())
        return Snapshot({"settings": self._settings(), **tasks}, arrays)

    def read_games(
        self, snapshot: Snapshot, heads: npt.NDArray[Any] | None = None
    ) -> Callable[[], None]:
        """Check what `save_games` returned; return a function that makes the envs go on there.

        The function cannot fail. With a curriculum, its host must be restored and connected before
        it is called.

        Args:
            snapshot: What was saved.
            heads: The heads of the mailboxes that were saved with it, where there are any.

        Raises:
            SnapshotError: It was made with other settings, or is damaged.
        """
        found = difference(snapshot.state.get("settings"), self._settings())
        if found is not None:
            raise SnapshotError(
                f"the snapshot was made by other envs: {found}. Make the envs as they were."
            )
        for one in self._saved_arrays():
            one.read(snapshot.arrays, snapshot.place)
        self.check_games(snapshot.arrays, snapshot.place)
        if heads is not None and len(heads) == self.num_envs:
            _check_in_flight(heads, snapshot.arrays["batch/episodes"]["state"], snapshot.place)
        tasks = self._read_tasks(snapshot.state) if self.link is None else None

        def go_on() -> None:
            restore_arrays(self._saved_arrays(), snapshot.arrays, snapshot.place)
            if tasks is not None:
                self.tasks[:], self.waiting = tasks
            self._note_all()
            self._sent = self._has_begun_once = False

        return go_on

    @abstractmethod
    def _note_all(self) -> None:
        """Note what every env plays, where infos need that."""

    def _check_alone(self) -> None:
        if self.link is not None:
            raise ConfigError(
                "these envs have a curriculum. Use snapshot and restore of the CurriculumVectorEnv "
                "around them."
            )

    def _settings(self) -> dict[str, Any]:
        settings = {
            "game": type(self).__name__,
            "num_envs": self.num_envs,
            "settings": self.game_settings(),
        }
        # Only with a curriculum are tasks read again after a restore.
        return settings if self.link is None else {**settings, "tasks": self.task_settings()}

    def _save_tasks(self) -> dict[str, Any]:
        known = list(dict.fromkeys([*self.tasks, *self.waiting.values()]))
        numbers = {task: number for number, task in enumerate(known)}
        return {
            "tasks": [task.to_json() for task in known],
            "playing": [numbers[task] for task in self.tasks],
            "waiting": {str(row): numbers[task] for row, task in self.waiting.items()},
        }

    def _read_tasks(self, state: Mapping[str, Any]) -> tuple[list[Task], dict[int, Task]]:
        try:
            known = dict(enumerate(Task.from_json(task) for task in state["tasks"]))
            playing = [known[number] for number in state["playing"]]
            waiting = {int(row): known[number] for row, number in state["waiting"].items()}
        except (KeyError, TypeError, ValueError, AttributeError, TaskError) as error:
            raise SnapshotError(
                f"the tasks in the snapshot are damaged ({error}). Use an older snapshot."
            ) from error
        if len(playing) != self.num_envs or not all(0 <= row < self.num_envs for row in waiting):
            raise SnapshotError(
                f"the snapshot names tasks of {len(playing)} envs; expected {self.num_envs}. Use "
                "an older snapshot."
            )
        return playing, waiting

    def _saved_arrays(self) -> list[SavedArray]:
        """Describe everything that a game in mid-flight consists of."""
        playing, game = self.playing.saved_arrays("playing"), self.game_arrays()
        if self.link is None:
            known = SavedArray("batch/known", self.batch.known, (Part.count("flag", high=1),))
            table = self.table.saved_arrays("table")
            return [*self.batch.saved_arrays(1), known, *playing, *table, *game]
        curriculum = self.link.host.curriculum
        return [
            *self.batch.saved_arrays(curriculum.pool.num_slots),
            SavedArray("batch/dials", self.batch.dials, curriculum.dial_parts()),
            *playing,
            *game,
        ]


def _check_in_flight(heads: npt.NDArray[Any], states: npt.NDArray[Any], place: str) -> None:
    """Raise unless every episode that the games are playing is open in its mailbox."""
    in_flight = heads["started"] - heads["aborted"] - heads["posted"] > 0
    unknown = np.flatnonzero((states == PLAYING) & ~in_flight)
    if len(unknown):
        raise SnapshotError(
            f"array 'batch/episodes' of {place}: env {unknown[0]} plays an episode that is not in "
            "its mailbox. It is damaged; use an older one."
        )
