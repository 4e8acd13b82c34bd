"""``stepladder completion``: a script with which a shell completes commands, flags and names.

What there is to complete is read from the help of every command, so nothing is listed twice.
"""

import contextlib
import io
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Literal

import tyro

from stepladder.agents.config import AGENTS
from stepladder.cli.inputs.parsing import parse
from stepladder.cli.main import VERBS
from stepladder.configs.codec import Config
from stepladder.curricula.registry import curriculum_variants
from stepladder.simulator.scenarios import SUITE
from stepladder.training.presets import PRESETS
from stepladder.training.pretrained import pretrained_names

WIDTH = 79
"""Columns of the help that is read: with more, it may have flags side by side."""

_FLAG = re.compile(r"(?:-h, )?(--[a-z][\w.-]*)(?: (\S.*?))?(?:  +(\S.*))?")
_EDGE = re.compile(r"[╭╮╰╯─+-]*")
_CHOICES = re.compile(r"\{([\w.,-]+)\}")


@dataclass(frozen=True, kw_only=True)
class CompletionArguments(Config):
    """Print a script that completes commands, flags and names when Tab is pressed.

    For bash: stepladder completion bash > ~/.local/share/bash-completion/completions/stepladder.
    """

    shell: tyro.conf.Positional[Literal["bash", "zsh", "fish"]]
    """The shell that reads the script."""


@dataclass(frozen=True, kw_only=True)
class Flag:
    """A flag of a command."""

    name: str
    """With its dashes."""

    text: str
    """What its help says first."""

    values: tuple[str, ...]
    """What may follow it; empty for anything, such as a file."""


def main(argv: Sequence[str]) -> int:
    """Run the verb; return the exit code."""
    arguments = parse(CompletionArguments, argv, "completion")
    flags = {verb: flags_of(verb) for verb in VERBS}
    print({"bash": bash_script, "zsh": zsh_script, "fish": fish_script}[arguments.shell](flags))
    return 0


def flags_of(verb: str) -> list[Flag]:
    """Return the flags that the help of a command names."""
    text = io.StringIO()
    columns = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(WIDTH)
    try:
        with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
            import_module(f"stepladder.cli.{verb}").main(["--help"])
    finally:
        if columns is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = columns
    known, found = _known_values(), dict[str, Flag]()
    for block in _blocks(text.getvalue()):
        match = _FLAG.fullmatch(block[0])
        if match is None:
            continue
        name, kind, about = match.groups(default="")
        choices = _CHOICES.search(kind)
        listed = choices[1].split(",") if choices else []
        values = tuple(value for value in listed if value != "None") or known.get(name, ())
        said = re.split(r"(?<=\.) | \(", " ".join([about, *block[1:]]).strip())[0]
        found.setdefault(name, Flag(name=name, text=said, values=values))
    return list(found.values())


def _blocks(text: str) -> Iterator[list[str]]:
    """Yield the lines about each flag.

    A flag stands two columns from the left, behind a frame or spaces; what is said of it, further
    to the right. An empty line or the end of a frame ends it.
    """
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        content = line.strip("│| ")
        if block and (line[2:3] == "-" or _EDGE.fullmatch(content)):
            yield block
            block = []
        if line[2:3] == "-" or block:
            block.append(content)


def _known_values() -> dict[str, tuple[str, ...]]:
    """Return the names that may follow some flags, in any command."""
    curricula, scenarios = tuple(curriculum_variants()), SUITE
    return {
        "--curriculum": curricula,
        "--curricula": curricula,
        "--scenario": scenarios,
        "--scenarios": scenarios,
        "--agent": tuple(name.lower() for name in AGENTS),
        "--pretrained": tuple(pretrained_names()),
        "--checkpoint": ("last", "best"),
    }


def _words(verb: str) -> tuple[str, ...]:
    """Return what may stand behind a command by itself, beside files."""
    return {
        "simulate": tuple(curriculum_variants()),
        "train": tuple(PRESETS),
        "eval": ("random",),
        "completion": ("bash", "zsh", "fish"),
    }.get(verb, ())


def _list(words: Iterable[str]) -> str:
    return shlex.quote(" ".join(words))


def bash_script(flags: Mapping[str, Sequence[Flag]]) -> str:
    """Return the script for bash."""
    cases = [
        f"    {verb}) flags={_list(flag.name for flag in own)} words={_list(_words(verb))} ;;"
        for verb, own in flags.items()
    ]
    values = [
        f"    {verb}:{flag.name}) flags='' words={_list(flag.values)} ;;"
        for verb, own in flags.items()
        for flag in own
        if flag.values
    ]
    return "\n".join(
        [
            "# Completes stepladder. Made by: stepladder completion bash",
            "_stepladder() {",
            '  local cur="${COMP_WORDS[COMP_CWORD]}" flags="" words="" word',
            "  COMPREPLY=()",
            "  if (( COMP_CWORD == 1 )); then",
            f"    words={_list(VERBS)}",
            '    COMPREPLY=($(compgen -W "$words --help --version" -- "$cur" || true))',
            "    return",
            "  fi",
            '  case "${COMP_WORDS[1]}" in',
            *cases,
            "  esac",
            '  case "${COMP_WORDS[1]}:${COMP_WORDS[COMP_CWORD-1]}" in',
            *values,
            "  esac",
            '  [[ "$cur" == -* ]] && words="$flags"',
            '  COMPREPLY=($(compgen -W "$words" -- "$cur" || true))',
            '  [[ "$cur" == -* ]] && return',
            '  while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$cur")',
            "  return 0",
            "}",
            "complete -o filenames -F _stepladder stepladder",
        ]
    )


def zsh_script(flags: Mapping[str, Sequence[Flag]]) -> str:
    """Return the script for zsh, which reads that of bash."""
    return "\n".join(
        [
            "#compdef stepladder",
            "autoload -U +X compinit && compinit",
            "autoload -U +X bashcompinit && bashcompinit",
            bash_script(flags),
        ]
    )


def fish_script(flags: Mapping[str, Sequence[Flag]]) -> str:
    """Return the script for fish."""
    lines = ["# Completes stepladder. Made by: stepladder completion fish"]
    for verb, text in VERBS.items():
        first = "complete -c stepladder -n __fish_use_subcommand"
        lines.append(f"{first} -a {verb} -d {_fish(text)}")
        seen = f"complete -c stepladder -n '__fish_seen_subcommand_from {verb}'"
        if _words(verb):
            lines.append(f"{seen} -a {_list(_words(verb))}")
        for flag in flags[verb]:
            follows = f" -x -a {_list(flag.values)}" if flag.values else ""
            name = flag.name.removeprefix("--")
            lines.append(f"{seen} -l {name}{follows} -d {_fish(flag.text)}")
    return "\n".join(lines)


def _fish(text: str) -> str:
    """Return a text as a string of fish, in which a backslash escapes a quote."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
