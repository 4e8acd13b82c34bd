"""What the agent sees, and what shaping is made of."""

import numpy as np
import pytest

from games.ledge.ledge_play import Play
from stepladder.games.ledge.generators import GENERATORS, generate
from stepladder.games.ledge.physics import IDLE, JUMP, LEFT, RIGHT, potential
from stepladder.games.ledge.tiles import (
    AIR,
    CODE_NAMES,
    DOOR,
    DOOR_OPEN,
    MINE,
    NUM_CODES,
    SWITCH,
    SWITCH_TOUCHED,
    WALL,
)
from stepladder.games.ledge.vector_env import LedgeVectorEnv
from stepladder.games.ledge.views import (
    FAR_TILES,
    NEAR_TILES,
    NUM_ROUTE,
    NUM_VECTOR,
    PATCH_HEIGHT,
    PATCH_WIDTH,
    ROUTE_SCALE,
    RouteView,
    RunnerView,
    write_patch,
    write_route,
    write_vector,
)
from stepladder.games.ledge.world import MARGIN, UNREACHABLE

TEXT = """
; time_limit: 100
##########
#........#
#D@S..*..#
##########
"""


def vector_of(play):
    row = np.full(NUM_VECTOR, np.nan, dtype=np.float32)
    write_vector(play.runner, play.packed.record, row)
    return dict(zip(RunnerView._fields, row.tolist(), strict=True))


def patch_of(play):
    patch = np.full((PATCH_HEIGHT, PATCH_WIDTH), 255, dtype=np.uint8)
    write_patch(play.runner, play.packed.tiles, play.packed.record, patch)
    return patch


def potential_of(play):
    packed = play.packed
    return potential(play.runner, packed.record, packed.to_switch, packed.to_door)


def test_each_code_has_a_name():
    assert len(CODE_NAMES) == NUM_CODES


def test_the_vector_at_the_start_is_what_one_works_out():
    # The runner's centre is at (2.5, 2.625) on a map of 10 by 4.
    seen = vector_of(Play(TEXT))
    assert seen["x"] == pytest.approx(2 * 2.5 / 10 - 1)
    assert seen["y"] == pytest.approx(2 * 2.625 / 4 - 1)
    assert seen["x_in_tile"] == 0.0
    assert seen["y_in_tile"] == pytest.approx(0.25)
    assert seen["switch_x"] == pytest.approx(1 / 6)
    assert seen["switch_y"] == pytest.approx(-0.125 / 5.125)
    assert seen["door_x"] == pytest.approx(-1 / 6)
    assert seen["time_left"] == 1.0
    for name in ("speed_x", "speed_y", "on_ground", "switch_touched", "jump_held", "rising"):
        assert seen[name] == 0.0


def test_the_vector_follows_contacts_speed_and_time():
    play = Play(TEXT).settle()
    play.step(*[LEFT] * 20)
    seen = vector_of(play)
    assert (seen["on_ground"], seen["left_wall"], seen["right_wall"]) == (1.0, 1.0, 0.0)
    assert (seen["ground_grace"], seen["wall_grace"]) == (1.0, -1.0)
    assert seen["time_left"] == pytest.approx(1 - play.steps / 100)
    play.step(RIGHT, JUMP)
    seen = vector_of(play)
    assert (seen["rising"], seen["jump_held"], seen["ground_grace"]) == (1.0, 1.0, 0.0)
    assert seen["speed_y"] == pytest.approx(-0.4825 / 0.5)
    assert seen["speed_x"] == pytest.approx(play.vx / 0.25)
    assert seen["wall_grace"] == pytest.approx(-0.5)


def test_the_patch_shows_the_tiles_around_and_wall_outside():
    patch = patch_of(Play(TEXT))
    # The runner is at row 2, column 2, which is the middle of the patch: row 4, column 5.
    assert patch[4].tolist() == [WALL] * 4 + [DOOR, AIR, SWITCH, AIR, AIR, MINE, AIR]
    assert patch[3].tolist() == [WALL] * 4 + [AIR] * 7
    for row in (0, 1, 2, 5, 6, 7, 8):
        assert patch[row].tolist() == [WALL] * PATCH_WIDTH


def test_the_patch_shows_the_switch_touched_and_the_door_open():
    play = Play(TEXT).settle()
    while not play.switch_touched:
        play.step(RIGHT)
    patch = patch_of(play)
    assert np.count_nonzero(patch == SWITCH_TOUCHED) == 1
    assert np.count_nonzero(patch == DOOR_OPEN) == 1
    assert not np.isin(patch, (SWITCH, DOOR)).any()
    assert play.packed.tiles.max() == DOOR


def test_what_is_out_of_sight_is_not_painted_into_the_patch():
    play = Play("@.......S..................D")
    play.runner["switch_touched"] = 1
    assert patch_of(play).max() == WALL


@pytest.mark.parametrize("stage", list(GENERATORS))
def test_all_that_is_seen_stays_in_its_range(stage):
    play = Play(generate(stage, 11))
    rng = np.random.default_rng(2)
    for _ in range(400):
        play.step(int(rng.integers(6)))
        values = np.array(list(vector_of(play).values()))
        assert np.abs(values[:-1]).max() <= 1.0
        assert patch_of(play).max() < NUM_CODES


def test_the_potential_rises_from_zero_to_one_over_switch_and_door():
    # One tile to the switch, two from there to the door: a way of three.
    play = Play(TEXT).settle()
    assert potential_of(play) == 0.0
    while not play.switch_touched:
        play.step(RIGHT)
    assert potential_of(play) >= 1 / 3 - 1e-9
    play.runner["x"] = 1.6
    assert potential_of(play) == 1.0


def test_going_astray_makes_the_potential_negative_and_no_less_than_minus_one():
    play = Play(TEXT).settle()
    play.runner["x"] = 5.5
    assert potential_of(play) == pytest.approx(1 - (2 + 2) / 3)
    play = Play("@SD" + "." * 30).settle()
    play.runner["x"] = 30.5
    assert potential_of(play) == -1.0


def test_the_potential_does_not_depend_on_how_a_place_was_reached():
    play = Play(TEXT).settle()
    before = potential_of(play)
    play.step(*[IDLE] * 10)
    assert potential_of(play) == before


def route_of(play, distances):
    row = np.full(NUM_VECTOR + NUM_ROUTE, np.nan, dtype=np.float32)
    write_route(play.runner, distances, row)
    assert np.isnan(row[:NUM_VECTOR]).all()
    return dict(zip(RouteView._fields, row[NUM_VECTOR:].tolist(), strict=True))


@pytest.mark.parametrize("stage", ["simple", "complex", "exploration"])
def test_the_route_leads_along_tiles_that_are_ever_nearer_to_the_goal(stage):
    for seed in range(5):
        play = Play(generate(stage, seed))
        for distances in (play.packed.to_switch, play.packed.to_door):
            free = np.argwhere(distances != UNREACHABLE)
            for row, column in free[:: max(1, len(free) // 60)]:
                play.runner["x"], play.runner["y"] = column - MARGIN + 0.3, row - MARGIN + 0.7
                route, left = route_of(play, distances), int(distances[row, column])
                for name, steps in (("near", NEAR_TILES), ("far", FAR_TILES)):
                    # The offsets are those of the middle of a tile.
                    to_x = route[f"{name}_x"] * steps + play.x + MARGIN
                    to_y = route[f"{name}_y"] * steps + play.y + MARGIN
                    assert distances[int(to_y), int(to_x)] == max(left - steps, 0)
                    assert (to_x % 1.0, to_y % 1.0) == pytest.approx((0.5, 0.5), abs=1e-4)
                assert route["left"] == pytest.approx(left / (left + ROUTE_SCALE))


def test_a_route_goes_straight_where_it_can_and_there_may_be_none():
    room = "\n".join(["#" * 20, *["#" + "." * 18 + "#"] * 6, "#@" + "." * 15 + "SD#", "#" * 20])
    play = Play(room)
    play.runner["y"] = 2.5
    route = route_of(play, play.packed.to_switch)
    assert (route["near_x"], route["near_y"]) == (1.0, 0.0)
    nowhere = np.full_like(play.packed.to_switch, UNREACHABLE)
    assert list(route_of(play, nowhere).values()) == [0.0, 0.0, 0.0, 0.0, 1.0]


def test_an_env_shows_the_route_to_the_switch_and_then_to_the_door():
    room = "\n".join(["#" * 12, *["#" + "." * 10 + "#"] * 3, "#D..@S.....#", "#" * 12])
    vec = LedgeVectorEnv(1, level=room, show_route=True)
    seen, _ = vec.reset(seed=0)
    assert (
        seen["vector"].shape == (1, NUM_VECTOR + NUM_ROUTE) == vec.observation_space["vector"].shape
    )
    assert seen["vector"][0, NUM_VECTOR] > 0
    for _ in range(12):
        seen, *_ = vec.step(np.array([RIGHT]))
    touched = RunnerView._fields.index("switch_touched")
    assert seen["vector"][0, touched] == 1
    assert seen["vector"][0, NUM_VECTOR] < 0
    vec.close()
