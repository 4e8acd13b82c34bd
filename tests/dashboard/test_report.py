"""The page as text: what stands in it, and that nothing foreign gets in."""

import json
import os
import re
import stat
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_runs import make_run

import stepladder
from stepladder.dashboard import write_report
from stepladder.dashboard.page import SCRIPTS
from stepladder.errors import ConfigError
from stepladder.runs import Run, RunReader

EVIL = "<script>alert('x')</script>\"'&"
SCALARS = 12
"""Plots of single metrics in a made simulation; a training has two more."""
FAMILIES = 3


class Page(HTMLParser):
    """Collects elements and text of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.words: list[str] = []
        self._open = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open = tag

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open == "script":
            self.scripts.append(data)
        elif self._open != "style":
            self.words.append(data)

    def having(self, name: str) -> list[dict[str, str | None]]:
        """Return the attributes of all elements that have one of this name."""
        return [attrs for _, attrs in self.tags if name in attrs]

    @property
    def data(self) -> dict[str, Any]:
        return json.loads(self.scripts[0])


def report(tmp_path: Path, *folders: Path, **options: Any) -> Page:
    out = write_report(folders, tmp_path / "report.html", **options)
    assert out == tmp_path / "report.html"
    return Page(out.read_text(encoding="utf-8"))


def empty_run(folder: Path, **options: Any) -> Path:
    Run.create(folder, kind="training", config={}, seed=1, **options).close()
    return folder


# Plots.


def test_one_run_has_a_plot_per_metric_and_one_per_family(tmp_path: Path) -> None:
    page = report(tmp_path, make_run(tmp_path / "a"))
    assert len(page.having("data-plot")) == SCALARS + FAMILIES
    kinds = [plot["kind"] for plot in page.data["plots"].values()]
    assert (kinds.count("lines"), kinds.count("areas")) == (SCALARS + 2, 1)


def test_sections_stand_in_order(tmp_path: Path) -> None:
    text = write_report(
        [make_run(tmp_path / "a", kind="training")], tmp_path / "r.html"
    ).read_text()
    assert re.findall(r"<h2>(\w+)</h2>", text) == [
        "overview",
        "env_task_dependency",
        "env_curriculum_stats",
        "losses",
        "metric",
        "Events",
        "Tasks",
    ]


def test_two_runs_share_plots_and_have_a_panel_each_in_families(tmp_path: Path) -> None:
    page = report(
        tmp_path,
        make_run(tmp_path / "a"),
        make_run(tmp_path / "b", kind="training", last_step=90_000),
    )
    assert len(page.having("data-plot")) == SCALARS + 2 + 2 * FAMILIES
    plots = list(page.data["plots"].values())
    assert [line["name"] for line in plots[0]["lines"]] == ["a", "b"]
    assert plots[0]["last"] == 90_000, "runs share the axis of the longer one"
    assert [run["last"] for run in page.data["runs"]] == [24_000, 90_000]
    ends = {p["last"] for p in plots if p["kind"] == "areas"}
    assert ends == {24_000, 90_000}, "a panel of its own has an axis of its own"


@pytest.mark.parametrize(("last_step", "axis"), [(8_000, "steps"), (8_008, "fraction")])
def test_runs_of_very_different_lengths_begin_as_fractions(
    last_step: int, axis: str, tmp_path: Path
) -> None:
    short = make_run(tmp_path / "a", last_step=1_000, num_epochs=4)
    long = make_run(tmp_path / "b", last_step=last_step, num_epochs=4)
    assert report(tmp_path, short, long, empty_run(tmp_path / "c")).data["x"] == axis


def test_panels_of_one_family_share_their_value_axis(tmp_path: Path) -> None:
    page = report(
        tmp_path,
        make_run(tmp_path / "a"),
        make_run(tmp_path / "b", seed=5, num_labels=4),
        metrics=["*/per_label_lp_scores/*"],
    )
    first, second = page.data["plots"].values()
    # Panels of one figure are drawn with one value axis; see test_browser.
    assert first["figure"] == second["figure"]
    assert (len(first["lines"]), len(second["lines"])) == (10, 4)
    # A label has the same colour in both panels.
    ranks = [(panel["lines"][3]["rank"], panel["lines"][3]["of"]) for panel in (first, second)]
    assert ranks == [(3, 10)] * 2


def test_more_than_twelve_labels_become_heat_maps_in_natural_order(tmp_path: Path) -> None:
    page = report(tmp_path, make_run(tmp_path / "a", num_labels=40))
    heats = [p for p in page.data["plots"].values() if p["kind"] == "heat"]
    assert len(heats) == FAMILIES
    assert heats[0]["rows"] == [f"taskclass{k}" for k in range(40)]
    assert np.array(heats[0]["grid"]).shape == (40, 60)
    columns = np.array(heats[2]["grid"]).sum(axis=0)
    np.testing.assert_allclose(columns, 1.0, atol=1e-4, err_msg="samples are shown as shares")
    assert np.array(heats[1]["grid"]).sum(axis=0).max() > 30, "performance is shown as it is"
    assert [heat["ends"][0] for heat in heats] == [0.0] * 3


def test_labels_beyond_the_rows_of_a_heat_map_are_counted(tmp_path: Path) -> None:
    page = report(tmp_path, make_run(tmp_path / "a", num_labels=205, num_epochs=3))
    assert sum("5 more labels not shown" in word for word in page.words) == FAMILIES


def test_shares_of_samples_are_drawn_as_they_were_logged(tmp_path: Path) -> None:
    with Run.create(tmp_path / "a", kind="simulation", config={}, seed=0) as run:
        for step, (first, second) in enumerate([(1, 3), (2, 2), (0, 0)]):
            run.log(step, {"c/per_label_samples/x": first, "c/per_label_samples/y": second})
    (plot,) = report(tmp_path, tmp_path / "a").data["plots"].values()
    assert [line["y"] for line in plot["lines"]] == [[0.25, 0.5, None], [0.75, 0.5, None]]


def test_a_line_is_thinned_but_keeps_its_extremes_and_gaps(tmp_path: Path) -> None:
    with Run.create(tmp_path / "a", kind="simulation", config={}, seed=0) as run:
        for step in range(3_000):
            value = 50.0 if step == 1_234 else np.nan if 2_000 <= step < 2_100 else step % 7
            run.log(step, {"overview/x": value})
    page = report(tmp_path, tmp_path / "a")
    (plot,) = page.data["plots"].values()
    (line,) = plot["lines"]
    assert len(line["x"]) <= 800
    assert line["x"][line["y"].index(50)] == 1_234
    assert None in line["y"]


def test_a_metric_without_a_finite_value_is_named_all_the_same(tmp_path: Path) -> None:
    with Run.create(tmp_path / "a", kind="simulation", config={}, seed=0) as run:
        run.log(1, {"overview/x": np.nan, "c/per_label_x/y": np.nan, "c/per_label_samples/y": 0.0})
    page = report(tmp_path, tmp_path / "a")
    assert page.words.count("no finite value yet") == 2


def test_a_single_point_at_step_zero_can_be_shown(tmp_path: Path) -> None:
    with Run.create(tmp_path / "a", kind="simulation", config={}, seed=0) as run:
        labels = {f"c/per_label_samples/{k}": 1.0 for k in range(3)}
        many = {f"c/per_label_scores/{k}": 1.0 for k in range(20)}
        run.log(0, {"overview/x": 2.0, **labels, **many})
    page = report(tmp_path, tmp_path / "a")
    assert [p["kind"] for p in page.data["plots"].values()] == ["lines", "areas", "heat"]


def test_metrics_can_be_chosen(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "a")
    page = report(tmp_path, folder, metrics=["overview/*"])
    assert len(page.having("data-plot")) == 5
    with pytest.raises(ConfigError, match="'overview/nothing', which no run has"):
        report(tmp_path, folder, metrics=["overview/nothing"])


def test_smoothing_is_said(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "a")
    assert "moving average of 5 points" in report(tmp_path, folder, smooth=5).words
    assert not any("moving average" in w for w in report(tmp_path, folder).words)


def test_events_are_marked_in_every_plot(tmp_path: Path) -> None:
    page = report(tmp_path, make_run(tmp_path / "a"))
    assert all(plot["runs"] == [0] for plot in page.data["plots"].values())
    assert page.data["runs"][0]["events"][1] == [
        7_200,
        "stage_advanced",
        "stage 1 left: success 0.82 >= 0.80",
    ]


# Tables.


def test_the_header_tells_what_was_run(tmp_path: Path) -> None:
    page = report(tmp_path, make_run(tmp_path / "a", seed=7), empty_run(tmp_path / "b"))
    words = [word for word in page.words if word.strip()]
    start = words.index("agent steps") + 1
    version = stepladder.__version__
    created = (datetime.fromisoformat(RunReader(tmp_path / name).info.created) for name in "ab")
    began = [time.strftime("%Y-%m-%d %H:%M:%S UTC") for time in created]
    assert words[start : start + 14] == [
        *("a", "simulation", "finished", "7", version, began[0], "24,000"),
        *("b", "training", "finished", "1", version, began[1], "no metrics yet"),
    ]


def test_settings_that_differ_stand_apart(tmp_path: Path) -> None:
    text = write_report(
        [make_run(tmp_path / "a", exploration=0.1), make_run(tmp_path / "b", exploration=0.2)],
        tmp_path / "r.html",
    ).read_text()
    (row,) = re.findall(r'<tr class="differs">.*?</tr>', text)
    assert "curriculum.exploration" in row
    assert re.findall(r"<td>(.*?)</td>", row) == ["0.1", "0.2"]
    assert "Settings that are the same (2)" in text


def test_a_setting_that_only_one_run_has_is_a_difference(tmp_path: Path) -> None:
    text = write_report(
        [make_run(tmp_path / "a", exploration=0.1), make_run(tmp_path / "b")], tmp_path / "r.html"
    ).read_text()
    (row,) = re.findall(r'<tr class="differs">.*?</tr>', text)
    assert "0.1" in row
    assert "\N{EN DASH}" in row


def test_last_values_are_those_of_the_run(tmp_path: Path) -> None:
    with Run.create(tmp_path / "a", kind="simulation", config={}, seed=0) as run:
        run.log(1, {"overview/reward": 1.0, "zebra/x": 1.0})
        run.log(2, {"overview/reward": 0.123456})
    text = write_report([tmp_path / "a"], tmp_path / "r.html").read_text()
    assert '<th>overview/reward</th><td class="num">0.1235</td>' in text
    assert "<th>zebra/x</th>" not in text


def test_many_events_are_shown_from_both_ends(tmp_path: Path) -> None:
    with Run.create(tmp_path / "a", kind="simulation", config={}, seed=0) as run:
        for k in range(1_000):
            run.event(k, "evicted", f"reason number {k};", {"score": k / 2})
    page = report(tmp_path, tmp_path / "a")
    told = [w for w in page.words if w.startswith("reason number")]
    assert told == [f"reason number {k};" for k in (*range(200), *range(800, 1_000))]
    assert "600 events left out" in page.words
    assert "score 0.5" in page.words
    assert any("not marked in the plots" in w for w in page.words)


def test_tasks_are_listed_by_probability(tmp_path: Path) -> None:
    text = write_report([make_run(tmp_path / "a", num_tasks=230)], tmp_path / "r.html").read_text()
    assert "230 tasks at step 24,000; 30 less likely ones left out" in text
    table = text[text.index('class="tasks sortable"') :]
    headings = re.findall(r'<button type="button">(\w+)</button>', table)
    assert headings == ["task", "label", "prob", "score", "samples", "success"]
    rows = re.findall(r"<tr><td>task\d+</td>.*?</tr>", table)
    probs = [float(re.findall(r'data-value="([^"]+)"', row)[0]) for row in rows]
    assert len(probs) == 200
    assert probs == sorted(probs, reverse=True)


def test_a_run_without_anything_says_so(tmp_path: Path) -> None:
    page = report(tmp_path, empty_run(tmp_path / "a"))
    assert "no metrics yet" in page.words
    assert any("nothing has been logged" in w for w in page.words)
    assert page.having("data-plot") == []


def test_an_empty_run_beside_a_full_one_changes_no_plot(tmp_path: Path) -> None:
    page = report(tmp_path, make_run(tmp_path / "a"), empty_run(tmp_path / "b"))
    assert len(page.having("data-plot")) == SCALARS + FAMILIES


# The file.


def test_nothing_from_a_run_becomes_markup(tmp_path: Path) -> None:
    folder = tmp_path / "<img src=x onerror=alert(1)>"
    with Run.create(folder, kind="simulation", config={EVIL: {EVIL: EVIL}}, seed=0) as run:
        for step in range(3):
            run.log(step, {f"{EVIL}": 1.0, f"overview/{EVIL}": 1.0})
            run.log(step, {f"c/per_label_samples/{EVIL}{k}": 1.0 for k in range(3)})
            run.log(step, {f"c/per_label_scores/{EVIL}{k}": 1.0 for k in range(20)})
        run.event(1, EVIL, EVIL, {EVIL: EVIL})
        run.log_tasks(2, {"task": [EVIL], "label": [EVIL], "prob": [1.0], EVIL: [2.0]})
    page = report(tmp_path, folder, empty_run(tmp_path / "b" / folder.name))
    tags = [tag for tag, _ in page.tags]
    assert tags.count("script") == 1 + len(SCRIPTS)
    assert "img" not in tags
    assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)
    assert EVIL in page.words, "it is shown as it is"
    assert page.data["runs"][0]["events"] == [[1, EVIL, EVIL]]


def test_the_page_refers_to_nothing_outside_itself(tmp_path: Path) -> None:
    text = write_report([make_run(tmp_path / "a", num_labels=20)], tmp_path / "r.html").read_text()
    assert not re.search(r"(src|href)=\"(?!data:)", text)
    assert re.findall(r"https?://[^ ]*", text) == ["https://github.com/leeoniya/uPlot"], "a comment"
    assert str(tmp_path) not in text


def test_the_same_runs_give_the_same_bytes(tmp_path: Path) -> None:
    folders = [make_run(tmp_path / "a"), make_run(tmp_path / "b", num_labels=20)]
    first = write_report(folders, tmp_path / "one.html").read_bytes()
    assert write_report([str(f) for f in folders], tmp_path / "two.html").read_bytes() == first


def test_alike_folder_names_are_told_apart(tmp_path: Path) -> None:
    page = report(tmp_path, make_run(tmp_path / "x" / "run"), make_run(tmp_path / "y" / "run"))
    assert [run["name"] for run in page.data["runs"]] == ["x/run", "y/run"]


def test_a_report_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, out = make_run(tmp_path / "a"), tmp_path / "deep" / "er" / "r.html"
    write_report([folder], out)
    before = out.read_bytes()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_report([folder], out, smooth=9)
    assert out.read_bytes() == before
    assert [p.name for p in out.parent.iterdir()] == ["r.html"]


def test_a_report_can_be_read_by_those_who_read_other_files(tmp_path: Path) -> None:
    out = write_report([empty_run(tmp_path / "a")], tmp_path / "r.html")
    plain = tmp_path / "plain"
    plain.touch()
    assert stat.S_IMODE(out.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_bad_input_is_refused_with_what_was_given(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "a", num_epochs=2)
    with pytest.raises(ConfigError, match=r"list of run folders; got \[\]"):
        write_report([], tmp_path / "r.html")
    with pytest.raises(ConfigError, match="list of run folders; got '/runs/a'"):
        write_report("/runs/a", tmp_path / "r.html")
    with pytest.raises(ConfigError, match=r"smooth must be at least 1 .*; got 0"):
        write_report([folder], tmp_path / "r.html", smooth=0)
    with pytest.raises(ConfigError, match="is a folder; add a file name"):
        write_report([folder], tmp_path)
    assert not (tmp_path / "r.html").exists()
