"""One step of many games: the kernels behind `HockeyVectorEnv`.

Puts together the game's own kernels (`physics`, `opponents`, `rules`, `views`) and what an
episode's beginning and end mean to a curriculum (`games.episodes`). Called by several threads at
once, each with other rows.
"""
# pyright: reportArgumentType=false
# Reason: a record's fields are of no type that NumPy's stubs know.

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stepladder.compiled import bare, inlined, pause
from stepladder.games.dice import mixed, uniform
from stepladder.games.episodes import (
    ENDED,
    PLAYING,
    SAME_STEP,
    Batch,
    count_step,
    draw_task,
    end_episode,
)
from stepladder.games.hockey.actions import write_controls
from stepladder.games.hockey.opponents import act
from stepladder.games.hockey.physics import step_world
from stepladder.games.hockey.resets import reset_world
from stepladder.games.hockey.rules import closeness, direction, judge, reward, touch
from stepladder.games.hockey.task import CALLER, SCRIPTED, TaskShelf
from stepladder.games.hockey.views import write_view_one, write_view_two
from stepladder.games.hockey.world import ONE, TWO, WorldArray
from stepladder.games.threads import (
    OUT_OF_DATE,
    Words,
    await_round,
    end_chunk,
    may_help,
    open_round,
    take_chunk,
)

Floats32 = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]

WINNER, CLOSENESS, TOUCH, DIRECTION, REWARD_TWO, SUCCESS = 0, 1, 2, 3, 4, 5
"""Rows of `HockeyGame.extras`."""

NUM_EXTRAS = 6

NUM_CONTROLS = 4
"""Numbers that one player gives: forces along x and y, torque, shoot."""


class HockeyGame(NamedTuple):
    """The arrays of many games; one row per env."""

    worlds: WorldArray
    controls: Floats
    """Both players' four numbers."""
    tasks: TaskShelf
    table: TaskShelf
    """One row per slot of the curriculum."""
    sides: Words
    """Which player started last, or 0: then chance decides."""
    views_one: Floats32
    views_two: Floats32
    last_views_one: Floats32
    last_views_two: Floats32
    extras: Floats
    two_views: Words
    """One number: whether player two's view is wanted."""


@inlined
def look(game: HockeyGame, env_index: int, views_one: Floats32, views_two: Floats32) -> None:
    """Write what the players see."""
    write_view_one(game.worlds[env_index], views_one[env_index])
    if game.two_views[0] > 0:
        write_view_two(game.worlds[env_index], views_two[env_index])


@bare
def choose_side(batch: Batch, game: HockeyGame, env_index: int) -> int:
    """Return who starts: whom the task names, or each in turn, first by chance."""
    starts = game.tasks.records[env_index].starts
    if starts != 0:
        return starts
    side = -game.sides[env_index]
    # Under a curriculum each episode stands by itself, or one played again might start otherwise.
    if side == 0 or len(batch.mails) > 0:
        side = -1 if uniform(batch.dice, env_index) < 0.5 else 1
    game.sides[env_index] = side
    return side


@bare
def start_row(batch: Batch, game: HockeyGame, env_index: int) -> None:
    """Begin to play the task that is in an env's place."""
    batch.episodes[env_index].state = PLAYING
    task = game.tasks.records[env_index]
    if task.has_seed != 0:
        batch.dice[env_index] = mixed(task.seed)
        game.sides[env_index] = 0
    side = choose_side(batch, game, env_index)
    reset_world(
        game.worlds[env_index],
        task.mode,
        task.keep_mode,
        side,
        task.puck_speed,
        task.original_starts,
        batch.dice,
        env_index,
    )
    look(game, env_index, game.views_one, game.views_two)


@bare
def begin_row(batch: Batch, game: HockeyGame, env_index: int) -> None:
    """Draw a task and begin to play it, unless it has to be prepared outside."""
    slot = draw_task(batch, env_index)
    if batch.episodes[env_index].state != PLAYING:
        return
    if slot >= 0:
        game.tasks.records[env_index] = game.table.records[slot]
    start_row(batch, game, env_index)


@inlined
def play_second(batch: Batch, game: HockeyGame, env_index: int) -> None:
    """Write what the second player does, unless the caller has."""
    task = game.tasks.records[env_index]
    controls = game.controls[env_index]
    if task.opponent == SCRIPTED:
        act(game.worlds[env_index], TWO, task.gain, batch.dice, env_index, controls)
    elif task.opponent != CALLER:
        controls[NUM_CONTROLS:] = 0.0


@inlined
def shaped_reward(world: Any, task: Any, player: int) -> float:
    """Return a player's reward with what the task adds to it."""
    shaped = reward(world, player) + task.closeness_weight * closeness(world, player)
    shaped += task.touch_weight * touch(world, player)
    return shaped + task.direction_weight * direction(world, player)


@inlined
def step_row(batch: Batch, game: HockeyGame, env_index: int) -> None:
    """Step one env, or reset it if it has ended."""
    batch.has_ended[env_index] = batch.has_begun[env_index] = False
    batch.terminated[env_index] = batch.truncated[env_index] = False
    if batch.episodes[env_index].state != PLAYING:
        batch.rewards[env_index] = 0.0
        begin_row(batch, game, env_index)
        return
    play_second(batch, game, env_index)
    world, task = game.worlds[env_index], game.tasks.records[env_index]
    step_world(world, game.controls[env_index])
    is_over, is_cut_off = judge(world)
    game.extras[WINNER, env_index] = world.winner
    game.extras[CLOSENESS, env_index] = closeness(world, ONE)
    game.extras[TOUCH, env_index] = touch(world, ONE)
    game.extras[DIRECTION, env_index] = direction(world, ONE)
    game.extras[REWARD_TWO, env_index] = shaped_reward(world, task, TWO)
    count_step(batch, env_index, shaped_reward(world, task, ONE))
    is_success = world.winner > 0 or (task.no_loss_suffices != 0 and world.winner == 0)
    game.extras[SUCCESS, env_index] = 1.0 if is_success else 0.0
    if is_over or is_cut_off or world.steps >= task.time_limit:
        end_episode(batch, env_index, game.extras[SUCCESS, env_index], is_over)
        if batch.autoreset[0] == SAME_STEP and batch.episodes[env_index].state == ENDED:
            look(game, env_index, game.last_views_one, game.last_views_two)
            begin_row(batch, game, env_index)
            return
    look(game, env_index, game.views_one, game.views_two)


@bare
def begin_rows(rows: Words, batch: Batch, game: HockeyGame) -> None:
    """Begin an episode in some envs."""
    for env_index in rows:
        begin_row(batch, game, env_index)


@bare
def start_rows(rows: Words, batch: Batch, game: HockeyGame) -> None:
    """Begin to play what is in the places of some envs."""
    for env_index in rows:
        start_row(batch, game, env_index)


@bare
def work(
    control: Words, epoch: int, num_spins: int, rows_per_chunk: int, batch: Batch, game: HockeyGame
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
def first_bad_row(given: Any) -> int:
    """Return the first row with a number outside [-1, 1] or none at all; -1 if all are fine."""
    for row in range(given.shape[0]):
        for column in range(given.shape[1]):
            # Not the other way round: NaN is neither above nor below.
            if not (-1.0 <= given[row, column] <= 1.0):
                return row
    return -1


@bare
def take_forces(given: Any, controls: Floats, offset: int) -> None:
    """Copy a player's numbers, or both players', to where they are read."""
    for row in range(given.shape[0]):
        for column in range(given.shape[1]):
            controls[row, offset + column] = given[row, column]


@bare
def take_choices(given: Words, controls: Floats, offset: int, fineness: int) -> None:
    """Write the numbers that a player's discrete actions stand for."""
    for row in range(len(given)):
        write_controls(given[row], fineness, controls[row], offset)
