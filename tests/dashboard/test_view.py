"""Runs as the report sees them."""

from pathlib import Path

import numpy as np
import pytest
from made_runs import make_run

from stepladder.dashboard.view import MAX_MARKERS, distinct_names, open_runs
from stepladder.errors import RunError
from stepladder.runs import Run


def test_different_folder_names_stay_as_they_are() -> None:
    assert distinct_names([Path("/a/x"), Path("/a/y")]) == ["x", "y"]


def test_alike_folder_names_get_as_many_parents_as_they_need() -> None:
    folders = [Path("/a/one/run"), Path("/a/two/run"), Path("/b/two/run"), Path("/a/other")]
    assert distinct_names(folders) == ["one/run", "a/two/run", "b/two/run", "other"]


def test_the_same_folder_twice_is_numbered() -> None:
    assert distinct_names([Path("/a/x"), Path("/a/../a/x"), Path("/a/y")]) == [
        "x (1)",
        "x (2)",
        "y",
    ]


def test_a_run_knows_its_last_step_and_its_series(tmp_path: Path) -> None:
    with Run.create(tmp_path / "r", kind="simulation", config={}, seed=4) as run:
        run.log(10, {"a": 1.0, "b": 2.0})
        run.log(30, {"a": 3.0})
        run.log(40, {"a": np.inf})
    (view,) = open_runs([tmp_path / "r"], 1)
    assert view.last_step == 40
    assert view.metrics == {"a", "b"}
    steps, values = view.series("a")
    assert steps.tolist() == [10, 30, 40]
    np.testing.assert_array_equal(values, [1.0, 3.0, np.nan])


def test_an_event_after_the_last_metric_is_still_inside_the_axis(tmp_path: Path) -> None:
    with Run.create(tmp_path / "r", kind="simulation", config={}, seed=4) as run:
        run.log(10, {"a": 1.0})
        run.event(25, "stage_advanced", "late")
    (view,) = open_runs([tmp_path / "r"], 1)
    assert view.last_step == 25


def test_points_logged_after_opening_are_left_for_the_next_report(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "r", kind="simulation", config={}, seed=0)
    run.log(10, {"a": 1.0})
    run.flush()
    (view,) = open_runs([tmp_path / "r"], 1)
    run.log(20, {"a": 2.0})
    run.close()
    assert view.series("a")[0].tolist() == [10]


def test_smoothing_is_applied_to_every_series(tmp_path: Path) -> None:
    with Run.create(tmp_path / "r", kind="simulation", config={}, seed=0) as run:
        for step, value in ((1, 0.0), (2, 3.0), (3, 6.0)):
            run.log(step, {"a": value})
    (view,) = open_runs([tmp_path / "r"], 3)
    assert view.series("a")[1].tolist() == [1.5, 3.0, 4.5]


def test_kinds_of_events_that_are_too_many_are_not_marked(tmp_path: Path) -> None:
    with Run.create(tmp_path / "r", kind="simulation", config={}, seed=0) as run:
        for step in range(MAX_MARKERS + 1):
            run.event(step, "evicted", "x")
        for step in range(MAX_MARKERS):
            run.event(step, "stage_advanced", "y")
    (view,) = open_runs([tmp_path / "r"], 1)
    assert len(view.events) == 2 * MAX_MARKERS + 1
    assert [m.kind for m in view.markers] == ["stage_advanced"] * MAX_MARKERS


def test_a_folder_without_a_run_is_refused_by_name(tmp_path: Path) -> None:
    good = make_run(tmp_path / "good", num_epochs=2)
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError, match="empty"):
        open_runs([good, tmp_path / "empty"], 1)
