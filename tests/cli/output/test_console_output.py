"""Where commands write, and what they leave alone."""

import json
import math
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from stepladder.cli.output import console
from stepladder.errors import ConfigError


def test_json_is_one_line_and_what_is_not_finite_is_null(
    capsys: pytest.CaptureFixture[str],
) -> None:
    console.print_json({"a": math.nan, "b": [1.5, math.inf], "c": {"d": -math.inf, "e": "x\ny"}})
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert json.loads(out) == {"a": None, "b": [1.5, None], "c": {"d": None, "e": "x\ny"}}


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "new/file.svg"
    console.write_whole(path, "one")
    console.write_whole(path, "two")
    assert path.read_text() == "two"
    assert [entry.name for entry in path.parent.iterdir()] == ["file.svg"]


def test_only_our_own_files_may_be_replaced(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.svg", tmp_path / "theirs.svg"
    ours.write_text("<svg/><!-- mark -->")
    theirs.write_text("<svg/>")
    console.refuse_foreign(ours, "<!-- mark -->", "--picture")
    console.refuse_foreign(tmp_path / "missing.svg", "<!-- mark -->", "--picture")
    with pytest.raises(ConfigError, match="was not written by this command and is not replaced"):
        console.refuse_foreign(theirs, "<!-- mark -->", "--picture")
    with pytest.raises(ConfigError, match=r"is a folder\. Name a file with --picture"):
        console.refuse_foreign(tmp_path, "<!-- mark -->", "--picture")


def test_there_is_no_progress_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert console.progress_console() is None
    console.results().print("plain 12", style="bold")
    assert capsys.readouterr().out == "plain 12\n"


def test_text_from_outside_is_neither_obeyed_nor_hidden(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "[bold]a\x1b[2J\x07\u202eb\x9bc[/bold]"
    shown = "[bold]a\\x1b[2J\\x07\\u202eb\\x9bc[/bold]"
    table = Table(box=None)
    table.add_column("one", no_wrap=True)
    table.add_row(Text(hostile))
    table.add_row(hostile)
    console.results().print(table)
    console.results().print(hostile)
    console.say(hostile)
    out = capsys.readouterr().out
    assert not set(out) & set("\x1b\x07\x9b\u202e")
    *cells, printed, said = [line.strip() for line in out.splitlines()][1:]
    assert len(cells) == 2
    assert all(cell.startswith("[bold]a\\x1b[2J") for cell in cells)
    # rich itself leaves out the bell.
    assert printed == shown.replace("\\x07", "")
    assert said == shown
