"""Tasks given by hand: who plays what, from when on, and against whom."""

from typing import Any

import numpy as np
import pytest

from games.game_cases import (
    DEADLY,
    DISABLED,
    EASY,
    MODES,
    SAME_STEP,
    SINGLE_ENVS,
    assert_same,
    level_task,
    make_batch,
    random_actions,
    rows_of,
)
from stepladder.games import HockeyVectorEnv, Level
from stepladder.games.ledge.source import held_out_source, level_of
from stepladder.tasks import Task

GAMES = pytest.mark.parametrize("game", ["hockey", "ledge"])

HOCKEY_TASKS = [
    Task(f"speed {speed}", params={"mode": "TRAIN_SHOOTING", "puck_speed": float(speed)})
    for speed in (5, 10, 15, 20, 25)
]
LEDGE_TASKS = [level_task(f"limit {limit}", time_limit=limit) for limit in (3, 5, 7, 9, 11)]


def speeds(views: Any) -> list[int]:
    """Return how fast the puck is."""
    return np.round(np.hypot(views[:, 14], views[:, 15]), 3).astype(int).tolist()


def played(vec: Any, observations: Any) -> list[int]:
    """Return which of the tasks above each env has just begun to play."""
    if isinstance(vec, HockeyVectorEnv):
        return [(speed - 5) // 5 for speed in speeds(observations)]
    return ((vec.playing.records["time_limit"] - 3) // 2).tolist()


def tasks_of(game: str) -> list[Task]:
    return {"hockey": HOCKEY_TASKS, "ledge": LEDGE_TASKS}[game]


def own_limits(game: str, num_envs: int, **settings: Any) -> Any:
    """Make a batch in which the tasks say how long an episode lasts."""
    limit = {"ledge": {"time_limit": None}}.get(game, {})
    return make_batch(game, num_envs, **settings, **limit)


# From when on.


@GAMES
@pytest.mark.parametrize("mode", MODES)
def test_a_task_is_played_from_the_next_reset_on(game: str, mode: Any) -> None:
    rng = np.random.default_rng(0)
    vec, twin = (make_batch(game, 4, autoreset_mode=mode, num_threads=1) for _ in range(2))
    for each in (vec, twin):
        each.reset(seed=1)
    others = [
        Task("other", params={"opponent": "strong", "closeness_weight": 9.0, "success": "no_loss"})
        if game == "hockey"
        else level_task("other", DEADLY)
    ] * 4
    vec.set_tasks(others)
    for _ in range(20):
        actions = random_actions(vec, rng)
        assert_same(vec.step(actions), twin.step(actions))
    # From here on it is what a batch plays that never had another task.
    twin.reset(options={"tasks": others})
    vec.reset()
    for _ in range(20):
        actions = random_actions(vec, rng)
        assert_same(vec.step(actions), twin.step(actions))


@GAMES
def test_a_task_given_to_a_single_game_is_played_from_the_next_reset_on(game: str) -> None:
    env, twin = SINGLE_ENVS[game](), SINGLE_ENVS[game]()
    for each in (env, twin):
        each.reset(seed=1)
    task = tasks_of(game)[1]
    env.set_task(task)
    action = env.action_space.sample()
    for _ in range(10):
        assert_same(env.step(action), twin.step(action))
    twin.reset(options={"task": task})
    observation, info = env.reset()
    assert info == {}
    assert env.task == twin.task == task
    assert env.observation_space.contains(observation)
    assert_same(env.step(action), twin.step(action))


@pytest.mark.parametrize("mode", MODES)
def test_an_env_that_has_ended_begins_with_what_it_was_given_meanwhile(mode: Any) -> None:
    vec = own_limits("ledge", 3, autoreset_mode=mode)
    vec.reset(options={"task": LEDGE_TASKS[1]})
    for _ in range(5):
        result = vec.step(np.zeros(3, dtype=int))
    assert result[3].all()
    vec.set_tasks([LEDGE_TASKS[0]] * 3)
    if mode is DISABLED:
        vec.reset(options={"reset_mask": np.ones(3, dtype=bool)})
    lengths = []
    steps = 0
    while len(lengths) < 2:
        steps += 1
        if vec.step(np.zeros(3, dtype=int))[3].all():
            lengths.append(steps)
            steps = 0
            if mode is DISABLED:
                vec.reset()
    # With same-step autoreset the next episode had begun before the task was given; with
    # next-step autoreset a step goes into each reset.
    assert lengths == {"SameStep": [5, 3], "NextStep": [4, 4], "Disabled": [3, 3]}[mode.value]


# To whom.


@GAMES
def test_each_env_can_have_its_own_task(game: str) -> None:
    vec, tasks = own_limits(game, 5), tasks_of(game)
    vec.set_tasks(tasks)
    assert played(vec, vec.reset(seed=0)[0]) == [0, 1, 2, 3, 4]
    vec.set_tasks([tasks[4], tasks[0]], [1, 3])
    assert played(vec, vec.reset()[0]) == [0, 4, 2, 0, 4]
    assert vec.get_attr("task") == (tasks[0], tasks[4], tasks[2], tasks[0], tasks[4])
    vec.call_on([2], "set_task", tasks[3])
    assert played(vec, vec.reset()[0]) == [0, 4, 3, 0, 4]


@GAMES
def test_a_reset_can_give_tasks_to_all_or_some(game: str) -> None:
    vec, tasks = own_limits(game, 5), tasks_of(game)
    assert played(vec, vec.reset(options={"task": tasks[2]})[0]) == [2] * 5
    assert played(vec, vec.reset()[0]) == [2] * 5
    assert played(vec, vec.reset(options={"tasks": tasks})[0]) == [0, 1, 2, 3, 4]
    some = np.array([True, False, False, False, True])
    vec.reset(options={"task": tasks[1], "reset_mask": some})
    assert played(vec, vec.reset()[0]) == [1, 1, 2, 3, 1]
    vec.reset(options={"tasks": tasks[::-1], "reset_mask": ~some})
    assert played(vec, vec.reset()[0]) == [1, 3, 2, 1, 1]
    per_env = [None, {"task": tasks[4]}, {}, None, {"task": tasks[0]}]
    assert played(vec, vec.reset(options=per_env)[0]) == [1, 4, 2, 1, 0]


# Seeds.


def episode(vec: Any, actions: list[Any]) -> list[Any]:
    return [vec.reset()[0], *(vec.step(each)[:4] for each in actions)]


@pytest.mark.parametrize("case", ["hockey", "hockey defence", "hockey shooting"])
def test_every_episode_of_a_task_with_a_seed_is_alike(case: str) -> None:
    vec = make_batch(case, 4)
    vec.set_tasks([Task("seeded", seed=7)] * 3 + [Task("other", seed=8)])
    vec.reset(seed=1)
    # The same in every env, so that all must play alike.
    actions = [
        np.repeat(np.random.default_rng(number).uniform(-1, 1, (1, 4)), 4, axis=0)
        for number in range(70)
    ]
    first, second = episode(vec, actions), episode(vec, actions)
    assert_same(first, second)
    rows = [rows_of(tuple(first), row) for row in range(4)]
    assert_same(rows[1], rows[0])
    assert_same(rows[2], rows[0])
    with pytest.raises(AssertionError):
        assert_same(rows[3], rows[0])
    elsewhere = make_batch(case, 1)
    elsewhere.set_tasks([Task("seeded", seed=7)])
    alone = episode(elsewhere, [each[:1] for each in actions])
    assert_same(rows_of(tuple(alone), 0), rows[0])


def test_a_seed_of_a_stage_names_its_level() -> None:
    tasks = [Task(f"{seed}", params={"stage": "complex"}, seed=seed) for seed in range(4)]
    vec: Any = make_batch("ledge", 4)
    vec.set_tasks(tasks)
    vec.reset(seed=5)
    for row, task in enumerate(tasks):
        assert vec.level(row) == level_of(task)
    texts = {vec.level(row).text for row in range(4)}
    assert len(texts) == 4


def test_held_out_levels_and_levels_themselves_can_be_played() -> None:
    task = held_out_source(["medium"]).get(0)
    vec: Any = make_batch("ledge", 2)
    vec.reset(options={"task": task})
    assert vec.level(1).text == task.params["level"]
    env = SINGLE_ENVS["ledge"](level=Level.parse(EASY, "mine"))
    env.reset()
    assert env.level.rows == Level.parse(EASY).rows


# Opponents.


def mirrored(view: Any) -> Any:
    """Return what the other player sees: positions and speeds turn round, angles stay."""
    turned = view.copy()
    turned[..., [0, 1, 3, 4, 6, 7, 9, 10, 12, 13, 14, 15]] *= -1
    return turned[..., [*range(6, 12), *range(6), *range(12, 16), 17, 16]]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("players", ["both", "joint"])
def test_both_players_see_the_same_game_each_from_its_side(players: Any, mode: Any) -> None:
    vec: Any = make_batch("hockey defence", 6, players=players, autoreset_mode=mode, opponent=None)
    rng = np.random.default_rng(0)
    observations = vec.reset(seed=0)[0]
    for _ in range(150):
        one = observations["player_one"] if players == "both" else observations
        two = observations["player_two"] if players == "both" else vec.obs_agent_two()
        assert one.dtype == two.dtype == np.float32
        np.testing.assert_array_equal(two, mirrored(one))
        observations, _, terminated, truncated, infos = vec.step(random_actions(vec, rng))
        if mode is SAME_STEP and players == "both" and "final_obs" in infos:
            for last in infos["final_obs"][terminated | truncated]:
                np.testing.assert_array_equal(last["player_two"], mirrored(last["player_one"]))
        if mode is DISABLED and (ended := terminated | truncated).any():
            observations = vec.reset(options={"reset_mask": ended})[0]
    vec.close()


def test_what_one_player_wins_the_other_loses() -> None:
    vec: Any = make_batch("hockey defence", 16, players="both", opponent="caller")
    vec.reset(seed=0)
    num_goals = 0
    for _ in range(100):
        _, rewards, terminated, _, infos = vec.step(_zeros(16))
        goals = terminated & infos["_winner"]
        num_goals += int(goals.sum())
        for winner, mine, other in zip(
            infos["winner"][goals], rewards[goals], infos["reward_two"][goals], strict=True
        ):
            assert abs(mine - 10 * winner) < 1
            assert abs(other + 10 * winner) < 1
    assert num_goals > 3


def _zeros(num_envs: int) -> dict[str, Any]:
    return {name: np.zeros((num_envs, 4)) for name in ("player_one", "player_two")}


def test_joint_actions_are_both_players_one_after_the_other() -> None:
    joint, both = (make_batch("hockey", 4, players=players) for players in ("joint", "both"))
    rng = np.random.default_rng(0)
    joint.reset(seed=3)
    both.reset(seed=3)
    for _ in range(60):
        actions = random_actions(joint, rng)
        ours = joint.step(actions)
        pair = {"player_one": actions[:, :4], "player_two": actions[:, 4:]}
        theirs = both.step(pair)
        assert_same(ours[0], theirs[0]["player_one"])
        assert_same(ours[1:], theirs[1:])


def test_scripted_opponents_ignore_what_the_caller_says_and_others_do_not() -> None:
    """Rows of both kinds in one batch, and what is scripted plays as it does elsewhere."""
    kinds = ["weak", "caller", "strong", "none", "caller:somebody", "weak"]
    tasks = [Task(f"against {kind}", params={"opponent": kind}) for kind in kinds]
    calm, wild = (make_batch("hockey", 6, players="both") for _ in range(2))
    alone = make_batch("hockey", 6, players="one")
    rng = np.random.default_rng(0)
    for vec in (calm, wild):
        vec.reset(seed=4, options={"tasks": tasks})
    no_callers = [
        Task("weak") if "caller" in kind else task for kind, task in zip(kinds, tasks, strict=True)
    ]
    alone.reset(seed=4, options={"tasks": no_callers})
    scripted = np.array(["caller" not in kind for kind in kinds])
    for _ in range(100):
        own = random_actions(alone, rng)
        ours = calm.step({"player_one": own, "player_two": np.zeros((6, 4))})
        theirs = wild.step({"player_one": own, "player_two": random_actions(alone, rng)})
        others = alone.step(own)
        assert_same(rows_of(ours[:4], scripted), rows_of(theirs[:4], scripted))
        assert_same(rows_of(ours[0]["player_one"], scripted), rows_of(others[0], scripted))
        assert_same(rows_of(ours[1:4], scripted), rows_of(others[1:4], scripted))
    moved = (ours[0]["player_two"] != theirs[0]["player_two"]).any(axis=1)
    np.testing.assert_array_equal(moved, ~scripted)


def test_opponents_score_and_nobody_does_not() -> None:
    goals = {}
    for opponent in ("none", "weak", "strong"):
        vec = make_batch("hockey", 64, opponent=opponent)
        vec.reset(seed=0)
        lost = 0
        for _ in range(260):
            _, _, terminated, _, infos = vec.step(np.zeros((64, 4)))
            lost += int((infos["winner"][terminated] < 0).sum()) if terminated.any() else 0
        goals[opponent] = lost
        vec.close()
    assert goals["none"] == 0
    assert min(goals["weak"], goals["strong"]) > 5


def test_the_expert_can_be_asked_without_changing_the_game() -> None:
    for settings in ({}, {"players": "both"}, {"players": "both", "opponent": "weak"}):
        for extra in ({}, {"actions": "discrete"}, {"actions": "discrete", "fineness": 5}):
            env, twin = (SINGLE_ENVS["hockey"](**settings, **extra) for _ in range(2))
            env.reset(seed=3)
            twin.reset(seed=3)
            for number in range(30):
                action = env.scripted_action()
                assert env.action_space.contains(action)
                if number % 2:
                    env.scripted_action()
                assert_same(env.step(action), twin.step(action))


def test_the_planner_shows_the_way_through_a_level() -> None:
    env = SINGLE_ENVS["ledge"](stage="simple")
    env.reset(seed=0)
    for attempt in range(2):
        terminated, total = False, 0.0
        while not terminated:
            _, reward, terminated, truncated, info = env.step(env.scripted_action())
            total += reward
            assert not truncated
        assert info["is_success"]
        assert total == 1.0
        if attempt == 0:
            env.reset(options={"task": Task("next", params={"stage": "medium"}, seed=4)})


# Rewards.


@pytest.mark.parametrize("gamma", [1.0, 0.9])
def test_shaping_adds_what_a_potential_adds_and_no_more(gamma: float) -> None:
    """Discounted, it sums up to minus the first potential, which is 0, however the way led."""
    plain = make_batch("ledge deadly", 8, shaping=False, autoreset_mode=DISABLED)
    shaped = make_batch("ledge deadly", 8, shaping=True, gamma=gamma, autoreset_mode=DISABLED)
    rng = np.random.default_rng(2)
    plain.reset(seed=0)
    shaped.reset(seed=0)
    extra, factor, is_playing = np.zeros(8), 1.0, np.ones(8, dtype=bool)
    has_terminated = np.zeros(8, dtype=bool)
    for _ in range(50):
        actions = np.where(rng.random(8) < 0.7, 2, rng.integers(6, size=8))
        ours, theirs = shaped.step(actions), plain.step(actions)
        assert_same(ours[2:], theirs[2:])
        extra += factor * np.where(is_playing, ours[1] - theirs[1], 0.0)
        factor *= gamma
        ended = ours[2] | ours[3]
        has_terminated |= ours[2] & is_playing
        is_playing &= ~ended
        if ended.any():
            mask = {"reset_mask": ended}
            shaped.reset(options=dict(mask))
            plain.reset(options=dict(mask))
    assert has_terminated.sum() >= 6
    np.testing.assert_allclose(extra[has_terminated], 0.0, atol=1e-12)


def test_hockey_rewards_are_the_sum_of_their_terms() -> None:
    weights = {"closeness_weight": 0.5, "touch_weight": 2.0, "direction_weight": -1.0}
    plain, shaped = make_batch("hockey", 8), make_batch("hockey", 8, **weights)
    rng = np.random.default_rng(0)
    plain.reset(seed=0)
    shaped.reset(seed=0)
    for _ in range(100):
        actions = random_actions(plain, rng)
        ours, theirs = shaped.step(actions), plain.step(actions)
        infos = ours[4]
        assert_same({**infos, "reward_two": 0}, {**theirs[4], "reward_two": 0})
        expected = theirs[1] + 0.5 * infos["reward_closeness_to_puck"]
        expected += 2.0 * infos["reward_touch_puck"] - infos["reward_puck_direction"]
        np.testing.assert_allclose(ours[1], expected, rtol=1e-12, atol=1e-12)
        base = 10.0 * infos["winner"] + infos["reward_closeness_to_puck"]
        np.testing.assert_allclose(theirs[1], base, rtol=1e-12, atol=1e-12)
        # The same for player two, whose terms are not among the infos.
        closeness = theirs[4]["reward_two"] + 10.0 * infos["winner"]
        expected = theirs[4]["reward_two"] + 0.5 * closeness + infos["reward_puck_direction"]
        caught = shaped.worlds["bodies"]["hold"][:, 2] == 15
        got = infos["reward_two"] - 2.0 * caught * infos["_reward_two"]
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


# Pictures.


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("level", [DEADLY, EASY])
def test_a_new_episode_looks_new_whatever_the_last_one_came_to(level: str, mode: Any) -> None:
    settings = {"level": level, "render_mode": "rgb_array", "autoreset_mode": mode}
    vec = make_batch("ledge", 2, **settings, time_limit=None)
    vec.reset(seed=0)
    first = vec.render()
    assert first is not None
    assert len(first) == 2
    while not vec.step(np.full(2, 2))[2].all():
        pass
    if mode is DISABLED:
        vec.reset()
    elif mode is not SAME_STEP:
        vec.step(np.zeros(2, dtype=int))
    again = vec.render()
    assert again is not None
    np.testing.assert_array_equal(again[0], first[0])
    np.testing.assert_array_equal(again[1], first[1])
    vec.close()
