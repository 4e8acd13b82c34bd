"""The scripted players, weak and strong: they chase the puck, guard the goal and swing the racket.

Called by the vector env before a step, for either player: reads the world as that player sees it
and writes its four controls. Weak and strong differ only in their gain.
"""

import math

import numpy as np
import numpy.typing as npt

from stepladder.compiled import bare, inlined
from stepladder.games.dice import Dice, uniform
from stepladder.games.hockey.rink import PLAYER_ONE, PUCK
from stepladder.games.hockey.world import HockeyWorld

WEAK_GAIN, STRONG_GAIN = 0.5, 10.0
DAMPING = 0.5
GUARD_X = -3.5
SWING = math.pi / 3
MAX_PHASE_STEP = 0.2
SHOOT_BELOW = 7
"""It shoots once it may hold the puck for fewer steps than this."""


@inlined
def _control(error: float, gain: float, speed: float, horizon_s: float) -> float:
    """Return a proportional control, damped where the target is at most `horizon_s` away."""
    braking = abs(error) < horizon_s * abs(speed + 0.01)
    control = gain * error - (DAMPING * speed if braking else 0.0)
    return min(max(control, -1.0), 1.0)


@bare
def act(
    world: HockeyWorld,
    player: int,
    gain: float,
    dice: Dice,
    env_index: int,
    controls: npt.NDArray[np.float64],
) -> None:
    """Write a scripted player's half of the eight controls, and advance its phase of the swing.

    The player is 1 or 2; the gain is `WEAK_GAIN`, `STRONG_GAIN` or another.
    """
    step = MAX_PHASE_STEP * uniform(dice, env_index)
    if player == PLAYER_ONE:
        side, offset = 1.0, 0
        world.phase_one += step
        phase = world.phase_one
    else:
        side, offset = -1.0, 4
        world.phase_two += step
        phase = world.phase_two
    puck, racket = world.bodies[PUCK], world.bodies[player]
    x, y = side * racket.x, side * racket.y
    puck_x, puck_y = side * puck.x, side * puck.y
    target_x, target_y = GUARD_X, 0.0
    if side * puck.vx < 0.5:
        target_y = puck_y
        if x < puck_x and abs(y - puck_y) < 0.5:
            distance = np.sqrt((x - puck_x) ** 2 + (y - puck_y) ** 2)
            target_x = puck_x + 0.2
            target_y += 0.1 * side * puck.vy * distance
    swing = SWING * np.sin(phase) - racket.angle
    controls[offset] = _control(target_x - x, gain, side * racket.vx, 0.1)
    controls[offset + 1] = _control(target_y - y, gain / 5.0, side * racket.vy, 0.1)
    controls[offset + 2] = _control(swing, gain / 2.0, racket.spin, 1.0)
    controls[offset + 3] = 1.0 if 0 < racket.hold < SHOOT_BELOW else 0.0
