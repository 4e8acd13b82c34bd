"""The runner's movement in numbers worked out by hand, and what must hold for any actions."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from games.ledge.ledge_play import Play
from stepladder.games.ledge.generators import GENERATORS, generate
from stepladder.games.ledge.level import Level
from stepladder.games.ledge.physics import (
    DIED,
    FALL_SPEED,
    HALF_HEIGHT,
    HALF_WIDTH,
    IDLE,
    JUMP,
    JUMP_LEFT,
    JUMP_RIGHT,
    JUMP_SPEED,
    LEFT,
    NOTHING,
    RIGHT,
    RUN_SPEED,
    SLIDE_SPEED,
    SUCCEEDED,
)

HALL = """
##############
#............#
#............#
#............#
#............#
#............#
#@.........SD#
##############
"""

PIT = """
#######
#@...##
#....##
#....##
#....##
#....##
#....##
#....##
#SD..##
#######
"""


def heights_of(play, actions):
    """Return how far above where it stands the runner is after each action."""
    floor = play.y
    heights = []
    for action in actions:
        play.step(action)
        heights.append(floor - play.y)
    return heights


def test_a_fall_gains_gravity_each_step_up_to_its_limit():
    play = Play(PIT)
    # 0.09 more each step: 0.09 + 0.18 + 0.27 = 0.54 tiles in three steps.
    top = play.y
    play.step(IDLE, IDLE, IDLE)
    assert play.vy == pytest.approx(0.27)
    assert play.y - top == pytest.approx(0.54)
    play.step(IDLE, IDLE, IDLE)
    # The sixth step would bring 0.54, and the limit is 0.5.
    assert play.vy == FALL_SPEED


def test_a_fall_ends_exactly_on_the_floor_and_does_not_kill():
    play = Play(PIT).settle()
    assert play.y == 9 - HALF_HEIGHT
    assert play.vy == 0.0
    assert play.step(IDLE) == NOTHING
    assert (play.on_ground, play.y) == (1, 9 - HALF_HEIGHT)


def test_a_tap_rises_a_tile_and_a_half():
    # One held step (0.52 - 0.0375), then 0.09 less each step:
    # 0.4825 + 0.3925 + 0.3025 + 0.2125 + 0.1225 + 0.0325 = 1.545.
    heights = heights_of(Play(HALL).settle(), [JUMP] + [IDLE] * 20)
    assert max(heights) == pytest.approx(1.545)


def test_a_long_jump_rises_more_than_three_tiles():
    # 0.0375 less each step: 0.52 * 13 - 0.0375 * (1 + ... + 13) = 6.76 - 3.4125 = 3.3475.
    heights = heights_of(Play(HALL).settle(), [JUMP] * 30)
    assert max(heights) == pytest.approx(3.3475)


def test_each_step_that_jump_is_held_rises_higher():
    tops = [
        max(heights_of(Play(HALL).settle(), [JUMP] * held + [IDLE] * 25)) for held in range(1, 14)
    ]
    assert tops == sorted(tops)
    assert len(set(tops)) == 13


def test_holding_jump_jumps_once():
    play = Play(HALL).settle()
    heights = heights_of(play, [JUMP] * 60)
    assert heights[-1] == 0.0
    assert sum(a == 0.0 and b > 0.0 for a, b in pairwise(heights)) == 0


def test_a_press_shortly_before_landing_is_remembered():
    play = Play(PIT)
    while play.y < 9 - HALF_HEIGHT - 3 * FALL_SPEED:
        play.step(IDLE)
    # Pressed in the air: nothing to jump off yet; kept for when there is.
    for _ in range(4):
        play.step(JUMP)
        if play.on_ground:
            break
    assert play.on_ground
    play.step(JUMP)
    assert play.vy < 0.0


def test_a_press_long_before_landing_is_forgotten():
    play = Play(PIT)
    play.step(JUMP)
    while not play.on_ground:
        play.step(JUMP)
    play.step(JUMP)
    assert play.vy == 0.0


def test_running_approaches_its_speed_and_friction_takes_it_away():
    play = Play(HALL).settle()
    play.step(RIGHT)
    assert play.vx == pytest.approx(0.0625)  # a quarter of the way from 0 to 0.25
    play.step(RIGHT)
    assert play.vx == pytest.approx(0.109375)  # and a quarter of what was left
    play.step(IDLE)
    assert play.vx == pytest.approx(0.08203125)  # three quarters of it
    play.step(LEFT)
    assert play.vx == pytest.approx(-0.0009765625)
    assert play.facing == -1


def test_ten_steps_of_running_cover_a_tile_and_three_quarters():
    play = Play(HALL).settle()
    play.step(*[RIGHT] * 10)
    # The sum of 0.25 * (1 - 0.75**k) over ten steps: 2.5 - 0.25 * 3 * (1 - 0.75**10).
    assert play.x - 1.5 == pytest.approx(2.5 - 0.75 * (1 - 0.75**10))


def test_in_the_air_steering_is_weaker_and_idling_hardly_brakes():
    play = Play(PIT)
    play.step(RIGHT)
    assert play.vx == pytest.approx(0.025)
    play.step(IDLE)
    assert play.vx == pytest.approx(0.0245)


def test_a_jump_still_counts_shortly_after_the_edge():
    text = "#######\n#.....#\n#.....#\n#@....#\n##....#\n##....#\n##..SD#\n#######"
    for late, jumps in ((1, True), (2, True), (3, False)):
        play = Play(text).settle()
        while play.on_ground:
            play.step(RIGHT)
        # This step has left the ground already; the jump comes `late` steps after standing.
        play.step(*[RIGHT] * (late - 1))
        play.step(JUMP)
        assert (play.vy < 0.0) == jumps, late


def test_walls_stop_and_are_felt_while_pushed():
    play = Play(HALL).settle()
    play.step(*[LEFT] * 5)
    assert play.x == 1 + HALF_WIDTH
    assert (play.wall, play.vx) == (-1, 0.0)
    play.step(IDLE)
    assert play.wall == 0
    play.step(*[RIGHT] * 100)
    assert play.x == 13 - HALF_WIDTH
    assert play.wall == 1


def test_pushing_against_a_wall_slows_the_fall():
    play = Play(PIT)
    play.step(*[LEFT] * 6)
    assert play.wall == -1
    assert play.vy == SLIDE_SPEED
    play.step(*[IDLE] * 4)
    assert play.vy > SLIDE_SPEED


def test_a_wall_jump_goes_up_and_away():
    play = Play(PIT)
    play.step(*[LEFT] * 30)
    height = play.y
    play.step(JUMP_LEFT)
    # Pushed off at the running speed; 0.45 upwards, less one held step of gravity.
    assert play.vx == RUN_SPEED
    assert play.vy == pytest.approx(-0.4125)
    play.step(*[JUMP_LEFT] * 9)
    assert height - play.y > 2.0


def test_one_wall_can_be_climbed_by_jumping_off_and_coming_back():
    play = Play("#......\n" * 20 + "#@....SD").settle()
    play.step(*[JUMP_LEFT] * 8)
    heights = []
    for _ in range(4):
        while not play.wall:
            play.step(JUMP_LEFT)
        heights.append(play.y)
        play.step(LEFT)
        play.step(JUMP_LEFT)
    # Away and back takes 17 steps, and leaves the runner about two tiles higher.
    assert all(1.5 < below - above < 2.5 for below, above in pairwise(heights))


def test_a_ceiling_ends_the_rise():
    play = Play("#####\n#...#\n#@SD#\n#####").settle()
    # 2.625 - 0.4825 - 0.445 = 1.6975; the third step would lead into the ceiling.
    play.step(JUMP, JUMP)
    assert play.y == pytest.approx(1.6975)
    play.step(JUMP)
    assert (play.y, play.vy, play.rising) == (1 + HALF_HEIGHT, 0.0, 0)


def test_a_platform_lets_pass_from_below_and_holds_from_above():
    play = Play("#####\n#...#\n#...#\n#---#\n#...#\n#@SD#\n#####").settle()
    play.step(*[JUMP] * 10)
    play.settle()
    assert play.y == 3 - HALF_HEIGHT


def test_a_platform_does_not_stop_sideways():
    play = Play("######\n#.--.#\n#@--S#\n#####D\n######").settle()
    play.step(*[RIGHT] * 30)
    assert play.x > 4.0


def test_a_mine_kills_whoever_walks_into_it():
    play = Play("#######\n#.....#\n#@.*SD#\n#######").settle()
    events = [play.step(RIGHT) for _ in range(12)]
    assert DIED in events
    # The mine's core reaches 0.21875 from its centre at 3.5, and the runner 0.3125 from its own.
    first = events.index(DIED)
    again = Play("#######\n#.....#\n#@.*SD#\n#######").settle()
    again.step(*[RIGHT] * first)
    assert again.x <= 3.5 - 0.53125
    again.step(RIGHT)
    assert again.x > 3.5 - 0.53125


def test_a_mine_overhead_does_not_kill():
    play = Play("#######\n#..*..#\n#@..SD#\n#######").settle()
    events = [play.step(RIGHT) for _ in range(20)]
    assert DIED not in events
    assert SUCCEEDED in events


def test_a_jump_clears_a_mine():
    play = Play("########\n#......#\n#......#\n#......#\n#@.*.SD#\n########").settle()
    events = [play.step(action) for action in [RIGHT] * 2 + [JUMP_RIGHT] * 6 + [RIGHT] * 30]
    assert DIED not in events
    assert SUCCEEDED in events


def test_a_closed_door_does_nothing_and_the_switch_opens_it():
    play = Play("########\n#......#\n#D@...S#\n########").settle()
    assert {play.step(LEFT) for _ in range(10)} == {NOTHING}
    assert play.switch_touched == 0
    while not play.switch_touched:
        assert play.step(RIGHT) == NOTHING
    # The switch is touched when the boxes overlap: 0.3125 + 0.375 from its centre.
    assert play.x > 6.5 - 0.6875
    events = [play.step(LEFT) for _ in range(30)]
    assert events.index(SUCCEEDED) > 10


def test_switch_and_door_side_by_side_may_be_reached_in_one_step():
    play = Play("#####\n#.@.#\n#.S.#\n#.D.#\n#####")
    events = [play.step(IDLE) for _ in range(8)]
    assert SUCCEEDED in events


def test_the_map_ends_in_walls_even_where_the_text_has_none():
    play = Play("....\n.@..\nS..D")
    for action in [LEFT] * 20 + [JUMP_LEFT] * 20 + [JUMP_RIGHT, RIGHT] * 30:
        play.step(action)
        assert not play.is_in_a_wall()


def test_steps_are_counted_and_begin_clears_everything():
    play = Play(HALL)
    fresh = play.runner.tobytes()
    play.step(*[JUMP_RIGHT, RIGHT] * 30)
    assert play.steps == 60
    play = Play(HALL)
    assert play.runner.tobytes() == fresh


def assert_sane(play):
    assert all(math.isfinite(value) for value in (play.x, play.y, play.vx, play.vy))
    assert not play.is_in_a_wall(), (play.x, play.y)
    assert abs(play.vx) <= RUN_SPEED
    assert -JUMP_SPEED <= play.vy <= FALL_SPEED


@pytest.mark.parametrize("stage", list(GENERATORS))
def test_nobody_leaves_a_generated_map_or_enters_a_wall(stage):
    for generator in GENERATORS[stage]:
        play = Play(generate(stage, 5, generator))
        rng = np.random.default_rng(1)
        for _ in range(120):
            action = int(rng.integers(6))
            for _ in range(int(rng.integers(1, 12))):
                play.step(action)
                assert_sane(play)


@settings(max_examples=60, deadline=None)
@given(
    tiles=st.lists(st.text("..#-*", min_size=8, max_size=8), min_size=2, max_size=8),
    actions=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 10)), max_size=25),
)
def test_nobody_leaves_any_map_or_enters_a_wall(tiles, actions):
    play = Play(Level.parse("\n".join([*tiles, ".@.S..D."])))
    for action, repeat in actions:
        for _ in range(repeat):
            before = play.x, play.y
            play.step(action)
            assert_sane(play)
            # Less than a tile per step: nothing can be passed through.
            assert abs(play.x - before[0]) <= RUN_SPEED
            assert abs(play.y - before[1]) <= JUMP_SPEED
