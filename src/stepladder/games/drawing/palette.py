"""The colours that both games share, so that their pictures belong together.

Used by the painters. Dark grounds, one bright colour per role.
"""

Colour = tuple[int, int, int]
"""Red, green and blue, each from 0 to 255."""

NIGHT: Colour = (13, 18, 31)  # behind everything
GROUND: Colour = (24, 33, 54)  # where the game is played
MARKING: Colour = (52, 68, 100)  # lines on the ground, without collisions
SOLID: Colour = (72, 88, 122)  # walls and tiles
SOLID_LIGHT: Colour = (112, 130, 168)  # edges of walls and tiles that face the light
SOLID_DARK: Colour = (48, 60, 88)  # edges of walls and tiles that lie in the shade
WHITE: Colour = (240, 244, 250)  # the puck, eyes, and what must be seen first
QUIET: Colour = (142, 156, 184)  # captions
LEARNER_COLOUR: Colour = (64, 196, 214)  # the learner: player one, the runner
OPPONENT_COLOUR: Colour = (250, 126, 96)  # the opponent
DANGER: Colour = (236, 78, 92)  # what kills
GOAL: Colour = (250, 204, 92)  # what is wanted: the switch, a puck that is held
OPEN: Colour = (98, 214, 138)  # the way is free; it was done


def mixed(first: Colour, second: Colour, share: float) -> Colour:
    """Return a colour between two; a share of 0 is the first, of 1 the second."""
    red, green, blue = (
        round(one + (two - one) * share) for one, two in zip(first, second, strict=True)
    )
    return red, green, blue
