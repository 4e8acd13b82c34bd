"""What `make_vec` returns, as Stable-Baselines3 sees it: like its own, element by element."""

import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import TimeLimit
from stable_baselines3 import A2C, DQN, PPO, SAC
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    VecEnv,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
    VecTransposeImage,
)

from stepladder.curricula import Staged, Uniform
from stepladder.envs import CurriculumEnv, CurriculumVectorEnv, WorkerVectorEnv, make_vec
from stepladder.envs.sb3 import as_vec_env
from stepladder.errors import ChannelError, ConfigError
from testing_env import PracticeEnv, staged_tasks

LIMIT = pytest.mark.timeout(60, method="signal")
WORKERS = pytest.mark.parametrize(
    "num_workers", [0, pytest.param(1, marks=[pytest.mark.processes, LIMIT])]
)
NUM_ENVS = 3


class Sketch(gym.Env[Any, Any]):
    """Episodes of 1 to 6 steps with random rewards and talkative infos, seen through any space."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 7}  # noqa: RUF012, as in Gymnasium

    def __init__(
        self, observation_space: Any, action_space: Any = None, render_mode: str | None = None
    ):
        # Each env draws from its own.
        self.observation_space = deepcopy(observation_space)
        self.action_space = action_space or Discrete(2)
        self.render_mode = render_mode
        self.weather = "fine"
        self.log: list[int] = []
        self.resets: list[Any] = []

    def _observe(self) -> Any:
        return self.observation_space.sample()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.length = int(self.np_random.integers(1, 7))
        self.log = []
        self.resets.append((seed, options))
        return self._observe(), {"length": self.length} if self.length % 2 else {}

    def step(self, action: Any):
        assert self.action_space.contains(action), action
        self.log.append(len(self.log))
        ended = len(self.log) == self.length
        terminated = ended and bool(self.np_random.random() < 0.5)
        truncated = ended and bool(self.np_random.random() < 0.5 or not terminated)
        # Changed in the next step, which must not change what was returned in this one.
        info = {"log": self.log, "deep": {"steps": np.arange(len(self.log))}}
        reward = float(self.np_random.normal()) * 1e-3 + 1.0
        return (
            self._observe(),
            reward,
            terminated,
            truncated,
            info if ended or np.any(action) else {},
        )

    def add(self, name: str, *, to: int = 0) -> str:
        return f"{name}+{to}"

    def pid(self) -> int:
        return os.getpid()

    def render(self) -> Any:
        return np.full((2, 3, 3), len(self.log), dtype=np.uint8)


SPACES = {
    "box": Box(-1, 1, (2, 3), np.float64),
    "image": Box(0, 255, (4, 4, 1), np.uint8),
    "discrete": Discrete(5, start=2),
    "multi-discrete": MultiDiscrete([3, 4]),
    "multi-binary": MultiBinary(4),
    "dict": Dict({"b": Box(-1, 1, (2,), np.float32), "a": Discrete(4), "c": MultiBinary(2)}),
    "tuple": Tuple((Box(-1, 1, (2,), np.float32), Discrete(4))),
}


def sketch(name: str = "box", **settings: Any) -> Callable[[], gym.Env[Any, Any]]:
    return partial(Sketch, SPACES[name], **settings)


@pytest.fixture
def made() -> Iterator[list[VecEnv]]:
    """Vector envs that are closed after the test, whatever happens."""
    kept: list[VecEnv] = []
    yield kept
    for venv in kept:
        venv.close()


@pytest.fixture
def adapt(made: list[VecEnv]) -> Callable[..., Any]:
    def make(env: Any, num_envs: int = NUM_ENVS, num_workers: int = 0, **settings: Any) -> Any:
        made.append(as_vec_env(make_vec(env, num_envs, num_workers=num_workers, **settings)))
        return made[-1]

    return make


def same(ours: Any, theirs: Any) -> None:
    """Assert that two values are alike, down to the types of arrays."""
    if isinstance(theirs, dict):
        assert isinstance(ours, dict)
        assert ours.keys() == theirs.keys()
        for key in theirs:
            same(ours[key], theirs[key])
    elif isinstance(theirs, list | tuple):
        assert type(ours) is type(theirs)
        assert len(ours) == len(theirs)
        for each, other in zip(ours, theirs, strict=True):
            same(each, other)
    else:
        assert type(ours) is type(theirs)
        assert getattr(ours, "dtype", None) == getattr(theirs, "dtype", None)
        np.testing.assert_array_equal(ours, theirs)


def play_alike(ours: VecEnv, theirs: VecEnv, num_steps: int) -> Counter[str]:
    """Play the same in both; return how episodes ended."""
    endings: Counter[str] = Counter()
    kept = []
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    ours.action_space.seed(1)
    for venv in (ours, theirs):
        venv.seed(5)
    same(ours.reset(), theirs.reset())
    same(ours.reset_infos, theirs.reset_infos)
    for _ in range(num_steps):
        actions = np.array([ours.action_space.sample() for _ in range(ours.num_envs)])
        result, expected = ours.step(actions), theirs.step(actions)
        same(result, expected)
        same(ours.reset_infos, theirs.reset_infos)
        kept.append((result, expected))
        for done, info in zip(expected[2], expected[3], strict=True):
            endings["cut off" if info["TimeLimit.truncated"] else "ended"] += int(done)
    for result, expected in kept:
        same(result, expected)
    return endings


# Like SB3's own.


@WORKERS
@pytest.mark.parametrize(
    ("env_id", "num_steps"), [("CartPole-v1", 200), ("Pendulum-v1", 410), ("Acrobot-v1", 510)]
)
def test_known_envs_play_as_in_a_dummy_vec_env(
    adapt: Any, num_workers: int, env_id: str, num_steps: int
) -> None:
    theirs = DummyVecEnv([lambda: gym.make(env_id)] * NUM_ENVS)
    endings = play_alike(adapt(env_id, num_workers=num_workers), theirs, num_steps)
    assert endings.total() > 2
    if env_id != "CartPole-v1":
        assert endings["cut off"] > 2


@WORKERS
@pytest.mark.parametrize("name", SPACES)
def test_every_kind_of_observation_is_as_in_a_dummy_vec_env(
    adapt: Any, num_workers: int, name: str
) -> None:
    theirs = DummyVecEnv([sketch(name)] * NUM_ENVS)
    endings = play_alike(adapt(sketch(name), num_workers=num_workers), theirs, 80)
    assert endings["cut off"] > 5
    assert endings["ended"] > 5


@WORKERS
@pytest.mark.parametrize(
    "space", [MultiBinary(3), MultiDiscrete([2, 3]), Box(-1, 1, (2,), np.float32)], ids=str
)
def test_every_kind_of_action_reaches_the_envs(adapt: Any, num_workers: int, space: Any) -> None:
    # The env refuses what is not in its space.
    venv = adapt(sketch(action_space=space), num_workers=num_workers)
    PPO("MlpPolicy", venv, n_steps=8, batch_size=24, n_epochs=1, device="cpu").learn(48)


def test_options_and_seeds_are_used_for_one_reset(adapt: Any) -> None:
    venv = adapt(sketch())
    assert venv.seed(7) == [7, 8, 9]
    venv.set_options({"level": np.arange(2)})
    venv.reset()
    venv.reset()
    venv.seed(1)
    venv.reset()
    for env_index, resets in enumerate(venv.get_attr("resets")):
        assert [seed for seed, _ in resets] == [7 + env_index, None, 1 + env_index]
        assert [options is None for _, options in resets] == [False, True, True]


@WORKERS
def test_options_may_differ_between_envs(adapt: Any, num_workers: int) -> None:
    venv = adapt(sketch(), num_workers=num_workers)
    venv.set_options([{"level": 1}, {}, {"level": 3}])
    venv.reset()
    assert venv.get_attr("resets") == [
        [(None, {"level": 1})],
        [(None, None)],
        [(None, {"level": 3})],
    ]
    venv.set_options([{"level": 1}, {}])
    with pytest.raises(ConfigError, match="options has 2 entries and there are 3 envs"):
        venv.reset()


@pytest.mark.processes
@LIMIT
def test_workers_step_between_async_and_wait(adapt: Any) -> None:
    venv = adapt(sketch(), 2, num_workers=1)
    venv.reset()
    venv.step_async(np.ones(2, dtype=np.int64))
    with pytest.raises(ChannelError, match="has been sent actions and not been received"):
        venv.step_async(np.ones(2, dtype=np.int64))
    with pytest.raises(ChannelError, match="recv"):
        venv.env_method("pid")
    _, _, _, infos = venv.step_wait()
    assert all("log" in info for info in infos)
    # A step in flight is given up for a reset.
    venv.step_async(np.ones(2, dtype=np.int64))
    venv.reset()
    venv.step(np.ones(2, dtype=np.int64))


# Reaching single envs.


@WORKERS
def test_attributes_and_methods_of_some_envs_or_all(adapt: Any, num_workers: int) -> None:
    venv = adapt(
        sketch(), num_workers=num_workers, wrappers=[partial(TimeLimit, max_episode_steps=9)]
    )
    assert venv.get_attr("weather") == ["fine"] * 3
    venv.set_attr("weather", "rain", indices=[0, 2])
    venv.set_attr("weather", ["a", "list"], indices=1)
    assert venv.get_attr("weather") == ["rain", ["a", "list"], "rain"]
    assert venv.get_attr("weather", indices=-1) == ["rain"]
    assert venv.env_method("add", "x", to=2) == ["x+2"] * 3
    assert venv.env_method("add", "x", indices=[2, 0]) == ["x+0"] * 2
    assert len(set(venv.env_method("pid"))) == 1 + num_workers
    with pytest.raises(IndexError):
        venv.env_method("pid", indices=3)
    with pytest.raises(AttributeError, match="nowhere"):
        venv.get_attr("nowhere")
    assert venv.has_attr("weather")
    # Also a method, which is not called to find out.
    assert venv.has_attr("add")
    assert not venv.has_attr("nowhere")


@WORKERS
def test_wrappers_are_seen_through_others(adapt: Any, num_workers: int) -> None:
    class Special(Monitor):
        """Not the same class, but one of the kind."""

    venv = adapt(
        sketch(),
        num_workers=num_workers,
        wrappers=[Special, partial(TimeLimit, max_episode_steps=9)],
    )
    for seen in (TimeLimit, Monitor, Special):
        assert venv.env_is_wrapped(seen) == [True] * 3
        assert venv.env_is_wrapped(seen, indices=[2, 1]) == [True] * 2
    assert venv.env_is_wrapped(CurriculumEnv) == [False] * 3


@pytest.mark.processes
@LIMIT
def test_a_worker_need_not_import_sb3_to_look_for_its_monitor(adapt: Any) -> None:
    venv = adapt("CartPole-v1", 2, num_workers=1, start_method="spawn")
    assert venv.env_is_wrapped(TimeLimit) == [True] * 2
    assert venv.env_is_wrapped(Monitor) == [False] * 2
    # The first env is in this process.
    loaded = venv.vec.apply_on([0, 1], lambda env: "stable_baselines3" in sys.modules)
    assert loaded == [True, False]


@WORKERS
def test_pictures_are_tiled(adapt: Any, num_workers: int) -> None:
    venv = adapt(sketch(render_mode="rgb_array"), 4, num_workers=num_workers)
    venv.reset()
    venv.step(np.zeros(4, dtype=np.int64))
    assert [image.shape for image in venv.get_images()] == [(2, 3, 3)] * 4
    assert venv.render("rgb_array").shape == (4, 6, 3)
    assert venv.metadata["render_fps"] == 7
    assert venv.render_mode == "rgb_array"


def test_no_pictures_without_a_mode_for_them(adapt: Any) -> None:
    venv = adapt(sketch())
    with pytest.warns(UserWarning, match="render_mode is None"):
        assert venv.get_images() == [None] * 3


# With what SB3 puts around vector envs.


@WORKERS
@pytest.mark.parametrize(
    "wrap",
    [
        VecMonitor,
        partial(VecFrameStack, n_stack=3),
        VecNormalize,
        lambda venv: VecMonitor(VecFrameStack(VecNormalize(venv), 2)),
    ],
    ids=["monitor", "stack", "normalize", "all"],
)
def test_wrappers_of_sb3_see_what_they_see_elsewhere(
    adapt: Any, num_workers: int, wrap: Any
) -> None:
    ours = wrap(adapt("CartPole-v1", num_workers=num_workers))
    theirs = wrap(DummyVecEnv([lambda: gym.make("CartPole-v1")] * NUM_ENVS))
    for venv in (ours, theirs):
        venv.seed(3)
    same(ours.reset(), theirs.reset())
    rng = np.random.default_rng(0)
    num_episodes = 0
    for _ in range(120):
        actions = rng.integers(2, size=NUM_ENVS)
        result, expected = ours.step(actions), theirs.step(actions)
        for info in (*result[3], *expected[3]):
            num_episodes += "episode" in info
            # How long it took is no part of what is compared.
            info.get("episode", {}).pop("t", None)
        same(result, expected)
    if isinstance(ours, VecMonitor):
        assert num_episodes > 10


@WORKERS
def test_images_are_transposed_with_their_last_observation(adapt: Any, num_workers: int) -> None:
    ours = VecTransposeImage(adapt(sketch("image"), num_workers=num_workers))
    play_alike(ours, VecTransposeImage(DummyVecEnv([sketch("image")] * NUM_ENVS)), 30)


@WORKERS
def test_monitors_inside_tell_ppo_how_episodes_went(adapt: Any, num_workers: int) -> None:
    venv = adapt("CartPole-v1", num_workers=num_workers, wrappers=[Monitor])
    model = PPO("MlpPolicy", venv, n_steps=64, batch_size=64, n_epochs=1, device="cpu", seed=0)
    model.learn(384)
    assert model.num_timesteps == 384
    lengths = [episode["l"] for episode in model.ep_info_buffer]
    assert len(lengths) > 5
    # With a monitor there is no warning, which would be an error here.
    mean, _ = evaluate_policy(model, venv, n_eval_episodes=4)
    assert 5 < mean <= 500


@WORKERS
@pytest.mark.parametrize("algorithm", [DQN, A2C])
def test_other_algorithms_learn_too(adapt: Any, num_workers: int, algorithm: Any) -> None:
    settings = {"learning_starts": 50} if algorithm is DQN else {}
    venv = VecMonitor(adapt("CartPole-v1", num_workers=num_workers))
    model = algorithm("MlpPolicy", venv, device="cpu", seed=0, **settings).learn(300)
    assert model.num_timesteps >= 300
    assert len(model.ep_info_buffer) > 5


def test_sac_learns_with_continuous_actions_and_multi_input(adapt: Any) -> None:
    space = Box(-2, 2, (1,), np.float32)
    venv = adapt(sketch("dict", action_space=space))
    SAC("MultiInputPolicy", venv, learning_starts=30, device="cpu", buffer_size=100).learn(90)


@WORKERS
def test_ppo_learns_exactly_what_it_learns_elsewhere(adapt: Any, num_workers: int) -> None:
    def weights(venv: VecEnv) -> Any:
        model = PPO("MlpPolicy", venv, n_steps=32, batch_size=32, n_epochs=2, device="cpu", seed=3)
        return model.learn(192).policy.state_dict()

    theirs = weights(DummyVecEnv([lambda: gym.make("CartPole-v1")] * NUM_ENVS))
    ours = weights(adapt("CartPole-v1", num_workers=num_workers))
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours[name].numpy(), value.numpy(), err_msg=name)


# With a curriculum.


def practice(length: int = 3, success: float = 1.0) -> Staged:
    return Staged(
        staged_tasks(length=length, success=success),
        stages=("simplest", "simpler", "simple"),
        mixing=None,
        early=None,
        trend=None,
        min_episodes=12,
    )


@WORKERS
def test_every_episode_counts_once_and_stages_advance(adapt: Any, num_workers: int) -> None:
    curriculum = practice()
    venv = adapt(
        PracticeEnv, 4, num_workers=num_workers, curriculum=curriculum, check_interval_episodes=1
    )
    assert venv.curriculum is curriculum
    venv.reset()
    seen: Counter[str] = Counter()
    for _ in range(30):
        _, _, dones, infos = venv.step(np.zeros(4, dtype=np.int64))
        seen.update(infos[index]["curriculum_label"] for index in np.flatnonzero(dones))
        assert all("terminal_observation" in infos[index] for index in np.flatnonzero(dones))
    # 10 episodes of 3 steps in each of 4 envs, and one more begun in each.
    counts = venv.counts
    assert (counts.finished, counts.aborted, counts.in_flight, counts.started) == (40, 0, 4, 44)
    assert venv.total_episodes == curriculum.num_observed == 40
    # A stage is left after 12 episodes; 4 more have been drawn then, within the step of the last.
    assert seen == {"simplest": 16, "simpler": 16, "simple": 8}
    assert [info["curriculum_label"] for info in venv.reset_infos] == ["simple"] * 4
    assert venv.check_agreement() == curriculum.plan.version
    assert venv.env_method("get_curriculum_stage") == ["simple"] * 4
    assert venv.env_is_wrapped(CurriculumEnv) == [True] * 4
    # Also through wrappers of SB3.
    assert VecMonitor(venv).counts.finished == 40


@WORKERS
def test_ppo_trains_with_a_curriculum_and_all_is_counted(adapt: Any, num_workers: int) -> None:
    curriculum = practice(length=2)
    venv = adapt(PracticeEnv, 4, num_workers=num_workers, curriculum=curriculum, wrappers=[Monitor])
    model = PPO("MlpPolicy", venv, n_steps=16, batch_size=64, n_epochs=1, device="cpu")
    model.learn(128)
    assert curriculum.num_observed == 128 // 2
    assert len(model.ep_info_buffer) == 64
    assert curriculum.current_stage == "simple"


@WORKERS
def test_a_snapshot_goes_on_in_another_vector_env(adapt: Any, num_workers: int) -> None:
    def play(venv: Any, num_steps: int) -> list[str]:
        drawn = []
        for _ in range(num_steps):
            venv.step(np.zeros(4, dtype=np.int64))
            drawn += [info["curriculum_task"] for info in venv.reset_infos]
        return drawn

    def make(num_workers: int) -> Any:
        curriculum = Uniform(staged_tasks(length=1), seed=2)
        return adapt(PracticeEnv, 4, num_workers=num_workers, curriculum=curriculum)

    venv = make(num_workers)
    venv.reset()
    play(venv, 5)
    saved = venv.snapshot()
    expected = play(venv, 20)
    other = make(0)
    other.restore(saved)
    with pytest.raises(ChannelError, match="Reset the vector env first"):
        other.step(np.zeros(4, dtype=np.int64))
    other.reset()
    assert len(set(expected)) > 5
    assert play(other, 20) == expected


@pytest.mark.processes
@LIMIT
def test_training_goes_on_when_a_worker_dies(adapt: Any) -> None:
    class Practice(PracticeEnv):
        def pid(self) -> int:
            return os.getpid()

    curriculum = practice(length=5)
    venv = adapt(Practice, 4, num_workers=1, curriculum=curriculum)
    venv.reset()
    actions = np.zeros(4, dtype=np.int64)
    venv.step(actions)
    # Envs 0 and 1 are in this process.
    os.kill(venv.env_method("pid", indices=3)[0], signal.SIGKILL)
    _, _, dones, infos = venv.step(actions)
    assert dones.tolist() == [False, False, True, True]
    assert [info["TimeLimit.truncated"] for info in infos] == dones.tolist()
    assert [info.get("worker_died", False) for info in infos] == dones.tolist()
    for _ in range(20):
        venv.step(actions)
    counts = venv.counts
    assert (counts.aborted, counts.finished) == (2, 4 * 4)


# What does not fit.


def test_only_what_make_vec_returns_is_taken() -> None:
    vec = SyncVectorEnv([lambda: gym.make("CartPole-v1")] * 2)
    with pytest.raises(ConfigError, match=r"needs what make_vec returns; got a SyncVectorEnv"):
        as_vec_env(vec)
    vec.close()


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"num_batches": 2}, "num_batches=1"), ({"copy": False}, "copy=True")],
    ids=["batches", "copy"],
)
def test_settings_that_sb3_cannot_live_with_are_refused(
    settings: dict[str, Any], message: str
) -> None:
    vec = make_vec("CartPole-v1", 2, num_workers=0, **settings)
    with pytest.raises(ConfigError, match=message):
        as_vec_env(vec)
    # Nothing has been changed by then.
    assert vec.unwrapped.merges_infos
    assert vec.metadata["autoreset_mode"].value == "NextStep"
    vec.close()


def test_a_vector_env_that_runs_in_another_mode_is_refused() -> None:
    vec = make_vec("CartPole-v1", 2, num_workers=0)
    vec.reset(seed=0)
    with pytest.raises(ConfigError, match="make it with autoreset_mode='SameStep'"):
        as_vec_env(vec)
    vec.close()


def test_one_that_runs_in_the_right_mode_is_taken() -> None:
    vec = make_vec("CartPole-v1", 2, num_workers=0, autoreset_mode="SameStep")
    vec.reset(seed=0)
    venv = as_vec_env(vec)
    venv.reset()
    venv.close()
    venv.close()


def test_the_curriculum_may_be_put_around_by_hand() -> None:
    vec = WorkerVectorEnv([lambda: CurriculumEnv(PracticeEnv())] * 2)
    venv = as_vec_env(CurriculumVectorEnv(vec, Uniform(staged_tasks(length=1))))
    venv.reset()
    venv.step(np.zeros(2, dtype=np.int64))
    assert venv.counts.finished == 2
    venv.close()
