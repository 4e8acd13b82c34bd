"""How a game begins: where the players and the puck are, in each mode.

Called by the vector env at every reset; writes the whole world, hold counts included, which the
original lets leak from one game into the next.

Otherwise the distributions are the original's, with one restriction: there, player two of the
training modes may start in or behind its own walls (x up to 4.67), and in one game of eight is then
pushed out of the rink. Here it starts no farther back than `MAX_START_X`, unless the original's
starts are asked for.
"""

import math

import numpy as np

from stepladder.compiled import bare
from stepladder.games.dice import Dice, uniform
from stepladder.games.hockey.rules import NORMAL, TRAIN_DEFENSE
from stepladder.games.hockey.world import ONE, PUCK, TWO, World, clear_world

LAUNCH_SPEED = 60.0
"""Speed of the original's shot in TRAIN_DEFENSE."""

START_X = 3.0
MAX_START_X = 3.45
PUCK_ONE_STARTS, PUCK_TWO_STARTS = -1, 1
TARGET_X = -5.0
TARGET_Y = 0.6 * 1.25


@bare
def _between(low: float, high: float, dice: Dice, env_index: int) -> float:
    """Draw a number between two."""
    return low + (high - low) * uniform(dice, env_index)


@bare
def _aim_at_goal(world: World, speed: float, dice: Dice, env_index: int) -> None:
    """Let the puck be shot at player one's goal in the first step."""
    puck = world.bodies[PUCK]
    way_x = TARGET_X - puck.x
    way_y = _between(-TARGET_Y, TARGET_Y, dice, env_index) - puck.y
    distance = np.sqrt(way_x * way_x + way_y * way_y)
    world.launch_x = speed * way_x / distance
    world.launch_y = speed * way_y / distance


@bare
def reset_world(
    world: World,
    mode: int,
    keep_mode: int,
    side: float,
    puck_speed: float,
    original_starts: int,
    dice: Dice,
    env_index: int,
) -> None:
    """Begin a game.

    Args:
        world: All of it is written.
        mode: `NORMAL`, `TRAIN_SHOOTING` or `TRAIN_DEFENSE`.
        keep_mode: Whether rackets hold the puck.
        side: Whose half the puck starts in, in `NORMAL`: -1 player one's, 1 player two's.
        puck_speed: In `TRAIN_DEFENSE` the speed of the shot at the goal, `LAUNCH_SPEED` in the
            original; otherwise that of the puck at the start, in a random direction, 0 there.
        original_starts: Whether player two may start in or behind its own walls.
        dice: Random states, one per env.
        env_index: The env's place in `dice`.
    """
    clear_world(world)
    world.mode, world.keep_mode = mode, keep_mode
    puck, one, two = world.bodies[PUCK], world.bodies[ONE], world.bodies[TWO]
    one.x, two.x = -START_X, START_X
    if mode != NORMAL:
        two.x = START_X + _between(-10 / 3, 5 / 3, dice, env_index)
        if original_starts == 0:
            two.x = min(two.x, MAX_START_X)
        two.y = _between(-2.0, 2.0, dice, env_index)
    if mode == TRAIN_DEFENSE:
        puck.x = _between(0.0, 10 / 3, dice, env_index)
        puck.y = _between(-3.2, 3.2, dice, env_index)
        _aim_at_goal(world, puck_speed, dice, env_index)
    else:
        puck.x = _between(1.0, 2.0, dice, env_index) * (side if mode == NORMAL else -1.0)
        puck.y = _between(-1.0, 1.0, dice, env_index)
        if puck_speed != 0.0:
            direction = _between(-math.pi, math.pi, dice, env_index)
            puck.vx = puck_speed * np.cos(direction)
            puck.vy = puck_speed * np.sin(direction)
    world.phase_one = _between(0.0, math.pi, dice, env_index)
    world.phase_two = _between(0.0, math.pi, dice, env_index)
