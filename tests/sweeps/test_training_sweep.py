"""Trainings as what a sweep measures: which settings, stopped and resumed, from files."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.command_line import CommandLine
from stepladder.errors import ConfigError
from stepladder.runs.seeds import summarize
from stepladder.sweeps import SweepChoice, SweepTrial, parse_choice, sweep
from stepladder.training.presets import PRESETS
from stepladder.training.swept import TrainingCell, TrainingSweep

pytest.importorskip("optuna")
pytest.importorskip("torch")

SMALL: dict[str, Any] = {
    "env": "CartPole-v1",
    "num_envs": 2,
    "num_workers": 0,
    "total_steps": 64,
    "epoch_steps": 32,
    "evaluation": {"num_games": 2},
    "agent": {"type": "PPO", "rollout_steps": 32, "minibatch_size": 16, "hidden_sizes": [8]},
}

LEDGE = TrainingSweep(training=PRESETS["ledge"])


class Stop(Exception):
    """Stands for a kill: nothing is said to the sweep."""


def test_every_setting_of_a_training_can_be_varied() -> None:
    fields = LEDGE.fields()
    assert {"agent.learning_rate", "curriculum.threshold", "num_envs", "curriculum"} <= set(fields)
    assert "seed" not in fields
    assert parse_choice("agent.hidden_sizes=64+64,8", fields).values == ((64, 64), (8,))


def test_values_become_the_config_of_a_training() -> None:
    config = LEDGE.setup({"agent.gamma": 0.9, "num_envs": 4, "curriculum": "uniform"})
    assert (config.agent.gamma, config.num_envs, config.curriculum.kind) == (0.9, 4, "uniform")
    assert config.agent.rollout_steps == PRESETS["ledge"].agent.rollout_steps


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"agent.gamma": 2.0}, "agent.gamma must lie"),
        ({"curriculum": "best"}, "curriculum must be one of"),
        ({"curriculum": "uniform", "curriculum.threshold": 0.5}, "is no setting of uniform"),
    ],
)
def test_values_that_cannot_be_played_are_named(params: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        LEDGE.check(params)


def test_more_of_the_objective_costs_less() -> None:
    values = ((0, 0.5), (1, 0.7))
    cell = TrainingCell(
        objective="evaluation/success", mean=0.6, low=0.4, high=0.8, values=values,
        steps_per_second=10.0,
    )  # fmt: skip
    assert (cell.cost, cell.ends) == (-0.6, (-0.8, -0.4))
    assert LEDGE.measured(json.loads(json.dumps(cell.to_json()))) == cell


@pytest.mark.processes
@pytest.mark.timeout(100)
def test_a_stopped_sweep_of_a_file_goes_on_and_prints_what_can_be_pasted(
    command: CommandLine,
) -> None:
    Path("mine.json").write_text(
        json.dumps(
            {
                "train": SMALL,
                "grid": {"agent.learning_rate": [0.01, 1e30], "num_envs": 2},
                "num_seeds": 1,
                "jobs": 2,
            }
        )
    )
    code, out, err = command("sweep", "mine.json")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[2] == "PPO on CartPole-v1: 2 trials of 1 seed, kept in sweeps/mine"
    assert lines[3].startswith("failed trials: 1, such as: seed 0: ")
    assert "trial 1: agent.learning_rate=1e+30 num_envs=2: failed" in lines
    (again,) = [line.strip() for line in lines if line.startswith("  stepladder train")]
    assert again == "stepladder train sweeps/mine/best.json --seeds 3 --seed 1"
    assert summarize(Path("sweeps/mine/trial-0")).finished
    # It can be pasted as it stands.
    assert command(*shlex.split(again)[1:5], 1, "--no-keep").code == 2
    best = json.loads(Path("sweeps/mine/best.json").read_text())
    assert (best["agent"]["learning_rate"], best["num_envs"]) == (0.01, 2)
    told = command("sweep", "mine.json", "--json")
    (trial,) = [json.loads(line) for line in told.out.splitlines()]
    assert trial["cell"]["values"][0]["value"] == trial["cell"]["mean"] == -trial["cost"]


def test_what_is_finished_is_not_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []

    def start(
        self: TrainingSweep, folder: Path, number: int, *rest: Any
    ) -> Callable[[], TrainingCell]:
        started.append(number)
        mean = float(number)
        return lambda: TrainingCell(
            objective="evaluation/return", mean=mean, low=None, high=None, values=((0, mean),),
            steps_per_second=1.0,
        )  # fmt: skip

    def stop(trial: SweepTrial, done: int, total: int) -> None:
        if done == 2:
            raise Stop

    monkeypatch.setattr(TrainingSweep, "_started", start)
    choice = SweepChoice("num_envs", (2, 4, 8))
    with pytest.raises(Stop):
        sweep(LEDGE, [choice], folder=tmp_path, on_trial=stop)
    result = sweep(LEDGE, [choice], folder=tmp_path)
    assert started == [0, 1, 2, 2]
    assert result.num_resumed == 2
    assert [trial.number for trial in result.ranked()] == [2, 1, 0]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--train", "ledge", "--grid", "gama=1"], "there is no field 'gama' to vary"),
        (
            ["--train", "no.yaml", "--grid", "num_envs=1"],
            "'no.yaml' is neither a preset nor a file",
        ),
        (
            ["--train", "ledge", "--budget", "9", "--grid", "num_envs=1"],
            "--budget is for simulated",
        ),
        (
            ["--objective", "x", "--grid", "probing=0.1"],
            "--objective is for trainings. Add --train",
        ),
        (["file.json"], "file.json has 'gid'; a sweep has train, objective, grid,"),
        (["none.json"], "none.json"),
    ],
)
def test_a_mistake_is_one_line(command: CommandLine, argv: list[str], said: str) -> None:
    Path("file.json").write_text('{"gid": {}}')
    assert said in command.fails("sweep", *argv)
    assert [path.name for path in Path().iterdir()] == ["file.json"]
