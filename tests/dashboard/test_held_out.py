"""What was learnt beside random play: the table of the report."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from stepladder.dashboard import write_report
from stepladder.dashboard.held_out import held_out_table
from stepladder.dashboard.view import RunView
from stepladder.runs import Run


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
