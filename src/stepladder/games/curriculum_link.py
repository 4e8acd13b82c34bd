"""Connects a batch of envs to a curriculum, beyond what its kernels can do by themselves.

Between `batch` and the host of `sync`. Kernels look up a drawn task in a table; here it is put into
that table when it is drawn for the first time. Tasks that cannot be built are reported and others
are drawn, as `envs.CurriculumEnv` does it.
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from stepladder.curricula.base import nothing_active
from stepladder.errors import BuildError, ChannelError, SnapshotError, StepladderError
from stepladder.games.episodes import ENDED, UNPREPARED, BatchArrays, seed_episode
from stepladder.plans.record import Draw
from stepladder.plans.status import NOTHING_ACTIVE
from stepladder.records import Floats, Words
from stepladder.sync import Client, Host
from stepladder.tasks import Task

if TYPE_CHECKING:
    from stepladder.games.batch import GameVectorEnv

MAX_FAILURES = 20
"""Tasks that one reset of one env may fail to build."""

MAX_REDRAWS = 1000
"""Draws of tasks already known to be unbuildable that one reset tolerates."""


class CurriculumLink:
    """Connects a batch to the host of a curriculum."""

    def __init__(self, vec: "GameVectorEnv", host: Host):
        self.vec = vec
        self.host = host
        curriculum = host.curriculum
        self._legend = curriculum.legend()
        self._source = curriculum.pool.source
        num_slots = curriculum.pool.num_slots
        self.known: Words = np.full(num_slots, -1, dtype=np.int64)
        self._names: Any = np.full(num_slots, "", dtype=object)
        self._labels: Any = np.full(num_slots, "", dtype=object)
        self._dials: Floats = np.zeros((host.num_envs, curriculum.plan.num_dials))
        self._clients: dict[int, Client] = {}
        # Per env, because a slot may hold another task before an episode of the old one ends.
        self.texts: npt.NDArray[Any] = np.full((3, host.num_envs), None, dtype=object)
        """Stage, label and name of the task that each env plays."""
        self.numbers: Words = np.zeros((3, host.num_envs), dtype=np.int64)
        """Its slot and generation, and the version of the plan that it was drawn from."""
        self._unbuildable: set[tuple[int, int]] = set()
        self._failed: set[int] = set()
        host.mails.heads["pid"] = os.getpid()

    def arrays(self) -> dict[str, Any]:
        """Return the arrays through which kernels draw and report."""
        return {
            "block": self.host.curriculum.plan.block,
            "mails": self.host.mails.words,
            "dials": self._dials,
            "known": self.known,
        }

    def client(self, env_index: int) -> Client:
        """Return the client of one env, made when first needed."""
        if env_index not in self._clients:
            self._clients[env_index] = self.host.client(env_index)
        return self._clients[env_index]

    def prepare_rows(self, batch: BatchArrays) -> npt.NDArray[np.int64]:
        """Prepare the task of every env that drew an unknown one; return those envs.

        Raises:
            BuildError: Too many tasks in a row could not be built, or there are none.
            ChannelError: An env could not report.
        """
        rows = np.flatnonzero(batch.episodes["state"] > ENDED)
        for env_index in rows.tolist():
            if batch.episodes["state"][env_index] != UNPREPARED:
                raise _refusal(env_index, batch)
            self._prepare(env_index, batch)
        return rows

    def _prepare(self, env_index: int, batch: BatchArrays) -> None:
        """Put the task that an env has drawn where kernels read it; redraw what cannot be built."""
        failures, redraws = 0, 0
        draw = self._draw_of(env_index)
        while True:
            place = (draw.slot, draw.generation)
            if place in self._unbuildable:
                self.client(env_index).skip()
                redraws += 1
                if redraws > MAX_REDRAWS:
                    raise BuildError(
                        f"{MAX_REDRAWS} draws in a row gave tasks that cannot be built "
                        f"({len(self._unbuildable)} different ones). Fix the tasks."
                    )
            else:
                try:
                    self._place(draw, env_index)
                    break
                except StepladderError as error:
                    failures += 1
                    self._unbuildable.add(place)
                    self._failed.add(env_index)
                    self.client(env_index).fail(f"{type(error).__name__}: {error}")
                    if failures >= MAX_FAILURES:
                        raise BuildError(
                            f"{failures} tasks in a row could not be built; the last one raised "
                            f"{type(error).__name__}: {error}. Fix the tasks."
                        ) from error
            draw = self.client(env_index).draw()
            self._dials[env_index] = self.client(env_index).last_dials
        episode: Any = batch.episodes[env_index]
        episode["slot"], episode["generation"] = draw.slot, draw.generation
        episode["plan_version"] = draw.plan_version
        seed_episode(batch, env_index, draw.seed)

    def _draw_of(self, env_index: int) -> Draw:
        return Draw(*self.host.mails.heads["draw"][env_index].item())

    def _place(self, draw: Draw, env_index: int) -> None:
        """Put a task into the table, and into the env's own place."""
        task = self._source.get(draw.task_id)
        vec, slot = self.vec, draw.slot
        self._names[slot], self._labels[slot] = task.name, task.label
        if self._legend.has_settings:
            # Settings belong to an episode, so no table holds what this env plays.
            vec.put(self._with_settings(task, draw), vec.shelf, env_index)
            return
        if self.known[slot] != draw.generation:
            self.known[slot] = -1
            vec.put(task, vec.table, slot)
            self.known[slot] = draw.generation
        vec.take_from_table(slot, env_index)

    def _with_settings(self, task: Task, draw: Draw) -> Task:
        seed = int(self.host.curriculum.plan.header["seed"])
        dials = self._dials[draw.env_index]
        return task.with_params(
            self._legend.settings(dials, seed, draw.env_index, draw.episode_index)
        )

    # For infos.

    def task_of(self, env_index: int) -> Task:
        """Return the task that an env plays, settings included."""
        draw = self._draw_of(env_index)
        task = self._source.get(draw.task_id)
        return self._with_settings(task, draw) if self._legend.has_settings else task

    def note(self, rows: npt.NDArray[np.int64], episodes: Any) -> None:
        """Note what envs have begun to play."""
        # One by one: usually there are few, and NumPy takes longer to begin than this takes.
        for row in rows.tolist():
            _, _, _, slot, generation, version, _ = episodes[row].item()
            label: str = self._labels[slot]
            stage = self._legend.stage_of(label, self._dials[row])
            self.texts[:, row] = stage, label, self._names[slot]
            self.numbers[:, row] = slot, generation, version

    def take_failed(self) -> set[int]:
        """Return the envs that could not build a task since the last call."""
        failed, self._failed = self._failed, set()
        return failed

    # Saving and resuming. The curriculum saves its quarantine of what cannot be built.

    def save(self) -> dict[str, Any]:
        """Return what is not in arrays, as plain JSON."""
        return {"texts": self.texts.tolist()}

    def read(self, state: Mapping[str, Any]) -> npt.NDArray[Any]:
        """Return what `save` returned, checked.

        Raises:
            SnapshotError: It is damaged.
        """
        try:
            texts = np.array(state.get("texts"), dtype=object)
        except ValueError as error:
            raise SnapshotError(
                f"the texts in the snapshot are damaged ({error}). Use an older snapshot."
            ) from error
        if any(text is not None and not isinstance(text, str) for text in texts.ravel()):
            raise SnapshotError(
                "the texts in the snapshot hold something that is neither a text nor null. Use an "
                "older snapshot."
            )
        if texts.shape != self.texts.shape:
            raise SnapshotError(
                f"the texts in the snapshot have shape {texts.shape}; expected {self.texts.shape}. "
                "Use an older snapshot."
            )
        return texts


def _refusal(env_index: int, batch: BatchArrays) -> StepladderError:
    if batch.episodes["slot"][env_index] == NOTHING_ACTIVE:
        return BuildError(nothing_active())
    return ChannelError(
        f"env {env_index} could not draw or report: its channel is closed, its records are not "
        "collected, or it was forked. Use a CurriculumVectorEnv in the process that made it."
    )
