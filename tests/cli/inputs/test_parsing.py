"""Typed arguments: flags from fields, and a box full of complaints in one line."""

from dataclasses import dataclass, field
from typing import Annotated

import pytest
import tyro
from tyro.conf import subcommand

from stepladder.cli.inputs.parsing import one_line, parse
from stepladder.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Inner:
    """What is inside."""

    depth: int = 3
    """How deep
    it is."""

    def __post_init__(self) -> None:
        if self.depth < 0:
            raise ConfigError(f"depth must be at least 0; got {self.depth}.")


@dataclass(frozen=True, kw_only=True)
class Deeper(Inner):
    """Inherits a field with its text."""

    width: float = 1.0
    """How wide it is."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """An example of options."""

    kind: Annotated[
        Annotated[Inner, subcommand("inner", prefix_name=False)]
        | Annotated[Deeper, subcommand("deeper", default=Deeper(depth=7), prefix_name=False)],
        tyro.conf.arg(name=""),
    ] = field(default_factory=Inner)

    keep: bool = True
    """Whether it is kept."""

    names: tuple[str, ...] = ()
    """Some names."""


def test_flags_are_the_fields_wherever_they_stand() -> None:
    assert parse(Example, [], "try") == Example()
    assert parse(Example, ["--depth", "4"], "try") == Example(kind=Inner(depth=4))
    wanted = Example(kind=Deeper(depth=7, width=2.0), keep=False, names=("a", "b"))
    before = ["--no-keep", "--names", "a", "b", "deeper", "--width", "2"]
    after = ["deeper", "--width", "2", "--names", "a", "b", "--no-keep"]
    assert parse(Example, before, "try") == parse(Example, after, "try") == wanted


def test_a_default_instance_stands_in_for_the_defaults() -> None:
    default = Example(keep=False, kind=Inner(depth=9))
    assert parse(Example, ["--names", "x"], "try", default=default) == Example(
        keep=False, kind=Inner(depth=9), names=("x",)
    )


def test_help_has_every_text_in_one_paragraph(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        parse(Example, ["deeper", "--help"], "try")
    assert leaving.value.code in (0, None)
    said = capsys.readouterr().out
    assert "How deep it is. (default: 7)" in said
    assert "How wide it is. (default: 1.0)" in said
    assert "--no-keep" in said
    assert "--keep" not in said.replace("--no-keep", "")


SEE = "See stepladder try --help."


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--detph", "3"], "--detph: unknown flag. Did you mean --depth?"),
        (["--bogus=3"], f"--bogus: unknown flag. {SEE}"),
        (
            ["inher"],
            "Unrecognized options: inher. Available subcommands: inner, deeper. Did you mean "
            f"'inner'? {SEE}",
        ),
        (["xyz"], f"Unrecognized options: xyz. Available subcommands: inner, deeper. {SEE}"),
        (["--depth", "x"], "--depth must be an integer; got 'x'."),
        (["--depth"], f"Missing value for argument '--depth'. Expected 1 values. {SEE}"),
        (["--depth", "-1"], "depth must be at least 0; got -1."),
    ],
)
def test_a_mistake_is_said_in_one_line(argv: list[str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(Example, argv, "try")
    assert str(caught.value) == said


def test_all_mistakes_are_listed_with_their_flags() -> None:
    argv = ["deeper", "--depth", "x", "--names", "a", "--detph=1", "--width", "wide"]
    with pytest.raises(ConfigError) as caught:
        parse(Example, argv, "try")
    assert str(caught.value).splitlines() == [
        "3 problems in the options; nothing was started:",
        "  --detph: unknown flag. Did you mean --depth?",
        "  --depth: must be an integer; got 'x'.",
        "  --width: must be a finite number; got 'wide'.",
    ]


def test_a_long_complaint_is_joined_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    with pytest.raises(ConfigError) as caught:
        parse(Example, ["word-that-no-one-expects", "--depth", "3", "other-word"], "try")
    assert str(caught.value).startswith(
        "Unrecognized options: word-that-no-one-expects, other-word."
    )


def test_a_box_with_colours_is_one_line_too() -> None:
    box = """\x1b[31m╭─ Unrecognized options ─────────────────╮\x1b[0m
\x1b[31m│\x1b[0m Unrecognized options: \x1b[1m--seeds, 2,   \x1b[0m \x1b[31m│\x1b[0m
│ a-b                                     │
│ ─────────────────────────────────────── │
│ For full helptext, run stepladder --help│
╰─────────────────────────────────────────╯
"""
    assert one_line(box, "try") == (f"Unrecognized options: --seeds, 2, a-b. {SEE}")


def test_an_empty_complaint_is_still_a_line() -> None:
    assert one_line("", "try") == "the options cannot be read. See stepladder try --help."
