"""Laser hockey as a vector env: many games, opponents included, stepped in one compiled call.

Above the kernels of `stepping`; `env` is a single game.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Space
from gymnasium.vector import AutoresetMode

from stepladder.configs.checks import require_integer
from stepladder.configs.documents import to_plain
from stepladder.errors import ConfigError, EnvError, TaskError
from stepladder.games.arguments import as_array, check_rows, integer_actions
from stepladder.games.batch import GameVectorEnv
from stepladder.games.game import PLAYERS
from stepladder.games.hockey import stepping
from stepladder.games.hockey.actions import NUM_CONTROLS, control_table, num_actions
from stepladder.games.hockey.stepping import HockeyGame, HockeyInfos
from stepladder.games.hockey.task import (
    CALLER_OPPONENT,
    DEFAULTS,
    MODES,
    PreparedTasks,
    TaskRecord,
    write_task,
)
from stepladder.games.hockey.views import VIEW_SIZE, as_views
from stepladder.games.hockey.world import HockeyWorld
from stepladder.saving.saved_array import Part, SavedArray
from stepladder.tasks import Task

Players = Literal["one", "joint", "both"]
Actions = Literal["continuous", "discrete"]


class HockeyVectorEnv(GameVectorEnv):
    """Many games of hockey at once.

    Args:
        num_envs: Number of envs. This and the arguments that are not listed are those of
            `GameVectorEnv`.
        mode: ``"NORMAL"``, ``"TRAIN_SHOOTING"`` or ``"TRAIN_DEFENSE"``.
        opponent: ``"weak"``, ``"strong"`` or ``"none"``, played inside the batch; or ``"caller"``,
            whose actions are given to `step`, also as ``"caller:NAME"`` where the caller plays
            several (see `opponents`). By default ``"weak"`` if the caller plays one player, and
            ``"caller"`` if both.
        players: ``"one"``: actions and observations of player one. ``"joint"``: the action joins
            both players' numbers, as in the original; `views_two` is what player two sees.
            ``"both"``: observations and actions are dicts of ``player_one`` and ``player_two``.
        actions: ``"continuous"`` (four numbers per player) or ``"discrete"``.
        fineness: Of discrete actions: 1 has eight actions; 3 and more have that many levels of
            force, zero included.
        task_defaults: Any other parameter of a task, such as ``puck_speed`` or ``keep_mode``; those
            of a task that is given by a curriculum or with `set_tasks` come first.
    """

    steps_per_second = 50
    rows_per_chunk = 16
    rows_per_thread = 48
    info_kinds: ClassVar[dict[str, type]] = {
        **dict.fromkeys(HockeyInfos._fields, float),
        "winner": int,
        "is_success": bool,
    }
    kernels = stepping

    def __init__(
        self,
        num_envs: int = 1,
        *,
        mode: str | int = "NORMAL",
        opponent: str | None = None,
        players: Players = "one",
        actions: Actions = "continuous",
        fineness: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        num_threads: int | Literal["auto"] = "auto",
        render_mode: str | None = None,
        copy: bool = True,
        task_infos: bool = True,
        **task_defaults: Any,
    ):
        _check_choices(players, actions, fineness)
        self.players, self.fineness = players, fineness if actions == "discrete" else 0
        self._control_table = control_table(fineness)
        for name in task_defaults:
            if name not in DEFAULTS:
                raise ConfigError(
                    f"unknown argument {name!r}; parameters of tasks are {', '.join(DEFAULTS)}."
                )
        if opponent is None:
            opponent = "weak" if players == "one" else "caller"
        self.defaults = {"mode": mode, "opponent": opponent, **task_defaults}
        super().__init__(
            num_envs,
            single_observation_space=observation_space(players),
            single_action_space=action_space(players, self.fineness),
            autoreset_mode=autoreset_mode,
            num_threads=num_threads,
            render_mode=render_mode,
            copy=copy,
            task_infos=task_infos,
            task=Task("hockey"),
        )

    def _lay_out(self, num_envs: int) -> None:
        self.worlds = HockeyWorld.zeros(num_envs)
        self.controls = np.zeros((num_envs, 2 * NUM_CONTROLS))
        self.sides = np.zeros(num_envs, dtype=np.int64)
        views = np.zeros((4, num_envs, VIEW_SIZE), dtype=np.float32)
        self.views_one, self.views_two, self._last_one, self._last_two = views
        is_both = self.players == "both"
        self.seen: Any = pair(self.views_one, self.views_two) if is_both else self.views_one
        self.seen_last: Any = pair(self._last_one, self._last_two) if is_both else self._last_one

    def room_for_tasks(self, num_rows: int) -> PreparedTasks:
        """Return room for so many tasks, in the form that kernels read."""
        return PreparedTasks(TaskRecord.zeros(num_rows))

    def put(self, task: Task, prepared: PreparedTasks, row: int) -> None:
        """Write a task into a row of prepared tasks."""
        record, params = TaskRecord.zeros(), {**self.defaults, **task.params}
        self.note_params(task.params, DEFAULTS, task.name)
        write_task(record[0], params, task.seed, task.name)
        if record["opponent"][0] == CALLER_OPPONENT and self.players == "one":
            raise TaskError(
                f"opponent of task {task.name!r} is {params['opponent']!r}, but players is 'one', "
                "so its actions are missing. Make the envs with players='both' or 'joint'."
            )
        prepared.records[row] = record[0]

    def _game(self) -> HockeyGame:
        return HockeyGame(
            self.worlds,
            self.controls,
            self.playing,
            self.table,
            self.sides,
            as_views(self.views_one),
            as_views(self.views_two),
            as_views(self._last_one),
            as_views(self._last_two),
            HockeyInfos(*self.extras),
            self.players != "one",
        )

    def game_arrays(self) -> list[SavedArray]:
        """Describe what outlives a step."""
        return [
            SavedArray("game/worlds", np.asarray(self.worlds), HockeyWorld.parts()),
            SavedArray("game/sides", self.sides, (Part("side", ..., -1, 1),)),
            SavedArray("game/views_one", self.views_one),
            SavedArray("game/views_two", self.views_two),
            SavedArray("game/extras", self.extras),
        ]

    def game_settings(self) -> dict[str, Any]:
        """Return what a snapshot must share with these envs."""
        return {"players": self.players, "fineness": self.fineness}

    def task_settings(self) -> dict[str, Any]:
        """Return the defaults of tasks."""
        return to_plain(self.defaults, "the defaults of tasks")

    def _forget(self, rows: npt.NDArray[np.int64]) -> None:
        """Let chance decide who starts."""
        self.sides[rows] = 0

    # Actions.

    def _take(self, actions: Any) -> None:
        if self.players != "both":
            width = NUM_CONTROLS if self.players == "one" else 2 * NUM_CONTROLS
            taken = [(self._checked(actions, width, "actions"), 0)]
        elif isinstance(actions, Mapping) and set(actions) == set(PLAYERS):
            taken = [
                (self._checked(actions[name], NUM_CONTROLS, f"actions of {name}"), offset)
                for name, offset in zip(PLAYERS, (0, NUM_CONTROLS), strict=True)
            ]
        else:
            got = list(actions) if isinstance(actions, Mapping) else type(actions).__name__
            raise EnvError(f"actions must be a dict of 'player_one' and 'player_two'; got {got}.")
        for given, offset in taken:
            if self.fineness == 0:
                stepping.take_forces(given, self.controls, offset)
            else:
                chosen = self._control_table[given].reshape(self.num_envs, -1)
                self.controls[:, offset : offset + chosen.shape[1]] = chosen

    def _checked(self, actions: Any, width: int, what: str) -> npt.NDArray[Any]:
        """Return one player's actions, or both players' if joint, if all are possible."""
        if self.fineness:
            shape = (self.num_envs,) if width == NUM_CONTROLS else (self.num_envs, 2)
            given = integer_actions(actions, shape, what)
            count = len(self._control_table)
            wrong = np.argwhere((given < 0) | (given >= count))
            if len(wrong):
                raise EnvError(
                    f"{what}: {given[tuple(wrong[0])]} of env {wrong[0, 0]} is unknown; expected 0 "
                    f"to {count - 1}. No env was stepped."
                )
            return given
        given = as_array(actions, what)
        if given.shape != (self.num_envs, width):
            raise EnvError(
                f"{what} must have shape ({self.num_envs}, {width}); got shape {given.shape}."
            )
        if given.dtype not in (np.float32, np.float64):
            if given.dtype.kind not in "fiu":
                raise EnvError(f"{what} must be numbers; got {given.dtype}.")
            given = given.astype(np.float64)
        given = np.ascontiguousarray(given)
        bad = stepping.first_bad_row(given)
        if bad >= 0:
            raise EnvError(
                f"{what} of env {bad} are {given[bad].tolist()}; expected numbers from -1 to 1. "
                "Clip them first. No env was stepped."
            )
        return given

    def obs_agent_two(self) -> npt.NDArray[np.float32]:
        """Return what player two sees in every env; needs ``players="joint"`` or ``"both"``."""
        if self.players == "one":
            raise ConfigError("player two is not shown. Make the envs with players='joint'.")
        return self.views_two.copy()

    def opponents(
        self, env_indices: Sequence[int] | npt.NDArray[np.int64] | None = None
    ) -> list[str]:
        """Return who plays player two in some envs, by default in all, as their tasks name it.

        A name changes only where an episode has begun: pass only those rows,
        ``opponents(np.flatnonzero(batch.has_begun))``.
        """
        return [self._opponent(row) for row in check_rows(env_indices, self.num_envs)]

    def _opponent(self, env_index: int) -> str:
        return self.task_of(env_index).params.get("opponent", self.defaults["opponent"])

    def paint(self, env_index: int) -> npt.NDArray[np.uint8]:
        """Draw one env."""
        # Imported here: only rendering needs the library that draws.
        from stepladder.games.hockey.painter import HockeyPainter

        if self._painter is None:
            self._painter = HockeyPainter()
        mode = int(self.playing.records["mode"][env_index])
        return self._painter.paint(
            self.views_one[env_index].tolist(),
            mode=list(MODES)[mode],
            opponent=self._opponent(env_index),
            winner=int(self.worlds["winner"][env_index]),
        )


def pair(one: Any, two: Any) -> dict[str, Any]:
    """Return a dict of both players."""
    return dict(zip(PLAYERS, (one, two), strict=True))


def observation_space(players: Players) -> Space[Any]:
    """Return the observation space of one game."""
    view = Box(-np.inf, np.inf, (VIEW_SIZE,), np.float32)
    return Dict(pair(view, view)) if players == "both" else view


def action_space(players: Players, fineness: int) -> Space[Any]:
    """Return the action space of one game."""
    if fineness:
        count = num_actions(fineness)
        if players == "joint":
            return MultiDiscrete([count, count])
        one: Space[Any] = Discrete(count)
    else:
        width = 2 * NUM_CONTROLS if players == "joint" else NUM_CONTROLS
        one = Box(-1.0, 1.0, (width,), np.float32)
    return Dict(pair(one, one)) if players == "both" else one


def _check_choices(players: Any, actions: Any, fineness: Any) -> None:
    if players not in ("one", "joint", "both"):
        raise ConfigError(f"players must be 'one', 'joint' or 'both'; got {players!r}.")
    if actions not in ("continuous", "discrete"):
        raise ConfigError(f"actions must be 'continuous' or 'discrete'; got {actions!r}.")
    require_integer("fineness", fineness, 1)
    if actions == "discrete":
        num_actions(fineness)
    elif fineness != 1:
        raise ConfigError(f"fineness is {fineness!r}, but actions are continuous. Leave it out.")
