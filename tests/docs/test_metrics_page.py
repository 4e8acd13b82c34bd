"""docs/metrics.md, the table of metrics and what is emitted are the same thing."""

import re
from collections import defaultdict
from pathlib import Path

import numpy as np

from curricula.fake_learner import live
from stepladder.curricula import (
    LearningProgress,
    LearningProgressConfig,
    LevelReplayConfig,
    Phase,
    Phased,
    StagedConfig,
    Uniform,
)
from stepladder.curricula.reporting.meter import CurriculumMeter
from stepladder.stats import METRICS, MetricNames, metrics
from stepladder.stats.metrics import find
from stepladder.stats.names import MAX_PER_FAMILY, MAX_UNDECLARED
from stepladder.stats.rollout import accumulate_rollout_stats, payload, process_training_stats
from stepladder.tasks import IntRange, ListSource, ParameterSource, Task
from testing_env import arena, staged_tasks

PAGE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
ROWS = re.findall(r"^\| `[^`]+` \| (?:sum|mean|last|max) \|.*$", PAGE, flags=re.MULTILINE)
TASKS = ListSource(Task(f"{label}{i}", label) for label in ("a", "b") for i in range(20))


def names_on_the_page() -> set[str]:
    return {row.split("`")[1] for row in ROWS}


def assert_documented(logged: dict[str, float]) -> None:
    for name in logged:
        metric = find(name)
        assert metric is not None, f"{name} is emitted and not declared"
        assert metric.name in names_on_the_page(), f"{name} is emitted and not on the page"


def curriculum_names() -> set[str]:
    """Return every name of the page that the meter has to emit."""
    return {
        name
        for name in names_on_the_page()
        if name.startswith(("env_curriculum_stats/", "overview/sampling_"))
    }


def test_every_row_of_the_table_is_on_the_page_word_for_word():
    for metric in METRICS:
        assert metric.row() in PAGE


def test_every_row_of_the_page_is_one_of_the_table():
    assert [metric.row() for metric in METRICS] == ROWS


def test_the_page_says_every_name_in_one_line():
    assert len(names_on_the_page()) == len(ROWS)


def test_a_curriculum_emits_what_the_page_says_and_all_of_it():
    climb = StagedConfig(stages=("a", "b"))
    curriculum = Phased(
        ParameterSource({"kind": ["a", "b"], "n": IntRange(1, 9)}, num_tasks=40, label_from="kind"),
        capacity=12,
        phases=(
            Phase(name="climb", curriculum=climb, episodes=30),
            Phase(name="look", curriculum=LearningProgressConfig(target=("b",)), episodes=20),
            Phase(name="edit", curriculum=LevelReplayConfig(editing=0.5)),
        ),
    )
    meter, emitted = CurriculumMeter(curriculum), set()
    for _ in range(4):
        live(curriculum, 20)
        logged = meter.metrics()
        assert_documented(logged)
        emitted |= {find(name).name for name in logged}
        meter.end_epoch()
    assert emitted == curriculum_names()


def test_a_whole_epoch_with_envs_emits_nothing_that_the_page_does_not_say():
    curriculum, stats, names = Uniform(staged_tasks(length=2)), defaultdict(list), MetricNames()
    meter = CurriculumMeter(curriculum)
    with arena("sync", curriculum, 3) as envs:
        envs.reset()
        for _ in range(12):
            infos = envs.venv.step(np.zeros(3, dtype=np.int64))[4]
            accumulate_rollout_stats(infos, stats)
    # The env's own word, which is not ours to declare.
    del stats["is_success"]
    accumulate_rollout_stats([{"task_dependency": {"performance": 0.5, "reward": 1.0}}], stats)
    processed = process_training_stats(stats, {"policy": 0.5}, {"size": 10}, names=names)
    logged = payload(processed, 36, 1, total_time_s=2.0, extra=meter.metrics(), names=names)
    assert processed.undeclared == names.undeclared == ()
    assert_documented(logged)
    assert {
        "metric/agent_step",
        "metric/epoch",
        "metric/total_time",
        "overview/reward",
        "overview/steps_per_second",
        "losses/policy",
        "experience/size",
        "env_info/curriculum_success",
        "env_task_dependency/performance",
    } <= logged.keys()


def test_every_family_of_labels_has_its_labels():
    curriculum = LearningProgress(TASKS)
    meter = CurriculumMeter(curriculum)
    live(curriculum, 50)
    logged = meter.metrics()
    for name in curriculum_names():
        if "per_label" in name or "composition" in name:
            assert {f"{name[:-1]}a", f"{name[:-1]}b"} <= logged.keys()


def test_the_example_of_the_page_declares_a_metric(monkeypatch):
    monkeypatch.setattr(metrics, "_declared", dict(metrics._declared))
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    exec(code, {})
    assert find("env_hockey/goals") is not None


def test_the_page_tells_the_limits():
    assert f"has at most {MAX_PER_FAMILY} members" in PAGE
    assert f"and to {MAX_UNDECLARED:,} altogether" in PAGE
