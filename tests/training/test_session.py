"""A training from its first step to its last: epochs, the budget, evaluations, checkpoints."""

import json
import signal
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from stepladder.runs import RunReader
from stepladder.training import checkpoints, examiner
from stepladder.training.config import CheckpointConfig, EvaluationConfig
from stepladder.training.results import Progress
from stepladder.training.starting import resume, train
from training.training_scenes import DISCRETE, FOREIGN, LEDGE_PPO, ONCE, SELF_PLAY

SHORT = replace(FOREIGN, total_steps=240)


def test_every_epoch_is_told_and_logged(tmp_path: Path):
    told: list[Progress] = []
    result = train(SHORT, run_folder=tmp_path / "run", on_epoch=lambda one: told.append(one))
    steps = [progress.num_steps for progress in told]
    # Three envs: an epoch of 48 steps ends up to two steps late.
    assert all(48 * number <= step < 48 * number + 3 for number, step in enumerate(steps[:-1], 1))
    assert steps[-1] == result.total_steps
    logged = RunReader(tmp_path / "run").metric("metric/agent_step")[1].tolist()
    assert logged == [float(step) for step in steps]
    last = told[-1]
    assert last.total_steps == 240
    assert last.num_updates == result.total_gradient_steps > 0
    assert last.num_episodes <= result.total_episodes
    assert last.steps_per_second > 0.0
    assert last.seconds.env > 0.0
    assert last.seconds.act > 0.0
    assert last.left_s == 0.0
    assert (last.stage, last.phase) == (None, None)
    assert any(progress.mean_return is not None for progress in told)
    assert last.logged["throughput/updates"] == last.num_updates


def test_stages_and_phases_are_told_by_name():
    told: list[Progress] = []
    train(
        LEDGE_PPO, total_steps=64, on_epoch=lambda one: told.append(one), evaluation=ONCE,
    )  # fmt: skip
    train(SELF_PLAY, on_epoch=lambda one: told.append(one))
    assert told[0].stage == "simplest"
    phases = [progress.phase for progress in told[1:]]
    assert phases[0] == "first"
    assert phases[-1] == "second"
    news = [text for progress in told[1:] for text in progress.news]
    assert any("second" in text for text in news)


def test_evaluations_do_not_count_in_the_budget_and_the_last_one_is_in_full(tmp_path: Path):
    config = replace(SHORT, evaluation=EvaluationConfig(every_steps=48, num_games=2))
    result = train(config, run_folder=tmp_path / "run")
    assert 240 <= result.total_steps < 243
    *before, last = result.evaluation_results
    assert len(before) > 2
    own = SHORT.agent.own_way
    assert {one["way"] for one in (*before, last)} == {own}
    assert not any(one["beside"] for one in before)
    at_random, other = last["beside"]
    assert (at_random["way"], {own, other["way"]}) == ("random", {"drawn", "best"})
    # Random play is measured once.
    played = [one["total"]["num_steps"] for one in (*before, last, at_random, other)]
    assert result.evaluation_steps == sum(played)
    reader = RunReader(tmp_path / "run")
    (baseline,) = reader.events("baseline")
    assert (baseline.step, baseline.data) == (before[0]["step"], at_random)
    steps, returns = reader.metric("evaluation/random/return")
    assert steps.tolist() == [before[0]["step"], last["step"]]
    assert set(returns.tolist()) == {at_random["total"]["mean_return"]["value"]}


def test_random_play_is_not_measured_again_after_a_resume(tmp_path: Path):
    config = replace(LEDGE_PPO, evaluation=EvaluationConfig(every_steps=128, num_games=2))
    stopped = train(
        config, run_folder=tmp_path / "run", on_epoch=lambda one: one.baseline is not None
    )
    assert stopped.was_stopped
    result = resume(tmp_path / "run")
    assert len(RunReader(tmp_path / "run").events("baseline")) == 1
    whole = train(config)
    assert result.evaluation_results == whole.evaluation_results
    assert result.evaluation_steps == whole.evaluation_steps


def test_evaluations_come_when_due_and_once_at_the_end(tmp_path: Path):
    config = replace(SHORT, evaluation=EvaluationConfig(every_steps=96, num_games=2))
    told: list[Progress] = []
    result = train(config, run_folder=tmp_path / "run", on_epoch=lambda one: told.append(one))
    steps = [one["step"] for one in result.evaluation_results]
    assert steps[0] >= 96
    assert all(later - earlier >= 96 for earlier, later in pairwise(steps[:-1]))
    assert steps[-1] == result.total_steps
    assert len(set(steps)) == len(steps)
    on_the_way = [progress.num_steps for progress in told if progress.evaluation is not None]
    assert on_the_way == steps[: len(on_the_way)]
    events = RunReader(tmp_path / "run").events("evaluation")
    assert [event.step for event in events] == steps


def test_so_many_episodes_are_an_end_too():
    result = train(SHORT, total_episodes=7, total_steps=100_000)
    assert 7 <= result.total_episodes < 7 + SHORT.num_envs
    assert not result.was_stopped


def test_a_training_that_has_ended_says_so_and_continues_with_a_later_end(tmp_path: Path):
    first = train(SHORT, total_episodes=7, run_folder=tmp_path / "run")
    assert not first.had_ended
    again = resume(tmp_path / "run")
    assert (again.had_ended, again.total_steps) == (True, first.total_steps)
    assert len(again.evaluation_results) == len(first.evaluation_results)
    later = resume(tmp_path / "run", total_episodes=10, total_steps=100_000)
    assert (later.had_ended, later.total_episodes >= 10) == (False, True)


def test_who_is_stopped_is_not_examined():
    result = train(SHORT, on_epoch=lambda progress: True)
    assert result.was_stopped
    assert result.evaluation_results == []
    assert result.total_steps < 240


def test_a_result_is_plain_json(tmp_path: Path):
    result = train(SHORT, run_folder=tmp_path / "run")
    data = json.loads(json.dumps(result.to_json()))
    assert data["run_folder"] == str(tmp_path / "run")
    assert data["run_name"] == "run"
    assert data["total_steps"] == result.total_steps
    assert data["final_reward"] == result.final_reward


# Checkpoints.


def test_checkpoints_come_when_due_and_the_oldest_make_room(tmp_path: Path):
    kept: list[list[int]] = []
    config = replace(
        DISCRETE, checkpoints=CheckpointConfig(every_steps=128, keep=3), total_steps=512
    )

    def look(progress: Progress) -> None:
        kept.append([checkpoints.load(one).step for one in checkpoints.find(tmp_path / "run")])

    train(replace(config, evaluation=ONCE), run_folder=tmp_path / "run", on_epoch=look)
    # Looked at before each save: after the first epoch of 64 steps, then after every second one.
    assert [len(steps) for steps in kept] == [0, 1, 1, 2, 2, 3, 3, 3]
    assert [steps[0] for steps in kept[1::2]] == [64, 192, 320, 448]
    assert len(checkpoints.find(tmp_path / "run")) == 3


def test_time_alone_is_a_reason_to_save(tmp_path: Path):
    config = replace(SHORT, checkpoints=CheckpointConfig(every_s=1e-6))
    found: list[int] = []
    train(
        config,
        run_folder=tmp_path / "run",
        on_epoch=lambda one: found.append(len(checkpoints.find(tmp_path / "run"))),
    )
    assert found[:3] == [0, 1, 2]


# Ctrl-C.


def test_ctrl_c_in_the_last_evaluation_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    evaluate = examiner.evaluate

    def interrupted(*arguments: Any, **settings: Any) -> Any:
        monkeypatch.setattr(examiner, "evaluate", evaluate)
        signal.raise_signal(signal.SIGINT)
        return evaluate(*arguments, **settings)

    monkeypatch.setattr(examiner, "evaluate", interrupted)
    result = train(SHORT, run_folder=tmp_path / "run")
    assert len(result.evaluation_results) == 1
    assert checkpoints.load_newest(tmp_path / "run")[0].step == result.total_steps
    again = resume(tmp_path / "run")
    assert again.total_steps == result.total_steps
    assert again.evaluation_results == result.evaluation_results


def test_ctrl_c_is_given_back_afterwards():
    before = signal.getsignal(signal.SIGINT)
    train(SHORT, on_epoch=lambda progress: signal.raise_signal(signal.SIGINT))
    assert signal.getsignal(signal.SIGINT) is before


def test_a_listener_that_fails_is_not_silenced_and_the_run_says_so(tmp_path: Path):
    def fail(progress: Progress) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        train(SHORT, run_folder=tmp_path / "run", on_epoch=fail)
    assert RunReader(tmp_path / "run").status != "finished"
