"""The examples below every help: each can be parsed, and the quick ones run."""

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.command_line import CommandLine
from stepladder.cli.examples import EXAMPLES
from stepladder.cli.inputs import parsing
from stepladder.cli.main import VERBS, main
from stepladder.cli.new import write_project

LINES = [line for lines in EXAMPLES.values() for line, _ in lines]
QUICK = ("new my_env", "eval --pretrained hockey --episodes 100")


class Parsed(BaseException):
    """Raised in place of doing what a command line says."""


def test_every_command_has_an_example_and_its_help_shows_it(command: CommandLine) -> None:
    assert set(EXAMPLES) == set(VERBS)
    for verb, lines in EXAMPLES.items():
        assert all(line.split()[0] == verb for line, _ in lines)
    out = command("explain", "--help").out
    assert out.endswith(
        "examples:\n  stepladder explain runs/first --top 5\n"
        "      why each stage and task stands where it does\n"
    )


@pytest.mark.parametrize("line", LINES)
def test_each_example_is_understood(
    line: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    check = parsing.raise_for_flags

    def stop(problems: Any) -> None:
        check(problems)
        raise Parsed

    monkeypatch.setattr(parsing, "raise_for_flags", stop)
    monkeypatch.chdir(tmp_path)
    write_project("my_env", tmp_path / "outer")
    monkeypatch.syspath_prepend(tmp_path / "outer")
    try:
        with pytest.raises(Parsed):
            main(shlex.split(line))
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "my_env"]:
            del sys.modules[name]


@pytest.mark.parametrize("line", QUICK)
def test_the_quick_examples_run(command: CommandLine, line: str) -> None:
    assert line in LINES
    code, out, err = command(*shlex.split(line))
    assert (code, err) == (0, "")
    assert out
