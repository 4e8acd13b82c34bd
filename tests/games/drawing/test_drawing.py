"""Painters: pictures of the right shape, the same every time, with things where they are."""

import math
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from stepladder.errors import ConfigError
from stepladder.games.drawing import Picture, packages, palette
from stepladder.games.drawing.canvas import Canvas, resized
from stepladder.games.hockey.painter import HockeyPainter
from stepladder.games.ledge.level import Level
from stepladder.games.ledge.painter import LedgePainter
from stepladder.games.ledge.physics import Runner

SCALE = 60
ONE, TWO, PUCK = (-2.5, 0.6), (2.2, -1.2), (0.8, 1.5)

LEVEL = Level.parse(
    """
##########
#........#
#..--....#
#@.S.*.D.#
##########
""",
    name="small",
)
WIDTH = 640
TILE = WIDTH // LEVEL.width


def view(puck: Sequence[float] = PUCK, holds: Sequence[float] = (0, 0)) -> list[float]:
    """Return player one's view of a game in which nobody moves."""
    return [*ONE, 0, 0, 0, 0, *TWO, 0, 0, 0, 0, *puck, 0, 0, *holds]


def at_rink(picture: Picture, x: float, y: float) -> palette.Colour:
    """Return the colour at a place of the rink."""
    return colour_at(picture, (x + 5) * SCALE, (4 - y) * SCALE)


def at_tile(picture: Picture, x: float, y: float) -> palette.Colour:
    """Return the colour at a place of the level."""
    map_height = picture.shape[0] - 0.04 * WIDTH
    return colour_at(picture, x * TILE, (map_height - LEVEL.height * TILE) / 2 + y * TILE)


def colour_at(picture: Picture, x: float, y: float) -> palette.Colour:
    red, green, blue = picture[math.floor(y), math.floor(x)].tolist()
    return red, green, blue


def near(colour: palette.Colour, wanted: palette.Colour) -> bool:
    return max(abs(one - two) for one, two in zip(colour, wanted, strict=True)) <= 6


def scene(**changes: Any) -> dict[str, Any]:
    """Return arguments of `LedgePainter.paint`; changes are fields of the runner, or arguments."""
    runner: Any = Runner.zeros()[0]
    start = {"tiles": LEVEL.tiles, "name": LEVEL.name, "x": 1.5, "y": 3.625, "on_ground": 1}
    arguments = {**start, "facing": 1, **changes}
    for name in Runner.dtype.names or ():
        runner[name] = arguments.pop(name, 0)
    return {"runner": runner, **arguments}


@pytest.mark.parametrize(("scale", "shape"), [(60.0, (480, 600, 3)), (33.3, (266, 332, 3))])
def test_a_picture_of_hockey_has_its_shape(scale: float, shape: tuple[int, ...]) -> None:
    picture = HockeyPainter(scale).paint(view())
    assert (picture.shape, picture.dtype) == (shape, np.uint8)
    assert picture.flags.writeable


def test_players_and_puck_are_where_the_view_says() -> None:
    picture = HockeyPainter(SCALE).paint(view())
    for (x, y), side, colour in (
        (ONE, 1, palette.LEARNER_COLOUR),
        (TWO, -1, palette.OPPONENT_COLOUR),
    ):
        assert near(at_rink(picture, x - side * 0.12, y), colour)
        # The bright front is ahead of the position, and there is nothing before it.
        front = at_rink(picture, x + side * 0.06, y)
        assert near(front, palette.mixed(colour, palette.WHITE, 0.7))
        assert near(at_rink(picture, x + side * 0.2, y), palette.GROUND)
        assert near(at_rink(picture, x - side * 0.45, y), palette.GROUND)
    assert near(at_rink(picture, PUCK[0] + 0.13, PUCK[1]), palette.WHITE)


def test_a_racket_turns_counter_clockwise_about_its_position() -> None:
    turned = view()
    turned[2] = math.pi / 2
    picture = HockeyPainter(SCALE).paint(turned)
    front = at_rink(picture, ONE[0], ONE[1] + 0.06)
    assert near(front, palette.mixed(palette.LEARNER_COLOUR, palette.WHITE, 0.7))
    assert near(at_rink(picture, ONE[0], ONE[1] - 0.3), palette.LEARNER_COLOUR)


def test_a_held_puck_is_coloured_and_an_arc_shows_how_long() -> None:
    painter = HockeyPainter(SCALE)
    free = painter.paint(view())
    held = painter.paint(view(holds=(0, 8)))
    assert near(at_rink(held, PUCK[0] + 0.13, PUCK[1]), palette.GOAL)
    x, y = TWO
    # Half of the time is left: the arc reaches from the top over the right to the bottom.
    assert near(at_rink(held, x + 0.62, y), palette.OPPONENT_COLOUR)
    assert near(at_rink(held, x - 0.62, y), palette.GROUND)
    assert near(at_rink(free, x + 0.62, y), palette.GROUND)


def test_a_fast_puck_has_a_trail_behind_it() -> None:
    moving = view()
    moving[14:16] = [-20.0, 0.0]
    painter = HockeyPainter(SCALE)
    behind = (PUCK[0] + 0.35, PUCK[1])
    assert sum(at_rink(painter.paint(moving), *behind)) > sum(
        at_rink(painter.paint(view()), *behind)
    )


@pytest.mark.parametrize(("winner", "x"), [(1, 4.2), (-1, -4.2)])
def test_the_goal_that_was_hit_lights_up(winner: int, x: float) -> None:
    painter = HockeyPainter(SCALE)
    assert near(at_rink(painter.paint(view(), winner=winner), x, 1), palette.GOAL)
    assert not near(at_rink(painter.paint(view()), x, 1), palette.GOAL)


def test_the_caption_names_mode_and_opponent() -> None:
    painter = HockeyPainter(SCALE)
    bare = painter.paint(view())
    told = painter.paint(view(), mode="NORMAL", opponent="weak")
    differs = (bare != told).any(axis=(0, 2))
    assert differs[:200].any()
    assert differs[400:].any()
    assert not (bare[20:] != told[20:]).any()


def test_equal_scenes_give_equal_pictures_whatever_was_painted_before() -> None:
    painter = HockeyPainter(SCALE)
    first = painter.paint(view())
    painter.paint(view(puck=(3, -2), holds=(5, 0)), winner=1, mode="x")
    assert np.array_equal(painter.paint(view()), first)
    runner = LedgePainter()
    second = runner.paint(**scene())
    runner.paint(**scene(tiles=LEVEL.tiles[:, 2:], switch_touched=True, steps=5, time_limit=9))
    assert np.array_equal(runner.paint(**scene()), second)
    assert np.array_equal(LedgePainter().paint(**scene()), second)


@pytest.mark.parametrize(
    ("x", "y", "colour"),
    [
        (0.5, 0.5, palette.SOLID),
        (6.5, 1.5, palette.GROUND),
        (3.5, 2.04, palette.SOLID_LIGHT),
        (3.5, 2.5, palette.GROUND),
        (5.6, 3.5, palette.DANGER),
        (3.5, 3.7, palette.GOAL),
        (7.5, 3.55, palette.GOAL),
        (1.4, 3.8, palette.LEARNER_COLOUR),
        (4.5, 4.05, palette.SOLID_LIGHT),
    ],
)
def test_everything_is_on_its_tile(x: float, y: float, colour: palette.Colour) -> None:
    assert near(at_tile(LedgePainter(WIDTH).paint(**scene()), x, y), colour)


def test_the_switch_opens_the_door() -> None:
    picture = LedgePainter(WIDTH).paint(**scene(switch_touched=True))
    assert near(at_tile(picture, 3.5, 3.84), palette.OPEN)
    assert near(at_tile(picture, 7.5, 3.55), palette.mixed(palette.OPEN, palette.WHITE, 0.6))


def test_the_runner_looks_where_it_goes_and_shows_how_it_ended() -> None:
    painter = LedgePainter(WIDTH)
    right, left = painter.paint(**scene(facing=1)), painter.paint(**scene(facing=-1))
    assert not near(at_tile(right, 1.63, 3.52), palette.LEARNER_COLOUR)
    assert near(at_tile(left, 1.63, 3.52), palette.LEARNER_COLOUR)
    assert near(at_tile(painter.paint(**scene(is_dead=True)), 1.4, 3.8), palette.DANGER)
    assert near(at_tile(painter.paint(**scene(has_won=True)), 1.4, 3.8), palette.OPEN)


def test_a_runner_in_the_air_is_stretched_and_one_at_a_wall_has_hands() -> None:
    painter = LedgePainter(WIDTH)
    standing = painter.paint(**scene(x=5.5, y=1.6))
    falling = painter.paint(**scene(x=5.5, y=1.6, vy=0.5, on_ground=False))
    assert near(at_tile(standing, 5.5, 2.04), palette.GROUND)
    assert not near(at_tile(falling, 5.5, 2.04), palette.GROUND)
    assert not np.array_equal(standing, painter.paint(**scene(x=5.5, y=1.6, wall=-1)))


def test_the_bar_of_time_runs_down_and_turns_red() -> None:
    painter = LedgePainter(WIDTH)
    y = 400 - 0.45 * 0.04 * WIDTH
    x = WIDTH * 3 / 4
    plenty = painter.paint(**scene(steps=10, time_limit=100))
    little = painter.paint(**scene(steps=90, time_limit=100))
    assert near(colour_at(plenty, x, y), palette.OPEN)
    assert near(colour_at(plenty, WIDTH - 20, y), palette.MARKING)
    assert near(colour_at(little, x - 8, y), palette.DANGER)
    assert near(colour_at(little, x + 30, y), palette.MARKING)
    assert near(colour_at(painter.paint(**scene()), x, y), palette.NIGHT)
    over = painter.paint(**scene(steps=500, time_limit=100))
    assert near(colour_at(over, x - 8, y), palette.MARKING)


@pytest.mark.parametrize("size", [(1, 1), (3, 40), (24, 2), (24, 40)])
def test_levels_of_all_sizes_fill_pictures_of_one_size(size: tuple[int, int]) -> None:
    tiles = np.zeros(size, dtype=np.uint8)
    picture = LedgePainter(301).paint(**scene(tiles=tiles, x=0.5, y=0.5))
    assert picture.shape == (188, 300, 3)


def test_sizes_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigError, match="scale must be finite and above 0; got 0"):
        HockeyPainter(0)
    with pytest.raises(ConfigError, match="width must be an integer of at least 64; got 3"):
        LedgePainter(3)


def test_edges_are_smooth_and_see_through_shapes_mix() -> None:
    canvas = Canvas((40, 40), 10.0, (0.0, 0.0), is_y_up=False)
    canvas.circle((2.0, 2.0), 1.0, palette.WHITE)
    shades = {tuple(pixel) for pixel in canvas.picture().reshape(-1, 3).tolist()}
    assert len(shades) > 4
    canvas.polygon([(0, 0), (4, 0), (4, 4), (0, 4)], palette.WHITE, alpha=128)
    middle = colour_at(canvas.picture(), 20, 20)
    assert near(middle, palette.mixed(palette.NIGHT, palette.WHITE, 0.5))


def test_a_picture_can_be_enlarged_and_made_smaller() -> None:
    picture = HockeyPainter(20).paint(view())
    assert resized(picture, 1.0) is picture
    assert resized(picture, 2.0).shape == (320, 400, 3)
    half = resized(picture, 0.5)
    assert half.shape == (80, 100, 3)
    assert near(colour_at(half, 2, 2), palette.NIGHT)


def test_a_missing_package_is_one_line_with_the_fix() -> None:
    wanted = (
        r"drawing needs the package nopackage, .*Install it with: pip install 'stepladder\[watch"
    )
    with pytest.raises(ConfigError, match=wanted):
        packages.required("nopackage", "nopackage", "drawing")


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_importing_says_nothing_and_changes_no_variable() -> None:
    code = (
        "import os, sys, stepladder.games; before = dict(os.environ);"
        "assert 'pygame' not in sys.modules, 'games load pygame';"
        "import stepladder.games.drawing.window, stepladder.games.drawing.film;"
        "assert 'pygame' in sys.modules;"
        "assert not {'av', 'PIL'} & set(sys.modules), 'a film loads its packages when written';"
        "assert dict(os.environ) == before, set(os.environ) ^ set(before)"
    )
    # Where there is a screen, pygame leaves a variable behind as well.
    environ = {**os.environ, "DISPLAY": ":0"}
    environ.pop(packages.HIDE_GREETING, None)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, env=environ
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
