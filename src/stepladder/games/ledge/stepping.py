"""One step of many runners: the kernels behind `LedgeVectorEnv`.

Combines the game's own kernels (`physics`, `views`) with the beginning and end of an episode under
a curriculum (`games.episodes`). Called by several threads at once, each with other rows.
"""

from typing import NamedTuple

from stepladder.arrays import Bytes, Floats, Floats32, Words
from stepladder.compiled import bare, inlined
from stepladder.games.episodes import BatchArrays, count_step, draw_task, end_episode, goes_on
from stepladder.games.ledge.physics import (
    DIED,
    NOTHING,
    SUCCEEDED,
    SUCCESS_REWARD,
    Runner,
    advance,
    begin,
    potential,
)
from stepladder.games.ledge.views import write_patch, write_route, write_vector
from stepladder.games.ledge.world import PACKED_HEIGHT, PACKED_WIDTH, PreparedLevels
from stepladder.games.threads import Control, await_round, end_chunk, next_chunk, open_round
from stepladder.plans.status import PLAYING
from stepladder.records import Records


class LedgeInfos(NamedTuple):
    """What infos say in every step; one number per env."""

    switch_touched: Floats
    has_died: Floats
    is_success: Floats


class LedgeGame(NamedTuple):
    """The arrays of many runners; one row per env."""

    runners: Records[Runner]
    actions: Words
    levels: PreparedLevels
    table: PreparedLevels
    """One row per slot of the curriculum."""
    vectors: Floats32
    patches: Bytes
    last_vectors: Floats32
    last_patches: Bytes
    infos: LedgeInfos
    potentials: Floats
    has_shaping: bool
    shows_route: bool
    gamma: float


@bare
def copy_level(game: LedgeGame, slot: int, env_index: int) -> None:
    """Give an env its own copy of a slot's level: the slot may hold another before it is done."""
    levels, table = game.levels, game.table
    levels.records[env_index] = table.records[slot]
    for row in range(PACKED_HEIGHT):
        for column in range(PACKED_WIDTH):
            levels.tiles[env_index, row, column] = table.tiles[slot, row, column]
    if game.has_shaping or game.shows_route:
        for row in range(PACKED_HEIGHT):
            for column in range(PACKED_WIDTH):
                levels.to_switch[env_index, row, column] = table.to_switch[slot, row, column]
                levels.to_door[env_index, row, column] = table.to_door[slot, row, column]


@inlined
def potential_of(game: LedgeGame, env_index: int) -> float:
    """Return the potential of a runner's position."""
    levels = game.levels
    return potential(
        game.runners[env_index],
        levels.records[env_index],
        levels.to_switch[env_index],
        levels.to_door[env_index],
    )


@inlined
def look(game: LedgeGame, env_index: int, vectors: Floats32, patches: Bytes) -> None:
    """Write what a runner sees."""
    runner, level = game.runners[env_index], game.levels.records[env_index]
    write_vector(runner, level, vectors[env_index])
    if game.shows_route:
        if runner.switch_touched != 0:
            write_route(runner, game.levels.to_door[env_index], vectors[env_index])
        else:
            write_route(runner, game.levels.to_switch[env_index], vectors[env_index])
    write_patch(runner, game.levels.tiles[env_index], level, patches[env_index])


@bare
def start_row(batch: BatchArrays, game: LedgeGame, env_index: int) -> None:
    """Begin to play the level that was prepared for the env."""
    batch.episodes[env_index].state = PLAYING
    begin(game.runners[env_index], game.levels.records[env_index])
    if game.has_shaping:
        game.potentials[env_index] = potential_of(game, env_index)
    look(game, env_index, game.vectors, game.patches)


@bare
def begin_row(batch: BatchArrays, game: LedgeGame, env_index: int) -> None:
    """Draw a level and begin to play it, unless it has to be prepared in Python."""
    slot = draw_task(batch, env_index)
    if batch.episodes[env_index].state == PLAYING:
        if slot >= 0:
            copy_level(game, slot, env_index)
        start_row(batch, game, env_index)


@inlined
def step_row(batch: BatchArrays, game: LedgeGame, env_index: int) -> None:
    """Step one env, or reset it if it has ended."""
    if not goes_on(batch, env_index):
        begin_row(batch, game, env_index)
        return
    runner, level = game.runners[env_index], game.levels.records[env_index]
    event = advance(runner, game.levels.tiles[env_index], level, game.actions[env_index])
    is_over, success = event != NOTHING, 1.0 if event == SUCCEEDED else 0.0
    reward = SUCCESS_REWARD * success
    if game.has_shaping:
        after = 0.0 if is_over else potential_of(game, env_index)
        reward += game.gamma * after - game.potentials[env_index]
        game.potentials[env_index] = after
    count_step(batch, env_index, reward)
    game.infos.switch_touched[env_index] = runner.switch_touched
    game.infos.has_died[env_index] = event == DIED
    game.infos.is_success[env_index] = success
    has_ended = is_over or runner.steps >= level.time_limit
    if has_ended and end_episode(batch, env_index, success, is_over):
        look(game, env_index, game.last_vectors, game.last_patches)
        begin_row(batch, game, env_index)
        return
    look(game, env_index, game.vectors, game.patches)


@bare
def begin_rows(rows: Words, batch: BatchArrays, game: LedgeGame) -> None:
    """Begin an episode in some envs."""
    for env_index in rows:
        begin_row(batch, game, env_index)


@bare
def start_rows(rows: Words, batch: BatchArrays, game: LedgeGame) -> None:
    """Begin to play what was prepared for some envs."""
    for env_index in rows:
        start_row(batch, game, env_index)


@bare
def work(
    control: Records[Control],
    epoch: int,
    num_spins: int,
    rows_per_chunk: int,
    batch: BatchArrays,
    game: LedgeGame,
) -> None:
    """Step chunks of rows, as `games.threads.Team` requires.

    The games repeat this loop and the two above: numba does not cache compiled code of a kernel
    that takes another one as an argument.
    """
    open_round(control, num_spins)
    chunk = next_chunk(control, epoch, num_spins)
    while chunk >= 0:
        first = chunk * rows_per_chunk
        for env_index in range(first, min(first + rows_per_chunk, len(batch.rewards))):
            step_row(batch, game, env_index)
        end_chunk(control)
        chunk = next_chunk(control, epoch, num_spins)
    await_round(control, num_spins)


@bare
def take_actions(given: Words, actions: Words, num_actions: int) -> int:
    """Copy actions if all are possible; return the first env whose action is not, or -1."""
    for env_index in range(len(given)):
        if given[env_index] < 0 or given[env_index] >= num_actions:
            return env_index
    for env_index in range(len(given)):
        actions[env_index] = given[env_index]
    return -1
