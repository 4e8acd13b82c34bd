"""Pictures of laser hockey, seen from above.

Takes player one's view of a game and returns a picture, which the env shows in a window or returns,
and `film` writes to a file.
"""

import math
from collections.abc import Sequence
from typing import SupportsIndex

from stepladder.configs.checks import require_positive
from stepladder.games.drawing import Picture
from stepladder.games.drawing.canvas import Canvas, Point
from stepladder.games.drawing.palette import (
    GOAL,
    GROUND,
    LEARNER_COLOUR,
    MARKING,
    NIGHT,
    OPPONENT_COLOUR,
    QUIET,
    SOLID,
    SOLID_LIGHT,
    WHITE,
    Colour,
    mixed,
)
from stepladder.games.hockey.rackets import ZONE_X
from stepladder.games.hockey.rink import (
    CORNER_X,
    CORNER_Y,
    GOAL_X,
    LEFT_GOAL,
    NUM_CORNERS,
    NUM_RINK_POLYGONS,
    PUCK_RADIUS,
    RACKET,
    RACKET_CENTRE,
    RIGHT_GOAL,
    WALL_X,
    WALL_Y,
)
from stepladder.games.hockey.world import CAUGHT

WIDTH, HEIGHT = 10.0, 8.0
"""What is shown, in metres; the rink's centre is in the middle."""

CIRCLE, CREASE, LINE = 1.2, 1.0, 0.05
"""Radius of the circle in the middle and of those before the goals; thickness of all lines."""

ARC, ARC_THICKNESS = 0.66, 0.07
"""Radius of the arc that shows how long a puck may still be held."""

TRAIL_S, LONGEST_TRAIL = 0.05, 0.9
TRAIL = ((1.0, 40), (0.7, 50), (0.4, 70))
"""Shares of the trail's length, and how opaque each is."""

CAPTION_Y, CAPTION_HEIGHT, CAPTION_X = 3.84, 0.26, 4.2


class HockeyPainter:
    """Paints scenes of one size.

    Args:
        scale: Pixels per metre; a picture is 10 metres wide and 8 high.
    """

    def __init__(self, scale: float = 60.0):
        require_positive("scale", scale)
        # Even numbers, which most video formats need.
        size = (2 * round(WIDTH * scale / 2), 2 * round(HEIGHT * scale / 2))
        self._canvas = Canvas(size, scale, (-WIDTH / 2, HEIGHT / 2), is_y_up=True)
        self._paint_rink()
        self._canvas.keep_backdrop()

    def paint(
        self, view: Sequence[float], *, mode: str = "", opponent: str = "", winner: int = 0
    ) -> Picture:
        """Return a picture of shape ``(height, width, 3)``; equal arguments give equal pictures.

        Args:
            view: The 18 numbers of player one's observation.
            mode: Name of the mode, for the caption.
            opponent: Name of the opponent, for the caption.
            winner: 1 if player one has scored, -1 if player two has, else 0.
        """
        view = [float(number) for number in view]
        one, two, puck = view[0:3], view[6:9], (view[12], view[13])
        two[2] += math.pi
        hold_one, hold_two = view[16:18]
        if winner:
            self._canvas.polygon(_outline(RIGHT_GOAL if winner > 0 else LEFT_GOAL), GOAL)
        self._paint_trail(puck, (view[14], view[15]))
        self._paint_racket(one, LEARNER_COLOUR)
        self._paint_racket(two, OPPONENT_COLOUR)
        self._paint_puck(puck, GOAL if hold_one > 0 or hold_two > 0 else WHITE)
        self._paint_hold(one, hold_one, LEARNER_COLOUR)
        self._paint_hold(two, hold_two, OPPONENT_COLOUR)
        for text, x, align in ((mode, -CAPTION_X, 0.0), (opponent, CAPTION_X, 1.0)):
            if text:
                self._canvas.text(text, (x, CAPTION_Y), CAPTION_HEIGHT, QUIET, align)
        return self._canvas.picture()

    def _paint_rink(self) -> None:
        canvas = self._canvas
        canvas.box((-GOAL_X, WALL_Y), (GOAL_X, -WALL_Y), GROUND)
        canvas.box((-ZONE_X, WALL_Y), (ZONE_X, -WALL_Y), mixed(GROUND, MARKING, 0.25))
        canvas.circle((0.0, 0.0), CIRCLE, MARKING, LINE)
        canvas.line((0.0, WALL_Y), (0.0, -WALL_Y), MARKING, LINE)
        canvas.circle((0.0, 0.0), 2 * LINE, MARKING)
        for side, colour in ((-1.0, LEARNER_COLOUR), (1.0, OPPONENT_COLOUR)):
            canvas.circle((side * WALL_X, 0.0), CREASE, mixed(GROUND, colour, 0.3), LINE)
            # Behind the goal there is nothing, whatever the circle says.
            canvas.box((side * GOAL_X, WALL_Y), (side * WIDTH, -WALL_Y), NIGHT)
        goals = {int(LEFT_GOAL): LEARNER_COLOUR, int(RIGHT_GOAL): OPPONENT_COLOUR}
        for polygon in range(NUM_RINK_POLYGONS):
            owner = goals.get(polygon)
            canvas.polygon(_outline(polygon), mixed(GROUND, owner, 0.45) if owner else SOLID)
        for y in (WALL_Y, -WALL_Y):
            canvas.line((-WALL_X, y), (WALL_X, y), SOLID_LIGHT, LINE)

    def _paint_racket(self, pose: Sequence[float], colour: Colour) -> None:
        outline = _placed(RACKET_OUTLINE, pose)
        self._canvas.polygon([(x + 0.04, y - 0.06) for x, y in outline], NIGHT, alpha=110)
        self._canvas.polygon(outline, mixed(colour, NIGHT, 0.35))
        self._canvas.polygon(_placed(RACKET_INNER, pose), colour)
        self._canvas.polygon(_placed(RACKET_FRONT, pose), mixed(colour, WHITE, 0.7))

    def _paint_trail(self, place: Point, velocity: Point) -> None:
        """Draw where the puck has come from, as far as its speed tells."""
        speed = math.hypot(*velocity)
        length = min(LONGEST_TRAIL, speed * TRAIL_S)
        if length < PUCK_RADIUS:
            return
        x, y = velocity[0] / speed, velocity[1] / speed
        beside_x, beside_y = -y * PUCK_RADIUS * 0.85, x * PUCK_RADIUS * 0.85
        for share, alpha in TRAIL:
            corners = [
                (place[0] + beside_x, place[1] + beside_y),
                (place[0] - beside_x, place[1] - beside_y),
                (place[0] - x * length * share, place[1] - y * length * share),
            ]
            self._canvas.polygon(corners, WHITE, alpha)

    def _paint_puck(self, place: Point, colour: Colour) -> None:
        self._canvas.circle(place, PUCK_RADIUS, mixed(colour, NIGHT, 0.4))
        self._canvas.circle(place, PUCK_RADIUS * 0.84, colour)
        self._canvas.circle(place, PUCK_RADIUS * 0.42, mixed(colour, NIGHT, 0.18))

    def _paint_hold(self, pose: Sequence[float], hold: float, colour: Colour) -> None:
        """Draw how long a racket may still hold the puck, as an arc that closes in."""
        if hold > 0:
            share = min(1.0, hold / CAUGHT)
            self._canvas.arc((pose[0], pose[1]), ARC, share, colour, ARC_THICKNESS)


def _outline(polygon: SupportsIndex) -> list[Point]:
    """Return the corners of one of the rink's polygons."""
    count = NUM_CORNERS[polygon]
    xs, ys = CORNER_X[polygon, :count], CORNER_Y[polygon, :count]
    return list(zip(xs.tolist(), ys.tolist(), strict=True))


def _placed(outline: Sequence[Point], pose: Sequence[float]) -> list[Point]:
    """Return an outline at a place, turned by an angle."""
    x, y, angle = pose
    cosine, sine = math.cos(angle), math.sin(angle)
    return [
        (x + ahead * cosine - aside * sine, y + ahead * sine + aside * cosine)
        for ahead, aside in outline
    ]


RACKET_OUTLINE = _outline(RACKET)
RACKET_INNER = [
    (RACKET_CENTRE + 0.82 * (ahead - RACKET_CENTRE), 0.82 * aside)
    for ahead, aside in RACKET_OUTLINE
]
RACKET_FRONT = ((0.1, -0.4), (0.1, 0.4), (0.03, 0.4), (0.03, -0.4))
