"""A training that was killed or stopped goes on as if nothing had happened, bit for bit."""

import os
import signal
from collections.abc import Callable
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
import torch

from stepladder.errors import RunError, SnapshotError
from stepladder.runs import Run, RunReader
from stepladder.runs.reporter import EpochReporter
from stepladder.training import checkpoints
from stepladder.training.config import TrainingConfig
from stepladder.training.loop import Trainer
from stepladder.training.results import Progress
from stepladder.training.starting import resume, train
from sync.rig import forked, receive
from training.checkpoints.checkpoint_scenes import flip
from training.training_scenes import (
    DISCRETE,
    FOREIGN,
    SELF_PLAY,
    TRAININGS,
    differences,
    left_behind,
)

Uninterrupted = Callable[[str], dict[str, Any]]

NUM_EPOCHS = 3
"""After so many epochs the killing comes."""


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Uninterrupted:
    """Give what each training leaves behind that nobody disturbs."""

    @cache
    def of(kind: str) -> dict[str, Any]:
        folder = tmp_path_factory.mktemp(kind) / "whole"
        train(TRAININGS[kind], run_folder=folder)
        return left_behind(folder)

    return of


def keep_training(pipe: Connection, folder: Path, config: TrainingConfig) -> None:
    """Train, and say so after every epoch; be killed in the middle of a step after the third."""
    torch.set_num_threads(1)  # The threads of the parent are not here.

    def say(progress: Progress) -> None:
        pipe.send(progress.num_steps)
        if progress.num_steps >= NUM_EPOCHS * config.epoch_steps:
            num_left = [5]
            agent_learns: Any = trainers[0].agent.learn

            def learn_or_die() -> int:
                num_left[0] -= 1
                if num_left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return agent_learns()

            trainers[0].agent.learn = learn_or_die

    trainers: list[Any] = []
    begin = Trainer.begin
    Trainer.begin = lambda self: (trainers.append(self), begin(self))[1]
    train(config, run_folder=folder, on_epoch=say)


@pytest.mark.parametrize("kind", TRAININGS)
@pytest.mark.processes
@pytest.mark.timeout(60)
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_kill_in_the_middle_of_an_epoch_changes_nothing(
    kind: str, uninterrupted: Uninterrupted, tmp_path: Path
):
    with forked(keep_training, tmp_path / "killed", TRAININGS[kind]) as (process, pipe):
        for _ in range(NUM_EPOCHS):
            assert receive(pipe) > 0
        process.join(30)
        assert process.exitcode == -signal.SIGKILL
    result = resume(tmp_path / "killed")
    assert differences(uninterrupted(kind), left_behind(tmp_path / "killed")) == []
    assert not result.was_stopped
    assert result.refused_checkpoints == []


def train_to_the_end_and_die(pipe: Connection, folder: Path, config: TrainingConfig) -> None:
    """Train, and be killed when everything is saved and the run is about to be closed."""
    torch.set_num_threads(1)
    EpochReporter.close = lambda self: os.kill(os.getpid(), signal.SIGKILL)
    train(config, run_folder=folder)


@pytest.mark.parametrize("kind", TRAININGS)
@pytest.mark.processes
@pytest.mark.timeout(60)
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_kill_after_the_last_checkpoint_changes_nothing(
    kind: str, uninterrupted: Uninterrupted, tmp_path: Path
):
    folder = tmp_path / "killed"
    with forked(train_to_the_end_and_die, folder, TRAININGS[kind]) as (process, _):
        process.join(50)
        assert process.exitcode == -signal.SIGKILL
    resume(folder)
    assert differences(uninterrupted(kind), left_behind(folder)) == []
    (explanation,) = RunReader(folder).events("explanation")
    assert explanation.step == RunReader(folder).times()[0][-1]


@pytest.mark.slow
def test_another_seed_is_told_apart(uninterrupted: Uninterrupted, tmp_path: Path):
    train(DISCRETE, run_folder=tmp_path / "run", seed=1)
    found = differences(uninterrupted("dddqn"), left_behind(tmp_path / "run"))
    assert "/metrics/losses/q" in found
    assert any("network.trunk" in place for place in found)
    assert any(place.startswith("/checkpoint/envs") for place in found)


# Stopped rather than killed.


def ctrl_c_in_step(number: int) -> Callable[[Trainer], None]:
    """Return a step of the loop in which somebody presses Ctrl-C, the so-many-eth one."""
    advance, count = Trainer.advance, [0]

    def step(self: Trainer) -> None:
        count[0] += 1
        if count[0] == number:
            signal.raise_signal(signal.SIGINT)
        advance(self)

    return step


# In the middle of an epoch; in its very last step, before it was reported.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "step"), [("ppo", 26), ("sac", 26), ("dddqn", 26), ("dddqn", 33), ("sac", 41)]
)
def test_ctrl_c_in_any_step_saves_and_changes_nothing(
    kind: str,
    step: int,
    uninterrupted: Uninterrupted,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    config = TRAININGS[kind]
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "advance", ctrl_c_in_step(step))
        stopped = train(config, run_folder=tmp_path / "stopped")
    assert stopped.was_stopped
    # What the step under way has brought is kept; in one of these steps the envs only reset.
    assert stopped.total_steps == (step - 1) * config.num_envs
    assert RunReader(tmp_path / "stopped").status == "interrupted"
    resumed = resume(tmp_path / "stopped")
    assert not resumed.was_stopped
    assert RunReader(tmp_path / "stopped").status == "finished"
    assert differences(uninterrupted(kind), left_behind(tmp_path / "stopped")) == []


@pytest.mark.slow
def test_a_listener_that_says_stop_is_obeyed_and_the_rest_follows_later(
    uninterrupted: Uninterrupted, tmp_path: Path
):
    starts = 0
    result = train(SELF_PLAY, run_folder=tmp_path / "often", on_epoch=lambda progress: True)
    while result.was_stopped:
        starts += 1
        result = resume(tmp_path / "often", on_epoch=lambda progress: True)
    assert starts > 3
    assert differences(uninterrupted("sac"), left_behind(tmp_path / "often")) == []


def test_resuming_what_has_come_to_its_end_does_nothing_more(tmp_path: Path):
    first = train(DISCRETE, run_folder=tmp_path / "run")
    before = left_behind(tmp_path / "run")
    again = resume(tmp_path / "run")
    assert differences(before, left_behind(tmp_path / "run")) == []
    assert again.total_steps == first.total_steps
    assert again.evaluation_results == first.evaluation_results
    assert again.mean_reward == first.mean_reward


def test_another_end_lets_a_finished_training_go_on(tmp_path: Path):
    first = train(DISCRETE, run_folder=tmp_path / "run")
    more = resume(tmp_path / "run", total_steps=DISCRETE.total_steps + 256)
    assert more.total_steps > first.total_steps
    assert more.total_gradient_steps > first.total_gradient_steps
    assert len(more.evaluation_results) > len(first.evaluation_results)


# Checkpoints that are no good.


def stop_after(num_epochs: int) -> Callable[[Progress], bool]:
    """Return a listener that says stop after so many epochs."""
    seen: list[Progress] = []

    def on_epoch(progress: Progress) -> bool:
        seen.append(progress)
        return len(seen) == num_epochs

    return on_epoch


def test_a_broken_newest_checkpoint_is_refused_and_the_one_before_it_used(
    uninterrupted: Uninterrupted, tmp_path: Path
):
    broken = tmp_path / "broken"
    train(DISCRETE, run_folder=broken, on_epoch=stop_after(4))
    newest, *_ = checkpoints.find(broken)
    flip(next(newest.glob("*.safetensors")))
    result = resume(broken)
    assert len(result.refused_checkpoints) == 1
    assert newest.name in result.refused_checkpoints[0]
    (event,) = RunReader(broken).events("checkpoint_refused")
    assert event.text == result.refused_checkpoints[0]
    assert differences(uninterrupted("dddqn"), left_behind(broken)) == ["/events"]


def test_a_run_whose_every_checkpoint_is_broken_is_refused_with_a_reason(tmp_path: Path):
    train(DISCRETE, run_folder=tmp_path / "run", on_epoch=stop_after(1))
    for path in (tmp_path / "run" / "checkpoints").glob("*/*.safetensors"):
        flip(path)
    with pytest.raises(SnapshotError, match="run"):
        resume(tmp_path / "run")


def test_a_simulation_is_no_training_to_resume(tmp_path: Path):
    Run.create(tmp_path / "run", kind="simulation", config={}, seed=0).close()
    with pytest.raises(RunError, match="not a training"):
        resume(tmp_path / "run")


# Envs that are not built in.


def test_a_foreign_env_begins_its_episodes_again_and_training_goes_on(tmp_path: Path):
    first = train(FOREIGN, run_folder=tmp_path / "run", on_epoch=stop_after(2))
    assert first.was_stopped
    result = resume(tmp_path / "run")
    assert result.total_steps >= FOREIGN.total_steps
    assert not result.had_ended
    assert result.total_steps > first.total_steps
    assert result.total_episodes > first.total_episodes
    assert result.total_gradient_steps > first.total_gradient_steps
    # Every logged step comes once: nothing was counted twice.
    steps = RunReader(tmp_path / "run").metric("metric/epoch")[1].tolist()
    assert steps == [float(number) for number in range(1, len(steps) + 1)]
