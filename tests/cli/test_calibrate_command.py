"""``stepladder calibrate``: from a training to a scenario that other commands take."""

import json
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from cli.command_line import CommandLine
from simulator.calibration.known_learner import make_training
from stepladder import Task, train
from stepladder.agents import PPOConfig
from stepladder.curricula import UniformConfig
from stepladder.runs import Run
from stepladder.simulator import scenario


class Guess(gym.Env):
    """Name the sign of a number several times in a row; the task says how often."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def set_task(self, task: Task) -> None:
        self.length = task.params["length"]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.num_steps = 0
        return self._next(), {}

    def _next(self):
        self.seen = self.np_random.uniform(-1.0, 1.0, 1).astype(np.float32)
        return self.seen

    def step(self, action):
        is_right = bool(action == int(self.seen[0] > 0.0))
        self.num_steps += 1
        has_won = is_right and self.num_steps == self.length
        info = {"is_success": has_won}
        return self._next(), float(is_right), has_won or not is_right, False, info


def train_tiny(folder: str) -> None:
    tasks = [
        Task(f"{length}-{number}", f"length {length}", {"length": length})
        for length in (1, 3, 6)
        for number in range(4)
    ]
    train(
        env=Guess,
        tasks=tasks,
        curriculum=UniformConfig(),
        agent=PPOConfig(rollout_steps=256, minibatch_size=128, learning_rate=3e-3),
        num_envs=8,
        num_workers=0,
        total_steps=8_000,
        epoch_steps=512,
        run_folder=folder,
    )


@pytest.mark.slow
def test_a_training_of_ones_own_env_becomes_a_scenario(command: CommandLine) -> None:
    train_tiny("runs/guess")
    code, out, err = command("calibrate", "runs/guess", "--out", "mine.json", "--goal", 0.8)
    assert (code, err) == (0, "")
    for word in ("1 run", "3 labels", "length 1", "beginning", "predicted", "constant rate"):
        assert word in out
    assert "goal: success 0.8 on held-out tasks of the target" in out
    copy = scenario("mine.json")
    assert copy.num_tasks == 12
    assert copy.dynamics.groups == ("length 1", "length 3", "length 6")
    assert copy.dynamics.update_steps == 256
    compared = command(
        *("compare", "--scenarios", "mine.json", "--curricula", "staged", "frontier"),
        *("--num-seeds", 1, "--num-envs", 8, "--budget", 20_000, "--json"),
    )
    assert [json.loads(line)["curriculum"] for line in compared.out.splitlines()] == [
        *("oracle", "uniform", "staged", "frontier")
    ]


@pytest.fixture
def known(command: CommandLine) -> Path:
    return make_training("runs/known", num_steps=60_000, num_epochs=20)


def test_the_scenario_is_taken_by_simulate_and_sweep(command: CommandLine, known: Path) -> None:
    assert command("calibrate", known).code == 0
    place = ("--scenario", "scenario.json", "--num-envs", 16)
    assert command("simulate", "uniform", *place, "--num-epochs", 2, "--no-keep").code == 0
    swept = command(
        *("sweep", *place, "--num-seeds", 1, "--budget", 20_000, "--grid", "probing=0.05,0.1")
    )
    assert swept.code == 0


def test_json_has_everything_and_no_file_is_written(command: CommandLine, known: Path) -> None:
    code, out, err = command("calibrate", known, "--json", "--target", "jump")
    assert (code, err, out.count("\n")) == (0, "", 1)
    found = json.loads(out)
    assert found["runs"] == ["known"]
    assert [label["label"] for label in found["labels"]] == ["walk", "jump", "climb"]
    assert found["scenario"]["dynamics"]["target"] == [0.0, 1.0, 0.0]
    assert set(found["forecast"]) == {"plays", "learner", "constant", "last"}
    assert not Path("scenario.json").exists()


def test_a_copy_of_ours_is_replaced_and_nothing_else(command: CommandLine, known: Path) -> None:
    assert command("calibrate", known).code == 0
    assert command("calibrate", known).code == 0
    Path("scenario.json").write_text("{}")
    assert "was not written by this command" in command.fails("calibrate", known)


def test_the_help_names_every_option(command: CommandLine) -> None:
    out = command("calibrate", "--help").out
    for word in ("--out", "--goal", "--target", "--seed", "--json"):
        assert word in out
    assert "calibrate" in command("--help").out


def test_a_mistake_is_one_line(command: CommandLine, known: Path) -> None:
    make_training("runs/simulated", num_steps=2_000, num_epochs=2, kind="simulation")
    with Run.create("runs/plain", kind="training") as run:
        run.log(1, {"overview/reward": 1.0})
    make_training("runs/damaged", num_steps=2_000, num_epochs=2)
    Path("runs/damaged/run.sqlite").write_bytes(b"nothing" * 1_000)
    mistakes = {
        (): "there is no run to calibrate on",
        ("nowhere",): "nowhere is not a folder",
        ("runs/simulated",): "is a simulation",
        ("runs/plain",): "has no results per label of tasks",
        ("runs/damaged",): "Restore it from a copy",
        (known, "--goal", 1): "goal must",
        (known, "--target", "fly"): "target names 'fly'",
        (known, "--out", "runs"): "runs is a folder",
    }
    for argv, said in mistakes.items():
        assert said in command.fails("calibrate", *argv)
    assert not Path("scenario.json").exists()
