"""The vector env that both games are: all envs stepped in one compiled call.

Above the kernels of a game and below the user, Gymnasium and `envs`. Holds the arrays, hands
actions in and observations out, and seeds. What is drawn and reported happens inside the kernels
(`episodes`), what they cannot do themselves in `lessons`, and the infos in `outcomes`.
"""

import os
import weakref
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Space
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, create_empty_array

from stepladder.cores import usable_cores
from stepladder.errors import ConfigError, EnvError
from stepladder.games import episodes, outcomes
from stepladder.games.arguments import (
    as_autoreset_mode,
    require_positive,
    rows_of_mask,
    tasks_for,
)
from stepladder.games.assignments import Assignments
from stepladder.games.episodes import NUM_EVENTS, PLAYING, UNBORN, Batch
from stepladder.games.lessons import Lessons
from stepladder.games.memory import Buffers, given, keep_actions
from stepladder.games.pictures import Pictures
from stepladder.games.rows import RowAccess
from stepladder.games.saving import Saving
from stepladder.games.seeding import fresh_seeds, seeds_for
from stepladder.games.threads import Team
from stepladder.sync import Host
from stepladder.tasks import Task

MODES = {
    AutoresetMode.NEXT_STEP: episodes.NEXT_STEP,
    AutoresetMode.SAME_STEP: episodes.SAME_STEP,
    AutoresetMode.DISABLED: episodes.DISABLED,
}


class GameVectorEnv(RowAccess, Assignments, Saving, Pictures, VectorEnv[Any, Any, Any]):
    """Steps many games at once.

    Args:
        num_envs: How many.
        autoreset_mode: When a game that has ended is reset.
        num_threads: Threads that step at once; ``"auto"`` is one per core, and one for few envs.
        render_mode: ``"rgb_array"`` (one picture per env), ``"human"`` (a window with the first
            env) or None.
        copy: Whether what `reset` and `step` return is the user's to keep; without, the next step
            changes it.
        task_infos: Whether infos say which task of a curriculum each env begins and has ended. They
            cost more than the curriculum itself.
        task: What every env plays unless it is told otherwise.
    """

    is_batched: ClassVar[bool] = True
    """Tells `make_vec` that one of these steps all envs by itself."""

    rows_per_chunk: ClassVar[int]
    """Rows that a thread takes at once: about ten microseconds of work."""

    rows_per_thread: ClassVar[int]
    """Rows without which another thread is not worth waking."""

    info_names: ClassVar[tuple[str, ...]]
    """Infos of every step; one row of `extras` each."""

    info_kinds: ClassVar[tuple[type, ...]]
    """Their types."""

    work: ClassVar[Callable[..., None]]
    """The kernel that `Team` calls for a step."""

    begin: ClassVar[Callable[..., None]]
    """The kernel that begins episodes: ``begin(rows, batch, game)``."""

    start: ClassVar[Callable[..., None]]
    """The same for rows that have drawn and whose tasks are in their place."""

    def __init__(
        self,
        num_envs: int,
        *,
        single_observation_space: Space[Any],
        single_action_space: Space[Any],
        autoreset_mode: AutoresetMode | str,
        num_threads: int | Literal["auto"],
        render_mode: str | None,
        copy: bool,
        task_infos: bool,
        task: Task,
    ):
        self.num_envs = num_envs = require_positive("num_envs", num_envs)
        self.single_observation_space = single_observation_space
        self.single_action_space = single_action_space
        self.observation_space = batch_space(single_observation_space, num_envs)
        self.action_space = batch_space(single_action_space, num_envs)
        self.copy = copy
        self.task_infos = task_infos
        self.merges_infos = True
        """Whether infos are put together into one dict; adapters read `last_infos` instead."""
        self.last_infos: list[tuple[int, dict[str, Any]]] = []
        """With ``merges_infos`` off: what each env said last, if it said anything."""
        self.prepare_pictures(render_mode)
        self.batch = self._make_batch()
        if num_threads == "auto":
            num_threads = max(1, min(usable_cores(), num_envs // self.rows_per_thread))
        self._team = Team(
            require_positive("num_threads", num_threads), num_envs, self.rows_per_chunk
        )
        # Gymnasium closes no vector env that is merely forgotten.
        weakref.finalize(self, self._team.close)
        self._sent = False
        self.buffers = Buffers(
            self.seen,
            self.batch.rewards,
            self.batch.terminated,
            self.batch.truncated,
            create_empty_array(single_action_space, num_envs),
        )
        """The memory as it is now, without a copy; changes with every step."""
        self.use_autoreset_mode(as_autoreset_mode(autoreset_mode))
        self.shelf = self.make_shelf(num_envs)
        """What each env plays, as kernels read it."""
        self.table = self.make_shelf(num_envs)
        """What each env plays next if it was given a new task; with a curriculum, its slots."""
        self._has_begun_once = False
        self.lessons: Lessons | None = None
        self.give_first(task)
        self._connect_arrays()

    # What a game provides.

    @abstractmethod
    def _game(self) -> Any:
        """Return the arrays that this game's kernels need beside the batch."""

    @abstractmethod
    def _take(self, actions: Any) -> None:
        """Check actions and put them where the kernels read them; refuse all or take all."""

    seen: Any
    """The memory of the observations, as kernels write it; set by the game."""

    seen_last: Any
    """The memory of last observations, for same-step autoreset; set by the game."""

    extras: npt.NDArray[np.float64]
    """The infos of every step, of shape ``(len(info_names), num_envs)``; set by the game."""

    # Set-up.

    def _make_batch(self) -> Batch:
        num_envs = self.num_envs
        seeds = fresh_seeds(num_envs)
        return Batch(
            autoreset=np.zeros(1, dtype=np.int64),
            episodes=np.zeros(num_envs, dtype=episodes.EPISODE_DTYPE),
            events=np.zeros(NUM_EVENTS, dtype=np.int64),
            dice=seeds.copy(),
            seeds=seeds,
            rewards=np.zeros(num_envs),
            terminated=np.zeros(num_envs, dtype=np.bool_),
            truncated=np.zeros(num_envs, dtype=np.bool_),
            has_ended=np.zeros(num_envs, dtype=np.bool_),
            has_begun=np.zeros(num_envs, dtype=np.bool_),
            block=np.zeros(1, dtype=np.int64),
            mails=np.zeros((0, 1), dtype=np.int64),
            dials=np.zeros((num_envs, 0)),
            known=np.zeros(num_envs, dtype=np.int64),
            pid=np.array([os.getpid()]),
        )

    def _connect_arrays(self) -> None:
        """Have the kernels work with the arrays as they are now."""
        self._team.prepare(type(self).work, (self._team.rows_per_chunk, self.batch, self._game()))

    def use_autoreset_mode(self, mode: AutoresetMode) -> None:
        """Reset games that have ended in another way from now on."""
        self.autoreset_mode = mode
        self.metadata = {**type(self).metadata, "autoreset_mode": mode}
        self.batch.autoreset[0] = MODES[mode]

    # A curriculum: called by `envs.CurriculumVectorEnv`.

    def connect_host(self, host: Host) -> None:
        """Draw tasks from a curriculum from now on, and report to it; reset afterwards."""
        known = None if self.lessons is None else self.lessons.host
        if known is not None and known is not host and not known.is_closed:
            raise ConfigError(
                "another curriculum chooses the tasks of these envs already. Close it first, or "
                "make other envs."
            )
        self.lessons = Lessons(self, host)
        self.table = self.make_shelf(host.curriculum.pool.num_slots)
        self.batch = self.batch._replace(**self.lessons.arrays())
        self._connect_arrays()
        # What was played so far was not the curriculum's.
        self.batch.episodes["state"] = UNBORN
        self._has_begun_once = False

    def reporting_rows(self) -> npt.NDArray[np.int64]:
        """Return the envs that have left records in the last step or reset, in env order."""
        rows = np.flatnonzero(self.batch.has_ended)
        failed = self.lessons.take_failed() if self.lessons is not None else ()
        return np.union1d(rows, list(failed)) if failed else rows

    # Playing.

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begin a new episode in all envs, or in some.

        Args:
            seed: To which each env's index is added; or one per env.
            options: ``reset_mask`` says which envs; ``task`` gives all of them a task, ``tasks``
                one each, for this and later episodes. Or such a dict per env.
        """
        self._check_open()
        rows = rows_of_mask(options, self.num_envs)
        seeds = seeds_for(seed, self.num_envs)
        tasks = tasks_for(options, rows, self.num_envs)
        if tasks is not None:
            self.set_tasks([task for _, task in tasks], [row for row, _ in tasks])
        if seeds is not None:
            chosen = rows[seeds.is_given[rows]]
            self.batch.seeds[chosen] = seeds.words[chosen]
            self.batch.dice[chosen] = seeds.words[chosen]
            self._forget(chosen)
        self.batch.events.fill(0)
        for flags in (self.batch.has_begun, self.batch.has_ended):
            flags.fill(False)
        for flags in (self.batch.terminated, self.batch.truncated):
            flags[rows] = False
        type(self).begin(rows, self.batch, self._game())
        self._attend()
        self._sent = False
        return given(self.seen, self.copy), self._say(is_step=False)

    def _forget(self, rows: npt.NDArray[np.int64]) -> None:
        """Let envs that are seeded anew forget what they remember from episode to episode."""

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step all envs."""
        self._check_can_step()
        self._take(actions)
        return self._play()

    def _play(self) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        batch = self.batch
        batch.events.fill(0)
        self._team.play_round()
        self._attend()
        if self.render_mode == "human":
            self.render()
        return (
            given(self.seen, self.copy),
            given(batch.rewards, self.copy),
            given(batch.terminated, self.copy),
            given(batch.truncated, self.copy),
            self._say(is_step=True),
        )

    @property
    def has_begun(self) -> bool:
        """Whether every env has been reset."""
        if not self._has_begun_once:
            self._has_begun_once = bool((self.batch.episodes["state"] != UNBORN).all())
        return self._has_begun_once

    def _check_open(self) -> None:
        if self.closed:
            raise EnvError("this vector env is closed. Make a new one.")

    def _check_can_step(self) -> None:
        self._check_open()
        if not self.has_begun:
            raise EnvError("step was called before reset. Call reset first.")
        states = self.batch.episodes["state"]
        if self.autoreset_mode is AutoresetMode.DISABLED and (states != PLAYING).any():
            ended = np.flatnonzero(states != PLAYING).tolist()
            raise EnvError(
                f"the episodes of envs {ended[:8]} have ended, and autoreset is disabled. Reset "
                'them with reset(options={"reset_mask": mask}).'
            )

    def _attend(self) -> None:
        """Deal with what the kernels could not do by themselves."""
        if self.batch.events[episodes.QUESTIONS]:
            assert self.lessons is not None
            rows = self.lessons.answer(self.batch)
            type(self).start(rows, self.batch, self._game())
        if self.batch.events[episodes.BEGINNINGS]:
            self.note_beginnings()

    def _say(self, *, is_step: bool) -> dict[str, Any]:
        if self.merges_infos:
            return outcomes.merged(self, is_step=is_step)
        self.last_infos = outcomes.by_row(self, is_step=is_step)
        return {}

    def send(self, actions: Any, batch_index: int = 0) -> None:
        """Take actions; there is one batch, and nothing begins before `recv`."""
        self._check_batch(batch_index)
        self._check_can_step()
        self._take(actions)
        keep_actions(self.buffers.actions, actions)
        self._sent = True

    def recv(self, batch_index: int = 0) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step with the actions that were sent."""
        self._check_batch(batch_index)
        if not self._sent:
            raise EnvError("recv was called without send. Send actions first.")
        self._sent = False
        return self._play()

    def _check_batch(self, batch_index: int) -> None:
        if batch_index != 0:
            raise ConfigError(f"there is one batch, with index 0; got {batch_index}.")

    # Copies and the end.

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if self.lessons is not None or self.has_window:
            raise TypeError("a vector env with a curriculum or a window cannot be copied.")
        twin = object.__new__(type(self))
        memo[id(self)] = twin
        for name, value in self.__dict__.items():
            setattr(twin, name, deepcopy(value, memo))
        weakref.finalize(twin, twin._team.close)
        return twin

    def __reduce__(self) -> str:
        raise TypeError(
            f"a {type(self).__name__} cannot be pickled; send what makes it instead, such as "
            "functools.partial."
        )

    def close_extras(self, **kwargs: Any) -> None:
        """End the threads and close the window."""
        self._team.close()
        self.close_window()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
