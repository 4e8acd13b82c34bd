"""An env that a module registers when it is imported, through every command."""

import json
import os
import signal
from pathlib import Path

import pytest

from cli.command_line import CommandLine, finished, running, wait_until
from stepladder.runs import RunReader

pytest.importorskip("torch")

from stepladder.training.checkpoints import store as checkpoints

MODULE = """
import gymnasium as gym
import numpy as np

class Corridor(gym.Env):
    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}
    observation_space = gym.spaces.Box(-9.0, 9.0, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, length=4, render_mode=None):
        self.length, self.render_mode = length, render_mode

    def seen(self):
        return np.array([self.place, self.num_steps / 9], np.float32)

    def set_task(self, task):
        self.length = task.params["length"]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.num_steps = 0, 0
        return self.seen(), {}

    def step(self, action):
        self.place += 2 * int(action) - 1
        self.num_steps += 1
        there = self.place == self.length
        info = {"success": there} if there or self.num_steps == 9 else {}
        return self.seen(), float(there), there, self.num_steps == 9, info

    def render(self):
        return np.full((8, 8, 3), 20 * self.num_steps, np.uint8)

class Lost(Corridor):
    def __init__(self, render_mode=None):
        self.render_mode = render_mode

class Also(Corridor):
    pass

gym.register("Corridor-v0", "corridors:Corridor")
TASKS = [
    {"name": "near", "label": "near", "params": {"length": 2}},
    {"name": "far", "label": "far", "params": {"length": 8}},
]
"""
ENV = "corridors:Corridor-v0"
SMALL = (
    *("--num-envs", "2", "--epoch-steps", "64", "--evaluation.num-games", "2"),
    *("--agent.rollout-steps", "64", "--agent.minibatch-size", "32", "--agent.hidden-sizes", "8"),
)


def has_checkpoint(run: Path) -> bool:
    # Its folder comes last: a kill before that leaves nothing to resume.
    return bool(checkpoints.find(run))


@pytest.mark.processes
@pytest.mark.timeout(110)
def test_it_is_trained_killed_resumed_evaluated_and_watched(tmp_path: Path) -> None:
    (tmp_path / "corridors.py").write_text(MODULE)
    run = tmp_path / "runs/corridor-0"
    argv = ("train", "--env", ENV, *SMALL, "--checkpoints.every-steps", "64")
    with running(*argv, "--total-steps", "100000000", cwd=tmp_path) as process:
        wait_until(lambda: has_checkpoint(run), process)
        os.killpg(process.pid, signal.SIGKILL)
    assert RunReader(run).config["env"] == ENV

    code, out, err = finished(
        "train", "--resume", run, "--trust", "--total-steps", "10", cwd=tmp_path
    )
    assert (code, err) == (0, "")
    assert "\nfinished after " in out

    code, out, err = finished("eval", run, "--trust", "--episodes", "4", "--json", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert json.loads(out)["env"] == "Corridor-v0"

    code, out, err = finished("watch", run, "--trust", "--out", "film.gif", cwd=tmp_path)
    assert (code, err, out.partition(":")[0]) == (0, "", "film.gif")


def test_one_of_another_library_is_found_and_its_observations_are_refused(
    command: CommandLine,
) -> None:
    pytest.importorskip("minigrid")
    said = command.fails("train", "--env", "minigrid:MiniGrid-Empty-5x5-v0", *SMALL)
    assert said.startswith(
        "agents observe Box, Discrete (up to 256), MultiDiscrete and MultiBinary"
    )
    assert "got MissionSpace under 'mission'" in said
