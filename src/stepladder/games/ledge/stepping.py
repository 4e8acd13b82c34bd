"""One step of many runners: the kernels behind `LedgeVectorEnv`.

Puts together the game's own kernels (`physics`, `views`, `rewards`) and what an episode's beginning
and end mean to a curriculum (`games.episodes`). Called by several threads at once, each with other
rows.
"""
# pyright: reportArgumentType=false
# Reason: a record's fields are of no type that NumPy's stubs know.

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stepladder.compiled import bare, inlined, pause
from stepladder.games.episodes import (
    ENDED,
    PLAYING,
    SAME_STEP,
    Batch,
    count_step,
    draw_task,
    end_episode,
)
from stepladder.games.ledge.level import MAX_HEIGHT, MAX_TIME_LIMIT, MAX_WIDTH
from stepladder.games.ledge.physics import DIED, NOTHING, SUCCEEDED, advance
from stepladder.games.ledge.physics import begin as begin_run
from stepladder.games.ledge.rewards import SUCCESS_REWARD, potential
from stepladder.games.ledge.tiles import DOOR, WALL
from stepladder.games.ledge.views import write_patch, write_vector
from stepladder.games.ledge.world import (
    MARGIN,
    PACKED_HEIGHT,
    PACKED_WIDTH,
    UNREACHABLE,
    Distances,
    Tiles,
)
from stepladder.games.threads import (
    OUT_OF_DATE,
    Words,
    await_round,
    end_chunk,
    may_help,
    open_round,
    take_chunk,
)
from stepladder.saving.saved_array import Part, SavedArray

Records = npt.NDArray[Any]
Floats32 = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]


class LevelShelf(NamedTuple):
    """Levels as kernels read them; one row per env, or per slot of a curriculum."""

    records: Records
    """Of dtype `LEVEL_DTYPE`."""
    tiles: Tiles
    to_switch: Distances
    """Without shaping these two have no room for anything."""
    to_door: Distances

    def saved_arrays(self, place: str) -> list[SavedArray]:
        """Describe levels that kernels can read: no way leads out of their margin of wall."""
        places = ("start_x", "start_y", "switch_x", "switch_y", "door_x", "door_y")
        records = (
            Part.count("height", "height", MAX_HEIGHT),
            Part.count("width", "width", MAX_WIDTH),
            Part.count("time_limit", "time_limit", MAX_TIME_LIMIT),
            *(Part(name, name, 0.0, MAX_WIDTH) for name in places),
            Part("switch_to_door", "switch_to_door", 0.0, UNREACHABLE),
            Part("way", "way", 1.0, 2.0 * UNREACHABLE),
        )
        margins = (
            np.s_[:, :MARGIN],
            np.s_[:, -MARGIN:],
            np.s_[:, :, :MARGIN],
            np.s_[:, :, -MARGIN:],
        )
        tiles = (
            Part.count("tile", high=DOOR),
            *(Part("tile of the margin", margin, WALL, WALL) for margin in margins),
        )
        return [
            SavedArray(f"{place}/records", self.records, records),
            SavedArray(f"{place}/tiles", self.tiles, tiles),
            SavedArray(f"{place}/to_switch", self.to_switch),
            SavedArray(f"{place}/to_door", self.to_door),
        ]


class LedgeGame(NamedTuple):
    """The arrays of many runners; one row per env."""

    runners: Records
    """Of dtype `RUNNER_DTYPE`."""
    actions: Words
    levels: LevelShelf
    table: LevelShelf
    """One row per slot of the curriculum."""
    vectors: Floats32
    patches: Tiles
    last_vectors: Floats32
    last_patches: Tiles
    extras: Floats
    """Rows: switch touched, died, succeeded."""
    potentials: Floats
    shaping: Floats
    """Two numbers: whether there is shaping, and gamma."""


@bare
def copy_level(game: LedgeGame, slot: int, env_index: int) -> None:
    """Give an env its own copy of a slot's level: the slot may hold another before it is done."""
    levels, table = game.levels, game.table
    levels.records[env_index] = table.records[slot]
    for row in range(PACKED_HEIGHT):
        for column in range(PACKED_WIDTH):
            levels.tiles[env_index, row, column] = table.tiles[slot, row, column]
    if game.shaping[0] > 0.0:
        for row in range(PACKED_HEIGHT):
            for column in range(PACKED_WIDTH):
                levels.to_switch[env_index, row, column] = table.to_switch[slot, row, column]
                levels.to_door[env_index, row, column] = table.to_door[slot, row, column]


@inlined
def potential_of(game: LedgeGame, env_index: int) -> float:
    """Return the potential of where a runner is."""
    levels = game.levels
    return potential(
        game.runners[env_index],
        levels.records[env_index],
        levels.to_switch[env_index],
        levels.to_door[env_index],
    )


@inlined
def look(game: LedgeGame, env_index: int, vectors: Floats32, patches: Tiles) -> None:
    """Write what a runner sees."""
    runner, level = game.runners[env_index], game.levels.records[env_index]
    write_vector(runner, level, vectors[env_index])
    write_patch(runner, game.levels.tiles[env_index], level, patches[env_index])


@bare
def start_row(batch: Batch, game: LedgeGame, env_index: int) -> None:
    """Begin to play the level that is in an env's place."""
    batch.episodes[env_index].state = PLAYING
    begin_run(game.runners[env_index], game.levels.records[env_index])
    if game.shaping[0] > 0.0:
        game.potentials[env_index] = potential_of(game, env_index)
    look(game, env_index, game.vectors, game.patches)


@bare
def begin_row(batch: Batch, game: LedgeGame, env_index: int) -> None:
    """Draw a level and begin to play it, unless it has to be prepared outside."""
    slot = draw_task(batch, env_index)
    if batch.episodes[env_index].state != PLAYING:
        return
    if slot >= 0:
        copy_level(game, slot, env_index)
    start_row(batch, game, env_index)


@inlined
def step_row(batch: Batch, game: LedgeGame, env_index: int) -> None:
    """Step one env, or reset it if it has ended."""
    batch.has_ended[env_index] = batch.has_begun[env_index] = False
    batch.terminated[env_index] = batch.truncated[env_index] = False
    if batch.episodes[env_index].state != PLAYING:
        batch.rewards[env_index] = 0.0
        begin_row(batch, game, env_index)
        return
    runner, level = game.runners[env_index], game.levels.records[env_index]
    event = advance(runner, game.levels.tiles[env_index], level, game.actions[env_index])
    is_over = event != NOTHING
    reward = SUCCESS_REWARD if event == SUCCEEDED else 0.0
    if game.shaping[0] > 0.0:
        after = 0.0 if is_over else potential_of(game, env_index)
        reward += game.shaping[1] * after - game.potentials[env_index]
        game.potentials[env_index] = after
    count_step(batch, env_index, reward)
    game.extras[0, env_index] = runner.switch_touched
    game.extras[1, env_index] = event == DIED
    game.extras[2, env_index] = event == SUCCEEDED
    if is_over or runner.steps >= level.time_limit:
        end_episode(batch, env_index, 1.0 if event == SUCCEEDED else 0.0, is_over)
        if batch.autoreset[0] == SAME_STEP and batch.episodes[env_index].state == ENDED:
            look(game, env_index, game.last_vectors, game.last_patches)
            begin_row(batch, game, env_index)
            return
    look(game, env_index, game.vectors, game.patches)


@bare
def begin_rows(rows: Words, batch: Batch, game: LedgeGame) -> None:
    """Begin an episode in some envs."""
    for env_index in rows:
        begin_row(batch, game, env_index)


@bare
def start_rows(rows: Words, batch: Batch, game: LedgeGame) -> None:
    """Begin to play what is in the places of some envs."""
    for env_index in rows:
        start_row(batch, game, env_index)


@bare
def work(
    control: Words, epoch: int, num_spins: int, rows_per_chunk: int, batch: Batch, game: LedgeGame
) -> None:
    """Step chunks of rows, as `games.threads.Team` has it.

    The games repeat this loop and the two above: numba keeps no compiled code of a kernel that is
    given another one as an argument.
    """
    if num_spins == 0:
        open_round(control)
    spins = 0
    while may_help(control, num_spins):
        chunk = take_chunk(control, epoch)
        if chunk >= 0:
            first = chunk * rows_per_chunk
            for env_index in range(first, min(first + rows_per_chunk, len(batch.rewards))):
                step_row(batch, game, env_index)
            end_chunk(control)
            spins = 0
        elif spins >= num_spins or chunk == OUT_OF_DATE:
            break
        else:
            spins += 1
            pause()
    if num_spins == 0:
        await_round(control)


@bare
def take_actions(given: Words, actions: Words, num_actions: int) -> int:
    """Copy actions if all are possible; return the first env whose action is not, or -1."""
    for env_index in range(len(given)):
        if given[env_index] < 0 or given[env_index] >= num_actions:
            return env_index
    for env_index in range(len(given)):
        actions[env_index] = given[env_index]
    return -1
