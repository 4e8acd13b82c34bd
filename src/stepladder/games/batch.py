"""The vector env of a game: all envs stepped in one compiled call.

Above the kernels of a game and below the user, Gymnasium and `envs`. Holds the arrays, checks and
hands over actions, and returns observations. Tasks are drawn and results reported inside the
kernels (`episodes`); `curriculum_link` does what they cannot, `outcomes` makes the infos, and
`rendering` shows the games.
"""

import weakref
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Space
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, create_empty_array

from stepladder.configs.checks import require_integer
from stepladder.cores import usable_cores
from stepladder.errors import ConfigError, EnvError
from stepladder.games import outcomes
from stepladder.games.arguments import (
    as_autoreset_mode,
    keep_actions,
    rows_of_mask,
    seeds_for,
    tasks_for,
)
from stepladder.games.curriculum_link import CurriculumLink
from stepladder.games.episodes import BatchArrays
from stepladder.games.rendering import Rendering
from stepladder.games.rows import Buffers, RowAccess
from stepladder.games.saving import Saving
from stepladder.games.threads import Team
from stepladder.plans.status import NEVER_RESET, PLAYING
from stepladder.sync import Host
from stepladder.tasks import Task


class GameVectorEnv(RowAccess, Saving, Rendering, VectorEnv[Any, Any, Any]):
    """Steps many games at once.

    Args:
        num_envs: Number of envs.
        autoreset_mode: When a game that has ended is reset.
        num_threads: Threads that step at once; ``"auto"`` is one per core, and one for few envs.
        render_mode: ``"rgb_array"`` (one picture per env), ``"human"`` (a window with the first
            env) or None.
        copy: Whether `reset` and `step` return copies; otherwise the next step changes what they
            returned.
        task_infos: Whether infos name the task of a curriculum that each env begins or has ended.
            They are made when they are read.
        task: What every env plays until it is given another task.
    """

    is_batched: ClassVar[bool] = True
    """Tells `make_vec` that this steps all envs by itself."""

    rows_per_chunk: ClassVar[int]
    """Rows that a thread takes at once: about ten microseconds of work."""

    rows_per_thread: ClassVar[int]
    """With fewer rows, another thread is not worth waking."""

    info_kinds: ClassVar[dict[str, type]]
    """Infos of every step by name, each with its type; one row of `extras` each."""

    steps_per_second: ClassVar[int]
    """The pace at which the game is shown."""

    kernels: ClassVar[Any]
    """The game's module `stepping`: ``work`` steps (see `Team`), ``begin_rows`` begins episodes,
    ``start_rows`` does so in rows that have drawn and whose tasks are prepared.
    """

    def __init_subclass__(cls) -> None:
        cls.metadata = {
            "render_modes": ["rgb_array", "human"],
            "render_fps": cls.steps_per_second,
            "autoreset_mode": AutoresetMode.NEXT_STEP,
            **vars(cls).get("metadata", {}),
        }

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
        require_integer("num_envs", num_envs, 1)
        self.num_envs = num_envs = int(num_envs)
        self.extras = np.zeros((len(self.info_kinds), num_envs))
        """The infos of every step, of shape ``(len(info_kinds), num_envs)``."""
        self._lay_out(num_envs)
        self.single_observation_space = single_observation_space
        self.single_action_space = single_action_space
        self.observation_space = batch_space(single_observation_space, num_envs)
        self.action_space = batch_space(single_action_space, num_envs)
        self.copy = copy
        self.task_infos = task_infos
        self.merges_infos = True
        """Whether infos are merged into one dict; adapters read `last_infos` instead."""
        self.last_infos: list[tuple[int, dict[str, Any]]] = []
        """With ``merges_infos`` off: the last info of each env that has one."""
        self._use_render_mode(render_mode)
        self.batch = BatchArrays.zeros(num_envs)
        self._team = self._make_team(num_threads)
        self._sent = False
        self.buffers = Buffers(
            self.seen,
            self.batch.rewards,
            self.batch.terminated,
            self.batch.truncated,
            create_empty_array(single_action_space, num_envs),
        )
        """The memory as it is now, without a copy; changes with every step."""
        self.playing = self.room_for_tasks(num_envs)
        """What each env plays, as kernels read it."""
        self.table = self.room_for_tasks(num_envs)
        """What each env plays next if it was given a new task; with a curriculum, its slots."""
        self._has_begun_once = False
        self.link: CurriculumLink | None = None
        self.give_first(task)
        self.use_autoreset_mode(as_autoreset_mode(autoreset_mode))

    def _make_team(self, num_threads: int | Literal["auto"]) -> Team:
        if num_threads == "auto":
            num_threads = max(1, min(usable_cores(), self.num_envs // self.rows_per_thread))
        require_integer("num_threads", num_threads, 1)
        team = Team(int(num_threads), self.num_envs, self.rows_per_chunk)
        # Gymnasium does not close a vector env that is garbage-collected.
        weakref.finalize(self, team.close)
        return team

    # What a game provides.

    @abstractmethod
    def _lay_out(self, num_envs: int) -> None:
        """Make the arrays of the game: `seen`, `seen_last` and its own."""

    @abstractmethod
    def _game(self) -> Any:
        """Return the arrays that this game's kernels need beside the batch."""

    @abstractmethod
    def _take(self, actions: Any) -> None:
        """Check actions and put them where the kernels read them; refuse all or take all."""

    seen: Any
    """The memory of the observations, as kernels write it."""

    seen_last: Any
    """The memory of last observations, for same-step autoreset."""

    # Set-up.

    def _use_arrays(self, **changes: Any) -> None:
        """Replace parts of the batch; the kernels work with the arrays as they are now."""
        self.batch = self.batch._replace(**changes)
        self._happened = np.asarray(self.batch.events).view(np.int64)
        self._team.prepare(self.kernels.work, (self._team.rows_per_chunk, self.batch, self._game()))

    def use_autoreset_mode(self, mode: AutoresetMode) -> None:
        """Reset games that have ended in another way from now on."""
        self.autoreset_mode = mode
        self.metadata = {**type(self).metadata, "autoreset_mode": mode}
        self._use_arrays(resets_same_step=mode is AutoresetMode.SAME_STEP)
        self._note_all()

    @property
    def num_threads(self) -> int:
        """Threads that may work at once, the caller's included."""
        return self._team.num_threads

    @property
    def num_begun(self) -> int:
        """Envs that have begun an episode in the last step or reset."""
        return self._happened.item(0)

    @property
    def num_ended(self) -> int:
        """Envs that have ended an episode in the last step."""
        return self._happened.item(1)

    def _note_all(self) -> None:
        # An env that ends and begins in one step must still tell what it has ended.
        if self.link is not None and self.autoreset_mode is AutoresetMode.SAME_STEP:
            self.link.note(np.arange(self.num_envs))

    # A curriculum: called by `envs.CurriculumVectorEnv`.

    def connect_host(self, host: Host) -> None:
        """Draw tasks from a curriculum from now on, and report to it; reset afterwards."""
        known = None if self.link is None else self.link.host
        if known is not None and known is not host and not known.is_closed:
            raise ConfigError(
                "another curriculum chooses the tasks of these envs already. Close it first, or "
                "make other envs."
            )
        self.link = CurriculumLink(self, host)
        self.table = self.room_for_tasks(host.curriculum.pool.num_slots)
        self._use_arrays(**self.link.arrays())
        # What was played so far was not the curriculum's.
        self.batch.episodes["state"][:] = NEVER_RESET
        self._has_begun_once = False

    def reporting_rows(self) -> npt.NDArray[Any]:
        """Say which envs have posted records in the last step or reset: their flags, or numbers."""
        flags = self.batch.has_ended
        if not self.has_failures:
            return flags
        assert self.link is not None
        return np.union1d(flags.nonzero()[0], list(self.link.take_failed()))

    @property
    def has_failures(self) -> bool:
        """Whether an env has a task to report that it could not build."""
        return self.link is not None and self.link.has_failed

    # Playing.

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begin a new episode in all envs, or in some.

        Args:
            seed: One number, to which each env's index is added; or one per env.
            options: ``reset_mask`` says which envs; ``task`` gives all of them a task, ``tasks``
                one each, for this and later episodes. Or such a dict per env.
        """
        self._check_open()
        batch, rows = self.batch, rows_of_mask(options, self.num_envs)
        dice, is_given = seeds_for(seed, self.num_envs)
        tasks = tasks_for(options, rows, self.num_envs)
        if tasks is not None:
            self.set_tasks([task for _, task in tasks], [row for row, _ in tasks])
        seeded = rows[is_given[rows]]
        batch.seeds[seeded] = batch.dice[seeded] = dice[seeded]
        self._forget(seeded)
        batch.events[0] = 0
        batch.has_begun.fill(False)
        batch.has_ended.fill(False)
        batch.terminated[rows] = batch.truncated[rows] = False
        self.kernels.begin_rows(rows, batch, self._game())
        self._finish_round()
        self._sent = False
        return self._returned(self.seen), self._infos(is_step=False)

    def _forget(self, rows: npt.NDArray[np.int64]) -> None:
        """Clear what newly seeded envs remember from episode to episode."""

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step all envs."""
        self._check_can_step()
        self._take(actions)
        return self._play()

    def _play(self) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        batch = self.batch
        batch.events[0] = 0
        self._team.play_round()
        self._finish_round()
        if self.render_mode == "human":
            self.render()
        return (
            self._returned(self.seen),
            self._returned(batch.rewards),
            self._returned(batch.terminated),
            self._returned(batch.truncated),
            self._infos(is_step=True),
        )

    def _returned(self, memory: Any) -> Any:
        if not self.copy:
            return memory
        if isinstance(memory, dict):
            return {key: part.copy() for key, part in memory.items()}
        return memory.copy()

    @property
    def has_begun(self) -> bool:
        """Whether every env has been reset."""
        if not self._has_begun_once:
            self._has_begun_once = bool((self.batch.episodes["state"] != NEVER_RESET).all())
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

    def _finish_round(self) -> None:
        """Do what the kernels could not do by themselves."""
        if self._happened.item(2):
            assert self.link is not None
            rows = self.link.prepare_rows(self.batch)
            self.kernels.start_rows(rows, self.batch, self._game())
        if self.waiting and self.num_begun:
            self.note_beginnings()

    def _infos(self, *, is_step: bool) -> dict[str, Any]:
        if self.merges_infos:
            return outcomes.merged(self, is_step=is_step)
        self.last_infos = outcomes.by_row(self, is_step=is_step)
        return {}

    def send(self, actions: Any, batch_index: int = 0) -> None:
        """Take actions for `recv`; there is one batch, with index 0."""
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
        if self.link is not None or self._window is not None:
            raise TypeError("a vector env with a curriculum or a window cannot be copied.")
        twin = object.__new__(type(self))
        memo[id(self)] = twin
        for name, value in self.__dict__.items():
            setattr(twin, name, deepcopy(value, memo))
        twin._use_arrays()
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
        self._close_window()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
