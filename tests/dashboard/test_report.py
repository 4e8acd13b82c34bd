"""The page frozen: what is written into it, and that nothing foreign gets in."""

import json
import os
import re
import stat
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from made_runs import make_run

from stepladder.dashboard import write_report
from stepladder.dashboard.answers import answer
from stepladder.dashboard.report import QUESTIONS, key
from stepladder.dashboard.run_index import RunIndex
from stepladder.errors import ConfigError, RunError
from stepladder.runs import Run

EVIL = "<script>alert('x')</script>\"'&"


class Page(HTMLParser):
    """Collects elements and scripts of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
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

    @property
    def data(self) -> dict[str, Any]:
        return json.loads(self.scripts[0])

    def answer(self, question: str, **words: str) -> Any:
        return self.data["answers"][key(question, words)]


def report(tmp_path: Path, *folders: Path, **options: Any) -> Page:
    out = write_report(folders, tmp_path / "report.html", **options)
    assert out == tmp_path / "report.html"
    return Page(out.read_text(encoding="utf-8"))


def empty_run(folder: Path, **options: Any) -> Path:
    Run.create(folder, kind="training", config={}, seed=1, **options).close()
    return folder


def test_a_report_holds_the_answers_that_the_dashboard_gives(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "a", kind="training")
    page, index = report(tmp_path, folder), RunIndex([folder])
    assert page.data["runs"] == ["a"]
    for question, words in (*QUESTIONS, ("metrics", {}), ("series", {"name": "losses/value"})):
        live = answer(index, question, {"run": "a", **words})
        assert page.answer(question, run="a", **words) == live, question
    assert page.answer("overview") == answer(index, "overview", {})


def test_all_runs_of_all_folders_are_in_one_page(tmp_path: Path) -> None:
    for name in ("x/run", "y/run", "seeds/0", "seeds/1"):
        make_run(tmp_path / name, num_epochs=3)
    folders = [tmp_path / name for name in ("x/run", "y/run", "seeds")]
    page = report(tmp_path, *folders)
    assert page.data["runs"] == ["x/run", "y/run", "seeds/0", "seeds/1"]
    names = [row["name"] for row in page.answer("overview")["runs"]]
    assert names == page.data["runs"]


def test_metrics_can_be_chosen(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "a")
    page = report(tmp_path, folder, metrics=["overview/*"])
    names = {metric["name"] for metric in page.answer("metrics", run="a")}
    assert len(names) == 5
    assert all(name.startswith("overview/") for name in names)
    with pytest.raises(ConfigError, match="'overview/nothing', which no run has"):
        report(tmp_path, folder, metrics=["overview/nothing"])


def test_smoothing_is_where_the_page_begins(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "a", num_epochs=3)
    assert report(tmp_path, folder, smooth=5).data["view"] == {"smooth": 2}
    assert report(tmp_path, folder).data["view"] == {}


def test_films_are_written_into_the_page(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "a", num_epochs=3)
    (folder / "film-8000.gif").write_bytes(b"GIF89a of step 8000")
    page = report(tmp_path, folder)
    (film,) = page.answer("films", run="a")
    assert (film["name"], film["step"]) == ("film-8000.gif", 8_000)
    assert page.data["films"][key("film", {"run": "a", "name": film["name"]})].startswith("data:")


def test_a_run_without_anything_can_be_reported(tmp_path: Path) -> None:
    page = report(tmp_path, empty_run(tmp_path / "a"))
    assert page.answer("metrics", run="a") == []
    assert page.answer("draws", run="a")["rows"] == []


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    with pytest.raises(RunError, match="nothing has no run"):
        report(tmp_path, make_run(tmp_path / "a", num_epochs=2), tmp_path / "nothing")


def test_nothing_from_a_run_becomes_markup(tmp_path: Path) -> None:
    folder = tmp_path / "<img src=x onerror=alert(1)>"
    with Run.create(folder, kind="simulation", config={EVIL: {EVIL: EVIL}}, seed=0) as run:
        for step in range(3):
            run.log(step, {f"{EVIL}": 1.0, f"overview/{EVIL}": 1.0})
        run.event(1, EVIL, EVIL, {EVIL: EVIL})
        run.log_tasks(2, {"task": [EVIL], "label": [EVIL], "prob": [1.0], EVIL: [2.0]})
    page = report(tmp_path, folder, empty_run(tmp_path / "b" / folder.name))
    tags = [tag for tag, _ in page.tags]
    assert tags.count("script") == 3
    assert "img" not in tags
    assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)
    (task,) = page.answer("practice", run=page.data["runs"][0])["tasks"]
    assert task["task"] == EVIL, "it is kept as it is"


def test_the_page_refers_to_nothing_outside_itself(tmp_path: Path) -> None:
    text = write_report([make_run(tmp_path / "a", num_labels=20)], tmp_path / "r.html").read_text()
    assert not re.search(r"(src|href)=\"(?!data:)", text)
    addresses = set(re.findall(r"https?://[^ \"]*", text))
    # A comment of uPlot's, and the name of the language of small drawings.
    assert addresses == {"https://github.com/leeoniya/uPlot", "http://www.w3.org/2000/svg"}
    assert str(tmp_path) not in text


def test_the_same_runs_give_the_same_bytes(tmp_path: Path) -> None:
    folders = [make_run(tmp_path / "a"), make_run(tmp_path / "b", num_labels=20)]
    first = write_report(folders, tmp_path / "one.html").read_bytes()
    assert write_report([str(f) for f in folders], tmp_path / "two.html").read_bytes() == first


def test_a_report_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, out = make_run(tmp_path / "a", num_epochs=3), tmp_path / "deep" / "er" / "r.html"
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


@pytest.mark.parametrize(
    ("runs", "options", "said"),
    [
        ([], {}, "must be a list of run folders"),
        ("a", {}, "must be a list of run folders"),
        (["a"], {"smooth": 0}, "smooth must be at least 1"),
        (["a"], {"out": "."}, "add a file name"),
    ],
)
def test_what_makes_no_report_is_said(
    runs: Any, options: dict[str, Any], said: str, tmp_path: Path
) -> None:
    out = tmp_path / options.pop("out", "r.html")
    with pytest.raises(ConfigError, match=said):
        write_report(runs, out, **options)
