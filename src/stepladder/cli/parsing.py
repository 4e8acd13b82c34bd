"""Typed arguments from a command line, by tyro; what is wrong with them in one line.

The one place that meets tyro's parser. A verb describes its options as a dataclass; the docstring
under each field is the help text of its flag.
"""

import ast
import contextlib
import dataclasses
import inspect
import io
import re
import textwrap
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import tyro
from tyro.constructors import (
    MISSING,
    MISSING_NONPROP,
    ConstructorRegistry,
    StructConstructorSpec,
    StructFieldSpec,
    StructTypeInfo,
)

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
        ConfigError: The command line makes no sense.
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
    blocks: list[list[str]] = [[]]
    for line in _ESCAPE.sub("", complaint).splitlines()[1:]:
        text = line.strip().strip("│|").strip()
        if _RULE.fullmatch(text):
            blocks.append([])
        else:
            blocks[-1].append(text)
    texts = [" ".join(block) for block in blocks if block]
    problem = _WHERE.sub("", texts[0]) if texts else "the options make no sense"
    meant = [_meant(text, problem) for text in texts[1:]]
    said = ". ".join([problem.rstrip("."), *filter(None, meant)])
    return f"{said}. See stepladder {verb} --help."


def _meant(text: str, problem: str) -> str:
    """Return the part of a further block that helps in one line, if any."""
    if text.startswith("Perhaps you meant:"):
        flags = dict.fromkeys(re.findall(r"(?<!\S)--[\w.-]+", text.replace("--help", "")))
        return f"Perhaps you meant {' or '.join(list(flags)[:3])}" if flags else ""
    # Where a flag is wrong, the names of the subcommands are no help.
    is_about_a_name = not problem.startswith("Unrecognized options: -")
    return text if is_about_a_name and text.startswith("Available subcommands:") else ""


@_registry.struct_rule
def _documented(info: StructTypeInfo) -> StructConstructorSpec | None:
    """Read a dataclass as tyro does, with the whole docstring of a field in one paragraph."""
    if not dataclasses.is_dataclass(info.type):
        return None
    hints = get_type_hints(info.type, include_extras=True)
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
    """Return the docstring under each field of a dataclass, bases included."""
    docs: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if not dataclasses.is_dataclass(base):
            continue
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(tree, ast.ClassDef)
        for field, after in pairwise(tree.body):
            if isinstance(field, ast.AnnAssign) and isinstance(after, ast.Expr):
                text = ast.literal_eval(after.value)
                docs[ast.unparse(field.target)] = " ".join(str(text).split())
    return docs
