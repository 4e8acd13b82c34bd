from typing import Any

import numpy as np
import pytest

from games.hockey.hockey_play import Floats, outline, played
from stepladder.games.hockey.rink import (
    GOAL_X,
    GOAL_Y,
    PLAYER_ONE,
    PLAYER_TWO,
    POST_Y,
    PUCK,
    PUCK_INERTIA,
    PUCK_MASS,
    PUCK_RADIUS,
    WALL_X,
    WALL_Y,
)
from stepladder.games.hockey.rules import reset_world
from stepladder.games.hockey.task import DEFENSE_SPEED, TaskRecord
from stepladder.games.hockey.world import (
    NORMAL,
    TRAIN_DEFENSE,
    TRAIN_SHOOTING,
    HockeyWorld,
)
from stepladder.records import Records

MODES = [NORMAL, TRAIN_SHOOTING, TRAIN_DEFENSE]
NUM_WORLDS = 400
NUM_STEPS = 200


def begun(mode: int, *, keep_mode: int = 1, count: int = NUM_WORLDS) -> Records[HockeyWorld]:
    worlds = HockeyWorld.zeros(count)
    dice = np.random.default_rng(mode).integers(2**63, size=count).astype(np.uint64)
    task: Any = TaskRecord.zeros()[0]
    task["mode"], task["keep_mode"] = mode, keep_mode
    task["puck_speed"] = DEFENSE_SPEED if mode == TRAIN_DEFENSE else 12.0
    for index, world in enumerate(worlds):
        reset_world(world, task, 1.0 - 2.0 * (index % 2), dice, index)
    return worlds


def random_controls(kind: str, num_steps: int = NUM_STEPS, count: int = NUM_WORLDS) -> Floats:
    rng = np.random.default_rng(11)
    if kind == "noise":
        return rng.uniform(-1, 1, (num_steps, count, 8))
    # Full force, kept for twenty steps at a time.
    signs = rng.choice([-1.0, 1.0], (-(-num_steps // 20), count, 8))
    return np.repeat(signs, 20, axis=0)[:num_steps]


def assert_inside(track: Floats) -> None:
    """All outlines of rackets are inside the walls, and the puck too unless it is in a goal."""
    points = np.abs(outline(track))
    x, y = points[..., 0], points[..., 1]
    assert y.max() < WALL_Y
    # Beyond the inner faces there is only the mouth, whose sides are slanted.
    mouth_y = POST_Y - (x - WALL_X) * (POST_Y - GOAL_Y) / (4.25 - WALL_X)
    assert np.all((x < WALL_X) | ((y < mouth_y) & (x < GOAL_X)))
    x, y = np.abs(track[:, :, PUCK, 0]), np.abs(track[:, :, PUCK, 1])
    assert y.max() < WALL_Y - PUCK_RADIUS + 0.01
    assert np.all((x < WALL_X - PUCK_RADIUS + 0.01) | (y < POST_Y))


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["noise", "full force"])
@pytest.mark.parametrize("chase", [0.0, 2.0])
def test_random_play_stays_finite_and_inside_the_rink(mode: int, kind: str, chase: float) -> None:
    worlds = begun(mode, keep_mode=int(kind == "noise"))
    track = played(worlds, random_controls(kind), chase)
    assert np.isfinite(track).all()
    # Behind the goal's box only after the goal: leave out a world once its game is over.
    ended = np.abs(track[:, :, PUCK, 0]) > GOAL_X - PUCK_RADIUS - 0.01
    track[ended, PUCK, :2] = 0.0
    assert_inside(track)


@pytest.mark.slow
def test_a_million_random_steps_bring_no_nan() -> None:
    rng = np.random.default_rng(5)
    num_steps, part = 0, 0
    while num_steps < 1_000_000:
        worlds = begun(MODES[part % 3], count=1000)
        track = played(worlds, rng.uniform(-1, 1, (200, 1000, 8)), chase=0.5 * (part % 4))
        assert np.isfinite(track).all()
        num_steps, part = num_steps + int(worlds["steps"].sum()), part + 1


def test_walls_alone_never_add_energy_to_the_puck() -> None:
    worlds = begun(NORMAL)
    rng = np.random.default_rng(3)
    bodies = worlds["bodies"]
    bodies["x"][:, PLAYER_ONE], bodies["x"][:, PLAYER_TWO] = -20.0, 20.0
    bodies["vx"][:, PUCK] = rng.uniform(-60, 60, NUM_WORLDS)
    bodies["vy"][:, PUCK] = rng.uniform(-60, 60, NUM_WORLDS)
    bodies["spin"][:, PUCK] = rng.uniform(-78, 78, NUM_WORLDS)
    puck = played(worlds, np.zeros((NUM_STEPS, NUM_WORLDS, 8)))[:, :, PUCK]
    energy = PUCK_MASS * (puck[..., 3] ** 2 + puck[..., 4] ** 2) + PUCK_INERTIA * puck[..., 5] ** 2
    assert np.all(energy[1:] <= energy[:-1] * (1 + 1e-12))
    assert energy[-1].mean() < 0.5 * energy[0].mean()


def test_rackets_and_puck_do_not_gain_speed_without_controls() -> None:
    worlds = begun(TRAIN_SHOOTING, keep_mode=0)
    rng = np.random.default_rng(4)
    worlds["bodies"]["vx"][:, PUCK] = rng.uniform(-20, 20, NUM_WORLDS)
    worlds["bodies"]["vy"][:, PUCK] = rng.uniform(-20, 20, NUM_WORLDS)
    start = np.hypot(worlds["bodies"]["vx"], worlds["bodies"]["vy"])[:, PUCK]
    track = played(worlds, np.zeros((NUM_STEPS, NUM_WORLDS, 8)))
    speed = np.hypot(track[..., 3], track[..., 4])
    assert np.all(speed.max(axis=(0, 2)) <= start + 1e-9)


def mirrored(worlds: Records[HockeyWorld]) -> Records[HockeyWorld]:
    """Return the point mirror of worlds, with the players' places exchanged."""
    turned = worlds.copy()
    turned["bodies"] = worlds["bodies"][:, [PUCK, PLAYER_TWO, PLAYER_ONE, 3]]
    for field in ("x", "y", "vx", "vy", "facing_x", "facing_y"):
        turned["bodies"][field][:, :3] *= -1.0
    turned["bodies"]["facing_x"][:, PUCK], turned["bodies"]["facing_y"][:, PUCK] = 1.0, 0.0
    turned["launch_x"], turned["launch_y"] = -worlds["launch_x"], -worlds["launch_y"]
    return turned


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_mirrored_game_takes_the_mirrored_course(mode: int) -> None:
    worlds, num_steps = begun(mode), 60
    controls = random_controls("full force", num_steps)
    other_way = mirrored(worlds)
    track = played(worlds, controls, 1.0)
    turned = played(other_way, controls[:, :, [4, 5, 6, 7, 0, 1, 2, 3]], 1.0)[
        :, :, [PUCK, PLAYER_TWO, PLAYER_ONE]
    ]
    turned[..., [0, 1, 3, 4]] *= -1.0
    off = np.abs(track - turned).max(axis=(0, 2, 3))
    # Where several contacts meet, the order in which they are solved is not mirrored.
    assert np.mean(off < 1e-9) > 0.9
    assert np.array_equal(worlds["winner"][off < 1e-9], -other_way["winner"][off < 1e-9])


def test_a_world_plays_the_same_whatever_is_beside_it() -> None:
    worlds = begun(NORMAL, count=8)
    alone = worlds[5:6].copy()
    controls = random_controls("noise", 100, 8)
    together = played(worlds, controls, 1.0)
    single = played(alone, controls[:, 5:6], 1.0)
    assert np.array_equal(together[:, 5:6], single)
