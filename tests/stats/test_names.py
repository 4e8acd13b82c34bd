"""Names are given out in bounded numbers, whatever comes in."""

import json
import logging
from typing import Any

import pytest

from stepladder.errors import SnapshotError
from stepladder.stats import MetricNames
from stepladder.stats.names import MAX_PER_FAMILY, MAX_UNDECLARED, UNDECLARED_OTHER

SAMPLES = "env_curriculum_stats/per_label_samples"


@pytest.fixture
def names():
    return MetricNames()


def test_a_declared_name_is_always_given_out(names):
    assert names.admit("overview/reward") == "overview/reward"
    assert names.undeclared == ()


def test_a_full_family_puts_further_names_together(names, caplog):
    kept = [names.admit(f"{SAMPLES}/label{i}") for i in range(MAX_PER_FAMILY)]
    assert kept == [f"{SAMPLES}/label{i}" for i in range(MAX_PER_FAMILY)]
    with caplog.at_level(logging.WARNING):
        assert names.admit(f"{SAMPLES}/one/more") == f"{SAMPLES}/other"
        assert names.admit(f"{SAMPLES}/another") == f"{SAMPLES}/other"
    assert [record.message for record in caplog.records] == [
        f"More than 100 names below '{SAMPLES}'; the others are reduced together as "
        f"'{SAMPLES}/other'. Values per task belong in the run's database."
    ]


def test_a_name_once_given_out_stays_and_other_families_have_room(names):
    for i in range(MAX_PER_FAMILY + 5):
        names.admit(f"{SAMPLES}/label{i}")
    assert names.admit(f"{SAMPLES}/label3") == f"{SAMPLES}/label3"
    probs = "env_curriculum_stats/per_label_probs/label104"
    assert names.admit(probs) == probs
    assert names.undeclared == ()


def test_the_name_of_the_rest_takes_no_room(names):
    assert names.admit(f"{SAMPLES}/other") == f"{SAMPLES}/other"
    kept = {names.admit(f"{SAMPLES}/label{i}") for i in range(MAX_PER_FAMILY)}
    assert len(kept) == MAX_PER_FAMILY
    assert f"{SAMPLES}/other" not in kept


def test_undeclared_names_are_listed_once_and_limited_per_prefix(names):
    for _ in range(2):
        for i in range(MAX_PER_FAMILY + 1):
            names.admit(f"env_maze/task{i}")
    assert names.undeclared == tuple(f"env_maze/task{i}" for i in range(MAX_PER_FAMILY))
    assert names.admit("env_maze/task100") == "env_maze/other"


@pytest.mark.parametrize("ending", ["score", "other"])
def test_undeclared_prefixes_are_limited_too(names, ending, caplog):
    with caplog.at_level(logging.WARNING):
        kept = {names.admit(f"env_task{i}/{ending}") for i in range(2 * MAX_UNDECLARED)}
    assert len(kept) == MAX_UNDECLARED + 1
    assert UNDECLARED_OTHER in kept
    assert len(names.undeclared) == MAX_UNDECLARED
    assert len(caplog.records) == 1


def test_runs_do_not_take_names_from_each_other(names):
    for i in range(MAX_PER_FAMILY):
        names.admit(f"{SAMPLES}/label{i}")
    assert MetricNames().admit(f"{SAMPLES}/new") == f"{SAMPLES}/new"


def test_names_go_on_where_they_were() -> None:
    names = MetricNames()
    given = [names.admit(f"env_here/{number}") for number in range(120)]
    again = MetricNames()
    again.restore(json.loads(json.dumps(names.state())))
    assert again.undeclared == names.undeclared
    assert [again.admit(f"env_here/{number}") for number in range(120)] == given
    assert again.state() == names.state()


@pytest.mark.parametrize("state", [{}, {"members": 7}, {"members": {}, "undeclared": [1]}])
def test_names_that_are_none_change_nothing(state: dict[str, Any]) -> None:
    names = MetricNames()
    names.admit("env_here/a")
    before = names.state()
    with pytest.raises(SnapshotError, match="names of metrics in the checkpoint are damaged"):
        names.restore(state)
    assert names.state() == before
