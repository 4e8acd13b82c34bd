"""One step of many games: the kernels behind `HockeyVectorEnv`.

Combines the game's own kernels (`physics`, `opponents`, `rules`, `views`) with the beginning and
end of an episode under a curriculum (`games.episodes`). Called by several threads at once, each
with other rows.
"""

from typing import Any, NamedTuple

from stepladder.arrays import Floats, Words
from stepladder.compiled import bare, inlined
from stepladder.games.dice import mixed, uniform
from stepladder.games.episodes import BatchArrays, count_step, draw_task, end_episode, goes_on
from stepladder.games.hockey.actions import NUM_CONTROLS
from stepladder.games.hockey.opponents import act
from stepladder.games.hockey.physics import step_world
from stepladder.games.hockey.rink import PLAYER_ONE, PLAYER_TWO
from stepladder.games.hockey.rules import closeness, direction, judge, reset_world, reward, touch
from stepladder.games.hockey.task import (
    CALLER_OPPONENT,
    SCRIPTED_OPPONENT,
    PreparedTasks,
    TaskRecord,
)
from stepladder.games.hockey.views import HockeyView, write_view
from stepladder.games.hockey.world import HockeyWorld
from stepladder.games.threads import Control, await_round, end_chunk, next_chunk, open_round
from stepladder.plans.status import PLAYING
from stepladder.records import Records


class HockeyInfos(NamedTuple):
    """What infos say in every step; one number per env."""

    winner: Floats
    reward_closeness_to_puck: Floats
    reward_touch_puck: Floats
    reward_puck_direction: Floats
    reward_two: Floats
    is_success: Floats


class HockeyGame(NamedTuple):
    """The arrays of many games; one row per env."""

    worlds: Records[HockeyWorld]
    controls: Floats
    """Both players' four numbers."""
    tasks: PreparedTasks
    table: PreparedTasks
    """One row per slot of the curriculum."""
    sides: Words
    """Which player started last, or 0: then chance decides."""
    views_one: Records[HockeyView]
    views_two: Records[HockeyView]
    last_views_one: Records[HockeyView]
    last_views_two: Records[HockeyView]
    infos: HockeyInfos
    shows_two: bool
    """Whether player two's view is written."""


@inlined
def look(
    game: HockeyGame, env_index: int, views_one: Records[HockeyView], views_two: Records[HockeyView]
) -> None:
    """Write what the players see."""
    write_view(game.worlds[env_index], PLAYER_ONE, views_one[env_index])
    if game.shows_two:
        write_view(game.worlds[env_index], PLAYER_TWO, views_two[env_index])


@bare
def choose_side(batch: BatchArrays, game: HockeyGame, env_index: int) -> int:
    """Return who starts: as the task says, or each in turn, first by chance."""
    starts = game.tasks.records[env_index].starts
    if starts != 0:
        return starts
    side = -game.sides[env_index]
    # Under a curriculum each episode is independent: a replayed one must start the same way.
    if side == 0 or len(batch.mails) > 0:
        side = -1 if uniform(batch.dice, env_index) < 0.5 else 1
    game.sides[env_index] = side
    return side


@bare
def start_row(batch: BatchArrays, game: HockeyGame, env_index: int) -> None:
    """Begin to play the task that was prepared for the env."""
    batch.episodes[env_index].state = PLAYING
    task = game.tasks.records[env_index]
    if task.has_seed != 0:
        batch.dice[env_index] = mixed(task.seed)
        game.sides[env_index] = 0
    side = choose_side(batch, game, env_index)
    reset_world(game.worlds[env_index], task, side, batch.dice, env_index)
    look(game, env_index, game.views_one, game.views_two)


@bare
def begin_row(batch: BatchArrays, game: HockeyGame, env_index: int) -> None:
    """Draw a task and begin to play it, unless it has to be prepared in Python."""
    slot = draw_task(batch, env_index)
    if batch.episodes[env_index].state == PLAYING:
        if slot >= 0:
            game.tasks.records[env_index] = game.table.records[slot]
        start_row(batch, game, env_index)


@inlined
def shaped_reward(world: HockeyWorld, task: TaskRecord, player: int) -> float:
    """Return a player's reward with what the task adds to it."""
    shaped = reward(world, player) + task.closeness_weight * closeness(world, player)
    shaped += task.touch_weight * touch(world, player)
    return shaped + task.direction_weight * direction(world, player)


@inlined
def step_row(batch: BatchArrays, game: HockeyGame, env_index: int) -> None:
    """Step one env, or reset it if it has ended."""
    if not goes_on(batch, env_index):
        begin_row(batch, game, env_index)
        return
    world, task, infos = game.worlds[env_index], game.tasks.records[env_index], game.infos
    controls = game.controls[env_index]
    if task.opponent == SCRIPTED_OPPONENT:
        act(world, PLAYER_TWO, task.gain, batch.dice, env_index, controls)
    elif task.opponent != CALLER_OPPONENT:
        controls[NUM_CONTROLS:] = 0.0
    step_world(world, controls)
    is_over, is_cut_off = judge(world)
    infos.winner[env_index] = world.winner
    infos.reward_closeness_to_puck[env_index] = closeness(world, PLAYER_ONE)
    infos.reward_touch_puck[env_index] = touch(world, PLAYER_ONE)
    infos.reward_puck_direction[env_index] = direction(world, PLAYER_ONE)
    infos.reward_two[env_index] = shaped_reward(world, task, PLAYER_TWO)
    count_step(batch, env_index, shaped_reward(world, task, PLAYER_ONE))
    is_success = world.winner > 0 or (task.no_loss_suffices != 0 and world.winner == 0)
    infos.is_success[env_index] = success = 1.0 if is_success else 0.0
    has_ended = is_over or is_cut_off or world.steps >= task.time_limit
    if has_ended and end_episode(batch, env_index, success, is_over):
        look(game, env_index, game.last_views_one, game.last_views_two)
        begin_row(batch, game, env_index)
        return
    look(game, env_index, game.views_one, game.views_two)


@bare
def begin_rows(rows: Words, batch: BatchArrays, game: HockeyGame) -> None:
    """Begin an episode in some envs."""
    for env_index in rows:
        begin_row(batch, game, env_index)


@bare
def start_rows(rows: Words, batch: BatchArrays, game: HockeyGame) -> None:
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
    game: HockeyGame,
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
def first_bad_row(given: Any) -> int:
    """Return the first row with a number outside [-1, 1] or NaN; -1 if there is none."""
    for row in range(given.shape[0]):
        for column in range(given.shape[1]):
            # Written so that NaN, which is neither above nor below, is bad.
            if not (-1.0 <= given[row, column] <= 1.0):
                return row
    return -1


@bare
def take_forces(given: Any, controls: Floats, offset: int) -> None:
    """Copy one player's numbers, or both players', to where they are read."""
    for row in range(given.shape[0]):
        for column in range(given.shape[1]):
            controls[row, offset + column] = given[row, column]
