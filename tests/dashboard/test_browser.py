"""The report in a real browser: everything is drawn, the script runs, the switches work."""

import html
import json
import os
import re
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from made_runs import make_run

from stepladder.dashboard import write_report
from stepladder.runs import Run

pytestmark = [pytest.mark.browser, pytest.mark.processes, pytest.mark.timeout(60)]

NAMES = ("chromium", "chromium-browser", "google-chrome")
LIMIT_S = 45
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')


@dataclass(frozen=True)
class Visit:
    """What was left of a page after its scripts had run."""

    dom: str
    log: str

    @property
    def complaints(self) -> list[str]:
        """Errors of scripts, and whatever the content security policy stopped."""
        words = ("Uncaught", "Refused", "violates")
        return [line for line in self.log.splitlines() if any(w in line for w in words)]

    @property
    def ready(self) -> int | None:
        """How many plots the page's script has taken up; None if it did not get to its end."""
        found = re.search(r'<html[^>]* data-ready="(\d+)"', self.dom)
        return int(found[1]) if found else None

    @property
    def told(self) -> Any:
        """What a test's script has found out."""
        found = re.search(r'data-told="([^"]*)"', self.dom)
        assert found, f"the test's script did not end; log: {self.complaints}"
        return json.loads(html.unescape(found[1]))


def visit(page: Path, tmp_path: Path) -> Visit:
    """Open a page in headless Chromium and wait until its scripts are done."""
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    assert browser, f"none of {', '.join(NAMES)} is installed; `make test` installs chromium"
    dom, log = tmp_path / "dom.html", tmp_path / "browser.log"
    command = [
        *(browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"),
        *("--disable-dev-shm-usage", "--disable-background-networking", "--window-size=1400,1000"),
        *(f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr"),
        *("--virtual-time-budget=5000", "--dump-dom", page.resolve().as_uri()),
    ]
    # Files, not pipes: a left-over child that holds a pipe open would hold up the test.
    with dom.open("wb") as out, log.open("wb") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, start_new_session=True)
        try:
            code = process.wait(LIMIT_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    text = log.read_text(errors="replace")
    assert code == 0, text[-2000:]
    return Visit(dom.read_text(encoding="utf-8"), text)


def ask(report: Path, script: str, tmp_path: Path) -> Any:
    """Open a copy of a report with a script of ours at its end, and return what it found."""
    text, removed = POLICY.subn("", report.read_text(encoding="utf-8"))
    assert removed == 1
    told = (
        f"(async () => {{{script}}})().then((told) => "
        "{ document.documentElement.dataset.told = JSON.stringify(told); });"
    )
    copy = tmp_path / "asked.html"
    copy.write_text(text.replace("</body>", f"<script>{told}</script></body>"), encoding="utf-8")
    seen = visit(copy, tmp_path)
    assert seen.complaints == []
    return seen.told


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A report of a simulation and of a training that is three times as long."""
    folders = [
        make_run(tmp_path / "short", last_step=30_000),
        make_run(tmp_path / "long", kind="training", last_step=90_000, seed=1),
    ]
    return write_report(folders, tmp_path / "two.html")


CHARTS = """
        const root = document.documentElement;
        const all = [...root.charts.values()];
        const plots = JSON.parse(document.getElementById("stepladder-data").textContent).plots;
        // uPlot draws when the script that made or changed a chart has ended.
        const click = async (selector) => {
          document.querySelector(selector).click();
          await new Promise((done) => setTimeout(done, 0));
          all.splice(0, all.length, ...root.charts.values());
        };
        const press = (choice) => click(`[data-choice="${choice}"]`);
        // How many pixels of a chart's drawing area have been painted.
        const painted = ({ ctx, bbox: { left, top, width, height } }) =>
          ctx.getImageData(left, top, width, height).data.filter((v, k) => k % 4 === 3 && v).length;
"""
"""What the tests' scripts use: all charts, and the switches."""


@pytest.mark.parametrize(
    ("runs", "num_plots", "kinds"),
    [
        ([{}], 15, {"lines": 14, "areas": 1}),
        ([{}, {"kind": "training"}], 20, {"lines": 18, "areas": 2}),
        ([{"num_labels": 40}], 15, {"lines": 12, "heat": 3}),
    ],
    ids=["one run", "two runs", "forty labels"],
)
def test_every_plot_is_drawn_and_nothing_complains(
    runs: list[dict[str, Any]], num_plots: int, kinds: dict[str, int], tmp_path: Path
) -> None:
    folders = [make_run(tmp_path / f"run{k}", **options) for k, options in enumerate(runs)]
    report = write_report(folders, tmp_path / "report.html")
    seen = visit(report, tmp_path)
    assert seen.complaints == []
    assert seen.ready == num_plots
    told = ask(
        report,
        CHARTS
        + """
        const found = {};
        for (const [place, chart] of root.charts) {
          const panel = plots[place.dataset.plot];
          (found[panel.kind] ??= []).push(painted(chart) / (chart.bbox.width * chart.bbox.height));
        }
        return found;
        """,
        tmp_path,
    )
    assert {kind: len(shares) for kind, shares in told.items()} == kinds
    assert min(told["lines"]) > 0.005
    # Areas and heat maps fill the chart.
    assert min(told.get("areas", []) + told.get("heat", []) + [1]) > 0.9


def test_the_watch_for_complaints_sees_errors_and_foreign_scripts(
    two: Path, tmp_path: Path
) -> None:
    text = two.read_text(encoding="utf-8")
    foreign = "<script>document.documentElement.dataset.foreign = 1</script></body>"
    two.write_text(text.replace("</body>", foreign), encoding="utf-8")
    seen = visit(two, tmp_path)
    assert "data-foreign" not in seen.dom
    assert len(seen.complaints) >= 1
    broken = tmp_path / "broken.html"
    broken.write_text("<script>nothing.at.all</script>")
    assert any("Uncaught" in line for line in visit(broken, tmp_path).complaints)


def test_hostile_names_stay_text_in_the_browser_too(tmp_path: Path) -> None:
    evil = "</script><img src=x onerror=\"document.documentElement.dataset.evil='1'\">"
    with Run.create(tmp_path / "a", kind="simulation", config={evil: evil}, seed=0) as run:
        for step in range(4):
            labels = {f"c/per_label_samples/{evil}{k}": 1.0 for k in range(3)}
            run.log(step, {f"overview/{evil}": 1.0, **labels})
        run.event(2, "kind", evil, {})
        run.log_tasks(3, {"task": [evil], "label": [evil], "prob": [1.0]})
    report = write_report([tmp_path / "a"], tmp_path / "r.html")
    told = ask(
        report,
        CHARTS
        + """
        const texts = all.map((chart) => {
          chart.setCursor({ left: chart.valToPos(2, "x"), top: 60 });
          return chart.root.textContent + document.getElementById("tip").textContent;
        });
        return [root.dataset.evil ?? "calm", document.images.length, texts.join(" ")];
        """,
        tmp_path,
    )
    assert told[:2] == ["calm", 0]
    assert told[2].count(evil) >= 5


def test_as_a_fraction_every_run_fills_the_axis(two: Path, tmp_path: Path) -> None:
    told = ask(
        two,
        CHARTS
        + """
        const look = () => {
          const { data, scales, axes } = all[0];
          const last = (k) => data[0].findLast((x, place) => data[k][place] != null);
          return [[last(1), last(2)], scales.x.max, axes[0].label];
        };
        const before = look();
        await press("fraction");
        const after = look();
        await press("steps");
        return [before, after, look()];
        """,
        tmp_path,
    )
    before, after, again = told
    assert before == [[30_000, 90_000], 90_000, "agent steps"]
    assert after == [[1, 1], 1, "fraction of the run"]
    assert again == before


def test_a_run_beside_a_far_longer_one_is_seen_at_once(tmp_path: Path) -> None:
    folders = [make_run(tmp_path / f"to {last}", last_step=last) for last in (10_000, 900_000)]
    told = ask(
        write_report(folders, tmp_path / "r.html"),
        CHARTS
        + """
        const pressed = document.querySelector('[data-axis="x"][aria-pressed="true"]');
        return [all[0].scales.x.max, pressed.dataset.choice];
        """,
        tmp_path,
    )
    assert told == [1, "fraction"]


def test_the_log_axis_moves_lines_and_back(tmp_path: Path) -> None:
    with Run.create(tmp_path / "a", kind="simulation", config={}, seed=0) as run:
        for step, value in enumerate([1.0, 10.0, 100.0, 0.0, 100.0]):
            run.log(step, {"overview/x": value, "overview/negative": -1.0 - step})
    told = ask(
        write_report([tmp_path / "a"], tmp_path / "r.html"),
        CHARTS
        + """
        const look = () => all.slice(0, 2).map(({ data, scales, valToPos }) => [
          data[1], scales.y.min, scales.y.max, data[1].map((y) => y && valToPos(y, "y"))]);
        const before = look();
        await press("log");
        const after = look();
        await press("linear");
        return [before, after, look()];
        """,
        tmp_path,
    )
    before, after, again = told
    (negative, logged) = after
    heights = logged[3]
    assert heights[0] - heights[1] == pytest.approx(heights[1] - heights[2], abs=0.11)
    assert logged[0] == [1, 10, 100, None, 100], "0 has no place on a log axis"
    assert logged[1:3] == pytest.approx([100**-0.04, 100**1.04])
    assert negative == before[0], "what has no positive value stays linear"
    assert again == before


def test_a_click_on_the_legend_hides_a_run(two: Path, tmp_path: Path) -> None:
    told = ask(
        two,
        CHARTS
        + """
        const look = () => [
          all[0].series.slice(1).map((series) => series.show),
          [...document.querySelectorAll(".panel[data-run]")].filter((e) => e.offsetWidth).length,
        ];
        const toggle = '[data-toggle="1"]';
        const before = look();
        await click(toggle);
        const after = [...look(), document.querySelector(toggle).getAttribute("aria-pressed")];
        await click(toggle);
        return [before, after, look()];
        """,
        tmp_path,
    )
    before, after, again = told
    assert before == [[True, True], 6]
    assert after == [[True, False], 3, "false"]
    assert again == before


def test_events_are_marked_in_their_colour_until_they_are_switched_off(
    two: Path, tmp_path: Path
) -> None:
    told = ask(
        two,
        CHARTS
        + """
        // The last event of the long run; the short one has none there.
        const look = () => {
          const [chart] = all;
          const x = Math.round(chart.valToPos(72000, "x", true));
          const { top, height } = chart.bbox;
          const dots = chart.ctx.getImageData(x - 1, top, 3, height).data;
          const isOrange = (k) => dots[k] > 180 && dots[k + 2] < 60 && dots[k + 3] > 0;
          return dots.filter((_, k) => k % 4 === 0 && isOrange(k)).length;
        };
        const before = look();
        await click("nav [data-events]");
        return [before, look()];
        """,
        tmp_path,
    )
    marked, unmarked = told
    # The line itself crosses the place, too.
    assert marked > 60 > 15 > unmarked


def test_panels_of_one_figure_share_their_value_axis(two: Path, tmp_path: Path) -> None:
    told = ask(
        two,
        CHARTS
        + """
        return [...root.charts].filter(([place]) => place.ariaLabel.startsWith("per_label_lp"))
          .map(([, { scales }]) => [scales.y.min, scales.y.max, scales.x.max]);
        """,
        tmp_path,
    )
    first, second = told
    assert first[:2] == second[:2]
    assert (first[2], second[2]) == (30_000, 90_000), "each has the x axis of its run"


def test_the_legend_follows_the_cursor_in_all_charts(tmp_path: Path) -> None:
    with Run.create(tmp_path / "short", kind="simulation", config={}, seed=0) as run:
        run.log(0, {"overview/x": 1.0})
        run.log(50, {"overview/x": 2.25})
    with Run.create(tmp_path / "long", kind="training", config={}, seed=0) as run:
        for step in range(101):
            heat = {f"c/per_label_scores/row{k}": float(k * 1000 + step) for k in range(20)}
            run.log(step, {"overview/x": 10.0 * step, "overview/y": 1.0 * step, **heat})
        run.event(100, "stage_advanced", "because it was time")
    told = ask(
        write_report([tmp_path / "short", tmp_path / "long"], tmp_path / "r.html"),
        CHARTS
        + """
        const tip = document.getElementById("tip");
        const legend = (chart) =>
          [...chart.root.querySelectorAll(".u-series")].map((row) => row.textContent);
        const point = (chart, x, down = 0.5) => chart.setCursor({
          left: chart.valToPos(x, "x"), top: down * chart.over.clientHeight }, true, true);
        const [lines, other, heat] = all;
        const told = [50, 90].map((x) => { point(lines, x); return legend(lines); });
        told.push(legend(other), tip.hidden);
        point(lines, 100);
        told.push(tip.textContent, tip.hidden);
        point(heat, 30.5, 0.97);
        told.push(heat.root.parentElement.querySelector(".scale b").textContent);
        await press("fraction");
        point(all[0], 0.999);
        told.push(legend(all[0]));
        all[0].setCursor({ left: -10, top: -10 });
        return [...told, tip.hidden];
        """,
        tmp_path,
    )
    middle, later, synced, no_event, event, hidden, cell, fraction, gone = told
    assert middle == ["step50", "short2.25", "long500"]
    assert later == ["step90", "short\u2013", "long900"], "the short run has ended"
    assert synced == ["step90", "long90"], "another chart shows its values at the same step"
    assert no_event is True
    assert event == "100 stage_advanced: because it was time"
    assert hidden is False
    assert cell == "row19: 19,030"
    assert fraction == ["run100.0 %", "short2.25", "long1,000"]
    assert gone is True


def test_lines_are_broken_at_gaps_and_lone_points_are_dots(tmp_path: Path) -> None:
    with Run.create(tmp_path / "a", kind="simulation", config={}, seed=0) as run:
        for step in range(400):
            is_gap = step in (200, 202) or step > 300
            run.log(step, {"overview/x": float("nan") if is_gap else 0.93})
    told = ask(
        write_report([tmp_path / "a"], tmp_path / "r.html"),
        CHARTS
        + """
        const [chart] = all;
        const { filter } = chart.series[1].points;
        const at = (x) => painted({ ctx: chart.ctx, bbox: {
          left: Math.round(chart.valToPos(x, "x", true)) - 1, width: 3,
          top: Math.round(chart.valToPos(0.93, "y", true)) - 3, height: 6 } });
        return [filter(chart, 1, false), filter(chart, 1, true), at(100) > 0, at(201) > 0, at(350)];
        """,
        tmp_path,
    )
    assert told == [[201], None, True, True, 0]


EXTREMES = {
    "tiny": (1e-300, 5e-300),
    "least": (5e-324, 1e-323),
    "huge": (-1e300, 1e300),
    "large": (1e35, 2e35),
    "both": (1e-300, 1e300),
    "alike": (1e16, 1e16 + 2),
    "near one": (1.0, 1.000001),
    "zero": (0.0, 0.0),
}


def test_extreme_values_are_drawn_and_nothing_hangs(tmp_path: Path) -> None:
    with Run.create(tmp_path / "a", kind="simulation", config={}, seed=0) as run:
        for step in (0, 2**53):
            run.log(step, {f"o/{name}": ends[step > 0] for name, ends in EXTREMES.items()})
    report = write_report([tmp_path / "a"], tmp_path / "r.html")
    told = ask(
        report,
        CHARTS
        + """
        const counts = () => all.map((chart) => chart.axes[1]._splits?.length ?? 0);
        const linear = counts();
        await press("log");
        return [linear, counts(), all.map(painted)];
        """,
        tmp_path,
    )
    linear, log, painted = told
    assert len(linear) == len(EXTREMES)
    assert max(linear) < 40
    assert max(log) < 1000
    assert min(painted) > 0


def test_numbers_on_axes_and_colours_of_runs_and_labels(two: Path, tmp_path: Path) -> None:
    told = ask(
        two,
        """
        const ticks = (...args) => charts.formatTicks(...args).join(" ");
        const bright = ([r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b;
        const shades = [...Array(51).keys()].map((k) => bright(charts.scaleRgb(k / 50)));
        const looks = [...Array(40).keys()].map((k) => [charts.runColour(k), charts.runDash(k)]);
        const labels = [...Array(12).keys()].map((k) => charts.labelColour(k, 12));
        const count = (list) => new Set(list.map(JSON.stringify)).size;
        return [
          [ticks([0, 0.5, 1], 0.5), ticks([0, 20000, 40000], 20000), ticks([0, 5e5, 1e6], 5e5),
           ticks([-0.1, 0, 0.1], 0.1), ticks([0, 2e-5, 4e-5], 2e-5), ticks([0], 1),
           ticks([1000000.1, 1000000.2], 0.1), ticks([0.01, null, 1, 1e4], 0, true)],
          [[0.1, 1], [0.5, 1], [-1, -0.1], [-1, 1], [5, 5], [-5], [0]].map(charts.linearRange),
          charts.logRange([4]),
          shades.every((shade, k) => k === 0 || shade > shades[k - 1]),
          [count(looks), count(looks.slice(0, 10).map(([colour]) => colour)), count(labels)],
          looks[9][1], charts.scaleRgb(-1), charts.scaleRgb(2),
        ];
        """,
        tmp_path,
    )
    texts, ranges, log, brighter, counts, dash, darkest, brightest = told
    assert texts == [
        *("0.0 0.5 1.0", "0 20K 40K", "0.0 0.5M 1.0M", "-0.1 0.0 0.1", "0 2e-5 4e-5", "0"),
        *("1.0000001M 1.0000002M", "0.01  1 10K"),
    ]
    # An axis starts at 0 where values come near it; a constant has an axis around it.
    wanted = [[0, 1.036], [0.48, 1.02], [-1.036, 0], [-1.08, 1.08], [0, 10], [-10, 0], [0, 1]]
    for found, expected in zip(ranges, wanted, strict=True):
        assert found == pytest.approx(expected)
    assert log == [2, 8]
    assert brighter
    assert counts == [40, 10, 12]
    assert (dash, darkest, brightest) == ([], [27, 32, 98], [228, 216, 82])


def test_for_print_everything_is_unfolded_narrow_and_light(two: Path, tmp_path: Path) -> None:
    told = ask(
        two,
        """
        window.dispatchEvent(new Event("beforeprint"));
        const widths = [...document.documentElement.charts.values()].map((chart) => chart.width);
        const folds = [...document.querySelectorAll("details")].every((fold) => fold.open);
        window.dispatchEvent(new Event("afterprint"));
        const [first] = document.documentElement.charts.values();
        return [new Set(widths).size, widths[0], folds, first.width > 330];
        """,
        tmp_path,
    )
    assert told == [1, 330, True, True]


def test_tasks_are_sorted_by_a_click(tmp_path: Path) -> None:
    with Run.create(tmp_path / "a", kind="simulation", config={}, seed=0) as run:
        columns = {"task": ["t10", "t9", "t1"], "label": ["b", "a", "c"], "prob": [0.2, 0.5, 0.3]}
        run.log_tasks(3, {**columns, "success": [0.5, float("nan"), 0.9]})
    told = ask(
        write_report([tmp_path / "a"], tmp_path / "r.html"),
        """
        const table = document.querySelector("table.sortable");
        const rows = () => [...table.tBodies[0].rows];
        const look = () => rows().map((row) => row.cells[0].textContent).join(" ");
        const told = [look()];
        for (const column of [3, 3, 0, 0, 1]) {
          table.tHead.rows[0].cells[column].querySelector("button").click();
          told.push(look());
        }
        window.dispatchEvent(new Event("beforeprint"));
        return [told, document.querySelector("details").open];
        """,
        tmp_path,
    )
    assert told[0] == [
        "t9 t1 t10",  # by probability
        "t1 t10 t9",  # by success, best first, unknown last
        "t9 t10 t1",
        "t10 t9 t1",  # by name, numbers as numbers
        "t1 t9 t10",
        "t1 t10 t9",  # by label
    ]
    assert told[1] is True, "everything is unfolded for printing"
