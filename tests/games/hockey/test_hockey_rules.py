from typing import Any

import numpy as np
import pytest

from games.hockey.hockey_play import Rink
from stepladder.errors import ConfigError
from stepladder.games.hockey.actions import control_table, num_actions
from stepladder.games.hockey.opponents import STRONG_GAIN, WEAK_GAIN, act
from stepladder.games.hockey.rink import PLAYER_ONE, PLAYER_TWO, PUCK
from stepladder.games.hockey.rules import (
    MAX_START_X,
    closeness,
    direction,
    reset_world,
    reward,
    touch,
    winner,
)
from stepladder.games.hockey.task import DEFENSE_SPEED, TaskRecord
from stepladder.games.hockey.world import NORMAL, TRAIN_DEFENSE, TRAIN_SHOOTING, HockeyWorld


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        (3.8560, 0.0, 0),
        (3.8571, 0.0, 1),
        (-3.8571, 1.2, -1),
        (3.95, 1.45, 0),
        (4.1, 1.45, 1),
        (4.3, 0.0, 1),
        (-5.2, 1.9, -1),
    ],
)
def test_a_goal_counts_when_a_step_begins_with_the_puck_in_it(
    x: float, y: float, expected: int
) -> None:
    rink = Rink(keep_mode=False)
    rink.place(PLAYER_ONE, -1.0, -2.5)
    rink.place(PLAYER_TWO, 1.0, -2.5)
    rink.place(PUCK, x, y)
    rink.step()
    assert rink.world["winner"] == expected
    assert rink.judge() == (expected != 0, False)
    assert reward(rink.world, PLAYER_ONE) == pytest.approx(
        10 * expected + closeness(rink.world, PLAYER_ONE)
    )
    assert winner(rink.world, PLAYER_TWO) == -expected


def test_the_step_that_brings_the_puck_into_the_goal_does_not_end_the_game() -> None:
    rink = Rink()
    rink.place(PUCK, 3.8, 0.9, vx=10.0)
    rink.step()
    assert rink[PUCK]["x"] > 3.9
    assert rink.judge() == (False, False)
    rink.step()
    assert rink.judge() == (True, False)
    assert reward(rink.world, PLAYER_TWO) == pytest.approx(
        -10.0 + closeness(rink.world, PLAYER_TWO)
    )


@pytest.mark.parametrize(
    ("mode", "limit"), [(NORMAL, 251), (TRAIN_SHOOTING, 81), (TRAIN_DEFENSE, 81)]
)
def test_the_time_limit_truncates(mode: int, limit: int) -> None:
    rink = Rink(mode=mode)
    rink.step(times=limit - 1)
    assert rink.judge() == (False, False)
    rink.step()
    assert rink.judge() == (False, True)


def test_a_goal_in_the_last_step_terminates() -> None:
    rink = Rink()
    rink.step(times=250)
    rink.place(PUCK, 4.0, 0.0)
    rink.step()
    assert rink.judge() == (True, False)


@pytest.mark.parametrize(("mode", "per_metre"), [(NORMAL, 0.0576), (TRAIN_DEFENSE, 0.18)])
def test_closeness_costs_distance_to_a_puck_in_the_own_half(mode: int, per_metre: float) -> None:
    rink = Rink(mode=mode)
    rink.place(PUCK, -1.0, 1.5)
    assert closeness(rink.world, PLAYER_ONE) == pytest.approx(-2.5 * per_metre)
    assert closeness(rink.world, PLAYER_TWO) == 0.0
    rink.place(PUCK, -1.0, 1.5, vx=0.1)
    assert closeness(rink.world, PLAYER_ONE) == 0.0
    rink.place(PUCK, 1.0, -1.5, vx=0.1)
    assert closeness(rink.world, PLAYER_TWO) == pytest.approx(-2.5 * per_metre)
    assert closeness(rink.world, PLAYER_ONE) == 0.0


def test_direction_and_touch_are_scaled_as_in_the_original() -> None:
    rink = Rink()
    rink.place(PUCK, 0.0, 0.0, vx=12.5)
    assert direction(rink.world, PLAYER_ONE) == pytest.approx(12.5 / 6250)
    assert direction(rink.world, PLAYER_TWO) == pytest.approx(-12.5 / 6250)
    rink.world["mode"] = TRAIN_SHOOTING
    assert direction(rink.world, PLAYER_ONE) == pytest.approx(12.5 / 2000)
    rink[PLAYER_ONE]["hold"], rink[PLAYER_TWO]["hold"] = 15, 14
    assert (touch(rink.world, PLAYER_ONE), touch(rink.world, PLAYER_TWO)) == (1.0, 0.0)


def test_player_two_sees_the_point_mirror_with_angles_unchanged() -> None:
    rink = Rink()
    rink.place(PLAYER_ONE, -2.0, 0.5, 1.0, 2.0, angle=0.3, spin=4.0)
    rink.place(PLAYER_TWO, 1.0, -0.75, 3.0, -1.0, angle=-0.2, spin=-5.0)
    rink.place(PUCK, 0.25, 1.5, -6.0, 7.0)
    rink[PLAYER_ONE]["hold"], rink[PLAYER_TWO]["hold"] = 3, 9
    one = [-2, 0.5, 0.3, 1, 2, 4, 1, -0.75, -0.2, 3, -1, -5, 0.25, 1.5, -6, 7, 3, 9]
    two = [-1, 0.75, -0.2, -3, 1, -5, 2, -0.5, 0.3, -1, -2, 4, -0.25, -1.5, 6, -7, 9, 3]
    assert np.array_equal(rink.view(PLAYER_ONE), np.array(one, np.float32))
    assert np.array_equal(rink.view(PLAYER_TWO), np.array(two, np.float32))


def test_the_eight_actions_are_one_control_each() -> None:
    assert control_table(1).tolist() == [
        [0, 0, 0, 0],
        [-1, 0, 0, 0],
        [1, 0, 0, 0],
        [0, -1, 0, 0],
        [0, 1, 0, 0],
        [0, 0, -1, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
    ]


def test_finer_actions_have_strengths() -> None:
    assert num_actions(3) == 14
    assert num_actions(5) == 26
    table = control_table(3).tolist()
    assert len(table) == 14
    assert table[:5] == [
        [0, 0, 0, 0],
        [-0.5, 0, 0, 0],
        [-1, 0, 0, 0],
        [0.5, 0, 0, 0],
        [1, 0, 0, 0],
    ]
    assert table[-3:] == [[0, 0, 0.5, 0], [0, 0, 1, 0], [0, 0, 0, 1]]


@pytest.mark.parametrize("fineness", [2, 0, -1])
def test_a_fineness_without_a_table_is_refused(fineness: int) -> None:
    with pytest.raises(ConfigError, match=f"or from 3 to 1000; got {fineness}"):
        num_actions(fineness)


def controls_of(rink: Rink, player: int, gain: float) -> list[float]:
    controls = np.zeros(8)
    act(rink.world, player, gain, np.array([5], np.uint64), 0, controls)
    return controls[:4].tolist() if player == PLAYER_ONE else controls[4:].tolist()


def test_a_scripted_player_goes_for_a_puck_ahead_of_it() -> None:
    rink = Rink()
    rink.place(PUCK, -2.6, 0.2, vy=1.0)
    # Target: 0.2 m beyond the puck, and 0.1 * vy * distance to its side.
    target_y = 0.2 + 0.1 * np.hypot(0.4, 0.2)
    x, y, _, shoot = controls_of(rink, PLAYER_ONE, WEAK_GAIN)
    assert (x, y) == pytest.approx((0.5 * 0.6, 0.1 * target_y))
    x, y, _, _ = controls_of(rink, PLAYER_ONE, STRONG_GAIN)
    assert (x, y) == pytest.approx((1.0, 2.0 * target_y))
    assert shoot == 0.0


def test_a_scripted_player_returns_to_its_goal_otherwise() -> None:
    rink = Rink()
    rink.place(PUCK, 1.0, 1.0, vx=-1.0)
    assert controls_of(rink, PLAYER_ONE, WEAK_GAIN)[:2] == pytest.approx([0.5 * -0.5, 0.1 * 1.0])
    rink.place(PUCK, 1.0, 1.0, vx=0.6)
    assert controls_of(rink, PLAYER_ONE, WEAK_GAIN)[:2] == pytest.approx([0.5 * -0.5, 0.0])
    # Player two sees the same puck coming at it, from its own side.
    assert controls_of(rink, PLAYER_TWO, WEAK_GAIN)[:2] == pytest.approx([0.5 * -0.5, 0.1 * -1.0])


def test_a_scripted_player_brakes_before_its_target() -> None:
    rink = Rink()
    rink.place(PLAYER_ONE, -3.45, 0.0, vx=-1.0)
    rink.place(PUCK, 1.0, 0.0, vx=5.0)
    assert controls_of(rink, PLAYER_ONE, WEAK_GAIN)[0] == pytest.approx(0.5 * -0.05 + 0.5)


def test_a_scripted_player_swings_its_racket_and_shoots_late() -> None:
    rink = Rink()
    rink.world["phase_two"] = 1.2
    swing = controls_of(rink, PLAYER_TWO, WEAK_GAIN)[2]
    phase = float(rink.world["phase_two"])
    assert 1.2 <= phase < 1.4
    assert swing == pytest.approx(0.25 * np.pi / 3 * np.sin(phase))
    shots = []
    for hold in (0, 2, 6, 7, 15):
        rink[PLAYER_TWO]["hold"] = hold
        shots.append(controls_of(rink, PLAYER_TWO, STRONG_GAIN)[3])
    assert shots == [0.0, 1.0, 1.0, 0.0, 0.0]


def begun(mode: int, side: float = -1.0, speed: float = 0.0, count: int = 400) -> np.ndarray:
    worlds = HockeyWorld.zeros(count)
    # Whatever was there before must not show.
    worlds["bodies"]["hold"], worlds["bodies"]["spin"], worlds["steps"] = 9, 3.0, 70
    dice = np.random.default_rng(mode).integers(2**63, size=count).astype(np.uint64)
    task: Any = TaskRecord.zeros()[0]
    task["mode"], task["keep_mode"], task["puck_speed"] = mode, 1, speed
    for index, world in enumerate(worlds):
        reset_world(world, task, side, dice, index)
    return worlds


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_a_normal_game_begins_in_the_half_of_who_starts(side: float) -> None:
    bodies = begun(NORMAL, side)["bodies"]
    assert np.all((side * bodies["x"][:, PUCK] >= 1.0) & (side * bodies["x"][:, PUCK] < 2.0))
    assert np.abs(bodies["y"][:, PUCK]).max() <= 1.0
    assert np.ptp(bodies["y"][:, PUCK]) > 1.8
    assert np.all(bodies["x"][:, [PLAYER_ONE, PLAYER_TWO]] == [-3.0, 3.0])
    for field in ("vx", "vy", "spin", "hold", "touching", "angle"):
        assert not bodies[field].any()


def test_shooting_begins_with_player_two_anywhere_in_the_rink() -> None:
    worlds = begun(TRAIN_SHOOTING)
    two, puck = worlds["bodies"][:, PLAYER_TWO], worlds["bodies"][:, PUCK]
    assert two["x"].min() < -0.2
    assert two["x"].max() == MAX_START_X
    assert 0.2 < np.mean(two["x"] == MAX_START_X) < 0.28
    assert np.abs(two["y"]).max() <= 2.0
    assert np.all((puck["x"] <= -1.0) & (puck["x"] > -2.0))
    assert np.all(worlds["steps"] == 0)


def test_defense_shoots_at_player_ones_goal_in_the_first_step() -> None:
    worlds = begun(TRAIN_DEFENSE, speed=DEFENSE_SPEED)
    puck = worlds["bodies"][:, PUCK]
    assert np.all(puck["vx"] == 0.0)
    assert np.all((puck["x"] >= 0.0) & (puck["x"] <= 10 / 3))
    assert 3.1 < np.abs(puck["y"]).max() <= 3.2
    assert np.allclose(np.hypot(worlds["launch_x"], worlds["launch_y"]), 60.0)
    arrival = puck["y"] + worlds["launch_y"] / worlds["launch_x"] * (-5.0 - puck["x"])
    assert np.abs(arrival).max() <= 0.75


def test_a_puck_speed_sets_it_moving_in_a_random_direction() -> None:
    puck = begun(NORMAL, speed=7.0)["bodies"][:, PUCK]
    assert np.allclose(np.hypot(puck["vx"], puck["vy"]), 7.0)
    assert puck["vx"].min() < -6.0
    assert puck["vy"].max() > 6.0


def test_no_random_number_is_drawn_for_a_puck_at_rest() -> None:
    still, moving = begun(NORMAL), begun(NORMAL, speed=7.0)
    assert np.array_equal(still["bodies"]["y"], moving["bodies"]["y"])
    assert not np.array_equal(still["phase_one"], moving["phase_one"])
