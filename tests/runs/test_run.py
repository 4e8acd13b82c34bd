"""What scripts and notebooks get of a run: tables, a picture, and HTML in which all is text."""

import sys
from html.parser import HTMLParser
from math import nan
from pathlib import Path

import numpy as np
import pytest

from stepladder.errors import ConfigError, RunError
from stepladder.runs import Run, RunReader, RunWriter
from stepladder.runs.run import SHARES, SUCCESS
from stepladder.runs.run_table import RunTable

EVIL = "<script>alert('x')</script>&"


def score(name: str, value: float) -> dict[str, object]:
    rate = {"value": value, "low": value / 2, "high": 1.0}
    return {"name": name, "rate": rate, "mean_return": None}


def evaluation(way: str, value: float, label: str) -> dict[str, object]:
    parts = [score(label, value), score("hard", 0.0)]
    return {"way": way, "total": {**score("all", value / 2), "parts": parts}, "beside": []}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run of two epochs whose first label is hostile."""
    with Run.create(tmp_path / "run", kind="training", config={"env": EVIL}) as writer:
        assert isinstance(writer, RunWriter)
        writer.log(100, {f"{SHARES}{EVIL}": 0.75, f"{SHARES}hard": 0.25, f"{SUCCESS}{EVIL}": 0.5})
        writer.log(200, {f"{SHARES}{EVIL}": 0.5, f"{SHARES}hard": 0.5, "overview/reward": 2.0})
        writer.event(100, "baseline", "random play", evaluation("random", 0.1, EVIL))
        writer.event(100, "evaluation", "played", evaluation("drawn", 0.5, EVIL))
        writer.event(200, "evaluation", "played", evaluation("drawn", 0.75, EVIL))
        writer.event(150, "stage_advanced", f"to {EVIL}", {"to_stage": EVIL})
        writer.log_tasks(200, {"task": [EVIL, "b"], "label": [EVIL, "hard"], "prob": [0.5, 0.5]})
    return tmp_path / "run"


def test_metrics_are_columns_over_all_steps(folder: Path) -> None:
    table = Run(folder).metrics(f"{SUCCESS}*", "overview/reward")
    assert list(table) == ["step", f"{SUCCESS}{EVIL}", "overview/reward"]
    np.testing.assert_array_equal(table["step"], [100, 200])
    np.testing.assert_array_equal(table[f"{SUCCESS}{EVIL}"], [0.5, nan])
    np.testing.assert_array_equal(table["overview/reward"], [nan, 2.0])
    assert list(Run(folder).metrics()) == ["step", *RunReader(folder).metric_names()]
    with pytest.raises(
        RunError, match="has no metric 'overview/rewards'; it has 'overview/reward'"
    ):
        Run(folder).metrics("overview/rewards")


def test_events_tasks_and_evaluations_are_tables(folder: Path) -> None:
    run = Run(folder)
    assert run.events("stage_advanced")["data"].tolist() == [{"to_stage": EVIL}]
    assert run.events()["step"].tolist() == [100, 100, 200, 150]
    tasks = run.tasks()
    assert tasks["task"].tolist() == [EVIL, "b"]
    assert tasks["prob"].dtype == np.float64
    table = run.evaluations()
    rows = list(zip(*(column.tolist() for column in table.values()), strict=True))
    assert rows[0] == (100, "random", True, EVIL, 0.1, 0.05, 1.0)
    assert rows[-1] == (200, "drawn", True, "all", 0.375, 0.1875, 1.0)
    assert len(rows) == 9


def test_a_run_without_anything_has_empty_tables(tmp_path: Path) -> None:
    with Run.create(tmp_path, kind="loop"):
        pass
    run = Run(tmp_path)
    assert repr(run) == f"Run({tmp_path.name!r}: loop, finished, 0 steps)"
    tables = (run.metrics(), run.events(), run.tasks(), run.evaluations())
    assert [table.num_rows for table in tables] == [0, 0, 0, 0]
    assert "<svg" not in run._repr_html_()
    with pytest.raises(RunError, match="nothing to draw"):
        run.plot()


def test_pandas_gets_the_same_columns(folder: Path) -> None:
    pytest.importorskip("pandas")
    run = Run(folder)
    for table in (run.metrics(), run.events(), run.tasks(), run.evaluations()):
        frame = table.to_pandas()
        assert list(frame.columns) == list(table)
        assert len(frame) == table.num_rows
    assert run.tasks().to_pandas().set_index("task").loc[EVIL, "prob"] == 0.5


def test_without_pandas_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ConfigError, match=r"pip install 'stepladder\[notebook\]'"):
        RunTable({"a": np.zeros(2)}).to_pandas()


class Tags(HTMLParser):
    """Collects tags and text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_notebook_shows_names_as_text(folder: Path) -> None:
    run = Run(folder)
    page = Tags(run._repr_html_())
    assert {"table", "svg", "ul"} <= page.tags
    assert "script" not in page.tags
    assert page.text.count(EVIL) == 3  # env, group, change
    assert page.text.count("<script>ale") > 3  # and the picture
    assert "0.75 (0.38 to 1.00)" in page.text
    for table in (run.metrics(), run.events(), run.tasks(), run.evaluations()):
        shown = Tags(table._repr_html_())
        assert shown.tags == {"table", "thead", "tbody", "tr", "th", "td"}
        assert EVIL in shown.text


def test_a_long_table_is_cut_and_says_so() -> None:
    table = RunTable({f"c{number}": np.arange(1_050) for number in range(15)})
    assert "<p>1,030 more rows, 3 more columns</p>" in table._repr_html_()
    assert repr(table).endswith("c11, ...)")


def test_the_picture_marks_changes(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    figure = Run(folder).plot()
    assert len(figure.axes) == 2
    assert figure.get_suptitle() == "run"
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert len(texts) == 1
    assert texts[0].startswith("<")
