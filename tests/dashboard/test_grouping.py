"""Order, sections and families of metrics."""

import itertools

import pytest

from stepladder.dashboard.grouping import family_of, group_metrics, natural_key, select_metrics
from stepladder.errors import ConfigError


def test_numbers_in_names_sort_as_numbers() -> None:
    names = ["taskclass10", "taskclass2", "taskclass1", "a", "taskclass", "2", "10"]
    assert sorted(names, key=natural_key) == [
        "2",
        "10",
        "a",
        "taskclass",
        "taskclass1",
        "taskclass2",
        "taskclass10",
    ]


def test_the_order_does_not_depend_on_the_order_given() -> None:
    names = ["a1", "a01", "a001", "a²", "a٣", "a" + "9" * 5000]
    orders = {tuple(sorted(p, key=natural_key)) for p in itertools.permutations(names, 6)}
    assert len(orders) == 1


def test_sections_come_in_the_order_of_a_report() -> None:
    names = [
        "zebra/x",
        "losses/value",
        "env_curriculum_stats/sampling_gini",
        "env_task_dependency/min_performance",
        "overview/reward",
        "experience/x",
        "alone",
    ]
    sections = group_metrics(names)
    assert [s.name for s in sections] == [
        "overview",
        "env_task_dependency",
        "env_curriculum_stats",
        "losses",
        "other",
        "experience",
        "zebra",
    ]
    assert sections[4].plots[0].title == "alone"


def test_a_metric_and_the_same_by_label_are_one_plot() -> None:
    names = ["success", "success/medium", "success/a/b", "return", "successes"]
    (section,) = group_metrics(f"evaluation/{name}" for name in names)
    plots = {plot.title: plot.labels for plot in section.plots}
    assert plots == {"return": (), "successes": (), "success": ("a/b", "all", "medium")}


def test_the_axis_is_not_plotted_against_itself() -> None:
    sections = group_metrics(["metric/agent_step", "metric/epoch"])
    assert [p.metrics for s in sections for p in s.plots] == [("metric/epoch",)]


def test_a_family_is_one_plot_with_labels_in_natural_order() -> None:
    prefix = "env_curriculum_stats/per_label_samples/"
    names = [f"{prefix}taskclass{k}" for k in range(12)] + ["env_curriculum_stats/sampling_gini"]
    (section,) = group_metrics(reversed(names))
    single, family = section.plots
    assert not single.is_family
    assert single.title == "sampling_gini"
    assert family.title == "per_label_samples"
    assert family.labels == tuple(f"taskclass{k}" for k in range(12))
    assert family.metrics == tuple(names[:12])


def test_parts_of_a_whole_are_told_from_other_families() -> None:
    kinds = ("per_label_samples", "per_label_probs", "per_label_lp_scores", "per_label_performance")
    (section,) = group_metrics([f"env_curriculum_stats/{kind}/a" for kind in kinds])
    divided = {plot.title: plot.is_divided for plot in section.plots}
    assert divided == {
        "per_label_samples": True,
        "per_label_probs": True,
        "per_label_lp_scores": False,
        "per_label_performance": False,
    }


def test_a_label_may_hold_slashes() -> None:
    assert family_of("a/per_label_samples/x/y") == ("a/per_label_samples", "x/y")
    assert family_of("a/tracked_task_lp_scores/t") == ("a/tracked_task_lp_scores", "t")
    assert family_of("a/pool_composition_fraction/t") == ("a/pool_composition_fraction", "t")
    assert family_of("a/per_label_samples") is None
    assert family_of("a/performance/x") is None


def test_a_label_that_looks_like_a_family_stays_a_label() -> None:
    assert family_of("a/per_label_samples/per_label_x/y") == (
        "a/per_label_samples",
        "per_label_x/y",
    )


def test_names_that_differ_in_one_number_are_joined_from_three_on() -> None:
    three = [f"env_task_dependency/task_{k}_performance" for k in (0, 10, 2)]
    (section,) = group_metrics([*three, "env_task_dependency/x1", "env_task_dependency/x2"])
    assert [p.title for p in section.plots] == ["x1", "x2", "task_*_performance"]
    assert section.plots[2].labels == (
        "task_0_performance",
        "task_2_performance",
        "task_10_performance",
    )


def test_metrics_are_chosen_by_name_or_pattern() -> None:
    names = ["overview/b", "overview/a", "losses/x", "odd[1]"]
    assert select_metrics(names, None) == ["losses/x", "odd[1]", "overview/a", "overview/b"]
    assert select_metrics(names, ["overview/*", "odd[1]"]) == ["odd[1]", "overview/a", "overview/b"]


def test_a_pattern_that_matches_nothing_is_refused_with_what_is_near() -> None:
    with pytest.raises(ConfigError, match=r"'overveiw/reward'.*'overview/reward'"):
        select_metrics(["overview/reward", "losses/x"], ["overveiw/reward"])


def test_a_run_without_metrics_refuses_no_pattern() -> None:
    assert select_metrics([], ["overview/*"]) == []
