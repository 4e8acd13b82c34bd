"""Epochs become what a run keeps: by hand, for a curriculum that plays without envs."""

from collections import defaultdict
from pathlib import Path

import pytest

from stepladder.curricula import Record, Stage, StagedConfig, Uniform
from stepladder.curricula.reporting.meter import CurriculumMeter
from stepladder.errors import ConfigError
from stepladder.runs import Run, RunReader
from stepladder.runs.reporter import EpochReporter
from stepladder.stats.names import MAX_PER_FAMILY
from stepladder.stats.rollout import accumulate_rollout_stats
from stepladder.tasks import ListSource, Task

TASKS = ListSource([Task("w", "a"), Task("x", "a"), Task("y", "b")])
STAGES = StagedConfig(
    stages=(Stage(name="a"), Stage(name="b")),
    threshold=0.5,
    min_episodes=2,
    check_interval_episodes=1,
    mixing=None,
)


def play(curriculum, count: int, success: float = 1.0) -> dict[str, list[float]]:
    """Play so many episodes; return what their infos contained."""
    stats: defaultdict[str, list[float]] = defaultdict(list)
    for draw in curriculum.draw(count):
        curriculum.observe(Record.of(draw, success=success, episode_return=2.0))
        accumulate_rollout_stats([{"task_dependency": {"reward": 2.0, "success": success}}], stats)
    return stats


@pytest.fixture
def run(tmp_path: Path):
    with Run.create(tmp_path / "run", kind="training") as run:
        yield run


def reader(run: Run) -> RunReader:
    run.flush()
    return RunReader(run.folder)


def test_an_epoch_holds_what_was_played_what_was_measured_and_what_is_added():
    curriculum = Uniform(TASKS)
    reporter = EpochReporter(curriculum)
    stats = play(curriculum, 3) | {"task_dependency/reward": [1.0, 2.0, 6.0]}
    logged = reporter.end_epoch(48, stats, losses={"value": [0.5, 1.5]}, extra={"overview/x": 7})
    assert logged["metric/agent_step"] == 48.0
    assert logged["metric/epoch"] == 1.0
    assert logged["env_task_dependency/reward"] == logged["overview/reward"] == 3.0
    assert logged["losses/value"] == 1.0
    assert logged["overview/x"] == 7.0
    assert logged["env_curriculum_stats/total_completions"] == 3.0
    assert logged["metric/total_time"] >= 0.0
    assert reporter.last_payload is logged
    reporter.close()


def test_what_belongs_to_an_epoch_begins_anew_with_the_next():
    curriculum = Uniform(TASKS)
    reporter = EpochReporter(curriculum)
    name = "env_curriculum_stats/per_label_samples"
    for count in (5, 2):
        logged = reporter.end_epoch(count, play(curriculum, count))
        assert logged[f"{name}/a"] + logged[f"{name}/b"] == count
    assert reporter.num_epochs == 2
    assert logged["env_curriculum_stats/total_completions"] == 7.0
    # Nothing was measured in the third.
    assert "overview/reward" not in reporter.end_epoch(9)
    reporter.close()


def test_simulation_and_training_log_the_same_names():
    # The simulator reports through this class too; a training adds losses and no skills.
    curriculum = Uniform(TASKS)
    reporter = EpochReporter(curriculum)
    logged = reporter.end_epoch(4, play(curriculum, 4), losses={"policy": 0.1})
    assert {name.split("/")[0] for name in logged} == {
        "metric",
        "overview",
        "losses",
        "env_curriculum_stats",
        "env_task_dependency",
    }
    reporter.close()


def test_a_run_holds_every_epoch(run: Run):
    curriculum = Uniform(TASKS)
    reporter = EpochReporter(curriculum, run)
    for epoch in range(1, 4):
        reporter.end_epoch(10 * epoch, play(curriculum, 10))
    reporter.close()
    steps, values = reader(run).metric("env_curriculum_stats/total_completions")
    assert (steps.tolist(), values.tolist()) == ([10, 20, 30], [10.0, 20.0, 30.0])


@pytest.mark.parametrize(
    ("num_epochs", "tables"),
    [(0, [0]), (1, [10]), (2, [20]), (3, [20, 30]), (4, [20, 40]), (5, [20, 40, 50])],
)
def test_a_table_is_kept_now_and_then_and_at_the_end(run: Run, num_epochs, tables):
    curriculum = Uniform(TASKS)
    reporter = EpochReporter(curriculum, run, table_epochs=2)
    for epoch in range(1, num_epochs + 1):
        reporter.end_epoch(10 * epoch, play(curriculum, 10))
    reporter.close()
    assert reader(run).task_steps() == tables
    assert list(reader(run).tasks()["task"]) == ["w", "x", "y"]
    assert sum(reader(run).tasks()["samples"]) == 10 * num_epochs


def test_decisions_are_events_of_the_epoch_in_which_they_fell(run: Run):
    curriculum = STAGES.make(TASKS)
    reporter = EpochReporter(curriculum, run)
    reporter.end_epoch(10, play(curriculum, 1))
    reporter.end_epoch(20, play(curriculum, 4))
    reporter.end_epoch(30, play(curriculum, 1))
    reporter.close()
    (advanced,) = reader(run).events("stage_advanced")
    assert advanced.step == 20
    assert (advanced.data["from_stage"], advanced.data["to_stage"]) == ("a", "b")


def test_what_was_decided_before_is_not_reported_again(run: Run):
    # As after a restore: the run before has told of it.
    first = STAGES.make(TASKS)
    play(first, 4)
    assert first.current_stage == "b"
    second = STAGES.make(TASKS)
    second.restore(first.snapshot())
    reporter = EpochReporter(second, run)
    reporter.end_epoch(10, play(second, 4))
    reporter.close()
    assert reader(run).events("stage_advanced") == []


def test_the_end_holds_the_curriculums_own_words(run: Run):
    curriculum = Uniform(TASKS)
    reporter = EpochReporter(curriculum, run)
    reporter.end_epoch(10, play(curriculum, 3))
    reporter.close()
    (words,) = reader(run).events("explanation")
    assert (words.step, words.text) == (10, str(curriculum.explain()))


def test_when_it_is_closed_it_listens_no_longer():
    curriculum = Uniform(TASKS)
    reporter = EpochReporter(curriculum)
    play(curriculum, 2)
    reporter.close()
    play(curriculum, 3)
    assert reporter.meter.total_completions == 2
    # And somebody else may listen.
    EpochReporter(curriculum).close()


def test_a_meter_that_counts_already_is_used():
    curriculum = Uniform(TASKS)
    meter = CurriculumMeter(curriculum)
    play(curriculum, 6)
    reporter = EpochReporter(curriculum, meter=meter)
    logged = reporter.end_epoch(10, play(curriculum, 2))
    assert logged["env_curriculum_stats/total_completions"] == 8.0
    reporter.close()


def test_undeclared_names_are_told_once(caplog):
    reporter = EpochReporter(Uniform(TASKS))
    with caplog.at_level("INFO", logger="stepladder.stats"):
        reporter.end_epoch(1, {"arena/goals": [1.0, 3.0]})
        logged = reporter.end_epoch(2, {"arena/goals": [5.0]})
    assert logged["env_arena/goals"] == 5.0
    assert caplog.text.count("env_arena/goals") == 1
    # A second run has names of its own.
    with caplog.at_level("INFO", logger="stepladder.stats"):
        EpochReporter(Uniform(TASKS)).end_epoch(1, {"arena/goals": [1.0]})
    assert caplog.text.count("env_arena/goals") == 2
    reporter.close()


def test_a_run_with_too_many_names_takes_none_from_the_next():
    many = {f"env_crowd/{number}": 1.0 for number in range(2 * MAX_PER_FAMILY)}
    first, second = EpochReporter(Uniform(TASKS)), EpochReporter(Uniform(TASKS))
    crowd = [name for name in first.end_epoch(1, extra=many) if name.startswith("env_crowd/")]
    assert len(crowd) == MAX_PER_FAMILY + 1
    assert "env_crowd/new" not in first.end_epoch(2, extra={"env_crowd/new": 3.0})
    assert second.end_epoch(1, extra={"env_crowd/new": 3.0})["env_crowd/new"] == 3.0


@pytest.mark.parametrize("table_epochs", [0, -1, 1.5, True])
def test_an_impossible_interval_is_refused(table_epochs):
    with pytest.raises(ConfigError, match="table_epochs must be an integer of at least 1"):
        EpochReporter(Uniform(TASKS), table_epochs=table_epochs)


def test_metrics_that_nobody_declared_are_listed_once(run: Run):
    reporter = EpochReporter(Uniform(TASKS), run)
    for epoch in range(3):
        reporter.end_epoch(epoch, {"zeppelin/height": [1.0, 3.0], "task_dependency/reward": [1.0]})
    told = reader(run).events("undeclared_metrics")
    assert [(event.step, event.text) for event in told] == [
        (0, "not declared, so reduced by their mean: env_zeppelin/height")
    ]
