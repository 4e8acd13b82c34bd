"""Gymnasium's own view of the games: its checker, its makers, its wrappers."""

import subprocess
import sys
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics
from gymnasium.wrappers.vector import RecordEpisodeStatistics as RecordAllStatistics

import stepladder.games
from games.game_cases import CASES, IDS, VECTOR_ENVS, game_of, random_actions
from stepladder import make_vec
from stepladder.games.hockey.env import HockeyEnv

INFINITE = "ignore:.*A Box observation space .*infinity:UserWarning"
"""What a player sees has no bounds that could be stated: a puck can be hit ever harder."""

EACH_ID = pytest.mark.parametrize("game", IDS)


@pytest.mark.filterwarnings(INFINITE)
@pytest.mark.parametrize("case", CASES)
def test_gymnasiums_checker_finds_nothing(case: str) -> None:
    env = gym.make(IDS[game_of(case)], **CASES[case][1])
    check_env(env.unwrapped, skip_render_check=True)
    env.close()


@pytest.mark.filterwarnings(INFINITE)
@EACH_ID
def test_gymnasiums_checker_finds_nothing_about_pictures(
    game: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It also opens a window.
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = gym.make(IDS[game], render_mode="rgb_array")
    check_env(env.unwrapped, skip_render_check=False)
    env.reset(seed=0)
    picture: Any = env.render()
    assert picture.dtype == np.uint8
    assert picture.ndim == 3
    assert picture.shape[2] == 3
    env.close()


@EACH_ID
def test_gymnasium_makes_our_batch_without_a_warning(game: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vec: Any = gym.make_vec(IDS[game], num_envs=3)
    assert isinstance(vec.unwrapped, VECTOR_ENVS[game])
    assert vec.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert vec.spec.id == IDS[game]
    vec.reset(seed=1)
    vec.step(vec.action_space.sample())
    assert vec.observation_space.contains(vec.reset(seed=2)[0])
    vec.close()


@EACH_ID
def test_gymnasium_can_also_put_single_games_into_its_own_vector_env(game: str) -> None:
    vec = gym.make_vec(IDS[game], num_envs=2, vectorization_mode="sync")
    assert isinstance(vec, SyncVectorEnv)
    vec.reset(seed=1)
    vec.step(vec.action_space.sample())
    vec.close()


def test_settings_and_modes_reach_a_batch_that_gymnasium_makes() -> None:
    vec: Any = gym.make_vec(
        IDS["hockey"],
        num_envs=2,
        players="both",
        autoreset_mode=AutoresetMode.SAME_STEP,
        num_threads=1,
    )
    assert vec.players == "both"
    assert vec.autoreset_mode is AutoresetMode.SAME_STEP
    assert set(vec.single_action_space.spaces) == {"player_one", "player_two"}
    vec.close()


@EACH_ID
def test_our_own_maker_returns_the_batch_itself(game: str) -> None:
    for arguments in ({}, {"num_workers": 0}, {"autoreset_mode": "SameStep"}):
        vec = make_vec(IDS[game], 3, **arguments)
        assert isinstance(vec, VECTOR_ENVS[game])
        vec.close()
    spec = gym.spec(IDS[game])
    vec = make_vec(spec, 3, copy=False, env_kwargs={"num_threads": 1})
    assert isinstance(vec, VECTOR_ENVS[game])
    assert not vec.copy
    vec.close()


@pytest.mark.processes
@pytest.mark.timeout(60)
@pytest.mark.parametrize("env", ['"stepladder/Ledge-v0", 2', '["stepladder/Ledge-v0"] * 2'])
def test_our_own_maker_knows_the_games_without_being_told(env: str) -> None:
    code = f"import stepladder; stepladder.make_vec({env}, num_workers=0).reset(seed=0)"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=50)


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_naming_the_games_loads_none_of_them() -> None:
    code = (
        "import sys, gymnasium, stepladder.games\n"
        "assert 'stepladder/Hockey-v0' in gymnasium.registry\n"
        "assert not any('hockey' in name or 'ledge' in name for name in sys.modules)\n"
        "assert not {'numba', 'torch', 'pygame', 'PIL'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=50)


def test_the_public_names_are_what_they_say() -> None:
    assert dir(stepladder.games) == sorted(stepladder.games.__all__)
    for name in stepladder.games.__all__:
        assert getattr(stepladder.games, name).__name__ == name
    with pytest.raises(AttributeError, match="Chess"):
        _ = stepladder.games.Chess  # type: ignore[attr-defined]


@EACH_ID
def test_spaces_are_those_of_single_games_batched(game: str) -> None:
    single = gym.make(IDS[game])
    vec: Any = VECTOR_ENVS[game](3)
    assert vec.single_observation_space == single.observation_space
    assert vec.single_action_space == single.action_space
    sync = SyncVectorEnv([lambda: gym.make(IDS[game])] * 3)
    assert vec.observation_space == sync.observation_space
    assert vec.action_space == sync.action_space


@pytest.mark.parametrize(
    ("game", "settings", "longest"),
    [("hockey", {"mode": "TRAIN_SHOOTING"}, 81), ("ledge", {"time_limit": 30}, 30)],
)
def test_gymnasiums_statistics_count_every_episode(
    game: str, settings: dict[str, Any], longest: int
) -> None:
    vec = RecordAllStatistics(VECTOR_ENVS[game](6, **settings))
    rng = np.random.default_rng(0)
    vec.reset(seed=0)
    lengths = []
    for _ in range(200):
        infos = vec.step(random_actions(vec, rng))[4]
        if "episode" in infos:
            lengths += infos["episode"]["l"][infos["_episode"]].tolist()
    assert len(lengths) >= 12
    assert max(lengths) == longest
    vec.close()


@EACH_ID
def test_a_time_limit_of_gymnasiums_still_says_how_it_went(game: str) -> None:
    env = gym.make(IDS[game], max_episode_steps=4)
    env.reset(seed=0)
    for _ in range(4):
        *_, truncated, info = env.step(env.action_space.sample())
        assert info["is_success"] is False
    assert truncated
    env.close()


def test_single_games_live_in_gymnasiums_wrappers() -> None:
    env = RecordEpisodeStatistics(gym.make(IDS["hockey"], mode="TRAIN_DEFENSE"))
    env.reset(seed=0)
    has_ended = False
    while not has_ended:
        *_, terminated, truncated, info = env.step(np.zeros(4, dtype=np.float32))
        has_ended = terminated or truncated
    assert info["episode"]["l"] <= 81
    assert isinstance(env.unwrapped, HockeyEnv)
    env.close()
