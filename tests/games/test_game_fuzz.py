"""A million random steps of each game: no NaN, nobody outside, all as declared."""

from typing import Any

import numpy as np
import pytest

from games.game_cases import SAME_STEP, make_batch, random_actions
from stepladder.games.hockey.rink import (
    CORNER_X,
    CORNER_Y,
    GOAL_X,
    NUM_CORNERS,
    PLAYER_ONE,
    PLAYER_TWO,
    POST_Y,
    PUCK,
    PUCK_RADIUS,
    RACKET,
    WALL_X,
    WALL_Y,
)
from stepladder.games.ledge.level import STAGES
from stepladder.games.ledge.physics import HALF_HEIGHT, HALF_WIDTH
from stepladder.games.ledge.tiles import WALL
from stepladder.games.ledge.world import MARGIN
from stepladder.tasks import Task

NUM_ENVS = 1000
NUM_STEPS = 1000
SLACK = 0.02
"""What touches a wall overlaps it a little."""

LARGEST_START_Y = 3.2


def assert_finite(value: Any, where: str) -> None:
    for part in value.values() if isinstance(value, dict) else [value]:
        assert np.isfinite(part).all(), where


def assert_contained(vec: Any, observations: Any, row: int) -> None:
    """Assert that what one env sees lies in the space that was declared."""
    if isinstance(observations, dict):
        one: Any = {key: part[row] for key, part in observations.items()}
    else:
        one = observations[row]
    assert vec.single_observation_space.contains(one)


# Hockey.


def hockey_tasks() -> list[Task]:
    """Return one task of each kind for every env, in turn."""
    kinds = [
        {"mode": mode, "opponent": opponent, "keep_mode": keep_mode, "puck_speed": speed}
        for mode in ("NORMAL", "TRAIN_SHOOTING", "TRAIN_DEFENSE")
        for opponent in ("weak", "strong", "none", "caller")
        for keep_mode in (True, False)
        for speed in (0.0, 15.0, 60.0)
    ]
    return [
        Task(f"kind {index % len(kinds)}", params=kinds[index % len(kinds)])
        for index in range(NUM_ENVS)
    ]


def racket_corners(bodies: Any) -> tuple[Any, Any]:
    """Return the corners of rackets; shape ``(rackets, corners)``."""
    count = int(NUM_CORNERS[RACKET])
    along, across = CORNER_X[RACKET, :count], CORNER_Y[RACKET, :count]
    cos, sin = bodies["facing_x"][:, None], bodies["facing_y"][:, None]
    x = bodies["x"][:, None] + cos * along - sin * across
    y = bodies["y"][:, None] + sin * along + cos * across
    return x, y


def assert_all_on_the_rink(worlds: Any) -> None:
    bodies = worlds["bodies"]
    puck = bodies[:, PUCK]
    in_goal = np.abs(puck["y"]) < POST_Y
    depth = np.where(in_goal, GOAL_X + 0.5, WALL_X - PUCK_RADIUS + SLACK)
    assert (np.abs(puck["x"]) <= depth).all()
    # As in the original, a shot to be defended may start a little inside the wall.
    is_fresh = worlds["steps"] <= 2
    height = np.where(is_fresh, LARGEST_START_Y, WALL_Y - PUCK_RADIUS + SLACK)
    assert (np.abs(puck["y"]) <= height).all()
    assert np.hypot(puck["vx"], puck["vy"]).max() < 100
    for player, side in ((PLAYER_ONE, -1.0), (PLAYER_TWO, 1.0)):
        x, y = racket_corners(bodies[:, player])
        assert (np.abs(x) <= GOAL_X + SLACK).all()
        assert (np.abs(y) <= WALL_Y + SLACK).all()
        is_between_posts = np.abs(x) > WALL_X + SLACK
        assert (np.abs(y[is_between_posts]) <= POST_Y + SLACK).all()
        # Each is held back from the other's half, though not by a wall.
        assert (side * bodies[:, player]["x"] > -0.7).all()


def wild_actions(vec: Any, rng: np.random.Generator, number: int) -> Any:
    """Return actions that also push on for long, which brings rackets into corners."""
    actions = random_actions(vec, rng)
    held = np.random.default_rng(number // 40)
    for player in actions.values():
        pushes = held.uniform(-1, 1, player.shape)
        pushes[:, :3] = np.sign(pushes[:, :3])
        rows = np.arange(len(player)) % 2 == 0
        player[rows] = pushes[rows]
    return actions


@pytest.mark.slow
def test_a_million_steps_of_hockey() -> None:
    vec: Any = make_batch("hockey", NUM_ENVS, players="both", autoreset_mode=SAME_STEP)
    rng = np.random.default_rng(0)
    vec.reset(seed=0, options={"tasks": hockey_tasks()})
    totals, lengths = np.zeros(NUM_ENVS), np.zeros(NUM_ENVS, dtype=int)
    num_ended, longest = 0, 0
    for number in range(NUM_STEPS):
        observations, rewards, terminated, truncated, infos = vec.step(
            wild_actions(vec, rng, number)
        )
        assert_finite(observations, f"step {number}")
        assert_finite(rewards, f"step {number}")
        assert_all_on_the_rink(vec.worlds)
        totals += rewards
        lengths += 1
        ended = terminated | truncated
        if ended.any():
            num_ended += int(ended.sum())
            longest = max(longest, int(lengths[ended].max()))
            assert np.abs(totals[ended]).max() < 100
            for last in infos["final_obs"][ended]:
                assert_finite(last, f"final, step {number}")
            totals[ended], lengths[ended] = 0.0, 0
        assert_contained(vec, observations, number)
        for name in ("reward_closeness_to_puck", "reward_puck_direction", "reward_two"):
            assert_finite(infos.get(name, np.zeros(1)), name)
    assert num_ended > 6_000
    assert longest == 251
    vec.close()


# Ledge.


def assert_all_in_the_map(vec: Any) -> None:
    runners, records = vec.runners, vec.playing.records
    x, y = runners["x"], runners["y"]
    assert (x >= HALF_WIDTH).all()
    assert (x <= records["width"] - HALF_WIDTH).all()
    assert (y >= HALF_HEIGHT).all()
    assert (y <= records["height"] - HALF_HEIGHT).all()
    rows = np.arange(len(x))
    skin = 1e-5
    for side in (-1, 1):
        for end in (-1, 1):
            column = np.floor(x + side * (HALF_WIDTH - skin)).astype(int) + MARGIN
            row = np.floor(y + end * (HALF_HEIGHT - skin)).astype(int) + MARGIN
            assert (vec.playing.tiles[rows, row, column] != WALL).all()


def held_actions(rng: np.random.Generator, actions: Any) -> Any:
    """Return actions of which most stay as they are: who changes all the time gets nowhere."""
    changes = rng.random(len(actions)) < 0.15
    return np.where(changes, rng.choice([0, 1, 2, 2, 3, 4, 5, 5], len(actions)), actions)


@pytest.mark.slow
@pytest.mark.parametrize("shaping", [False, True])
def test_a_million_steps_of_ledge(shaping: bool) -> None:
    levels = [
        Task(f"{stage} {seed}", params={"stage": stage}, seed=seed)
        for seed in range(6)
        for stage in STAGES
    ]
    vec: Any = make_batch(
        "ledge", NUM_ENVS, shaping=shaping, time_limit=None, autoreset_mode=SAME_STEP
    )
    rng = np.random.default_rng(1)
    vec.reset(seed=0, options={"tasks": [levels[i % len(levels)] for i in range(NUM_ENVS)]})
    actions = np.zeros(NUM_ENVS, dtype=int)
    totals = np.zeros(NUM_ENVS)
    endings = {"success": 0, "death": 0, "time": 0}
    for number in range(NUM_STEPS if not shaping else NUM_STEPS // 4):
        actions = held_actions(rng, actions)
        observations, rewards, terminated, truncated, infos = vec.step(actions)
        assert_finite(observations["vector"], f"step {number}")
        assert np.abs(observations["vector"]).max() <= 4.0
        assert observations["tiles"].max() < 8
        assert_finite(rewards, f"step {number}")
        assert_all_in_the_map(vec)
        assert_contained(vec, observations, number % NUM_ENVS)
        totals += rewards
        ended = terminated | truncated
        if ended.any():
            final = infos["final_info"]
            won, died = final["is_success"][ended], final["has_died"][ended]
            assert not (won & died).any()
            endings["success"] += int(won.sum())
            endings["death"] += int(died.sum())
            endings["time"] += int(truncated.sum())
            if not shaping:
                np.testing.assert_array_equal(totals[ended], won.astype(float))
            assert np.abs(totals).max() < 10
            totals[ended] = 0.0
    assert endings["success"] > 100
    assert endings["death"] > 100
    assert endings["time"] > 0 or shaping
    vec.close()


def random_level(rng: np.random.Generator) -> str:
    """Return any map at all, with open edges and whatever may stand beside the start."""
    height, width = int(rng.integers(1, 25)), int(rng.integers(3, 41))
    density = rng.uniform(0.0, 0.6)
    weights = np.array([1.0 - density, density * 0.6, density * 0.3, density * 0.1])
    cells = rng.choice(list(".#-*"), size=height * width, p=weights / weights.sum())
    cells[rng.choice(height * width, 3, replace=False)] = list("@SD")
    return "\n".join("".join(row) for row in cells.reshape(height, width))


@pytest.mark.slow
def test_nobody_leaves_any_map_whatever_is_drawn_on_it() -> None:
    rng = np.random.default_rng(3)
    texts = [random_level(rng) for _ in range(NUM_ENVS)]
    tasks = [Task(f"map {index}", params={"level": text}) for index, text in enumerate(texts)]
    for shaping in (False, True):
        vec: Any = make_batch("ledge", NUM_ENVS, shaping=shaping, time_limit=80)
        vec.reset(seed=0, options={"tasks": tasks})
        actions = np.zeros(NUM_ENVS, dtype=int)
        for number in range(200):
            actions = held_actions(rng, actions)
            observations, rewards, *_ = vec.step(actions)
            assert_finite(observations["vector"], f"step {number}")
            assert np.abs(observations["vector"]).max() <= 4.0
            assert_finite(rewards, f"step {number}")
            assert np.abs(rewards).max() < 4.0
            assert_all_in_the_map(vec)
        vec.close()
