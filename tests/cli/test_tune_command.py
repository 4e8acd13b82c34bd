"""``stepladder tune``: a table of this machine, a line to paste, and nothing left behind."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import psutil
import pytest

from cli.command_line import CommandLine, finished, running, wait_until
from stepladder.cli import tune as verb
from stepladder.envs.tuning import Tuning, TuningRow

MODULE = """
import os
import pathlib
import time

import gymnasium as gym


class Slow(gym.Env):
    observation_space = gym.spaces.Box(0.0, 1.0, (1,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return self.observation_space.low, {}

    def step(self, action):
        pathlib.Path(f"{os.getpid()}.stepped").touch()
        time.sleep(0.005)
        return self.observation_space.low, 0.0, False, False, {}


def make_env():
    return gym.make("CartPole-v1")


def make_nothing():
    return None


number = 4
gym.register("Unversioned", entry_point=Slow)
"""


class Asked:
    """Stands for the measurement: keeps what it was asked, answers always the same."""

    def __init__(self) -> None:
        self.env: Any = None
        self.settings: dict[str, Any] = {}

    def __call__(self, env: Any, **settings: Any) -> Tuning:
        self.env, self.settings = env, settings
        rows = tuple(
            TuningRow(
                num_envs=n, num_workers=w, steps_per_s=1000.0 * n * (w + 1), speedup=n * (w + 1)
            )
            for n, w in ((1, 0), (2, 0), (2, 1))
        )
        for row in rows:
            settings["on_row"](row)
        name = env if isinstance(env, str) else env.__name__
        is_id = isinstance(env, str)
        return Tuning(
            env=name,
            is_id=is_id,
            num_cores=2,
            single_steps_per_s=1000.0,
            single_spread=0.05,
            rows=rows,
        )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    made = Asked()
    monkeypatch.setattr(verb, "tune", made)
    return made


@pytest.fixture
def module(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[str]:
    """Write a module into the working directory; no other test has one of its name."""
    name = f"worlds_{abs(hash(request.node.name))}"
    Path(f"{name}.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield name
    gym.registry.pop("Unversioned", None)


def test_the_table_is_followed_by_a_line_to_paste(command: CommandLine, asked: Asked) -> None:
    code, out, err = command("tune", "CartPole-v1")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "CartPole-v1 on 2 cores; one env in a plain loop: 1,000 steps/s"
    assert "    2         2    4,000   4.00x *" in lines
    assert "*  the fewest envs, then workers, within 5 % of the fastest:" in lines
    assert lines[-1] == 'make_vec("CartPole-v1", num_envs=2, num_workers=1)'


def test_flags_reach_the_measurement(command: CommandLine, asked: Asked) -> None:
    flags = ("--worker-counts", 0, 3, "--env-counts", 4, 8, "--seconds", 2.5, "--seed", 7)
    assert command("tune", "CartPole-v1", *flags).code == 0
    del asked.settings["on_row"]
    assert asked.settings == {
        "worker_counts": (0, 3),
        "env_counts": (4, 8),
        "seconds": 2.5,
        "seed": 7,
    }
    command("tune", "CartPole-v1")
    assert asked.settings["worker_counts"] is asked.settings["env_counts"] is None


def test_json_is_one_object_per_setting_and_nothing_else(
    command: CommandLine, asked: Asked
) -> None:
    code, out, err = command("tune", "CartPole-v1", "--json")
    assert (code, err) == (0, "")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [(row["num_envs"], row["num_workers"], row["is_best"]) for row in rows] == [
        *((1, 0, False), (2, 0, False), (2, 1, True))
    ]


def test_a_function_in_a_module_of_the_working_directory_is_found(
    command: CommandLine, asked: Asked, module: str
) -> None:
    out = command("tune", f"{module}:make_env").out
    assert asked.env().spec.id == "CartPole-v1"
    assert out.splitlines()[-1] == (
        f"make_vec(make_env, num_envs=2, num_workers=1)  # from {module} import make_env"
    )


@pytest.mark.parametrize("name", ["CartPole-v1", "stepladder/Ledge-v0", "gymnasium:CartPole-v1"])
def test_what_is_no_function_is_an_id(command: CommandLine, asked: Asked, name: str) -> None:
    assert command("tune", name).code == 0
    assert asked.env == name


def test_an_id_without_a_version_may_stand_in_a_module(
    command: CommandLine, asked: Asked, module: str
) -> None:
    assert command("tune", f"{module}:Unversioned").code == 0
    assert asked.env == f"{module}:Unversioned"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["Nope-v1"], "'Nope-v1' cannot be found: Environment `Nope` doesn't exist."),
        (["nomodule:make"], "the module 'nomodule' cannot be imported: No module named 'nomodule'"),
        (["a/b.py:make"], "'a/b.py' is not the name of a module. Write it as in an import"),
        (["MODULE:nope"], "MODULE has no function 'nope', nor does it register an env"),
        (["MODULE:number"], "MODULE has no function 'number'"),
        (
            ["MODULE:make_nothing"],
            "make_nothing should make an env and returned None. Return one env",
        ),
        (["CartPole-v1", "--seconds", "-1"], "seconds must be finite and above 0; got -1.0"),
        (["CartPole-v1", "--env-counts", "0"], "--env-counts must be an integer of at least 1"),
        (
            ["CartPole-v1", "--env-counts", "x"],
            "--env-counts must be an integer of at least 1; got 'x'",
        ),
        ([], "ENV"),
    ],
)
def test_a_mistake_is_one_line(
    command: CommandLine, module: str, argv: list[str], said: str
) -> None:
    said_here = said.replace("MODULE", module)
    argv_here = [word.replace("MODULE", module) for word in argv]
    assert said_here in command.fails("tune", *argv_here)


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_a_pipe_receives_json_alone(tmp_path: Path) -> None:
    Path(tmp_path, "worlds.py").write_text(MODULE)
    flags = ("--env-counts", 2, "--worker-counts", 0, 1, "--seconds", 0.05, "--json")
    code, out, err = finished("tune", "worlds:make_env", *flags, cwd=tmp_path)
    assert (code, err) == (0, "")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [(row["env"], row["num_envs"], row["num_workers"]) for row in rows] == [
        *(("make_env", 2, 0), ("make_env", 2, 1))
    ]
    assert min(row["steps_per_s"] for row in rows) > 0


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_an_interruption_is_quiet_and_leaves_no_process(tmp_path: Path) -> None:
    Path(tmp_path, "worlds.py").write_text(MODULE)
    flags = ("--env-counts", 4, "--worker-counts", 1, 2, "--seconds", 2.5)
    with running("tune", "worlds:Slow", *flags, cwd=tmp_path) as process:
        # The main process and its three workers.
        wait_until(lambda: len(list(tmp_path.glob("*.stepped"))) >= 4, process)
        children = psutil.Process(process.pid).children(recursive=True)
        assert len(children) >= 3
        # As a terminal does it: everybody is told at once.
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=20)
        _, alive = psutil.wait_procs(children, timeout=5)
    assert (process.returncode, out, err) == (130, "", "")
    assert alive == []
