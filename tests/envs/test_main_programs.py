"""Envs and all that belongs to them, defined where nobody can import it: notebooks and the like."""

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import stepladder
from stepladder.envs.workers import main_program
from stepladder.errors import ConfigError
from worker_envs import TroubleEnv

pytestmark = [pytest.mark.processes, pytest.mark.timeout(100, method="signal")]

SOURCE = Path(stepladder.__file__).parents[1]

DEFINITIONS = """
import enum
import gymnasium as gym
import numpy as np
import stepladder
from stepladder.curricula import Uniform
from stepladder.tasks import ListSource, Task

class Mode(enum.Enum):
    EASY = 1
    HARD = 2

class OwnError(Exception):
    pass

class Base(gym.Env):
    class Settings:
        length = 2

class Env(Base):
    observation_space = gym.spaces.Box(-1, 1, (1,))
    action_space = gym.spaces.Discrete(2)

    def __init__(self):
        super().__init__()
        self.mode = Mode.EASY
        self.task = None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.num_steps = 0
        return np.zeros(1, np.float32), {"mode": self.mode}

    def step(self, action):
        if action == 1:
            raise OwnError("an action that is refused")
        self.num_steps += 1
        done = self.num_steps == Base.Settings.length
        return np.zeros(1, np.float32), 1.0, done, False, {"mode": self.mode, "task": self.task}

    def is_hard(self):
        return self.mode is Mode.HARD

class Calm(Env):
    action_space = gym.spaces.Discrete(1)

class Doubled(gym.RewardWrapper):
    def reward(self, reward):
        return 2 * reward

class Tasks(ListSource):
    def get(self, task_index):
        return super().get(task_index)

def deliver(env, task):
    env.unwrapped.task = task.name

def measure(env):
    return "first", env.unwrapped.mode is Mode.HARD
"""

PLAY = """
def play(start_method):
    factor = 2
    closure = (lambda factor: lambda: Doubled(Env()))(factor)
    vec = stepladder.make_vec(
        [Env, lambda: Env(), closure], num_workers=1, start_method=start_method, timeout_s=60,
        wrappers=[Doubled], parent_steps=False,
    )
    modes = vec.reset(seed=0)[1]["mode"]
    assert all(mode is Mode.EASY for mode in modes)
    vec.set_attr("mode", Mode.HARD)
    assert vec.call("is_hard") == (True, True, True)
    assert vec.apply_on([0, 1, 2], measure) == [("first", True)] * 3
    _, rewards, _, _, infos = vec.step(np.zeros(3, dtype=int))
    assert all(mode is Mode.HARD for mode in infos["mode"])
    assert rewards.tolist() == [2, 2, 4]
    try:
        vec.step(np.array([0, 1, 0]))
    except OwnError as error:
        assert error.env_index == 1
    else:
        raise AssertionError("nothing was raised")
    vec.close()
    print("played", start_method, flush=True)

def play_tasks(start_method):
    curriculum = Uniform(Tasks([Task("a"), Task("b")]), seed=1)
    vec = stepladder.make_vec(
        Calm, 2, num_workers=1, start_method=start_method, curriculum=curriculum,
        curriculum_env={"deliver": deliver, "return_threshold": 3.0, "build_errors": (OwnError,)},
        wrappers=[Doubled], timeout_s=60,
    )
    vec.reset(seed=0)
    for _ in range(5):
        *_, infos = vec.step(np.zeros(2, dtype=int))
    assert vec.counts.finished == 4
    assert set(infos["task"]) <= {"a", "b"}
    vec.close()
"""


def python(*argv: str, text: str | None = None, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program of its own."""
    return subprocess.run(
        [sys.executable, "-W", "error", *argv],
        input=text,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


@pytest.mark.parametrize(
    ("way", "methods"), [("-c", ["fork", "spawn"]), ("-", ["forkserver", "spawn"])]
)
def test_a_program_without_a_file_plays(way: str, methods: list[str], tmp_path: Path) -> None:
    program = DEFINITIONS + PLAY + "".join(f"play({method!r})\n" for method in methods)
    argv = ("-c", program) if way == "-c" else ("-",)
    ended = python(*argv, text=program if way == "-" else None, cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.split() == ["played", methods[0], "played", methods[1]]


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A main module without a file, as IPython has it, in which some cells were run."""
    module = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    exec(compile(DEFINITIONS, "<cell 1>", "exec"), vars(module))
    exec(compile(PLAY, "<cell 2>", "exec"), vars(module))
    return module


@pytest.mark.parametrize("start_method", ["fork", "forkserver", "spawn"])
def test_a_notebook_plays_with_every_start_method(notebook: Any, start_method: str) -> None:
    notebook.play(start_method)
    notebook.play_tasks(start_method)


def test_in_a_notebook_auto_finds_out_how_many_workers(
    notebook: Any, caplog: pytest.LogCaptureFixture
) -> None:
    vec = stepladder.make_vec(notebook.Calm, 4, num_workers="auto", start_method="spawn")
    vec.reset(seed=0)
    vec.close()
    assert "could not be tried" not in caplog.text


CHANGES = """
def measure(env):
    return "second", env.unwrapped.mode is Mode.HARD

class Later(enum.Enum):
    ONE = 1
"""


@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_what_is_defined_or_changed_later_reaches_the_workers(
    notebook: Any, start_method: Any
) -> None:
    vec = stepladder.make_vec(notebook.Env, 2, num_workers=1, start_method=start_method)
    vec.set_attr("mode", notebook.Mode.HARD)
    exec(compile(CHANGES, "<cell 3>", "exec"), vars(notebook))
    assert vec.apply_on([0, 1], notebook.measure) == [("second", True)] * 2
    vec.set_attr("mode", notebook.Later.ONE)
    vec.reset(seed=0)
    assert vec.get_attr("mode")[1].value == 1
    vec.close()


# Programs that a spawned worker imports.

GUARDED = """
if __name__ == "__main__":
    play("spawn")
"""


def test_a_program_that_a_worker_can_import_plays(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(DEFINITIONS + PLAY + GUARDED)
    ended = python("program.py", cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.split() == ["played", "spawn"]


@pytest.mark.parametrize("start_method", ["forkserver", "spawn"])
def test_a_program_without_a_guard_ends_and_says_what_to_do(
    start_method: str, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(f"{DEFINITIONS}{PLAY}\nplay({start_method!r})\n")
    ended = python("program.py", cwd=tmp_path)
    lines = ended.stderr.splitlines()
    assert ended.returncode == 1
    assert ended.stdout == ""
    # No worker has a traceback of its own.
    assert ended.stderr.count("Traceback") == 1
    assert "put what the program runs under `if __name__ == '__main__':`" in lines[-1]


def test_without_a_guard_auto_goes_on_without_workers_and_says_why(tmp_path: Path) -> None:
    program = (
        "import logging; logging.basicConfig()\n"
        "vec = stepladder.make_vec(Calm, 2, start_method='spawn')\n"
        "print(vec.num_workers); vec.close()\n"
    )
    (tmp_path / "program.py").write_text(DEFINITIONS + program)
    ended = python("program.py", cwd=tmp_path)
    assert (ended.returncode, ended.stdout.split()) == (0, ["0"])
    assert "could not be tried with workers (WorkerDiedError: " in ended.stderr
    assert "so all are stepped in this process" in ended.stderr


def test_what_only_the_guarded_part_defines_is_named(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import stepladder, gymnasium as gym\n"
        "if __name__ == '__main__':\n"
        "    def make(): return gym.make('CartPole-v1')\n"
        "    stepladder.make_vec(make, 2, num_workers=1, start_method='spawn')\n"
    )
    ended = python("program.py", cwd=tmp_path)
    assert ended.returncode == 1
    assert (
        "did not find in it what makes its envs (module '__mp_main__' has no attribute 'make'"
        in ended.stderr
    )
    assert "Define it at the top level of the program, or of a module." in ended.stderr


# The parts.


def test_which_main_programs_can_be_imported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    main = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert not main_program.can_be_imported()
    for name, expected in (("program.py", True), ("notes.ipynb", False), ("<stdin>", False)):
        if name != "<stdin>":
            (tmp_path / name).touch()
        main.__file__ = str(tmp_path / name)
        assert main_program.can_be_imported() is expected, name
    with main_program.main_can_start():
        assert not hasattr(main, "__file__")
    assert main.__file__ == str(tmp_path / "<stdin>")


def test_what_a_worker_does_not_find_is_the_users_error() -> None:
    functions = stepladder.envs.workers.child.worker.EnvFunctions([TroubleEnv])
    functions.__setstate__(b"cworker_envs\nNobody\n.")
    with pytest.raises(ConfigError, match="did not find in it what makes its envs"):
        functions.load()
