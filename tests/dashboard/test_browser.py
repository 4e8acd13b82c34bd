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
    told = f"document.documentElement.dataset.told = JSON.stringify((() => {{{script}}})());"
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


@pytest.mark.parametrize(
    ("runs", "num_plots", "kinds"),
    [
        ([{}], 15, {"line": 12 + 2 * 10, "area": 10, "heat": 0}),
        ([{}, {"kind": "training"}], 20, {"line": 26 + 40, "area": 20, "heat": 0}),
        ([{"num_labels": 40}], 15, {"line": 12, "area": 0, "heat": 3}),
    ],
    ids=["one run", "two runs", "forty labels"],
)
def test_every_plot_is_drawn_and_nothing_complains(
    runs: list[dict[str, Any]], num_plots: int, kinds: dict[str, int], tmp_path: Path
) -> None:
    folders = [make_run(tmp_path / f"run{k}", **options) for k, options in enumerate(runs)]
    seen = visit(write_report(folders, tmp_path / "report.html"), tmp_path)
    assert seen.complaints == []
    assert seen.ready == num_plots
    plots = re.findall(r'<svg class="plot.*?</svg>', seen.dom, re.DOTALL)
    assert len(plots) == num_plots
    for kind, count in kinds.items():
        pieces = re.findall(rf'<(?:path|image) class="{kind}" [^>]*>', "".join(plots))
        assert len(pieces) == count
        assert not any('d=""' in piece or "NaN" in piece for piece in pieces)


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
        """
        for (const svg of document.querySelectorAll("svg.plot")) {
          const area = svg.getBoundingClientRect();
          const there = { clientX: area.left + 0.66 * area.width, clientY: area.top + 60 };
          svg.dispatchEvent(new PointerEvent("pointermove", there));
        }
        const root = document.documentElement;
        const text = document.getElementById("readout").textContent;
        return [root.dataset.evil ?? "calm", document.images.length, text];
        """,
        tmp_path,
    )
    assert told[:2] == ["calm", 0]
    assert told[2].count(evil) >= 3


def test_as_a_fraction_every_run_fills_the_axis(two: Path, tmp_path: Path) -> None:
    told = ask(
        two,
        """
        const lines = [...document.querySelector("svg.plot").querySelectorAll(".line")];
        const mark = document.querySelector('.event[data-run="0"]');
        const ends = () => lines.map((line) => {
          const box = line.getBBox();
          return Math.round(box.x + box.width);
        });
        const shown = (kind) => getComputedStyle(document.querySelector(kind)).display;
        const place = () => Number(mark.getAttribute("x1"));
        const look = () => [ends(), place(), shown(".x-steps"), shown(".x-fraction")];
        const press = (choice) => document.querySelector(`[data-choice="${choice}"]`).click();
        const before = look();
        press("fraction");
        const after = look();
        press("steps");
        const box = document.querySelector("svg.plot .box");
        const measure = ["x", "width"].map((name) => Number(box.getAttribute(name)));
        return [before, after, look(), ...measure];
        """,
        tmp_path,
    )
    before, after, again, left, width = told
    right = left + width
    assert before[0] == [pytest.approx(left + width / 3, abs=1), right]
    assert before[2:] == ["inline", "none"]
    assert after[0] == [right, right]
    assert after[2:] == ["none", "inline"]
    # The first event of the short run is at a tenth of it, which is a thirtieth of the long one.
    assert before[1] == pytest.approx(left + width / 30, abs=0.11)
    assert after[1] == pytest.approx(left + width / 10, abs=0.11)
    assert again == before


def test_a_run_beside_a_far_longer_one_is_seen_at_once(tmp_path: Path) -> None:
    folders = [make_run(tmp_path / f"to {last}", last_step=last) for last in (10_000, 900_000)]
    told = ask(
        write_report(folders, tmp_path / "r.html"),
        """
        const widths = [...document.querySelector("svg.plot").querySelectorAll(".line")].map(
          (line) => Math.round(line.getBBox().width));
        const pressed = document.querySelector('[data-axis="x"][aria-pressed="true"]');
        return [...widths, pressed.dataset.choice];
        """,
        tmp_path,
    )
    assert told[0] == told[1] > 300
    assert told[2] == "fraction"


def test_the_log_axis_moves_lines_and_back(tmp_path: Path) -> None:
    with Run.create(tmp_path / "a", kind="simulation", config={}, seed=0) as run:
        for step, value in enumerate([1.0, 10.0, 100.0, 0.0, 100.0]):
            run.log(step, {"overview/x": value, "overview/negative": -1.0 - step})
    told = ask(
        write_report([tmp_path / "a"], tmp_path / "r.html"),
        """
        const [negative, line] = document.querySelectorAll(".plots .line");
        const look = () => [line.getAttribute("d"), negative.getAttribute("d")];
        const before = look();
        document.querySelector('[data-choice="log"]').click();
        const after = look();
        document.querySelector('[data-choice="linear"]').click();
        return [before, after, look()];
        """,
        tmp_path,
    )
    before, after, again = told
    heights = [float(y) for y in re.findall(r" ([\d.]+)", after[0])]
    assert heights[0] - heights[1] == pytest.approx(heights[1] - heights[2], abs=0.11)
    assert after[0].count("M") == 2, "0 has no place on a log axis"
    assert after[0].endswith("h0"), "the point behind it is a dot"
    assert after[1] == before[1], "what has no positive value stays linear"
    assert again == before


def test_a_click_on_the_legend_hides_a_run(two: Path, tmp_path: Path) -> None:
    told = ask(
        two,
        """
        const parts = [...document.querySelectorAll(".plots .line, .plots .panel, .plots .event")];
        const shown = (run) => parts.filter(
          (part) => part.dataset.run === run && getComputedStyle(part).display !== "none").length;
        const look = () => [shown("0"), shown("1")];
        const button = document.querySelector('[data-toggle="1"]');
        const before = look();
        button.click();
        const after = [...look(), button.getAttribute("aria-pressed")];
        button.click();
        const again = look();
        document.querySelector("nav [data-events]").click();
        const events = [...document.querySelectorAll(".event")].filter(
          (mark) => getComputedStyle(mark).display !== "none").length;
        return [before, after, again, events];
        """,
        tmp_path,
    )
    before, after, again, events = told
    assert min(before) > 50
    assert after == [before[0], 0, "false"]
    assert again == before
    assert events == 0


def test_the_read_out_names_runs_labels_and_events(tmp_path: Path) -> None:
    with Run.create(tmp_path / "short", kind="simulation", config={}, seed=0) as run:
        run.log(0, {"overview/x": 1.0})
        run.log(50, {"overview/x": 2.25})
    with Run.create(tmp_path / "long", kind="training", config={}, seed=0) as run:
        for step in range(101):
            heat = {f"c/per_label_scores/row{k}": float(k * 1000 + step) for k in range(20)}
            run.log(step, {"overview/x": 10.0 * step, **heat})
        run.event(100, "stage_advanced", "because it was time")
    told = ask(
        write_report([tmp_path / "short", tmp_path / "long"], tmp_path / "r.html"),
        """
        const readout = document.getElementById("readout");
        const read = (svg, across, down) => {
          const area = svg.getBoundingClientRect();
          const [left, top, width, height] = ["x", "y", "width", "height"].map(
            (name) => Number(svg.querySelector(".box").getAttribute(name)));
          const scale = area.width / svg.viewBox.baseVal.width;
          svg.dispatchEvent(new PointerEvent("pointermove", {
            clientX: area.left + scale * (left + across * width),
            clientY: area.top + scale * (top + down * height),
          }));
          const texts = (row) => [...row.children].map((part) => part.textContent);
          return [...readout.children].map((row) => texts(row).filter(Boolean).join(" "));
        };
        const [lines, heat] = document.querySelectorAll("svg.plot");
        const told = [0.5, 0.9, 0.999].map((across) => read(lines, across, 0.5));
        told.push(read(heat, 0.305, 0.97));
        document.querySelector('[data-choice="fraction"]').click();
        told.push(read(lines, 0.999, 0.1));
        lines.dispatchEvent(new PointerEvent("pointerleave"));
        return [...told, getComputedStyle(readout).display];
        """,
        tmp_path,
    )
    middle, later, end, cell, fraction, hidden = told
    assert middle == ["step 50", "short 2.25", "long 500"]
    assert later == ["step 90", "long 900"], "the short run has ended"
    assert end[-1] == "100 stage_advanced: because it was time"
    assert cell == ["step 31", "row19 19,030"]
    assert fraction[:3] == ["99.9 % of the run", "short 2.25", "long 1,000"]
    assert hidden == "none"


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
