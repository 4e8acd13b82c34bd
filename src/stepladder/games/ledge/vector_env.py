"""Ledge as a vector env: many runners, each in its own level, stepped in one compiled call.

Above the kernels of `stepping`; `env` is a single game.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import create_empty_array

from stepladder.configs.checks import require_integer, require_share
from stepladder.errors import ConfigError, EnvError
from stepladder.games.arguments import integer_actions
from stepladder.games.batch import GameVectorEnv
from stepladder.games.ledge import stepping
from stepladder.games.ledge.level import MAX_LEVEL_STEPS, Level
from stepladder.games.ledge.physics import ACTION_NAMES, NUM_ACTIONS, Runner
from stepladder.games.ledge.saved import check_levels, check_runners
from stepladder.games.ledge.source import PARAMETERS, level_of
from stepladder.games.ledge.stepping import LedgeGame, LedgeInfos
from stepladder.games.ledge.tiles import NUM_CODES, WALL
from stepladder.games.ledge.views import NUM_ROUTE, NUM_VECTOR, PATCH_HEIGHT, PATCH_WIDTH
from stepladder.games.ledge.world import MARGIN, PreparedLevels, pack
from stepladder.plans.status import ENDED, PLAYING
from stepladder.saving.saved_array import Part, SavedArray
from stepladder.tasks import Task

DEFAULT_STAGE = "simplest"

MAX_SEEN = 2.0
"""No number of an observation is larger; most lie between -1 and 1."""


def observation_space(show_route: bool) -> Dict:
    """Return the space of what one runner sees."""
    num_numbers = NUM_VECTOR + (NUM_ROUTE if show_route else 0)
    return Dict(
        {
            "tiles": Box(0, NUM_CODES - 1, (PATCH_HEIGHT, PATCH_WIDTH), np.uint8),
            "vector": Box(-MAX_SEEN, MAX_SEEN, (num_numbers,), np.float32),
        }
    )


class LedgeVectorEnv(GameVectorEnv):
    """Many games of Ledge at once.

    Args:
        num_envs: Number of envs. This and the arguments that are not listed are those of
            `GameVectorEnv`.
        level: The text of a level, the path of its file as a `pathlib.Path`, or a `Level`, that
            every env plays.
        stage: Instead of a level: the stage of which every env plays one generated level. Tasks,
            given by a curriculum or with `set_tasks`, take its place.
        level_seed: Which level of that stage.
        shaping: Whether the reward also contains the progress of each step, as a potential, which
            does not change which behaviour is best.
        gamma: The agent's discount, for shaping.
        show_route: Whether the observation also says where the shortest way to the next goal
            leads: the way that shaping rewards.
        time_limit: Steps after which an episode is truncated; by default the level's own limit.
    """

    steps_per_second = 30
    rows_per_chunk = 32
    rows_per_thread = 128
    info_kinds: ClassVar[dict[str, type]] = dict.fromkeys(LedgeInfos._fields, bool)
    kernels = stepping

    def __init__(
        self,
        num_envs: int = 1,
        *,
        level: str | Path | Level | None = None,
        stage: str | None = None,
        level_seed: int = 0,
        shaping: bool = False,
        gamma: float = 0.99,
        show_route: bool = False,
        time_limit: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        num_threads: int | Literal["auto"] = "auto",
        render_mode: str | None = None,
        copy: bool = True,
        task_infos: bool = True,
    ):
        require_share("gamma", gamma)
        if time_limit is not None:
            require_integer("time_limit", time_limit, 1, MAX_LEVEL_STEPS)
        for name, value in (("shaping", shaping), ("show_route", show_route)):
            if not isinstance(value, bool | np.bool_):
                raise ConfigError(f"{name} must be True or False; got {value!r}.")
        self.has_shaping, self._gamma = bool(shaping), float(gamma)
        self.shows_route = bool(show_route)
        self._space = observation_space(self.shows_route)
        self.time_limit = None if time_limit is None else int(time_limit)
        super().__init__(
            num_envs,
            single_observation_space=self._space,
            single_action_space=Discrete(NUM_ACTIONS),
            autoreset_mode=autoreset_mode,
            num_threads=num_threads,
            render_mode=render_mode,
            copy=copy,
            task_infos=task_infos,
            task=task_for(level, stage, level_seed),
        )

    def _lay_out(self, num_envs: int) -> None:
        self.runners = Runner.zeros(num_envs)
        self.actions = np.zeros(num_envs, dtype=np.int64)
        self.seen = create_empty_array(self._space, num_envs)
        self.seen_last = create_empty_array(self._space, num_envs)
        self._potentials = np.zeros(num_envs)

    def room_for_tasks(self, num_rows: int) -> PreparedLevels:
        """Return room for so many tasks, in the form that kernels read."""
        return PreparedLevels.zeros(num_rows, self.has_shaping or self.shows_route)

    def put(self, task: Task, prepared: PreparedLevels, row: int) -> None:
        """Write a task's level into a row of prepared tasks."""
        self.note_params(task.params, PARAMETERS, task.name)
        packed = pack(level_of(task))
        prepared.records[row] = packed.record
        prepared.tiles[row] = packed.tiles
        if self.time_limit is not None:
            prepared.records["time_limit"][row] = self.time_limit
        if self.has_shaping or self.shows_route:
            prepared.to_switch[row], prepared.to_door[row] = packed.to_switch, packed.to_door

    def _game(self) -> LedgeGame:
        return LedgeGame(
            self.runners,
            self.actions,
            self.playing,
            self.table,
            self.seen["vector"],
            self.seen["tiles"],
            self.seen_last["vector"],
            self.seen_last["tiles"],
            LedgeInfos(*self.extras),
            self._potentials,
            self.has_shaping,
            self.shows_route,
            self._gamma,
        )

    def game_arrays(self) -> list[SavedArray]:
        """Describe what outlives a step."""
        vectors, tiles = self.seen["vector"], self.seen["tiles"]
        return [
            SavedArray("game/runners", np.asarray(self.runners), Runner.parts()),
            SavedArray("game/potentials", self._potentials, (Part("potential", ..., -1.0, 1.0),)),
            SavedArray("game/vectors", vectors, (Part("view", ..., -MAX_SEEN, MAX_SEEN),)),
            SavedArray("game/tiles", tiles, (Part.count("tile", high=NUM_CODES - 1),)),
            SavedArray("game/extras", self.extras, (Part.count("flag", high=1),)),
        ]

    def check_games(self, arrays: Mapping[str, npt.NDArray[Any]], place: str) -> None:
        """Refuse levels that `pack` cannot have made, and runners that are not inside theirs."""
        states = arrays["batch/episodes"]["state"]
        has_begun = (states == PLAYING) | (states == ENDED)
        if self.link is None:
            # Envs without a new task in the table begin again with the level that they have.
            is_new = arrays["batch/known"] == 1
            check_levels("table", arrays, is_new, place)
            check_levels("playing", arrays, has_begun | ~is_new, place)
        else:
            check_levels("playing", arrays, has_begun, place)
        check_runners(arrays, has_begun, states == PLAYING, place)

    def game_settings(self) -> dict[str, Any]:
        """Return what a snapshot must share with these envs."""
        return {
            "shaping": self.has_shaping,
            "gamma": self._gamma,
            "show_route": self.shows_route,
        }

    def task_settings(self) -> dict[str, Any]:
        """Return what overrides the parameters of tasks."""
        return {"time_limit": self.time_limit}

    def _take(self, actions: Any) -> None:
        given = integer_actions(actions, (self.num_envs,))
        bad = stepping.take_actions(given, self.actions, NUM_ACTIONS)
        if bad >= 0:
            raise EnvError(
                f"action {given[bad]} of env {bad} is unknown; expected 0 to {NUM_ACTIONS - 1} "
                f"({', '.join(ACTION_NAMES)}). No env was stepped."
            )

    def level(self, env_index: int) -> Level:
        """Return the level that an env plays."""
        return level_of(self.task_of(env_index))

    def paint(self, env_index: int) -> npt.NDArray[np.uint8]:
        """Draw one env."""
        # Imported here: only rendering needs the library that draws.
        from stepladder.games.ledge.painter import LedgePainter

        if self._painter is None:
            self._painter = LedgePainter()
        record: Any = self.playing.records[env_index]
        tiles, rim = framed(self.playing.tiles[env_index], record)
        runner: Any = self.runners[env_index : env_index + 1].copy()[0]
        runner["x"], runner["y"] = runner["x"] + rim, runner["y"] + rim
        is_new = bool(self.batch.has_begun[env_index])
        is_dead = bool(LedgeInfos(*self.extras).has_died[env_index]) and not is_new
        return self._painter.paint(
            tiles,
            runner,
            is_dead=is_dead,
            has_won=bool(self.batch.terminated[env_index]) and not (is_new or is_dead),
            time_limit=int(record["time_limit"]),
            name=self.level(env_index).name,
        )


def framed(tiles: npt.NDArray[np.uint8], record: Any) -> tuple[npt.NDArray[np.uint8], int]:
    """Return a level's tiles, with a rim of wall where it has none: what lies outside is wall.

    Returns:
        The tiles, and how wide the rim is.
    """
    height, width = int(record["height"]), int(record["width"])
    inner = tiles[MARGIN : MARGIN + height, MARGIN : MARGIN + width]
    edges = (inner[0], inner[-1], inner[:, 0], inner[:, -1])
    if all((edge == WALL).all() for edge in edges):
        return inner, 0
    return tiles[MARGIN - 1 : MARGIN + height + 1, MARGIN - 1 : MARGIN + width + 1], 1


def task_for(level: str | Path | Level | None, stage: str | None, level_seed: int) -> Task:
    """Return the task of what a user has named.

    Raises:
        ConfigError: Both were named.
    """
    if level is not None and stage is not None:
        raise ConfigError("both level and stage were given. Give one of them.")
    if level is not None:
        if isinstance(level, Path):
            level = Level.parse(level.read_text(), level.stem)
        elif not isinstance(level, Level):
            if not isinstance(level, str) or "\n" not in level:
                raise ConfigError(
                    "level must be the text of a level, of several lines; got the "
                    f"{type(level).__name__} {level!r}. Give a file as pathlib.Path(...)."
                )
            level = Level.parse(level, "level")
        return Task(level.name, params={"level": level.text})
    stage = DEFAULT_STAGE if stage is None else stage
    return Task(f"{stage}/{level_seed}", stage, {"stage": stage}, seed=level_seed)
