"""Ledge as a vector env: many runners, each in its own level, stepped in one compiled call.

Above the kernels of `stepping`; `env` is the face with a single runner.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.vector import AutoresetMode

from stepladder.errors import ConfigError, EnvError
from stepladder.games.arguments import require_positive, whole_actions
from stepladder.games.batch import GameVectorEnv
from stepladder.games.episodes import ENDED, PLAYING
from stepladder.games.ledge import stepping
from stepladder.games.ledge.level import MAX_TIME_LIMIT, Level
from stepladder.games.ledge.physics import ACTION_NAMES, NUM_ACTIONS, STEPS_PER_SECOND
from stepladder.games.ledge.saved import RUNNER_PARTS, check_levels, check_runners
from stepladder.games.ledge.source import PARAMETERS, level_of
from stepladder.games.ledge.stepping import LedgeGame, LevelShelf
from stepladder.games.ledge.tiles import NUM_CODES, WALL
from stepladder.games.ledge.views import NUM_VECTOR, PATCH_HEIGHT, PATCH_WIDTH
from stepladder.games.ledge.world import (
    LEVEL_DTYPE,
    MARGIN,
    PACKED_HEIGHT,
    PACKED_WIDTH,
    RUNNER_DTYPE,
    pack,
)
from stepladder.saving.saved_array import Part, SavedArray
from stepladder.tasks import Task

DEFAULT_STAGE = "simplest"

MAX_SEEN = 2.0
"""No number of an observation is larger; most lie between -1 and 1."""


class LedgeVectorEnv(GameVectorEnv):
    """Many games of Ledge at once.

    Args:
        num_envs: How many.
        level: The text of a level, the path of its file as a `pathlib.Path`, or a `Level`, that
            every env plays.
        stage: Instead of a level: the stage of which every env plays one generated level. Tasks,
            given by a curriculum or with `set_tasks`, take its place.
        level_seed: Which level of that stage.
        shaping: Whether the reward also says how much of the way a step has brought, as a
            potential, which does not change what is best.
        gamma: The discount that shaping reckons with: that of the agent.
        time_limit: Steps after which an episode is truncated; by default the level says.
        autoreset_mode: When a game that has ended is reset.
        num_threads: Threads that step at once.
        render_mode: ``"rgb_array"``, ``"human"`` or None.
        copy: Whether what is returned is the user's to keep.
        task_infos: Whether infos say which task of a curriculum each env begins and has ended.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "render_modes": ["rgb_array", "human"],
        "render_fps": STEPS_PER_SECOND,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }
    rows_per_chunk = 32
    rows_per_thread = 128
    info_names = ("switch_touched", "has_died", "is_success")
    info_kinds = (bool, bool, bool)
    work = staticmethod(stepping.work)
    begin = staticmethod(stepping.begin_rows)
    start = staticmethod(stepping.start_rows)

    def __init__(
        self,
        num_envs: int = 1,
        *,
        level: str | Path | Level | None = None,
        stage: str | None = None,
        level_seed: int = 0,
        shaping: bool = False,
        gamma: float = 0.99,
        time_limit: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        num_threads: int | Literal["auto"] = "auto",
        render_mode: str | None = None,
        copy: bool = True,
        task_infos: bool = True,
    ):
        num_envs = require_positive("num_envs", num_envs)
        if not isinstance(gamma, int | float) or not 0.0 <= gamma <= 1.0:
            raise ConfigError(f"gamma must be a number in [0, 1]; got {gamma!r}.")
        if time_limit is not None and require_positive("time_limit", time_limit) > MAX_TIME_LIMIT:
            raise ConfigError(f"time_limit must be at most {MAX_TIME_LIMIT}; got {time_limit!r}.")
        if not isinstance(shaping, bool | np.bool_):
            raise ConfigError(f"shaping must be True or False; got {shaping!r}.")
        self.has_shaping = bool(shaping)
        self.time_limit = None if time_limit is None else int(time_limit)
        self._lay_out(num_envs, gamma)
        super().__init__(
            num_envs,
            single_observation_space=observation_space(),
            single_action_space=Discrete(NUM_ACTIONS),
            autoreset_mode=autoreset_mode,
            num_threads=num_threads,
            render_mode=render_mode,
            copy=copy,
            task_infos=task_infos,
            task=task_of(level, stage, level_seed),
        )

    def _lay_out(self, num_envs: int, gamma: float) -> None:
        self.runners = np.zeros(num_envs, dtype=RUNNER_DTYPE)
        self.actions = np.zeros(num_envs, dtype=np.int64)
        self.seen = empty_views(num_envs)
        self.seen_last = empty_views(num_envs)
        self.extras = np.zeros((len(self.info_names), num_envs))
        self._potentials = np.zeros(num_envs)
        self._shaping = np.array([float(self.has_shaping), gamma])
        self._painter: Any = None

    def make_shelf(self, num_rows: int) -> LevelShelf:
        """Return room for so many tasks, as kernels read them."""
        shape = (num_rows, PACKED_HEIGHT, PACKED_WIDTH)
        field = shape if self.has_shaping else (num_rows, 1, 1)
        records = np.zeros(num_rows, dtype=LEVEL_DTYPE)
        records["way"] = 1.0
        return LevelShelf(
            records,
            np.full(shape, WALL, dtype=np.uint8),
            np.zeros(field, dtype=np.uint16),
            np.zeros(field, dtype=np.uint16),
        )

    def put(self, task: Task, shelf: LevelShelf, row: int) -> None:
        """Write a task's level into a row of a shelf."""
        self.note_params(task.params, PARAMETERS, task.name)
        packed = pack(level_of(task))
        shelf.records[row] = packed.record
        shelf.tiles[row] = packed.tiles
        if self.time_limit is not None:
            shelf.records["time_limit"][row] = self.time_limit
        if self.has_shaping:
            shelf.to_switch[row], shelf.to_door[row] = packed.to_switch, packed.to_door

    def _game(self) -> LedgeGame:
        return LedgeGame(
            self.runners,
            self.actions,
            self.shelf,
            self.table,
            self.seen["vector"],
            self.seen["tiles"],
            self.seen_last["vector"],
            self.seen_last["tiles"],
            self.extras,
            self._potentials,
            self._shaping,
        )

    def game_arrays(self) -> list[SavedArray]:
        """Describe what outlives a step."""
        vectors, tiles = self.seen["vector"], self.seen["tiles"]
        return [
            SavedArray("game/runners", self.runners, RUNNER_PARTS),
            SavedArray("game/potentials", self._potentials, (Part("potential", ..., -1.0, 1.0),)),
            SavedArray("game/vectors", vectors, (Part("view", ..., -MAX_SEEN, MAX_SEEN),)),
            SavedArray("game/tiles", tiles, (Part.count("tile", high=NUM_CODES - 1),)),
            SavedArray("game/extras", self.extras, (Part.count("flag", high=1),)),
        ]

    def check_games(self, arrays: Mapping[str, npt.NDArray[Any]], place: str) -> None:
        """Refuse levels that `pack` cannot have made, and runners that are not inside theirs."""
        states = arrays["batch/episodes"]["state"]
        has_begun = (states == PLAYING) | (states == ENDED)
        if self.lessons is None:
            # Envs without a new task in the table begin again with the level that they have.
            is_new = arrays["batch/known"] == 1
            check_levels("table", arrays, is_new, place)
            check_levels("shelf", arrays, has_begun | ~is_new, place)
        else:
            check_levels("shelf", arrays, has_begun, place)
        check_runners(arrays, has_begun, states == PLAYING, place)

    def game_settings(self) -> dict[str, Any]:
        """Return what a snapshot must share with these envs."""
        return {"shaping": self.has_shaping, "gamma": float(self._shaping[1])}

    def task_settings(self) -> dict[str, Any]:
        """Return what holds whatever a task says."""
        return {"time_limit": self.time_limit}

    def _take(self, actions: Any) -> None:
        given = whole_actions(actions, self.num_envs)
        bad = stepping.take_actions(given, self.actions, NUM_ACTIONS)
        if bad >= 0:
            raise EnvError(
                f"action {given[bad]} of env {bad} is unknown; expected 0 to {NUM_ACTIONS - 1} "
                f"({', '.join(ACTION_NAMES)}). No env was stepped."
            )

    def level(self, env_index: int) -> Level:
        """Return the level that an env plays."""
        task = self.lessons.task_of(env_index) if self.lessons else self.tasks[env_index]
        return level_of(task)

    def paint(self, env_index: int) -> npt.NDArray[np.uint8]:
        """Draw one env."""
        # Loaded here: only who looks at a game needs the library that draws.
        from stepladder.games.ledge.painter import LedgePainter, LedgeScene

        if self._painter is None:
            self._painter = LedgePainter()
        runner, record = self.runners[env_index], self.shelf.records[env_index]
        tiles, rim = framed(self.shelf.tiles[env_index], record)
        is_new = bool(self.batch.has_begun[env_index])
        has_died = bool(self.extras[1, env_index]) and not is_new
        return self._painter.paint(
            LedgeScene(
                tiles=tiles,
                x=float(runner["x"]) + rim,
                y=float(runner["y"]) + rim,
                vx=float(runner["vx"]),
                vy=float(runner["vy"]),
                facing=int(runner["facing"]),
                on_ground=bool(runner["on_ground"]),
                wall=int(runner["wall"]),
                switch_touched=bool(runner["switch_touched"]),
                is_dead=has_died,
                has_won=bool(self.batch.terminated[env_index]) and not (is_new or has_died),
                steps=int(runner["steps"]),
                time_limit=int(record["time_limit"]),
                name=self.level(env_index).name,
            )
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


def observation_space() -> Dict:
    """Return what one runner sees."""
    return Dict(
        {
            "tiles": Box(0, NUM_CODES - 1, (PATCH_HEIGHT, PATCH_WIDTH), np.uint8),
            "vector": Box(-MAX_SEEN, MAX_SEEN, (NUM_VECTOR,), np.float32),
        }
    )


def empty_views(num_envs: int) -> dict[str, npt.NDArray[Any]]:
    """Return room for what so many runners see."""
    return {
        "tiles": np.zeros((num_envs, PATCH_HEIGHT, PATCH_WIDTH), dtype=np.uint8),
        "vector": np.zeros((num_envs, NUM_VECTOR), dtype=np.float32),
    }


def task_of(level: str | Path | Level | None, stage: str | None, level_seed: int) -> Task:
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
