"""The table of metrics: names, lookup, and declaring one's own."""

import pytest

from stepladder.errors import ConfigError
from stepladder.stats import METRICS, Metric, Reduction, declare, metrics
from stepladder.stats.metrics import emitted_name, find, reduction_of


@pytest.fixture(autouse=True)
def own_table(monkeypatch):
    """Let a test declare what it likes: the table belongs to the process."""
    monkeypatch.setattr(metrics, "_declared", dict(metrics._declared))


def metric(name, reduction=Reduction.SUM, meaning="goals shot"):
    return Metric(name=name, reduction=reduction, meaning=meaning)


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("hockey/goals", "env_hockey/goals"),
        ("curriculum_stats/x/y", "env_curriculum_stats/x/y"),
        ("score", "env_info/score"),
        ("env_hockey/goals", "env_hockey/goals"),
        ("overview/reward", "overview/reward"),
        ("losses/policy", "losses/policy"),
        ("experience/size", "experience/size"),
        ("metric/epoch", "metric/epoch"),
    ],
)
def test_a_key_is_prefixed_exactly_once(key, name):
    assert emitted_name(key) == name
    assert emitted_name(name) == name


def test_no_key_is_ever_prefixed_twice():
    for key in ("env_", "env_x", "env_x/y", "env_/y", "env_curriculum_stats/per_label_samples/a"):
        assert "env_env_" not in emitted_name(key)


def test_every_metric_has_a_name_that_stays_and_a_meaning():
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    for entry in METRICS:
        assert emitted_name(entry.name) == entry.name
        assert entry.meaning
        assert "|" not in entry.meaning + entry.formula


def test_reductions_are_those_of_the_table_and_not_of_the_name():
    prefix = "env_curriculum_stats"
    assert reduction_of(f"{prefix}/per_label_samples/taskclass0") is Reduction.SUM
    assert reduction_of(f"{prefix}/per_label_success/taskclass0") is Reduction.MEAN
    assert reduction_of(f"{prefix}/per_label_probs/taskclass0") is Reduction.LAST
    assert reduction_of(f"{prefix}/num_evicted") is Reduction.LAST
    # Has the words of a sum in it and was declared by nobody.
    assert find("env_hockey/per_label_samples") is None
    assert reduction_of("env_hockey/per_label_samples") is Reduction.MEAN


def test_the_exact_name_comes_before_the_family_and_the_closer_family_before_the_wider():
    declare(metric("env_a/*", Reduction.SUM))
    declare(metric("env_a/b/*", Reduction.MAX))
    declare(metric("env_a/b/c", Reduction.LAST))
    assert reduction_of("env_a/x") is Reduction.SUM
    assert reduction_of("env_a/b/x") is Reduction.MAX
    assert reduction_of("env_a/b/x/y") is Reduction.MAX
    assert reduction_of("env_a/b/c") is Reduction.LAST
    assert reduction_of("env_a/b") is Reduction.SUM
    assert find("env_ab/x") is None


def test_a_label_may_contain_slashes():
    found = find("env_curriculum_stats/per_label_samples/maps/cave/1")
    assert found is not None
    assert found.name == "env_curriculum_stats/per_label_samples/*"


def test_a_name_can_be_declared_as_the_info_has_it():
    kept = declare(metric("hockey/goals"))
    assert kept.name == "env_hockey/goals"
    assert reduction_of("env_hockey/goals") is Reduction.SUM


def test_declaring_again_changes_nothing_and_otherwise_is_refused():
    declare(metric("hockey/goals"))
    declare(metric("env_hockey/goals"))
    with pytest.raises(ConfigError, match=r"'env_hockey/goals' is declared already, as sum"):
        declare(metric("hockey/goals", Reduction.MEAN))
    with pytest.raises(ConfigError, match="another name"):
        declare(metric("overview/reward"))
    assert reduction_of("env_hockey/goals") is Reduction.SUM


@pytest.mark.parametrize("name", ["", "/", "/*", "a/*/b", "*", "a|b", "a\nb"])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(ConfigError, match="cannot be the name of a metric"):
        metric(name)


def test_a_row_of_the_page_has_everything():
    entry = Metric(name="a/b", reduction=Reduction.MAX, meaning="height in m", formula="max(h)")
    assert entry.row() == "| `a/b` | max | height in m | `max(h)` |"
    assert metric("a/b").row() == "| `a/b` | sum | goals shot |  |"
