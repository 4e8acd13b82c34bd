import math

import numpy as np
import pytest

from games.hockey.hockey_play import STILL, Rink
from stepladder.games.hockey.rink import PLAYER_ONE, PLAYER_TWO, PUCK, PUCK_RADIUS
from stepladder.games.hockey.world import CAUGHT

IN_FRONT = 0.1 + PUCK_RADIUS
SHOOT = (0.0, 0.0, 0.0, 1.0)


def holding(angle: float = 0.0, player: int = PLAYER_ONE, hold: int = CAUGHT) -> Rink:
    """Let a racket hold the puck; it will show one less after a step."""
    rink = Rink()
    side = 1.0 if player == PLAYER_ONE else -1.0
    rink.place(player, -2.0 * side, 0.0, angle=angle)
    rink.place(PUCK, -2.0 * side, 0.0)
    rink[player]["hold"], rink[player]["touching"] = hold, 1
    return rink


def test_a_puck_that_touches_a_racket_is_caught() -> None:
    rink = Rink()
    rink.place(PUCK, -3.0 + IN_FRONT, 0.0, vx=-1.0)
    rink.step()
    assert rink[PLAYER_ONE]["hold"] == CAUGHT
    assert rink[PLAYER_TWO]["hold"] == 0
    rink.step()
    assert rink[PLAYER_ONE]["hold"] == CAUGHT - 1


@pytest.mark.parametrize(("vx", "caught"), [(0.09, True), (0.11, False)])
def test_a_leaving_puck_is_not_caught(vx: float, caught: bool) -> None:
    rink = Rink()
    rink.place(PUCK, -3.0 + IN_FRONT, 0.0, vx=vx)
    rink.step()
    assert bool(rink[PLAYER_ONE]["hold"]) == caught
    rink = Rink()
    rink.place(PUCK, 3.0 - IN_FRONT, 0.0, vx=-vx)
    rink.step()
    assert bool(rink[PLAYER_TWO]["hold"]) == caught


def test_a_contact_that_lasts_is_not_caught_again() -> None:
    rink = Rink()
    rink.place(PUCK, -3.0 + IN_FRONT, 0.0)
    rink[PLAYER_ONE]["touching"] = 1
    rink.step()
    assert rink[PLAYER_ONE]["hold"] == 0
    assert rink[PLAYER_ONE]["touching"] == 1


def test_nothing_is_caught_when_keep_mode_is_off() -> None:
    rink = Rink(keep_mode=False)
    rink.place(PUCK, -3.0 + IN_FRONT, 0.0, vx=-1.0)
    rink.step()
    assert rink[PLAYER_ONE]["hold"] == 0


@pytest.mark.parametrize("player", [PLAYER_ONE, PLAYER_TWO])
@pytest.mark.parametrize("angle", [-0.9, 0.0, 0.6])
def test_a_held_puck_is_seen_0_3144_ahead_of_its_racket(player: int, angle: float) -> None:
    rink = holding(angle, player)
    for _ in range(5):
        rink.step()
        ahead_x = rink[PUCK]["x"] - rink[player]["x"]
        ahead_y = rink[PUCK]["y"] - rink[player]["y"]
        assert math.hypot(ahead_x, ahead_y) == pytest.approx(0.3144, abs=5e-4)
        along = ahead_x * rink[player]["facing_x"] + ahead_y * rink[player]["facing_y"]
        assert along == pytest.approx(0.3144, abs=5e-4)


def test_a_hold_shows_15_down_to_2_and_then_fires_by_itself() -> None:
    rink = Rink()
    rink.place(PUCK, -3.0 + IN_FRONT, 0.0, vx=-1.0)
    seen = []
    for _ in range(15):
        rink.step()
        seen.append(int(rink[PLAYER_ONE]["hold"]))
    assert seen == [*range(15, 1, -1), 0]
    assert rink[PUCK]["vx"] == pytest.approx(59.94, abs=0.05)


def test_a_shot_from_a_still_racket_slows_to_below_25() -> None:
    rink = holding()
    rink.step(one=SHOOT)
    speeds = [float(rink[PUCK]["vx"])]
    assert rink[PUCK]["x"] - rink[PLAYER_ONE]["x"] == pytest.approx(1.2, abs=0.01)
    for _ in range(4):
        rink.place(PUCK, 0.0, 1.5, vx=speeds[-1])
        rink.step()
        speeds.append(float(rink[PUCK]["vx"]))
    assert np.allclose(speeds, [59.94, 47.95, 38.36, 30.69, 24.55], atol=0.01)


@pytest.mark.parametrize(("player", "side"), [(PLAYER_ONE, 1.0), (PLAYER_TWO, -1.0)])
def test_a_shot_flies_where_the_racket_looks_and_with_it(player: int, side: float) -> None:
    rink = holding(0.5, player)
    rink[player]["vy"] = 2.0
    controls = {"one": SHOOT} if player == PLAYER_ONE else {"two": SHOOT}
    rink.step(**controls)
    assert rink[PUCK]["vx"] == pytest.approx(side * 60 * math.cos(0.5) * 0.999, abs=0.3)
    assert rink[PUCK]["vy"] == pytest.approx((side * 60 * math.sin(0.5) + 2.0) * 0.999, abs=0.3)
    assert rink[player]["hold"] == 0


def test_half_a_shoot_control_is_none_and_shooting_without_the_puck_does_nothing() -> None:
    rink = holding()
    rink.step(one=(0.0, 0.0, 0.0, 0.5))
    assert rink[PLAYER_ONE]["hold"] == CAUGHT - 1
    rink = Rink()
    rink.place(PUCK, 0.0, 0.0)
    rink.step(one=SHOOT, two=SHOOT)
    assert rink[PUCK]["vx"] == 0.0


def test_when_both_hold_the_puck_player_two_has_it() -> None:
    rink = holding()
    rink[PLAYER_TWO]["hold"] = CAUGHT
    rink.step()
    assert rink[PLAYER_TWO]["x"] - rink[PUCK]["x"] == pytest.approx(0.3144, abs=5e-4)
    assert (int(rink[PLAYER_ONE]["hold"]), int(rink[PLAYER_TWO]["hold"])) == (14, 14)


def test_a_puck_launched_from_within_player_two_comes_back_to_it() -> None:
    rink = Rink(mode=2)
    rink.place(PLAYER_TWO, 1.0, 0.0)
    rink.place(PUCK, 1.0, 0.1)
    rink.world["launch_x"] = -60.0
    rink.step()
    assert rink[PLAYER_TWO]["hold"] == CAUGHT
    assert rink[PUCK]["x"] < 0.0
    rink.step(one=STILL, two=STILL)
    assert rink[PLAYER_TWO]["hold"] == CAUGHT - 1
    assert rink[PLAYER_TWO]["x"] - rink[PUCK]["x"] == pytest.approx(0.3144, abs=1e-3)
