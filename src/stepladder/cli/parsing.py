"""Typed arguments from a command line, by tyro; errors in one line.

The only module that calls tyro's parser. A verb describes its options as a dataclass; the docstring
under each field is the help text of its flag. tyro prints an error as a box and exits: its hook for
errors is private and may change in any release, so the box is read and joined into one line.
"""

import contextlib
import dataclasses
import io
import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import groupby, pairwise
from typing import Any, TypeVar, get_args, get_origin

import tyro
from docstring_parser import parse_from_object
from tyro.constructors import (
    MISSING,
    MISSING_NONPROP,
    ConstructorRegistry,
    StructConstructorSpec,
    StructFieldSpec,
    StructTypeInfo,
)

from stepladder.configs.codec import hints_of
from stepladder.errors import ConfigError

Arguments = TypeVar("Arguments")

MARKERS = (
    # A switch has the one flag that changes it: --json, --no-keep.
    tyro.conf.FlagCreatePairsOff,
    tyro.conf.PositionalMetavarFromFieldName,
)

FLAT = (
    # Flags may stand before or after the name of a subcommand.
    tyro.conf.CascadeSubcommandArgs,
)

DOTTED = (
    # A rule that is switched off has no flags; one that is on has some, such as --a.b.threshold.
    tyro.conf.AvoidSubcommands,
)

_registry = ConstructorRegistry()

_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_RULE = re.compile(r"[\s─│╭╮╰╯+|-]*")
_WHERE = re.compile(r"^Error parsing [\w.]+: ")


def parse(
    kind: Callable[..., Arguments],
    argv: Sequence[str],
    verb: str,
    default: Any = None,
    *,
    dotted: bool = False,
) -> Arguments:
    """Return the arguments of a verb. With ``--help`` prints the help and leaves.

    Args:
        kind: The dataclass, or function, that describes them.
        argv: Everything after the verb.
        verb: Its name.
        default: Instead of the defaults of the dataclass.
        dotted: Whether nothing is a subcommand: each of several kinds of settings has flags with
            its path before them, such as ``--agent.gamma``.

    Raises:
        ConfigError: An option is unknown, missing or has a wrong value.
        SystemExit: The help was asked for.
    """
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint), _registry:
            return tyro.cli(
                kind,
                args=list(argv),
                prog=f"stepladder {verb}",
                default=MISSING_NONPROP if default is None else default,
                config=(*MARKERS, *(DOTTED if dotted else FLAT)),
            )
    except SystemExit as leaving:
        if leaving.code in (0, None):
            raise
        raise ConfigError(one_line(complaint.getvalue(), verb)) from None


def given(argv: Sequence[str], flag: str) -> str | None:
    """Return what a flag is given, before everything is parsed; None where it is not there.

    Example:
        >>> given(["--seed", "1", "--agent=sac"], "--agent")
        'sac'
    """
    values = [
        after if word == flag else word.removeprefix(f"{flag}=")
        for word, after in pairwise([*argv, ""])
        if word == flag or word.startswith(f"{flag}=")
    ]
    return values[-1] or None if values else None


def one_line(complaint: str, verb: str) -> str:
    """Return what tyro wrote into a box as one line: the problem, what was meant, where to look."""
    lines = [line.strip().strip("│|").strip() for line in _ESCAPE.sub("", complaint).splitlines()]
    blocks = groupby(lines[1:], lambda line: _RULE.fullmatch(line) is not None)
    texts = [" ".join(block) for is_rule, block in blocks if not is_rule]
    problem = _WHERE.sub("", texts[0]).rstrip(".") if texts else "the options cannot be read"
    parts = [problem]
    for text in texts[1:]:
        if text.startswith("Perhaps you meant:"):
            flags = dict.fromkeys(re.findall(r"(?<!\S)--[\w.-]+", text.replace("--help", "")))
            parts += [f"Perhaps you meant {' or '.join(list(flags)[:3])}"] if flags else []
        # Where a flag is wrong, the names of the subcommands are no help.
        elif text.startswith("Available subcommands:") and "options: -" not in problem:
            parts.append(text)
    return f"{'. '.join(parts)}. See stepladder {verb} --help."


@_registry.struct_rule
def _documented(info: StructTypeInfo) -> StructConstructorSpec | None:
    """Read a dataclass as tyro does, with the whole docstring of a field in one paragraph."""
    if not dataclasses.is_dataclass(info.type):
        return None
    hints = hints_of(info.type)
    docs = _field_docs(info.type)
    has_default = info.default is not MISSING and info.default is not MISSING_NONPROP
    return StructConstructorSpec(
        instantiate=info.type,
        fields=tuple(
            StructFieldSpec(
                name=field.name,
                type=_flag_type(hints[field.name]),
                default=getattr(info.default, field.name) if has_default else _default(field),
                helptext=docs.get(field.name),
            )
            for field in dataclasses.fields(info.type)
        ),
    )


def _flag_type(hint: Any) -> Any:
    """Return the type of a field; lists of settings and settings by name have no flags."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is dict or (origin is tuple and dataclasses.is_dataclass(inner[0])):
        return tyro.conf.Suppress[tyro.conf.Fixed[hint]]
    return hint


def _default(field: "dataclasses.Field[Any]") -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return MISSING_NONPROP


@cache
def _field_docs(kind: type[Any]) -> dict[str, str]:
    """Return the docstring under each field of a dataclass, bases included, as one paragraph.

    tyro reads them too, but keeps the line breaks of the source.
    """
    bases = [base for base in reversed(kind.__mro__) if dataclasses.is_dataclass(base)]
    found = (entry for base in bases for entry in parse_from_object(base).params)
    return {entry.arg_name: " ".join((entry.description or "").split()) for entry in found}
