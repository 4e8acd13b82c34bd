"""Connects a batch of envs to a curriculum, beyond what its kernels can do by themselves.

Between `batch` and the host of `sync`. Kernels look up a drawn task in a table; here it is put into
that table when it is drawn for the first time. Tasks that cannot be built are reported and others
are drawn, as `envs.CurriculumEnv` does it.
"""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stepladder.arrays import Flags, Floats, Words
from stepladder.compiled import direct
from stepladder.curricula.base import Curriculum, nothing_active
from stepladder.errors import BuildError, ChannelError, StepladderError
from stepladder.games.episodes import NUM_PLAYED, BatchArrays, note_played, seed_episode
from stepladder.games.table_filling import Held, TableFiller
from stepladder.plans.record import Draw
from stepladder.plans.status import ENDED, NOTHING_ACTIVE, UNPREPARED
from stepladder.sync import Client, Host
from stepladder.tasks import Task

if TYPE_CHECKING:
    from stepladder.games.batch import GameVectorEnv

MAX_FAILURES = 20
"""Tasks that one reset of one env may fail to build."""

MAX_REDRAWS = 1000
"""Draws of tasks already known to be unbuildable that one reset tolerates."""


class TaskNames:
    """Stage, label and name of what is in the slots of a curriculum, or was."""

    def __init__(self, curriculum: Curriculum):
        self._legend = curriculum.legend()
        self._source = curriculum.pool.source
        num_slots = curriculum.pool.num_slots
        self._task_ids: Words = np.full(num_slots, -1, dtype=np.int64)
        self._names: Any = np.full((2, num_slots), "", dtype=object)

    def put(self, slot: int, task_id: int, task: Task) -> None:
        """Note what is in a slot from now on."""
        self._task_ids[slot] = task_id
        self._names[:, slot] = task.label, task.name

    def texts(self, slot: int, task_id: int, dials: Floats) -> tuple[str, str, str]:
        """Return the stage, the label and the name of a task that is or was in a slot."""
        if self._task_ids[slot] == task_id:
            label, name = self._names[:, slot]
        else:
            label, name = self._source.label(task_id), self._source.name(task_id)
        return self._legend.stage_of(label, dials), label, name


class PlayedTasks(NamedTuple):
    """What some envs have ended and others have begun, copied for infos that are made later."""

    names: TaskNames
    num_ended: int
    """Of the rows, those that have ended; they come first."""
    plan_version: int
    """Of the plan when they ended."""
    words: Words
    """A row each, as `episodes.note_played` writes it."""
    dials: Floats
    """Of the plan at each draw; shape ``(rows, num_dials)``."""

    @property
    def rows(self) -> Words:
        """The envs."""
        return self.words[:, 0]

    def numbers(self) -> Words:
        """Return slots, generations and versions of the plan."""
        return self.words.T[1:4]

    def successes(self) -> Floats:
        """Return how successful the episodes were that have ended."""
        return self.words[: self.num_ended, 5].view(np.float64)

    def texts(self) -> Iterable[tuple[str, ...]]:
        """Return the stages, the labels and the names, each with a text per row."""
        slots, task_ids = self.words[:, 1].tolist(), self.words[:, 4].tolist()
        texts = map(self.names.texts, slots, task_ids, self.dials)
        return zip(*texts, strict=True)


class CurriculumLink:
    """Connects a batch to the host of a curriculum."""

    def __init__(self, vec: "GameVectorEnv", host: Host):
        self.vec = vec
        self.host = host
        curriculum = host.curriculum
        self._legend = curriculum.legend()
        self._source = curriculum.pool.source
        self._filler = TableFiller(self._build, curriculum)
        self._names = TaskNames(curriculum)
        self._dials: Floats = np.zeros((host.num_envs, curriculum.plan.num_dials))
        self._clients: dict[int, Client] = {}
        self._played: Words = np.zeros((host.num_envs, NUM_PLAYED), dtype=np.int64)
        # What each env has begun, as it was noted; only same-step autoreset needs it.
        self._noted = self._played.copy()
        self._noted_dials: Floats = np.zeros_like(self._dials)
        self._note_played = direct(note_played, *self._arguments(), self._played)
        self._unbuildable: set[tuple[int, int]] = set()
        self._failed: set[int] = set()
        host.mails.heads["pid"] = os.getpid()

    def arrays(self) -> dict[str, Any]:
        """Return the arrays through which kernels draw and report."""
        return {
            "block": self.host.curriculum.plan.block,
            "mails": self.host.mails.words,
            "dials": self._dials,
            "known": self._filler.known,
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
        self._fill_table(rows[batch.episodes["state"][rows] == UNPREPARED].tolist())
        for env_index in rows.tolist():
            if batch.episodes["state"][env_index] != UNPREPARED:
                raise _refusal(env_index, batch)
            self._prepare(env_index, batch)
        return rows

    def _fill_table(self, rows: list[int]) -> None:
        """Put what envs have drawn into the table; what cannot be built is left to `_prepare`."""
        num_threads = self.vec.num_threads
        if num_threads == 1 or self._legend.has_settings:
            return
        draws = {draw.slot: draw for draw in map(self._draw_of, rows)}
        held = {
            slot: Held(draw.generation, draw.task_id)
            for slot, draw in draws.items()
            if (slot, draw.generation) not in self._unbuildable
        }
        self._filler.fill(held, num_threads)

    def _build(self, task: Task, slot: int) -> None:
        self.vec.put(task, self.vec.table, slot)

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
        self._names.put(slot, draw.task_id, task)
        if self._legend.has_settings:
            # Settings belong to an episode, so no table holds what this env plays.
            vec.put(self._with_settings(task, draw), vec.playing, env_index)
            return
        self._filler.put(slot, draw.generation, task)
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

    def _arguments(self) -> tuple[Flags, Flags, Any, Words]:
        batch = self.vec.batch
        return batch.has_ended, batch.has_begun, batch.episodes, self.host.mails.words

    def played(self) -> PlayedTasks:
        """Return what has ended and what has begun in the last step."""
        count = self._note_played(*self._arguments(), self._played)
        words = self._played[:count].copy()
        dials = self._dials[words[:, 0]] if self._dials.shape[1] else self._dials
        version = self.host.curriculum.plan.version
        return PlayedTasks(self._names, self.vec.num_ended, version, words, dials)

    # For same-step autoreset: when infos tell of what has ended, the env plays something else.

    def note(self, rows: Words) -> None:
        """Note what envs have begun; the infos name it when they end it."""
        self._noted[rows] = self._now(rows)
        self._noted_dials[rows] = self._dials[rows]

    def begun_now(self, rows: Words) -> PlayedTasks:
        """Return what envs have begun."""
        return PlayedTasks(self._names, 0, 0, self._now(rows), self._dials[rows])

    def ended_before(self, rows: Words) -> PlayedTasks:
        """Return what envs have ended that they had begun before, as it was noted."""
        words, version = self._noted[rows], self.host.curriculum.plan.version
        words[:, 5] = self.vec.batch.episodes["success"][rows].view(np.int64)
        return PlayedTasks(self._names, len(rows), version, words, self._noted_dials[rows])

    def _now(self, rows: Words) -> Words:
        are_those = np.zeros(self.vec.num_envs, dtype=np.bool_)
        none, (_, _, episodes, mails) = are_those.copy(), self._arguments()
        are_those[rows] = True
        count = self._note_played(none, are_those, episodes, mails, self._played)
        return self._played[:count].copy()

    @property
    def has_failed(self) -> bool:
        """Whether an env could not build a task since `take_failed` was called."""
        return bool(self._failed)

    def take_failed(self) -> set[int]:
        """Return the envs that could not build a task since the last call."""
        failed = self._failed
        if failed:
            self._failed = set()
        return failed


def _refusal(env_index: int, batch: BatchArrays) -> StepladderError:
    if batch.episodes["slot"][env_index] == NOTHING_ACTIVE:
        return BuildError(nothing_active())
    return ChannelError(
        f"env {env_index} could not draw or report: its channel is closed, its records are not "
        "collected, or it was forked. Use a CurriculumVectorEnv in the process that made it."
    )
