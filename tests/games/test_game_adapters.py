"""Games as Stable-Baselines3 and PufferLib see them, and single rows of a batch."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize

from games.game_cases import (
    CASES,
    DISABLED,
    HOCKEY,
    IDS,
    LEDGE,
    NEXT_STEP,
    SAME_STEP,
    SINGLE_ENVS,
    assert_same,
    level_task,
    make_batch,
    random_actions,
    single_functions,
)
from stepladder import CurriculumEnv, make_vec
from stepladder.curricula import Staged, Uniform
from stepladder.envs.agent_rows import AgentRows
from stepladder.envs.puffer import PufferView
from stepladder.envs.sb3 import as_vec_env
from stepladder.envs.two_player import AgainstOpponent, BothPlayers
from stepladder.errors import ConfigError, EnvError, StepladderError
from stepladder.tasks import Task

NOT_OF_SB3 = {"hockey both", "hockey fine"}
"""Their actions are dicts, of which Stable-Baselines3 knows nothing."""

EACH_GAME = pytest.mark.parametrize("game", IDS)


@pytest.fixture
def torch_has_one_thread() -> Iterator[None]:
    """For networks so small more threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def short(game: str) -> dict[str, Any]:
    return {"hockey": {"mode": "TRAIN_SHOOTING"}, "ledge": {"time_limit": 20}}[game]


def levels() -> list[Task]:
    return [level_task(f"level {index}", time_limit=5 + index) for index in range(6)]


# Stable-Baselines3.


@pytest.mark.parametrize("case", [case for case in CASES if case not in NOT_OF_SB3])
def test_stable_baselines_sees_what_its_own_vector_env_shows(case: str) -> None:
    ours = as_vec_env(make_batch(case, 3, num_threads=1))
    theirs = DummyVecEnv(single_functions(case, 3))
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    for venv in (ours, theirs):
        venv.seed(7)
    assert_same(dict_of(ours.reset()), dict_of(theirs.reset()))
    rng = np.random.default_rng(0)
    num_ended = 0
    for _ in range(170):
        actions = random_actions(ours._base, rng)  # type: ignore[attr-defined]
        mine, other = ours.step(actions), theirs.step(actions)
        assert_same(dict_of(mine[0]), dict_of(other[0]))
        for one, two in zip(mine[1:3], other[1:3], strict=True):
            assert_same(one, two)
        for one, two in zip(mine[3], other[3], strict=True):
            assert_same(one, two)
            if "terminal_observation" in one:
                num_ended += 1
                assert ours.observation_space.contains(one["terminal_observation"])
    assert num_ended >= 3 or case in ("hockey", "hockey shaped")
    ours.close()
    theirs.close()


def dict_of(observations: Any) -> Any:
    """Return observations whose type of dict does not count."""
    return dict(observations) if isinstance(observations, dict) else observations


def test_time_outs_and_goals_are_told_apart() -> None:
    venv = as_vec_env(make_batch("ledge deadly", 8))
    venv.reset()
    seen = set()
    for number in range(200):
        _, rewards, ended, infos = venv.step(np.full(8, 2 if number % 100 < 60 else 0))
        for row in np.flatnonzero(ended):
            info = infos[row]
            seen.add(info["TimeLimit.truncated"])
            assert info["TimeLimit.truncated"] != info["has_died"]
            assert not info["is_success"]
            assert set(info["terminal_observation"]) == {"tiles", "vector"}
        assert rewards.dtype == np.float32
    assert seen == {True, False}
    venv.close()


@EACH_GAME
def test_stable_baselines_reaches_single_envs(game: str) -> None:
    venv = as_vec_env(make_vec(IDS[game], 4, env_kwargs=short(game)))
    venv.reset()
    task = {"hockey": Task("t", params={"opponent": "strong"}), "ledge": levels()[0]}[game]
    venv.env_method("set_task", task, indices=[1, 3])
    venv.reset()
    assert [each == task for each in venv.get_attr("task")] == [False, True, False, True]
    assert venv.get_attr("render_mode") == [None] * 4
    assert venv.has_attr("task")
    assert not venv.has_attr("weather")
    assert venv.env_is_wrapped(VecMonitorLike) == [False] * 4
    with pytest.raises(ConfigError, match="rows of arrays"):
        venv.set_attr("weather", "fine")
    venv.set_options({"task": task})
    venv.reset()
    assert [each == task for each in venv.get_attr("task")] == [True] * 4
    venv.close()


class VecMonitorLike:
    """Some wrapper."""


def test_pictures_reach_stable_baselines() -> None:
    venv = as_vec_env(make_vec(LEDGE, 2, env_kwargs={"render_mode": "rgb_array"}))
    venv.reset()
    pictures = list(venv.get_images())
    assert len(pictures) == 2
    assert pictures[0].dtype == np.uint8  # type: ignore[union-attr]
    venv.close()


@pytest.mark.slow
@pytest.mark.usefixtures("torch_has_one_thread")
@pytest.mark.parametrize(
    ("env", "settings"),
    [
        (HOCKEY, {"mode": "TRAIN_SHOOTING"}),
        (HOCKEY, {"mode": "TRAIN_DEFENSE", "actions": "discrete"}),
        (HOCKEY, {"mode": "TRAIN_SHOOTING", "players": "joint", "actions": "discrete"}),
        (LEDGE, {"shaping": True, "time_limit": 30}),
    ],
)
def test_ppo_trains_on_a_game(env: str, settings: dict[str, Any]) -> None:
    venv = VecMonitor(as_vec_env(make_vec(env, 4, env_kwargs=settings)))
    policy = "MultiInputPolicy" if env == LEDGE else "MlpPolicy"
    model = PPO(policy, venv, n_steps=64, batch_size=64, n_epochs=1, seed=0, device="cpu")
    model.learn(512)
    assert model.num_timesteps == 512
    assert len(model.ep_info_buffer or ()) > 0
    venv.close()


@pytest.mark.usefixtures("torch_has_one_thread")
def test_sac_trains_on_hockey_with_a_curriculum() -> None:
    curriculum = Staged(
        [
            Task(f"{label} {speed}", label, {"mode": "TRAIN_DEFENSE", "puck_speed": float(speed)})
            for label, speeds in (("slow", (5, 10)), ("fast", (40, 60)))
            for speed in speeds
        ],
        seed=0,
        stages=("slow", "fast"),
        threshold=0.0,
        min_episodes=4,
        demotion=None,
    )
    venv = as_vec_env(make_vec(HOCKEY, 4, curriculum=curriculum))
    normed = VecNormalize(venv)
    model = SAC("MlpPolicy", normed, learning_starts=100, batch_size=16, train_freq=50, seed=0)
    model.learn(800)
    assert curriculum.num_observed == venv.counts.finished > 4  # type: ignore[attr-defined]
    assert curriculum.current_stage == "fast"
    normed.close()


@EACH_GAME
def test_a_curriculum_reaches_stable_baselines(game: str) -> None:
    tasks = (
        levels()
        if game == "ledge"
        else [
            Task(f"speed {speed}", params={"mode": "TRAIN_SHOOTING", "puck_speed": float(speed)})
            for speed in range(5)
        ]
    )
    curriculum = Uniform(tasks, seed=1)
    venv: Any = as_vec_env(make_vec(IDS[game], 3, curriculum=curriculum))
    venv.seed(0)
    venv.reset()
    names = [info["curriculum_task"] for info in venv.reset_infos]
    num_ended = 0
    rng = np.random.default_rng(0)
    for _ in range(200):
        _, _, ended, infos = venv.step(random_actions(venv._base, rng))
        for row in np.flatnonzero(ended):
            num_ended += 1
            assert infos[row]["curriculum_task"] == names[row]
            names[row] = venv.reset_infos[row]["curriculum_task"]
    assert num_ended == curriculum.num_observed == venv.total_episodes > 5
    assert venv.check_agreement() == curriculum.plan.version
    assert venv.staleness.largest == 1
    venv.close()


# PufferLib.


@pytest.mark.parametrize("mode", [NEXT_STEP, SAME_STEP])
@pytest.mark.parametrize("case", CASES)
def test_puffer_sees_the_memory_of_the_batch(case: str, mode: Any) -> None:
    view = PufferView(make_batch(case, 4, autoreset_mode=mode, num_threads=1))
    twin = make_batch(case, 4, autoreset_mode=mode, num_threads=1)
    view.async_reset(3)
    observations, rewards, terminals, truncations, infos, ids, masks = view.recv()
    assert_same(dict_of(observations), twin.reset(seed=3)[0])
    assert infos == []
    assert ids.tolist() == [0, 1, 2, 3]
    assert masks.all()
    rng = np.random.default_rng(0)
    for _ in range(100):
        actions = random_actions(twin, rng)
        view.send(actions)
        observations, rewards, terminals, truncations, infos, ids, masks = view.recv()
        expected = twin.step(actions)
        got = (dict_of(observations), rewards, terminals, truncations)
        assert_same(got, expected[:4])
        assert_same(dict_of(view.actions), actions)
        says = expected[4].get("_winner", expected[4].get("_switch_touched", np.zeros(4)))
        ends = expected[4].get("_final_info", np.zeros(4))
        assert len(infos) == int(np.sum(says)) + int(np.sum(ends))
    view.close()


def test_puffer_goes_on_after_bad_actions() -> None:
    view = PufferView(make_vec(LEDGE, 3))
    twin = make_vec(LEDGE, 3)
    view.async_reset(0)
    view.recv()
    twin.reset(seed=0)
    good = np.full(3, 2)

    def bad() -> None:
        view.send(np.full(3, 9))
        view.recv()

    for _ in range(3):
        with pytest.raises(EnvError, match="action 9 of env 0"):
            bad()
        view.send(good)
        assert_same(dict_of(view.recv()[0]), twin.step(good)[0])
    view.close()


def test_puffer_cannot_do_without_autoreset() -> None:
    with pytest.raises(ConfigError, match="Disabled"):
        PufferView(make_vec(LEDGE, 2, autoreset_mode=DISABLED))


def test_puffer_and_a_curriculum_learn_together() -> None:
    curriculum = Uniform(levels(), seed=1)
    view = PufferView(make_vec(LEDGE, 3, curriculum=curriculum))
    _, infos = view.reset(seed=0)
    assert [set(info) >= {"curriculum_task"} for info in infos] == [True] * 3
    ended = 0
    for _ in range(60):
        _, _, terminals, truncations, infos = view.step(np.zeros(3, dtype=int))
        ended += int((terminals | truncations).sum())
    assert curriculum.num_observed == ended > 10
    view.close()


def test_a_batch_has_no_agents_to_put_into_rows() -> None:
    """Both players come as one dict; rows per agent are for envs in a wrapper of their own."""
    with pytest.raises(StepladderError):
        AgentRows(make_vec(HOCKEY, 2, env_kwargs={"players": "both"}))


# Two players.


def test_two_player_wrappers_around_a_joint_game_are_what_the_game_itself_offers() -> None:
    ours = SINGLE_ENVS["hockey"](mode="TRAIN_DEFENSE", players="both")
    theirs = BothPlayers(SINGLE_ENVS["hockey"](mode="TRAIN_DEFENSE", players="joint"))
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    ours.action_space.seed(0)
    for seed in (1, None, None):
        assert_same(ours.reset(seed=seed), theirs.reset(seed=seed))
        ended = False
        while not ended:
            action = ours.action_space.sample()
            result = ours.step(action)
            assert_same(result, theirs.step(action))
            ended = result[2] or result[3]


def push(observation: Any) -> Any:
    """Play as simply as one can."""
    return np.clip(-observation[:4], -1, 1)


@pytest.mark.parametrize("name", ["mine", "weak"])
def test_tasks_can_name_opponents_of_the_users_own(name: str) -> None:
    game = SINGLE_ENVS["hockey"](mode="TRAIN_SHOOTING", players="joint")
    tasks = [Task("own", params={"opponent": name}), Task("nobody", params={"opponent": "none"})]
    env = CurriculumEnv(AgainstOpponent(game, {name: push}), Uniform(tasks, seed=0))
    both = SINGLE_ENVS["hockey"](mode="TRAIN_SHOOTING", players="both", opponent="caller")
    seen = set()
    for number in range(6):
        seen_one, info = env.reset(seed=number)
        seen_both = both.reset(seed=number)[0]
        seen.add(info["curriculum_task"])
        ended = False
        while not ended:
            own = np.ones(4, dtype=np.float32)
            two = push(seen_both["player_two"])
            if info["curriculum_task"] == "nobody":
                two = np.zeros(4, dtype=np.float32)
            assert_same(seen_one, seen_both["player_one"])
            seen_one, _, terminated, truncated, _ = env.step(own)
            seen_both = both.step({"player_one": own, "player_two": two})[0]
            ended = terminated or truncated
    assert seen == {"own", "nobody"}
    env.close()


# Single rows.


@EACH_GAME
def test_every_row_can_be_asked_like_a_single_env(game: str) -> None:
    vec = make_vec(IDS[game], 3, env_kwargs=short(game))
    vec.reset(seed=0)
    single = SINGLE_ENVS[game](**short(game))
    assert vec.get_attr("observation_space") == (single.observation_space,) * 3
    assert vec.get_attr("action_space") == (single.action_space,) * 3
    assert vec.get_attr("render_mode") == (None,) * 3
    assert vec.call("has_wrapper_attr", "task") == (True,) * 3
    assert vec.call("get_wrapper_attr", "task") == vec.get_attr("task")
    assert [row.env_index for row in vec.apply_on([2, 0], lambda row: row.unwrapped)] == [2, 0]
    with pytest.raises(AttributeError, match="weather"):
        vec.call("weather")
    for refused in (
        lambda: vec.set_attr("weather", "fine"),
        lambda: vec.set_attr_on([0], "weather", ["fine"]),
    ):
        with pytest.raises(ConfigError, match="set_tasks"):
            refused()
    assert vec.num_workers == 0
    assert vec.batches == (slice(0, 3),)
    vec.close()


@EACH_GAME
def test_every_row_has_its_own_picture(game: str) -> None:
    vec = make_vec(IDS[game], 3, env_kwargs={**short(game), "render_mode": "rgb_array"})
    vec.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(10):
        vec.step(random_actions(vec, rng))
    pictures = vec.render()
    assert len(pictures) == 3
    np.testing.assert_array_equal(vec.call("render")[1], pictures[1])
    assert not np.array_equal(pictures[0], pictures[1])
    vec.close()


def test_send_and_recv_are_a_step() -> None:
    for case in ("hockey both", "ledge mines", "hockey joint discrete"):
        vec, twin = make_batch(case, 3), make_batch(case, 3)
        vec.reset(seed=0)
        twin.reset(seed=0)
        rng = np.random.default_rng(0)
        for _ in range(60):
            actions = random_actions(vec, rng)
            vec.send(actions)
            assert_same(vec.recv(), twin.step(actions))
