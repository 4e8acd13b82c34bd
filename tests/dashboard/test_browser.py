"""The pages in a real browser, live and frozen: everything is drawn, and nothing foreign runs."""

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, browsing
from made_runs import make_run

from stepladder.dashboard import write_report
from stepladder.dashboard.server.serving import DashboardServer
from stepladder.runs import Run

pytestmark = [pytest.mark.browser, pytest.mark.processes, pytest.mark.timeout(90)]

EVIL = "</script><img src=x onerror=\"document.documentElement.dataset.evil='1'\">"
STATS = "env_curriculum_stats"

TOLD = """
const charts = () => [...document.querySelectorAll(".chart")].map((e) => e.chart).filter(Boolean);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
// The share of a chart's drawing area that has been painted.
const painted = ({ plot: { ctx, bbox: { left, top, width, height } } }) => {
  const { data } = ctx.getImageData(left, top, width, height);
  return data.filter((v, k) => k % 4 === 3 && v).length / width / height;
};
const buttonOf = (text) =>
  [...document.querySelectorAll("button")].find((button) => button.textContent === text);
const chartOf = (title) => [...document.querySelectorAll("figure")]
  .find((figure) => figure.textContent.startsWith(title)).querySelector(".chart").chart;
"""
"""What the tests' scripts use."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("browser") / "profile") as browser:
        yield browser


def hostile_run(folder: Path) -> Path:
    settings = {EVIL: EVIL, "curriculum": {"type": "staged", "stages": [{"name": EVIL}]}}
    with Run.create(folder, kind="simulation", config=settings, seed=0) as run:
        for step in range(4):
            labels = {
                f"{STATS}/per_label_{of}/{EVIL}{k}": 0.5
                for k in (1, 2)
                for of in ("samples", "success")
            }
            run.log(step, {f"overview/{EVIL}": float(step), **labels})
        change = {"from_stage": EVIL, "to_stage": EVIL + "2", "success": 0.5, "episodes": 3}
        run.event(2, "stage_advanced", EVIL, change)
        run.event(3, EVIL, EVIL, {})
        run.keep_standing(3, {"curriculum": EVIL, "text": EVIL})
        columns = {"task": [EVIL], "label": [EVIL], "prob": [1.0], "reason": [EVIL]}
        run.log_tasks(3, columns)
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder / "short", last_step=30_000)
    make_run(folder / "seeds" / "0", kind="training", last_step=90_000, seed=1)
    make_run(folder / "seeds" / "1", kind="training", last_step=90_000, seed=2)
    hostile_run(folder / "<img src=x onerror=alert(1)>")
    shutil.copytree(folder / "short", folder / "broken")
    (folder / "broken" / "config.json").write_text("{")
    return folder


@pytest.fixture(scope="module")
def address(runs: Path) -> Iterator[str]:
    server = DashboardServer([runs])
    # Signals are for the main thread.
    thread = threading.Thread(target=server.serve)
    thread.start()
    yield server.address
    server.stop()
    thread.join(20)
    assert not thread.is_alive()


def test_the_overview_has_a_row_for_every_run_and_says_what_is_wrong_with_one(
    browser: Browser, address: str
) -> None:
    browser.open(address)
    rows = browser.ask(
        "return [...document.querySelectorAll('tbody tr')].map((row) => row.innerText)"
    )
    assert len(rows) == 6, "five runs, and a line for the folder of seeds"
    (broken,) = [row for row in rows if row.startswith("broken")]
    assert "config.json is damaged" in broken
    assert any("2 runs in the same charts" in row for row in rows)
    assert browser.complaints == []


def test_every_chart_of_a_run_is_drawn(browser: Browser, address: str) -> None:
    browser.open(f"{address}#/run?run=short")
    browser.until("document.querySelectorAll('[data-metric] canvas').length >= 3")
    told = browser.ask(
        TOLD
        + """
        await pause(100);
        const shown = document.querySelectorAll("figure:not([hidden])");
        const names = [...shown].map((figure) => figure.innerText);
        return [charts().map(painted), names, document.querySelector(".headline").innerText];
        """
    )
    shares, names, headline = told
    assert min(shares) > 0.004
    for title in (
        "Success in training",
        "What was practised when",
        "Practised now, and why",
        "Events",
    ):
        assert any(name.startswith(title) for name in names) == (title != "Success in training"), (
            title
        )
    assert "finished after 24" not in headline
    assert "30,000" in headline
    assert browser.complaints == []


@pytest.mark.parametrize("is_frozen", [False, True], ids=["live", "report"])
def test_hostile_names_stay_text(
    is_frozen: bool, browser: Browser, address: str, runs: Path, tmp_path: Path
) -> None:
    folder = runs / "<img src=x onerror=alert(1)>"
    page = f"{address}#/run?run=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E"
    if is_frozen:
        page = write_report([folder], tmp_path / "r.html").as_uri()
    browser.open(page)
    browser.until("document.querySelector('[data-metric] canvas')")
    told = browser.ask(
        TOLD
        + """
        const chart = chartOf("Success in training").plot;
        chart.setCursor({ left: chart.valToPos(2, "x"), top: 60 });
        const { evil } = document.documentElement.dataset;
        return [evil ?? "calm", document.images.length, document.body.textContent, document.title];
        """
    )
    assert told[:2] == ["calm", 0]
    text = told[2].split('{"answers"')[0] + told[2].split("(() => {")[-1] if is_frozen else told[2]
    assert text.count(EVIL) >= 8
    assert "<img src=x" in told[3]
    assert browser.complaints == []


def test_foreign_scripts_do_not_run_in_a_report_and_complaints_are_heard(
    browser: Browser, runs: Path, tmp_path: Path
) -> None:
    report = write_report([runs / "short"], tmp_path / "r.html")
    foreign = "<script>document.documentElement.dataset.foreign = 1</script></body>"
    text = report.read_text(encoding="utf-8")
    report.write_text(text.replace("</body>\n</html>", f"{foreign}</html>"), encoding="utf-8")
    browser.open(report.as_uri())
    assert browser.ask("return document.documentElement.dataset.foreign ?? 'none'") == "none"
    assert any("Content Security Policy" in line for line in browser.complaints)


def test_a_report_of_several_runs_lays_them_over_each_other(
    browser: Browser, runs: Path, tmp_path: Path
) -> None:
    report = write_report([runs / "short", runs / "seeds"], tmp_path / "r.html")
    browser.open(report.as_uri())
    browser.until("document.querySelectorAll('[data-metric] canvas').length >= 4")
    look = """
        await pause(100);
        const { plot } = chartOf("overview/reward");
        return [plot.series.slice(1).map((s) => s.label), plot.scales.x.max];
    """
    assert browser.ask(TOLD + look) == [["short", "seeds/0", "seeds/1"], 90_000]
    hidden = browser.ask(TOLD + "buttonOf('seeds/0').click();" + look)
    assert hidden == [["short", "seeds/1"], 90_000]
    banded = browser.ask(TOLD + "buttonOf('mean and range').click();" + look)
    assert banded[0][0] == "mean of 2"
    assert browser.complaints == []


def test_on_paper_a_report_is_light_and_whole(browser: Browser, runs: Path, tmp_path: Path) -> None:
    browser.open(
        write_report([runs / "short"], tmp_path / "r.html").as_uri(), dark=True, height=400
    )
    look = """
        await new Promise((done) => setTimeout(done, 200));
        const figures = [...document.querySelectorAll("figure[data-metric]:not([hidden])")];
        const ground = getComputedStyle(document.querySelector("figure")).backgroundColor;
        return [figures.filter((figure) => figure.querySelector("canvas")).length, figures.length,
          ground, [...document.querySelectorAll("details")].every((fold) => fold.open)];
    """
    before = browser.ask(look)
    assert before[0] < before[1]
    drawn, wanted, ground, is_open = browser.ask(f"dispatchEvent(new Event('beforeprint')); {look}")
    assert (drawn, ground, is_open) == (wanted, "rgb(255, 255, 255)", True)
    after = browser.ask(f"dispatchEvent(new Event('afterprint')); {look}")
    assert after[2] == before[2] != ground


def test_a_folder_that_is_a_run_opens_its_page(browser: Browser, runs: Path) -> None:
    server = DashboardServer([runs / "short"])
    serving = threading.Thread(target=server.serve)
    serving.start()
    browser.open(server.address)
    browser.until("document.querySelector('main').dataset.page === 'run'")
    # Once: the list of all runs can still be reached.
    browser.ask("location.hash = '#/overview';")
    browser.until("document.querySelector('table.runs')")
    server.stop()
    serving.join(10.0)
    assert browser.complaints == []


def test_axes_smoothing_zoom_and_keys(browser: Browser, address: str) -> None:
    browser.open(f"{address}#/run?run=seeds%2F0")
    browser.until("document.querySelector('[data-metric] canvas')")
    told: list[Any] = browser.ask(
        TOLD
        + """
        const press = async (text) => {
          buttonOf(text).click();
          await pause(150);
        };
        const look = () => {
          const { plot } = chartOf("losses/value");
          return [plot.axes[0].label, plot.scales.x.max, plot.scales.y.distr, plot.series.length];
        };
        document.querySelector(".find").value = "losses/value";
        document.querySelector(".find").dispatchEvent(new Event("input"));
        await pause(400);
        const found = [look()];
        await press("time");
        found.push(look()[0]);
        await press("steps");
        await press("log");
        found.push(look()[2]);
        await press("linear");
        const range = document.querySelector(".tools input[type=range]");
        range.value = 4;
        range.dispatchEvent(new Event("input"));
        await pause(300);
        found.push(look()[3]);
        range.value = 0;
        range.dispatchEvent(new Event("input"));
        await pause(300);
        chartOf("losses/value").plot.setScale("x", { min: 30000, max: 60000 });
        await pause(900);
        found.push(chartOf("What was practised").plot.scales.x.max, look()[1]);
        dispatchEvent(new KeyboardEvent("keydown", { key: "0" }));
        document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "0", bubbles: true }));
        await pause(900);
        found.push(look()[1]);
        document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "/", bubbles: true }));
        found.push(document.activeElement.className);
        return found;
        """
    )
    first, time_label, log, smoothed, other, zoomed, back, focused = told
    assert first == ["steps", 90_000, 1, 2]
    assert time_label == "time since it began"
    assert log == 3
    assert smoothed == 3, "what was logged stands behind the smoothed line"
    assert (other, zoomed, back) == (60_000, 60_000, 90_000)
    assert focused == "find"
    assert browser.complaints == []


def test_a_running_run_is_followed(browser: Browser, address: str, runs: Path) -> None:
    with Run.create(runs / "now", kind="training", config={"total_steps": 1_000}) as run:
        run.log(1, {"overview/reward": 1.0})
        run.flush()
        browser.open(f"{address}#/run?run=now")
        assert browser.ask("return document.querySelector('.status').textContent") == "running"
        run.log(500, {"overview/reward": 2.0})
        run.event(500, "note", "half way")
        run.flush()
        browser.until("document.querySelector('.facts').innerText.includes('500 of 1,000')")
        browser.until("document.body.innerText.includes('half way')")
    browser.until("document.querySelector('.status').textContent === 'finished'")
    assert browser.complaints == []


@pytest.mark.parametrize("width", [400, 900])
def test_no_page_is_wider_than_its_window(width: int, browser: Browser, address: str) -> None:
    for page in ("", "#/run?run=seeds%2F0", "#/several?group=seeds"):
        browser.open(f"{address}{page}", width=width, dark=True)
        assert browser.ask("return document.documentElement.scrollWidth") == width, page


EXTREMES = {
    "tiny": (1e-300, 5e-300),
    "least": (5e-324, 1e-323),
    "huge": (-1e300, 1e300),
    "beyond": (-1.7e308, 1.7e308),
    "both": (1e-300, 1e300),
    "alike": (1e16, 1e16 + 2),
    "zero": (0.0, 1e-9),
}


def test_extreme_values_are_drawn_and_nothing_hangs(
    browser: Browser, address: str, runs: Path
) -> None:
    with Run.create(runs / "extremes", kind="simulation", config={}, seed=0) as run:
        for step in (0, 2**53):
            run.log(step, {f"o/{name}": ends[step > 0] for name, ends in EXTREMES.items()})
    browser.open(f"{address}#/run?run=extremes")
    browser.ask("document.querySelector('.all-metrics .more').click()")
    browser.until(
        f"document.querySelectorAll('[data-metric] canvas').length >= {len(EXTREMES) - 1}"
    )
    for choice in ("log", "linear"):
        counts = browser.ask(
            TOLD
            + f"buttonOf('{choice}').click();"
            + "await pause(300); return charts().map((c) => c.plot?.axes[1]._splits?.length ?? 0);"
        )
        assert max(counts) < 1_000
    assert browser.complaints == []
