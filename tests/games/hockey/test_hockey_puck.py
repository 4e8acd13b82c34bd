import math

import numpy as np
import pytest

from games.hockey.hockey_play import Rink
from stepladder.games.hockey.rink import (
    PLAYER_ONE,
    PLAYER_TWO,
    PUCK,
    PUCK_INERTIA,
    PUCK_MASS,
    PUCK_RADIUS,
)

# The centre of a puck that touches a wall, and how near it may come before it is pushed away.
TOUCH_Y, TOUCH_X, SLACK = 10 / 3 - PUCK_RADIUS - 0.01, 47 / 12 - PUCK_RADIUS - 0.01, 0.0163


def close(value: float, expected: float, tolerance: float = 1e-9) -> bool:
    return value == pytest.approx(expected, abs=tolerance)


def test_masses_are_the_originals() -> None:
    assert close(PUCK_MASS, 1.0323623, 1e-6)
    assert close(PUCK_INERTIA, 0.0242318, 1e-7)


@pytest.mark.parametrize(("speed", "factor"), [(10.0, 0.999), (24.9, 0.999), (25.1, 0.8)])
def test_a_fast_puck_is_braked_hard(speed: float, factor: float) -> None:
    rink = Rink()
    rink.place(PUCK, 0.0, 0.0, vx=0.6 * speed, vy=0.8 * speed, spin=3.0)
    rink.step()
    assert close(rink[PUCK]["vx"], 0.6 * speed * factor)
    assert close(rink[PUCK]["y"], 0.02 * 0.8 * speed * factor)
    assert rink[PUCK]["spin"] == 3.0


def test_a_puck_returns_from_a_wall_with_95_percent_of_its_speed() -> None:
    rink = Rink()
    rink.place(PUCK, 0.0, 3.0, vy=10.0)
    rink.step()
    assert close(rink[PUCK]["vy"], -0.95 * 10.0 * 0.999)
    # It is stopped 0.015 m inside its skin, pushed 0.0075 and 0.001875 m back, and flies on.
    travelled = TOUCH_Y + 0.015 - 3.0
    left_s = 0.02 - travelled / 9.99
    assert close(rink[PUCK]["y"], TOUCH_Y + 0.005625 - 0.95 * 9.99 * left_s, 1e-6)


def test_a_slow_puck_does_not_bounce() -> None:
    rink = Rink()
    rink.place(PUCK, 0.0, TOUCH_Y - 0.005, vy=0.9)
    rink.step(times=3)
    assert close(rink[PUCK]["vy"], 0.0)


def test_friction_at_a_wall_slows_the_puck_along_it_and_makes_it_spin() -> None:
    rink = Rink()
    rink.place(PUCK, 0.0, 3.0, vx=12.0, vy=10.0)
    rink.step()
    change = 0.1 * 1.95 * 9.99
    assert close(rink[PUCK]["vx"], 12.0 * 0.999 - change)
    assert rink[PUCK]["spin"] == pytest.approx(
        PUCK_MASS * change * PUCK_RADIUS / PUCK_INERTIA, rel=0.02
    )


def test_a_grazing_puck_rolls_off_without_slipping() -> None:
    rink = Rink()
    rink.place(PUCK, 0.0, 3.0, vx=0.5, vy=15.0)
    rink.step()
    assert rink[PUCK]["vx"] == pytest.approx(0.4995 * 2 / 3, rel=0.03)
    assert rink[PUCK]["spin"] == pytest.approx(rink[PUCK]["vx"] / PUCK_RADIUS, rel=0.03)


def test_hidden_spin_changes_how_the_puck_leaves_a_wall() -> None:
    leaving = []
    for spin in (-60.0, 0.0, 60.0):
        rink = Rink()
        rink.place(PUCK, 0.0, 3.0, vx=2.0, vy=15.0, spin=spin)
        rink.step()
        leaving.append(float(rink[PUCK]["vx"]))
    assert leaving[0] < leaving[1] - 0.5
    assert leaving[1] < leaving[2] - 0.5


def test_spin_is_limited_to_a_quarter_turn_a_step() -> None:
    rink = Rink()
    rink.place(PUCK, 0.0, 0.0, spin=500.0)
    rink.step()
    assert close(rink[PUCK]["spin"], math.pi / 2 / 0.02)


@pytest.mark.parametrize("angle", np.linspace(0.05, 2 * math.pi, 37))
def test_the_fastest_puck_stays_inside_the_rink(angle: float) -> None:
    rink = Rink()
    rink.place(PLAYER_ONE, -2.9, 2.5)
    rink.place(PLAYER_TWO, 2.9, -2.5)
    rink.place(PUCK, 0.3, 2.0, vx=95 * math.cos(angle), vy=95 * math.sin(angle), spin=70.0)
    for _ in range(60):
        rink.step()
        if rink.world["winner"]:
            return
        assert abs(rink[PUCK]["y"]) <= TOUCH_Y + SLACK
        if abs(rink[PUCK]["y"]) > 1.4:
            assert abs(rink[PUCK]["x"]) <= TOUCH_X + SLACK


def test_a_puck_between_two_walls_turns_back_from_both_in_one_step() -> None:
    rink = Rink()
    rink.place(PUCK, 3.6, 3.0, vx=24.0, vy=20.0)
    rink.step()
    assert rink[PUCK]["vx"] < 0.0
    assert rink[PUCK]["vy"] < 0.0


def test_a_racket_drives_a_resting_puck_ahead_of_itself() -> None:
    rink = Rink(keep_mode=False)
    rink.place(PLAYER_ONE, -2.0, 0.0, vx=5.0)
    rink.place(PUCK, -2.0 + 0.1 + PUCK_RADIUS + 0.009, 0.0)
    rink.step()
    racket, approach = 58.0, 5.0 * 0.9
    # Two bodies and a restitution of 0.95, head on.
    expected = 1.95 * approach * racket / (racket + PUCK_MASS)
    assert close(rink[PUCK]["vx"], expected, 1e-6)
    assert close(rink[PLAYER_ONE]["vx"], approach - expected * PUCK_MASS / racket, 1e-6)


def test_a_puck_found_deep_in_a_racket_leaves_by_the_nearest_face() -> None:
    rink = Rink(keep_mode=False)
    rink.place(PLAYER_ONE, -2.0, 0.0)
    rink.place(PUCK, -2.0 - 0.25, 0.0, vx=-20.0)
    rink.step()
    assert rink[PUCK]["vx"] == pytest.approx(-19.98, abs=0.1)
    assert rink[PUCK]["x"] < -2.6


def test_a_puck_squeezed_against_a_wall_is_neither_lost_nor_thrown() -> None:
    rink = Rink(keep_mode=False)
    rink.place(PLAYER_ONE, -2.0, 2.3)
    rink.place(PUCK, -1.9, TOUCH_Y)
    for _ in range(100):
        rink.step(one=(0.0, 1.0, 0.0, 0.0))
        assert abs(rink[PUCK]["y"]) <= TOUCH_Y + SLACK
        assert np.hypot(rink[PUCK]["vx"], rink[PUCK]["vy"]) < 20.0
