"""How a racket holds the puck and lets it fly.

Second part of a step (`physics`), before contacts are found. A racket that catches the puck gets a
count of 15; from the next step on it carries the puck, and shoots it when the player says so or the
count has run down.
"""

from stepladder.compiled import bare
from stepladder.games.hockey.world import PUCK, Body, World

CAUGHT = 15
"""What the count is set to when a racket catches the puck."""

LAUNCH_SPEED = 60.0
SHOOT_ABOVE = 0.5


@bare
def carry(world: World, racket: Body, shoot: float) -> None:
    """Put a held puck into its racket; launch it if asked, or if the time is over."""
    puck = world.bodies[PUCK]
    puck.x, puck.y = racket.x, racket.y
    puck.vx, puck.vy = racket.vx, racket.vy
    racket.hold -= 1
    if racket.hold == 1 or shoot > SHOOT_ABOVE:
        world.launch_x += LAUNCH_SPEED * racket.facing_x
        world.launch_y += LAUNCH_SPEED * racket.facing_y
        racket.hold = 0
