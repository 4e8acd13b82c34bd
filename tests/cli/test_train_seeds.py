"""``stepladder train --seeds``: a run for each seed, what fails, what goes on, and a table."""

import json
import shutil
from pathlib import Path

import pytest

from cli.command_line import CommandLine
from stepladder.runs import RunReader

pytest.importorskip("torch")

SMALL = (
    *("--num-envs", "2", "--epoch-steps", "32", "--evaluation.num-games", "2"),
    *("--agent.rollout-steps", "32", "--agent.minibatch-size", "16", "--agent.hidden-sizes", "8"),
    *("--total-steps", "64"),
)

WORLD = '''
import os, signal
import gymnasium as gym
import numpy as np

def only_first(name):
    """Whether nobody has come here before."""
    try:
        os.close(os.open(name, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True

class World(gym.Env):
    observation_space = gym.spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.num_steps = 0
        if only_first("dead"):
            print("this is the end")
            os.kill(os.getpid(), signal.SIGKILL)
        if only_first("raised"):
            raise ValueError("no such level")
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.num_steps += 1
        return np.zeros(1, np.float32), 1.0, False, self.num_steps >= 4, {"is_success": True}
'''


@pytest.mark.processes
@pytest.mark.timeout(100)
def test_seeds_that_fail_are_named_and_the_others_go_on(
    command: CommandLine,
) -> None:
    Path("worlds.py").write_text(WORLD)
    own = ("--env", "worlds:World", "--num-workers", 0, *SMALL)
    code, out, err = command("train", *own, "--seeds", 3, "--jobs", 3, "--out", "several")
    assert (code, err) == (2, "")
    assert "PPO on worlds:World, 2 envs, 3 seeds in several" in out
    assert "\nfinished: 1 of 3 seeds have finished\n" in out
    assert "failed: its process was ended by signal 9; " in out
    assert "failed: ValueError: no such level" in out
    again = "stepladder train --resume several --jobs 3 --trust"
    assert out.endswith(
        f"\neverything is saved in several; continue what is left with:\n  {again}\n"
    )
    (log,) = [path for path in Path("several").glob("*.log") if "the end" in path.read_text()]
    assert log.name in out
    # Of somebody else's nothing is imported without permission.
    shutil.copytree("several", "theirs")
    assert "add --trust" in command.fails("train", "--resume", "theirs")
    told = json.loads(command("train", "--resume", "several", "--jobs", 2, "--trust", "--json").out)
    assert [one["status"] for one in told["seeds"]] == ["finished"] * 3
    assert (told["run"], told["failures"], told["resume"]) == ("several", [], None)
    assert RunReader("several/seed-2").seed == 2
    code, out, err = command("report", "several")
    assert (code, err) == (0, "")
    assert out.startswith("several: 3 of 3 seeds finished\n\nshare of held-out episodes solved, at")
    assert "seed-2" in Path("report.html").read_text()
    out = command("train", "--resume", "several", "--trust").out
    assert "\nnothing is left to do: 3 of 3 seeds have finished\n" in out
    assert out.endswith("\n  stepladder train --resume several --total-steps 128 --trust\n")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--seeds", "0"], "--seeds must be an integer of at least 1; got 0"),
        (["--seeds", "2", "--jobs", "0"], "--jobs must be an integer of at least 1; got 0"),
        (["--jobs", "2"], "--jobs is for several trainings at once. Add --seeds"),
        (["--seeds", "2", "--no-keep"], "--seeds needs the runs that it compares"),
        (["--seeds", "2", "--out", "full"], "full is not empty and does not hold several seeds"),
    ],
)
def test_a_mistake_is_one_line(command: CommandLine, argv: list[str], said: str) -> None:
    Path("full").mkdir()
    Path("full/thesis.tex").write_text("years of work")
    assert said in command.fails("train", "cartpole", *argv)
    assert sorted(str(path) for path in Path().rglob("*")) == ["full", "full/thesis.tex"]


def test_a_wrong_limit_of_cores_is_named(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPLADDER_CORES", "two")
    said = command.fails("train", "cartpole", "--seeds", 2)
    assert said == "STEPLADDER_CORES must be an integer of at least 1; got 'two'. Correct it."
