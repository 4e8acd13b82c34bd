"""What was learnt beside random play: the table of the report, and the picture of an evaluation."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from stepladder.dashboard import evaluation_svg, write_report
from stepladder.dashboard.held_out import held_out_table
from stepladder.dashboard.view import RunView
from stepladder.errors import ConfigError
from stepladder.runs import Run

SVG = "{http://www.w3.org/2000/svg}"


def score(name: str, value: float | None, *parts: Any, **others: Any) -> dict[str, Any]:
    rate = None if value is None else {"value": value, "low": value / 2, "high": (1 + value) / 2}
    mean = {"value": 3.0, "low": None, "high": None}
    return {"name": name, "rate": rate, "mean_return": mean, "parts": list(parts), **others}


def evaluation(way: str, value: float | None, *beside: Any) -> dict[str, Any]:
    total = score("all", value, score("easy", value), score("hard", value))
    return {"way": way, "total": total, "beside": list(beside)}


RANDOM, BEST = evaluation("random", 0.1), evaluation("best", 0.3)
DRAWN = evaluation("drawn", 0.8, RANDOM, BEST)


def shown(folder: Path, *events: tuple[str, Any]) -> str:
    """Return the table of a run with these events."""
    with Run.create(folder, kind="training", config={}) as run:
        for step, (kind, data) in enumerate(events, 1):
            run.event(step, kind, "text", data)
    return held_out_table(RunView(0, "mine", folder, 1))


def cells(table: str) -> list[list[str]]:
    rows = ElementTree.fromstring(table).iter("tr")
    return [["".join(cell.itertext()) for cell in row] for row in rows]


def test_all_ways_stand_side_by_side_with_the_policys_own_named(tmp_path: Path) -> None:
    table = shown(tmp_path / "run", ("baseline", RANDOM), ("evaluation", DRAWN))
    assert "mine, at step 2: share of held-out episodes solved" in table
    head, easy, hard, every = cells(table)
    assert head == ["", "random", "drawn (own way)", "best"]
    assert easy == ["easy", "0.10 0.05 to 0.55", "0.80 0.40 to 0.90", "0.30 0.15 to 0.65"]
    assert (hard[0], every[0]) == ("hard", "all")
    page = write_report([tmp_path / "run"], tmp_path / "a.html").read_text()
    assert page.count(table.replace("mine", "run")) == 1


def test_on_the_way_random_play_stays_and_older_policies_do_not(tmp_path: Path) -> None:
    later = evaluation("drawn", 0.9)
    table = shown(
        tmp_path / "run", ("baseline", RANDOM), ("evaluation", DRAWN), ("evaluation", later)
    )
    assert cells(table)[0] == ["", "random", "drawn (own way)"]
    assert "0.90" in table
    assert "0.80" not in table


def test_without_success_returns_are_shown_and_without_evaluation_nothing(tmp_path: Path) -> None:
    table = shown(tmp_path / "run", ("evaluation", evaluation("best", None)))
    assert "return of held-out episodes" in table
    assert cells(table)[1] == ["easy", "3.00"]
    assert shown(tmp_path / "none") == ""


@pytest.mark.parametrize(
    "damaged",
    [
        {"way": "best"},
        {"way": "best", "total": 7},
        {"way": "best", "total": {"name": "all", "rate": 7}},
        {"way": ["best"], "total": score("all", 0.5)},
        {"total": score("all", 0.5)},
    ],
)
def test_what_is_damaged_is_left_out(tmp_path: Path, damaged: dict[str, Any]) -> None:
    assert shown(tmp_path / "run", ("evaluation", damaged)) == ""


def test_names_are_escaped(tmp_path: Path) -> None:
    total = score("all", 0.5, score("<b>", 0.5), score("c", 0.5))
    assert "&lt;b&gt;" in shown(tmp_path / "run", ("evaluation", {"way": "best", "total": total}))


# The picture.


def drawn(data: dict[str, Any], title: str = "mine") -> ElementTree.Element:
    return ElementTree.fromstring(evaluation_svg(data, title=title))


def texts(tree: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in tree.iter(f"{SVG}text")]


def test_there_is_a_bar_for_each_way_and_group_as_long_as_its_figure() -> None:
    tree = drawn(DRAWN)
    assert {"mine", "random", "drawn (own way)", "best", "easy", "hard", "all"} <= set(texts(tree))
    bars = [bar for bar in tree.iter(f"{SVG}rect") if bar.find(f"{SVG}title") is not None]
    said = [bar.findtext(f"{SVG}title") for bar in bars]
    assert said[:3] == ["easy, random: 0.10", "easy, drawn: 0.80", "easy, best: 0.30"]
    assert len(bars) == 9
    widths = [float(bar.get("width", 0)) for bar in bars[:3]]
    assert widths[1] == pytest.approx(8 * widths[0], rel=0.01)
    assert widths[2] == pytest.approx(3 * widths[0], rel=0.01)
    # Shares go from 0 to 1, in round steps.
    assert {"0", "0.2", "0.4", "0.6", "0.8", "1"} <= set(texts(tree))


def test_returns_have_an_axis_that_holds_them_all() -> None:
    below = evaluation("random", None)
    for part in (below["total"], *below["total"]["parts"]):
        part["mean_return"] = {"value": -90.0, "low": -140.0, "high": -60.0}
    tree = drawn(evaluation("best", None, below))
    assert {"-100", "0"} <= set(texts(tree))
    for bar in tree.iter(f"{SVG}rect"):
        if bar.find(f"{SVG}title") is not None:
            assert 0 < float(bar.get("x", 0)) < 720
    with pytest.raises(ConfigError, match="there is nothing to draw"):
        evaluation_svg({"way": "best"}, title="mine")
