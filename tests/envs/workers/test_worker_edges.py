"""Corners of the worker vector env that a careful user ran into."""

import logging
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from stepladder import Task, Uniform, make_vec
from stepladder.curricula.base import Curriculum
from stepladder.envs.workers.parent.worker_handle import WorkerHandle
from stepladder.envs.workers.parent.worker_pool import WorkerPool
from stepladder.errors import ConfigError, EnvError, EnvTimeoutError
from worker_envs import NEXT_STEP, SAME_STEP, trouble_envs, worker_env


class Counter(gym.Env[Any, Any]):
    """Ends after three steps; its reward is what it is told to return."""

    observation_space = spaces.Discrete(10)
    action_space = spaces.Discrete(2)

    def __init__(self, reward: Any = 1.0):
        self.reward = reward
        self.time = 0

    def set_task(self, task: Task) -> None:
        """Take any task."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.time = 0
        return 0, {}

    def step(self, action: Any) -> tuple[int, Any, bool, bool, dict[str, Any]]:
        self.time += 1
        ended = self.time == 3
        return self.time, self.reward, ended, False, {"is_success": True} if ended else {}

    def wait(self, seconds: float) -> None:
        """Keep the caller waiting, if it is env 3."""
        signal.pause() if seconds and self.np_random_seed == 3 else None

    def close(self) -> None:
        if self.reward == "bad close":
            raise OSError("the door is stuck")


ZEROS = np.zeros(4, dtype=np.int64)


@pytest.mark.parametrize("reward", [np.array([0.5]), np.float32(0.5), np.array(0.5)])
def test_a_reward_may_be_an_array_with_one_number(reward: Any) -> None:
    with make_vec(lambda: Counter(reward), 4, num_workers=0) as envs:
        envs.reset(seed=0)
        assert envs.step(ZEROS)[1].tolist() == [0.5] * 4


@pytest.mark.parametrize("reward", [None, "1", np.array([1.0, 2.0])])
def test_a_reward_that_is_no_number_is_named(reward: Any) -> None:
    with make_vec(lambda: Counter(reward), 4, num_workers=0) as envs:
        envs.reset(seed=0)
        with pytest.raises(EnvError, match=r"env 0 returned the reward .* expected a number"):
            envs.step(ZEROS)


def test_envs_may_be_listed_by_id_spec_and_function_alike() -> None:
    cart: Callable[[], Any] = lambda: gym.make("CartPole-v1")  # noqa: E731
    with make_vec(["CartPole-v1", gym.spec("CartPole-v1"), cart], num_workers=0) as envs:
        assert envs.num_envs == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"env": lambda: None}, "returned None"),
        ({"env": lambda: gym.make_vec("CartPole-v1", 2)}, "Return one env"),
        ({"wrappers": [lambda env: None]}, "returned None"),
        ({"curriculum": "easy"}, "expected a curriculum; got 'easy'"),
        ({"check_interval_episodes": 3}, "check_interval_episodes was given without a curriculum"),
        ({"copy": "yes"}, "copy must be a bool"),
        ({"parent_steps": 3}, "parent_steps must be a bool"),
        ({"env": "CartPole-v1", "env_kwargs": 3}, "env_kwargs must be a dict"),
        ({"env": []}, "the list of envs is empty"),
        ({"env": [3], "num_envs": None}, "expected an env id"),
    ],
)
def test_nonsense_is_refused_in_one_line(arguments: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"env": Counter, "num_envs": 2, "num_workers": 0, **arguments}
    if given["env"] == []:
        given["num_envs"] = None
    with pytest.raises(ConfigError, match=said) as caught:
        make_vec(**given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("seed", [1.5, True, "x", [1, 2.0, 3, 4], [1, None, True, 4]])
def test_a_seed_that_is_no_whole_number_is_refused(seed: Any) -> None:
    with (
        make_vec(Counter, 4, num_workers=0) as envs,
        pytest.raises(ConfigError, match="seed must be"),
    ):
        envs.reset(seed=seed)


def test_seeds_may_be_an_array() -> None:
    with make_vec(Counter, 4, num_workers=0) as envs:
        envs.reset(seed=np.array([5, 6, 7, 8]))  # type: ignore[arg-type]
        assert envs.get_attr("np_random_seed") == (5, 6, 7, 8)


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_a_trial_of_envs_leaves_the_global_generators_as_they_were() -> None:
    class Chancy(Counter):
        def step(self, action: Any) -> Any:
            random.random()
            np.random.random()  # noqa: NPY002, what an env of others may do
            return super().step(action)

    random.seed(3)
    np.random.seed(3)  # noqa: NPY002
    expected = random.random(), np.random.random()  # noqa: NPY002
    random.seed(3)
    np.random.seed(3)  # noqa: NPY002
    make_vec(Chancy, 4, num_workers="auto").close()
    assert (random.random(), np.random.random()) == expected  # noqa: NPY002


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_a_call_that_hangs_is_named_by_its_env() -> None:
    with make_vec(Counter, 4, num_workers=1, timeout_s=0.5) as envs:
        envs.reset(seed=0)
        with pytest.raises(EnvTimeoutError, match=r"env 3, in worker process .* call") as caught:
            envs.call("wait", 60.0)
        assert caught.value.env_index == 3
        # The worker was killed; a new one answers.
        assert len(envs.get_attr("reward")) == 4


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_every_env_that_cannot_be_closed_is_named(caplog: pytest.LogCaptureFixture) -> None:
    rewards = [1.0, "bad close", "bad close", "bad close"]
    envs = make_vec([lambda reward=reward: Counter(reward) for reward in rewards], num_workers=1)
    with caplog.at_level(logging.ERROR, logger="stepladder.envs"):
        envs.close()
    raised = [record.exc_info[1] for record in caplog.records if record.exc_info]
    assert sorted(getattr(error, "env_index", None) for error in raised) == [1, 2, 3]


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_a_worker_killed_while_it_is_being_reconnected_is_replaced_again() -> None:
    curriculum = Uniform([Task(str(number)) for number in range(5)])
    with make_vec(Counter, 4, curriculum=curriculum, num_workers=1) as envs:
        envs.reset(seed=0)
        base: Any = envs.unwrapped
        kills = [1]

        def kill_once(rows: list[int]) -> None:
            if kills:
                kills.pop()
                os.kill(worker_pid(base), signal.SIGKILL)

        base._coordinator.restarts.listeners.insert(0, kill_once)
        os.kill(worker_pid(base), signal.SIGKILL)
        lost = 0
        for _ in range(10):
            infos = envs.step(ZEROS)[4]
            lost += int(infos.get("_worker_died", ZEROS).sum())
        assert (kills, lost) == ([], 2)
        assert_conserved(curriculum, envs)


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_what_was_set_can_be_set_again_in_the_envs_of_a_restarted_worker() -> None:
    with make_vec(Counter, 4, num_workers=1) as envs:
        envs.reset(seed=0)
        rewards = [1.0, 2.0, 3.0, 4.0]
        envs.set_attr("reward", rewards)
        base: Any = envs.unwrapped
        base.on_restart(
            lambda rows: base.set_attr_on(rows, "reward", [rewards[row] for row in rows])
        )
        os.kill(worker_pid(envs), signal.SIGKILL)
        for _ in range(3):
            given = envs.step(ZEROS)[1]
        assert given.tolist() == rewards


class Slow(Counter):
    """Takes for ever to be made, if it is the fourth."""

    def __init__(self, number: int):
        super().__init__()
        if number == 3:
            signal.pause()


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_an_env_that_is_never_made_is_named() -> None:
    functions = [lambda number=number: Slow(number) for number in range(4)]
    with pytest.raises(EnvTimeoutError, match="env 3, in worker process") as caught:
        make_vec(functions, num_workers=1, timeout_s=0.5)
    assert caught.value.env_index == 3


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_an_enum_of_the_main_program_arrives_as_itself(tmp_path: Path) -> None:
    script = tmp_path / "main_program.py"
    script.write_text(MAIN_PROGRAM)
    for method in ("fork", "spawn"):
        done = subprocess.run(
            [sys.executable, str(script), method],
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, "[1, 1, 1, 1] True\n"), done.stderr


MAIN_PROGRAM = """
import enum, sys
import gymnasium as gym, numpy as np
from stepladder import make_vec

class Mode(enum.Enum):
    EASY, HARD = 1, 2

class Switch(gym.Env):
    observation_space = gym.spaces.Discrete(2)
    action_space = gym.spaces.Discrete(2)
    mode = Mode.EASY
    def reset(self, *, seed=None, options=None):
        self.mode = options["mode"]
        return int(self.mode is Mode.HARD), {}
    def step(self, action):
        return 0, 0.0, False, False, {}

if __name__ == "__main__":
    gym.register("Switch-v0", Switch)
    with make_vec("Switch-v0", 4, num_workers=1, start_method=sys.argv[1]) as envs:
        observations, _ = envs.reset(options={"mode": Mode.HARD})
        print(observations.tolist(), all(mode is Mode.HARD for mode in envs.get_attr("mode")))
"""


def worker_pid(base: Any) -> int:
    return base._coordinator._pool.handles[0].process.pid


def assert_conserved(curriculum: Curriculum, envs: Any) -> None:
    counts = envs.counts
    assert counts.started == counts.finished + counts.aborted + counts.in_flight
    assert counts.finished == curriculum.num_observed
    assert counts.aborted == 2


@pytest.mark.processes
@pytest.mark.timeout(60)
@pytest.mark.parametrize("mode", [NEXT_STEP, SAME_STEP])
def test_no_row_is_spoken_of_twice_when_a_worker_dies_after_it_has_spoken(mode: Any) -> None:
    with worker_env(trouble_envs(4, length=3), num_workers=1, autoreset_mode=mode) as vec:
        vec.reset(seed=0)
        coordinator: Any = vec._coordinator
        for _ in range(2):
            vec.step(ZEROS)
        # The worker carries the step out, in which all envs end, and is then killed; the parent
        # is made to believe that it had not moved on from its first env.
        coordinator.begin_step(0)
        while not coordinator._pool.is_done(0, 0):
            pass
        lane = coordinator._pool.lane(0, 0)
        os.kill(worker_pid(vec), signal.SIGKILL)
        lane["done"], lane["progress"] = 0, 0
        infos = coordinator.finish_step(0)
        rows = [row for row, _ in infos]
        assert len(rows) == len(set(rows))


TORCH = """
import os, signal, sys
import gymnasium as gym, numpy as np, torch
from stepladder import make_vec

class Opponent(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (4,), np.float32)
    action_space = gym.spaces.Discrete(2)
    def __init__(self):
        self.net = torch.nn.Linear(512, 512)
    def reset(self, *, seed=None, options=None):
        return np.zeros(4, np.float32), {}
    def step(self, action):
        with torch.no_grad():
            self.net(torch.zeros(256, 512)).sum()
        return np.zeros(4, np.float32), 0.0, False, False, {}

torch.set_num_threads(2)
with make_vec(Opponent, 4, num_workers=1, timeout_s=10, start_method="fork") as envs:
    envs.reset(seed=0)
    torch.nn.Linear(512, 512)(torch.zeros(256, 512)).sum().backward()
    os.kill(envs._coordinator._pool.handles[0].process.pid, signal.SIGKILL)
    for _ in range(3):
        truncated = envs.step(np.zeros(4, int))[3]
print("went on")
"""


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_a_restarted_worker_can_use_torch_though_its_parent_has_threads() -> None:
    done = subprocess.run(
        [sys.executable, "-c", TORCH], capture_output=True, text=True, timeout=50, check=False
    )
    assert (done.returncode, done.stdout) == (0, "went on\n"), done.stderr


@pytest.mark.processes
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("owner", "moment"), [(WorkerPool, "_start"), (WorkerHandle, "send"), (WorkerPool, "ask")]
)
def test_ctrl_c_while_a_worker_is_replaced_can_be_followed_by_a_reset(
    owner: type, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with worker_env(4, num_workers=1, timeout_s=3.0) as vec:
        vec.reset(seed=0)
        os.kill(worker_pid(vec), signal.SIGKILL)
        with monkeypatch.context() as patch:
            patch.setattr(owner, moment, interrupted)
            with pytest.raises(KeyboardInterrupt):
                vec.step(ZEROS)
        # Without seeds, which would go through the pipe and be refused there.
        vec.reset()
        assert vec.get_attr("env_index") == (0, 1, 2, 3)
        np.testing.assert_array_equal(vec.step(ZEROS)[0][:, 2], 1)


def interrupted(*arguments: Any) -> None:
    raise KeyboardInterrupt
