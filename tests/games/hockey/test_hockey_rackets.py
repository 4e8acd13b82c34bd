import math

import numpy as np
import pytest

from games.hockey.hockey_play import Rink
from stepladder.games.hockey.rink import PLAYER_ONE, PLAYER_TWO, RACKET_CENTRE

# A full control is 6000 N on 58 kg for 0.02 s, a full torque 400 Nm on 3.709496 kg m2.
PUSH = 6000 / 58 * 0.02
TWIST = 400 / 3.709496 * 0.02
RETURN = 290 / 3.709496 * 0.02


def close(value: float, expected: float) -> bool:
    return value == pytest.approx(expected, abs=1e-9)


def test_a_full_push_from_rest_gains_two_metres_a_second_less_damping() -> None:
    rink = Rink()
    rink.step(one=(1.0, 0.5, 0.0, 0.0))
    assert close(rink[PLAYER_ONE]["vx"], PUSH * 0.9)
    assert close(rink[PLAYER_ONE]["vy"], PUSH * 0.5 * 0.9)
    assert close(rink[PLAYER_ONE]["x"], -3.0 + 0.02 * PUSH * 0.9)


def test_player_twos_controls_push_the_other_way_but_turn_the_same_way() -> None:
    rink = Rink()
    rink.step(one=(1.0, 1.0, 1.0, 0.0), two=(1.0, 1.0, 1.0, 0.0))
    assert close(rink[PLAYER_TWO]["vx"], -rink[PLAYER_ONE]["vx"])
    assert close(rink[PLAYER_TWO]["vy"], -rink[PLAYER_ONE]["vy"])
    assert close(rink[PLAYER_TWO]["angle"], rink[PLAYER_ONE]["angle"])
    assert rink[PLAYER_ONE]["angle"] > 0.0


def test_above_ten_metres_a_second_only_braking_forces_act() -> None:
    rink = Rink()
    rink.place(PLAYER_ONE, -3.0, 0.0, vx=10.0)
    rink.step(one=(1.0, 0.0, 0.0, 0.0))
    assert close(rink[PLAYER_ONE]["vx"], 10.0 * 0.6)
    rink.place(PLAYER_ONE, -3.0, 0.0, vx=10.0)
    rink.step(one=(-1.0, 0.0, 0.0, 0.0))
    assert close(rink[PLAYER_ONE]["vx"], (10.0 - PUSH) * 0.6)


@pytest.mark.parametrize(("vx", "expected"), [(2.0, -0.6 * 0.6 * 2.0), (-1.0, -0.6 * 1.4)])
def test_the_centre_zone_ignores_the_x_control_and_sends_rackets_back(
    vx: float, expected: float
) -> None:
    rink = Rink()
    rink.place(PLAYER_ONE, -0.4, 0.0, vx=vx)
    rink.step(one=(1.0, 1.0, 0.0, 0.0))
    assert close(rink[PLAYER_ONE]["vx"], expected)
    assert close(rink[PLAYER_ONE]["vy"], PUSH * 0.6)


def test_a_racket_at_rest_in_the_centre_zone_cannot_leave_it() -> None:
    rink = Rink()
    rink.place(PLAYER_ONE, -0.4, 0.0)
    rink.step(one=(-1.0, 0.0, 0.0, 0.0), times=50)
    assert close(rink[PLAYER_ONE]["x"], -0.4)


def test_a_racket_beyond_the_centre_line_stays_there() -> None:
    rink = Rink()
    rink.place(PLAYER_ONE, 0.2, 0.0, vx=-2.0)
    rink.step(one=(-1.0, 0.0, 0.0, 0.0))
    assert rink[PLAYER_ONE]["vx"] == 0.0


def test_pushing_against_the_fields_limits_stops_at_once_and_coasting_does_not() -> None:
    rink = Rink()
    rink.place(PLAYER_ONE, -3.52, 2.85, vx=-1.0, vy=1.0)
    rink.step(one=(-1.0, 0.1, 0.0, 0.0))
    assert rink[PLAYER_ONE]["vx"] == 0.0
    assert rink[PLAYER_ONE]["vy"] == 0.0
    rink.place(PLAYER_ONE, -3.0, 2.82, vy=1.0)
    rink.step()
    assert close(rink[PLAYER_ONE]["vy"], 0.9)
    rink.place(PLAYER_TWO, 3.52, -2.85, vx=1.0, vy=-1.0)
    rink.step(two=(-1.0, 1.0, 0.0, 0.0))
    assert rink[PLAYER_TWO]["vx"] == 0.0
    assert rink[PLAYER_TWO]["vy"] == 0.0


def test_a_torque_turns_and_damping_takes_four_percent() -> None:
    rink = Rink()
    rink.step(one=(0.0, 0.0, 0.5, 0.0))
    assert close(rink[PLAYER_ONE]["spin"], 0.5 * TWIST * 0.96)
    assert close(rink[PLAYER_ONE]["angle"], 0.02 * 0.5 * TWIST * 0.96)


@pytest.mark.parametrize(
    ("spin", "expected"),
    [
        (0.0, -1.1 * RETURN * 0.8),
        (1.0, (1.0 - 2.1 * RETURN) * 0.8),
        (-1.0, (-1 - 1.1 * RETURN) * 0.8),
    ],
)
def test_a_racket_turned_too_far_is_turned_back_whatever_the_control(
    spin: float, expected: float
) -> None:
    rink = Rink()
    rink.place(PLAYER_ONE, -2.0, 0.0, angle=1.1, spin=spin)
    rink.step(one=(0.0, 0.0, 1.0, 0.0))
    assert close(rink[PLAYER_ONE]["spin"], expected)


@pytest.mark.parametrize(("index", "side"), [(PLAYER_ONE, 1.0), (PLAYER_TWO, -1.0)])
def test_turning_moves_the_reported_position_about_the_centre_of_mass(
    index: int, side: float
) -> None:
    rink = Rink()
    rink.place(index, 2.0 * -side, 0.5, angle=0.3, spin=5.0)
    rink.step()
    before, after = 0.3, 0.3 + 0.02 * 5.0 * 0.96
    shift = side * RACKET_CENTRE
    assert close(rink[index]["angle"], after)
    assert close(rink[index]["x"], 2.0 * -side + shift * (math.cos(before) - math.cos(after)))
    assert close(rink[index]["y"], 0.5 + shift * (math.sin(before) - math.sin(after)))


def test_facing_and_angle_stay_together_over_a_whole_game_of_turning() -> None:
    rink = Rink()
    rink.step(one=(0.0, 0.0, 1.0, 0.0), times=125)
    rink.step(one=(0.0, 0.0, -0.7, 0.0), times=125)
    assert close(rink[PLAYER_ONE]["facing_x"], math.cos(rink[PLAYER_ONE]["angle"]))
    assert close(rink[PLAYER_ONE]["facing_y"], math.sin(rink[PLAYER_ONE]["angle"]))
    assert np.hypot(rink[PLAYER_ONE]["facing_x"], rink[PLAYER_ONE]["facing_y"]) == pytest.approx(
        1.0, abs=1e-12
    )


@pytest.mark.parametrize(("y", "stops_at"), [(2.0, -3.4767), (0.0, -3.6433)])
def test_walls_stop_a_racket_beside_the_goal_sooner_than_in_its_mouth(
    y: float, stops_at: float
) -> None:
    rink = Rink()
    rink.place(PLAYER_ONE, -3.3, y, vx=-6.0)
    rink.step(times=20)
    # Its back is 0.42 m behind; skins touch at a gap of 0.02 m, of which 0.015 m may overlap.
    assert stops_at - 0.016 <= rink[PLAYER_ONE]["x"] <= stops_at + 0.001
    assert abs(rink[PLAYER_ONE]["vx"]) < 1e-6


def test_an_untilted_racket_stops_at_the_top_wall() -> None:
    rink = Rink()
    rink.place(PLAYER_ONE, -2.0, 2.7, vy=8.0)
    rink.step(times=20)
    assert 2.9133 - 0.001 <= rink[PLAYER_ONE]["y"] <= 2.9133 + 0.016
    assert abs(rink[PLAYER_ONE]["angle"]) < 0.02


def test_rackets_do_not_pass_through_each_other() -> None:
    rink = Rink()
    rink.place(PLAYER_ONE, -0.3, 0.1, vx=8.0)
    rink.place(PLAYER_TWO, 0.3, -0.1, vx=-8.0)
    for _ in range(30):
        rink.step()
        assert rink[PLAYER_ONE]["x"] < rink[PLAYER_TWO]["x"]
