"""How a game begins, when it is over, and what it is worth.

`reset_world` is called at every reset, the others after `physics.step_world`. Functions with a
`player` take that player's side: 1 or 2.

A reset writes the whole world, hold counts included, which the original lets leak from one game
into the next. Otherwise the distributions are the original's, with one restriction: there, player
two of the training modes may start in or behind its own walls (x up to 4.67), and in one game of
eight is then pushed out of the rink. Here it starts no farther back than `MAX_START_X`, unless a
task sets ``original_starts``.
"""

import math

import numpy as np

from stepladder.compiled import bare
from stepladder.games.dice import Dice, uniform
from stepladder.games.hockey.rink import PLAYER_ONE, PLAYER_TWO, PUCK
from stepladder.games.hockey.task import TaskRecord
from stepladder.games.hockey.world import CAUGHT, NORMAL, TRAIN_DEFENSE, HockeyWorld, clear_world

LIMIT, TRAINING_LIMIT = 250, 80
"""Nominal time limits in steps; rewards are expressed in them. A game lasts one step longer, as
in the original."""

GOAL_REWARD = 10.0

START_X = 3.0
MAX_START_X = 3.45
TARGET_X = -5.0
TARGET_Y = 0.6 * 1.25


@bare
def limit_of(mode: int) -> int:
    """Return a mode's nominal time limit in steps."""
    return LIMIT if mode == NORMAL else TRAINING_LIMIT


@bare
def judge(world: HockeyWorld) -> tuple[bool, bool]:
    """Return whether the game has ended by a goal, and whether by its time limit."""
    terminated = world.winner != 0
    return terminated, not terminated and world.steps > limit_of(world.mode)


@bare
def closeness(world: HockeyWorld, player: int) -> float:
    """Return the cost of being far from a puck that is in the own half and not leaving it."""
    side = 1.0 if player == PLAYER_ONE else -1.0
    puck, racket = world.bodies[PUCK], world.bodies[player]
    if side * puck.x >= 0.0 or side * puck.vx > 0.0:
        return 0.0
    distance = np.sqrt((racket.x - puck.x) ** 2 + (racket.y - puck.y) ** 2)
    return -distance * 30.0 / (250.0 / 60.0 * limit_of(world.mode) / 2.0)


@bare
def touch(world: HockeyWorld, player: int) -> float:
    """Return 1 on the step in which the player catches the puck, else 0."""
    return 1.0 if world.bodies[player].hold == CAUGHT else 0.0


@bare
def direction(world: HockeyWorld, player: int) -> float:
    """Return how fast the puck moves towards the other's goal, as a small reward."""
    speed = world.bodies[PUCK].vx / (25.0 * limit_of(world.mode))
    return speed if player == PLAYER_ONE else -speed


@bare
def winner(world: HockeyWorld, player: int) -> int:
    """Return 1 if the player has won, -1 if it has lost, else 0."""
    return world.winner if player == PLAYER_ONE else -world.winner


@bare
def reward(world: HockeyWorld, player: int) -> float:
    """Return a step's reward: the goal, if one has been scored, and the closeness to the puck."""
    return GOAL_REWARD * winner(world, player) + closeness(world, player)


@bare
def _between(low: float, high: float, dice: Dice, env_index: int) -> float:
    """Draw a number between two."""
    return low + (high - low) * uniform(dice, env_index)


@bare
def _aim_at_goal(world: HockeyWorld, speed: float, dice: Dice, env_index: int) -> None:
    """Let the puck be shot at player one's goal in the first step."""
    puck = world.bodies[PUCK]
    way_x = TARGET_X - puck.x
    way_y = _between(-TARGET_Y, TARGET_Y, dice, env_index) - puck.y
    distance = np.sqrt(way_x * way_x + way_y * way_y)
    world.launch_x = speed * way_x / distance
    world.launch_y = speed * way_y / distance


@bare
def reset_world(
    world: HockeyWorld, task: TaskRecord, side: float, dice: Dice, env_index: int
) -> None:
    """Begin a game.

    Args:
        world: All of it is written.
        task: Its mode, `keep_mode`, `puck_speed` and `original_starts` are read. In
            `TRAIN_DEFENSE` the puck is shot at the goal with `puck_speed`; otherwise it begins with
            that speed in a random direction.
        side: Whose half the puck starts in, in `NORMAL`: -1 player one's, 1 player two's.
        dice: Random states, one per env.
        env_index: The env's place in `dice`.
    """
    mode, puck_speed = task.mode, task.puck_speed
    clear_world(world)
    world.mode, world.keep_mode = mode, task.keep_mode
    puck, one, two = world.bodies[PUCK], world.bodies[PLAYER_ONE], world.bodies[PLAYER_TWO]
    one.x, two.x = -START_X, START_X
    if mode != NORMAL:
        two.x = START_X + _between(-10 / 3, 5 / 3, dice, env_index)
        if task.original_starts == 0:
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
