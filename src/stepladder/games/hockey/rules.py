"""When a game is over and what it is worth: endings, rewards, and the terms shown in infos.

Called by the vector env after `physics.step_world`, on the world as it then is. Each function takes
the player it speaks for: 1 or 2.
"""

import numpy as np

from stepladder.compiled import bare
from stepladder.games.hockey.holding import CAUGHT
from stepladder.games.hockey.world import ONE, PUCK, World

NORMAL, TRAIN_SHOOTING, TRAIN_DEFENSE = 0, 1, 2

LIMIT, TRAINING_LIMIT = 250, 80
"""Nominal time limits, in which the rewards are expressed. A game lasts one step longer, as the
original's does."""

GOAL_REWARD = 10.0


@bare
def limit_of(mode: int) -> int:
    """Return a mode's nominal time limit in steps."""
    return LIMIT if mode == NORMAL else TRAINING_LIMIT


@bare
def judge(world: World) -> tuple[bool, bool]:
    """Return whether the game has ended by a goal, and whether by its time limit."""
    terminated = world.winner != 0
    return terminated, not terminated and world.steps > limit_of(world.mode)


@bare
def closeness(world: World, player: int) -> float:
    """Return the cost of being far from a puck that is in the own half and not leaving it."""
    side = 1.0 if player == ONE else -1.0
    puck, racket = world.bodies[PUCK], world.bodies[player]
    if side * puck.x >= 0.0 or side * puck.vx > 0.0:
        return 0.0
    distance = np.sqrt((racket.x - puck.x) ** 2 + (racket.y - puck.y) ** 2)
    return -distance * 30.0 / (250.0 / 60.0 * limit_of(world.mode) / 2.0)


@bare
def touch(world: World, player: int) -> float:
    """Return 1 on the step in which the player catches the puck, else 0."""
    return 1.0 if world.bodies[player].hold == CAUGHT else 0.0


@bare
def direction(world: World, player: int) -> float:
    """Return how fast the puck moves towards the other's goal, as a small reward."""
    speed = world.bodies[PUCK].vx / (25.0 * limit_of(world.mode))
    return speed if player == ONE else -speed


@bare
def winner(world: World, player: int) -> int:
    """Return 1 if the player has won, -1 if it has lost, 0 if nobody has."""
    return world.winner if player == ONE else -world.winner


@bare
def reward(world: World, player: int) -> float:
    """Return a step's reward: the goal, if one has been scored, and the closeness to the puck."""
    return GOAL_REWARD * winner(world, player) + closeness(world, player)
