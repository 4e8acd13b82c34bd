"""What is read of a run, and what is said about a run that lacks something."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulator.calibration.known_learner import KNOWN, known_scenario, make_training
from stepladder.curricula import LevelReplayConfig
from stepladder.curricula.reporting import meter
from stepladder.curricula.reporting.meter import CurriculumMeter
from stepladder.errors import RunError
from stepladder.runs import Run, RunReader
from stepladder.runs.reporter import EpochReporter
from stepladder.simulator import DirectEngine, Generalising, GeneralScenario, calibrate
from stepladder.simulator.calibration import read_practice

STATS = "env_curriculum_stats"


def run_with(folder: Path, metrics: dict[str, float], kind: str = "training") -> Path:
    with Run.create(folder, kind=kind) as run:
        for step in (10, 20):
            run.log(step, metrics)
    return folder


def label_metrics(**changes: Any) -> dict[str, float]:
    usual = {"samples": 4.0, "success": 0.5, "success_steps": 10.0, "failure_steps": 30.0}
    return {f"{STATS}/per_label_{name}/a": value for name, value in (usual | changes).items()}


def test_counts_are_those_of_the_run(tmp_path: Path):
    run = make_training(tmp_path / "run", num_steps=40_000, num_epochs=10)
    practice = read_practice(run)
    reader = RunReader(run)
    assert practice.groups == KNOWN.groups
    assert practice.steps.tolist() == reader.metric("metric/agent_step")[1].tolist()
    for place, group in enumerate(practice.groups):
        plays = reader.metric(f"{STATS}/per_label_samples/{group}")[1]
        assert practice.plays[:, place].tolist() == plays.tolist()
    assert practice.num_plays == reader.last_metrics()[f"{STATS}/total_completions"]
    assert practice.num_tasks.tolist() == [200, 200, 200]
    assert (practice.num_envs, practice.update_steps) == (16, 1_024)
    mean = practice.failure_steps.sum() / (practice.plays - practice.successes).sum()
    assert mean == pytest.approx(40.0, abs=2.0)


def test_reading_changes_nothing(tmp_path: Path):
    run = make_training(tmp_path / "run", num_steps=20_000, num_epochs=4)
    before = {path: path.read_bytes() for path in run.iterdir() if path.is_file()}
    calibrate([run])
    # SQLite may leave empty files of its own beside the database.
    assert {path: path.read_bytes() for path in before} == before


def test_plays_of_a_few_tasks_are_seen_as_such(tmp_path: Path):
    even = read_practice(make_training(tmp_path / "even"))
    replay = LevelReplayConfig(max_share=1.0)
    uneven = read_practice(make_training(tmp_path / "uneven", curriculum=replay))
    assert np.mean(even.spread_over) > 150.0
    assert np.mean(uneven.spread_over) < 0.8 * np.mean(even.spread_over)


def test_one_label_is_enough(tmp_path: Path):
    one = Generalising(
        **{
            name: (getattr(KNOWN, name)[1],)
            for name in ("groups", "num_tasks", "spread", "success_steps", "failure_steps")
        },
        difficulty=(1.0,),
        update_steps=1_024,
        eta=4e-3,
    )
    place = GeneralScenario(name="one", dynamics=one)
    run = make_training(tmp_path / "run", scenario=place, num_steps=60_000)
    found = calibrate([run])
    assert found.scenario.dynamics.groups == ("jump",)
    assert not any(part.is_far for part in found.labels[0].parts)


@pytest.mark.slow
def test_many_labels_give_the_first_ones_and_the_others_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # The limit is 100; a fit takes the longer the more there are.
    monkeypatch.setattr(meter, "MAX_PER_FAMILY", 10)
    count = 15
    numbers = np.arange(count)
    many = Generalising(
        groups=tuple(f"label-{number:03}" for number in numbers),
        num_tasks=(2,) * count,
        difficulty=tuple((6.0 * numbers / count).tolist()),
        spread=(1.0,) * count,
        success_steps=(10,) * count,
        failure_steps=(40,) * count,
        update_steps=1_024,
        eta=1e-3,
    )
    run = make_training(tmp_path / "run", scenario=GeneralScenario(name="many", dynamics=many))
    found = calibrate([run])
    assert len(found.labels) == 11
    assert "labels beyond the first 10 are one group, 'other'" in found.notes[0]
    assert found.scenario.num_tasks == 30


def test_a_simulation_is_refused(tmp_path: Path):
    run = make_training(tmp_path / "run", num_steps=2_000, num_epochs=2, kind="simulation")
    with pytest.raises(RunError, match="run is a simulation"):
        read_practice(run)


@pytest.mark.parametrize(
    ("metrics", "problem"),
    [
        ({"overview/reward": 1.0}, "has no results per label of tasks. Train with a curriculum"),
        ({f"{STATS}/per_label_samples/a": 3.0}, "has no success of episodes"),
        (label_metrics(samples=0.0), "has no finished episodes"),
        (label_metrics(success_steps=0.0, failure_steps=0.0), "was made by an older version"),
        (label_metrics(success=1.5), "is damaged"),
        (label_metrics(samples=-1.0), "is damaged"),
    ],
)
def test_a_run_that_lacks_something_is_named(
    tmp_path: Path, metrics: dict[str, float], problem: str
):
    run = run_with(tmp_path / "run", metrics)
    with pytest.raises(RunError, match=problem) as caught:
        read_practice(run)
    assert str(run) in str(caught.value)


def test_a_run_that_goes_on_is_read_up_to_its_last_epoch(tmp_path: Path):
    run = make_training(tmp_path / "run", num_steps=2_000, num_epochs=2)
    with Run.resume(run):
        notes = read_practice(run).notes
    assert notes[-1].startswith("it is still running; this is what it practised up to step 2,0")
    assert not any("running" in note for note in read_practice(run).notes)


def test_a_damaged_database_is_refused(tmp_path: Path):
    run = make_training(tmp_path / "run", num_steps=2_000, num_epochs=2)
    (run / "run.sqlite").write_bytes(b"nothing" * 1_000)
    with pytest.raises(RunError, match="Restore it from a copy"):
        read_practice(run)


def evaluated(folder: Path, is_deterministic: bool, task: str) -> Path:
    run = make_training(folder, num_steps=20_000, num_epochs=4)
    parts = [{"name": task, "num_trials": 5, "rate": {"value": 0.5}, "parts": []}] * 4
    walk = {"name": "walk", "num_trials": 20, "rate": {"value": 0.5}, "parts": parts}
    with Run.resume(run) as reopened:
        data = {"is_deterministic": is_deterministic, "total": {"parts": [walk]}}
        reopened.event(20_000, "evaluation", "20 games", data)
    return run


def test_evaluations_on_held_out_tasks_count_each_task_once(tmp_path: Path):
    practice = read_practice(evaluated(tmp_path / "run", False, "unseen"))
    (one,) = practice.held_out
    assert one.games.tolist() == [4.0, 0.0, 0.0]
    assert one.successes.tolist() == [2.0, 0.0, 0.0]


def test_drawn_actions_are_found_beside_the_policys_own_way(tmp_path: Path):
    run = evaluated(tmp_path / "run", True, "unseen")
    with Run.resume(run) as reopened:
        drawn = RunReader(run).events("evaluation")[-1].data["total"]
        beside = [{"way": "random", "total": drawn}, {"way": "drawn", "total": drawn}]
        reopened.event(20_000, "evaluation", "best", {"way": "best", "beside": beside})
        reopened.event(20_000, "baseline", "random", {"way": "random", "total": drawn})
    (one,) = read_practice(run).held_out
    assert one.games.tolist() == [4.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("is_deterministic", "task", "note"),
    [
        (True, "unseen", "evaluations of best actions are left out"),
        (False, "task-0", "evaluations of practised tasks are left out"),
    ],
)
def test_other_evaluations_are_left_out_and_named(
    tmp_path: Path, is_deterministic: bool, task: str, note: str
):
    practice = read_practice(evaluated(tmp_path / "run", is_deterministic, task))
    assert practice.held_out == ()
    assert any(note in text for text in practice.notes)


def test_records_of_episodes_stand_in_for_missing_lengths(tmp_path: Path):
    place = known_scenario()
    curriculum = place.curriculum("uniform", 0)
    with Run.create(tmp_path / "run", kind="training") as run:
        curriculum.add_listener(run.log_records)
        DirectEngine(place.simulator(0, 4), curriculum, 4).advance(4_000)
        labels = [KNOWN.groups[label] for label in KNOWN.label_groups.tolist()]
        names = [f"task-{node}" for node in range(len(labels))]
        run.log_tasks(4_000, {"task": names, "label": labels})
        for group in KNOWN.groups:
            shares = {"samples": 30.0, "success": 0.5}
            values = {f"{STATS}/per_label_{kind}/{group}": x for kind, x in shares.items()}
            run.log(4_000, values)
    practice = read_practice(tmp_path / "run")
    failures = (practice.plays - practice.successes).sum(axis=0)
    assert (practice.failure_steps.sum(axis=0) / failures).min() > 20.0


def test_kept_records_of_a_uniform_training_tell_how_plays_of_a_task_follow_each_other(
    tmp_path: Path,
):
    place = known_scenario()
    curriculum = place.curriculum("uniform", 0)
    folder = make_training(tmp_path / "plain")
    assert read_practice(folder).repeats is None
    config = {"num_envs": 4, "agent": {"rollout_steps": 64}, "curriculum": {"type": "uniform"}}
    with Run.create(tmp_path / "run", kind="training", config=config) as run:
        curriculum.add_listener(run.log_records)
        meter = CurriculumMeter(curriculum)
        engine = DirectEngine(place.simulator(0, 4), curriculum, 4, meter)
        reporter = EpochReporter(curriculum, run, meter=meter)
        engine.advance(40_000)
        reporter.end_epoch(40_000, engine.take_stats())
        reporter.close()
    found = read_practice(tmp_path / "run").repeats
    assert found is not None
    # At most every play but the first of each task has one before it.
    records = RunReader(tmp_path / "run").records()
    assert 0 < found.pairs.sum() <= len(records) - len(np.unique(records["slot"]))
    assert 0.0 < found.discords.sum() < found.pairs.sum()
