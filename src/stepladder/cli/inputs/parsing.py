"""Arguments of a verb, read from the command line by tyro; errors in one line.

The only module that calls tyro's parser. A verb describes its options as a dataclass; the docstring
under each field is the help text of its flag. tyro prints an error as a box and exits: its hook for
errors is private and may change in any release, so the box is read and joined into one line.
"""

import contextlib
import dataclasses
import io
import re
import shlex
from collections.abc import Callable, Sequence
from functools import cache
from itertools import groupby, pairwise
from typing import Annotated, Any, TypeVar, get_args, get_origin

import tyro
from docstring_parser import parse_from_object
from tyro.constructors import (
    MISSING,
    MISSING_NONPROP,
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    StructConstructorSpec,
    StructFieldSpec,
    StructTypeInfo,
)

from stepladder.cli.examples import examples_text
from stepladder.configs.codec import hints_of
from stepladder.errors import ConfigError
from stepladder.files import parsed_json
from stepladder.runs.checkpoint_choice import BEST, LAST

Arguments = TypeVar("Arguments")

MAX_STEP_DIGITS = 19
"""Of a step."""

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
    """Return the arguments of a verb; ``--help`` prints the help and exits.

    Args:
        kind: The dataclass, or function, that describes the options.
        argv: Everything after the verb.
        verb: Name of the verb.
        default: Replaces the defaults of the dataclass.
        dotted: Whether unions of settings have dotted flags, such as ``--agent.gamma``, in place of
            subcommands. A group of settings that is None has no flags then.

    Raises:
        ConfigError: An option is unknown, missing or has a wrong value.
        SystemExit: The help was printed.
    """
    complaint = io.StringIO()
    # With subcommands, flags may stand before or after the name of the subcommand.
    style = tyro.conf.AvoidSubcommands if dotted else tyro.conf.CascadeSubcommandArgs
    # A switch has only the flag that changes it: --json, --no-keep.
    markers = (tyro.conf.FlagCreatePairsOff, tyro.conf.PositionalMetavarFromFieldName, style)
    try:
        with contextlib.redirect_stderr(complaint), _registry:
            return tyro.cli(
                kind,
                args=list(argv),
                prog=f"stepladder {verb}",
                default=MISSING_NONPROP if default is None else default,
                config=markers,
            )
    except SystemExit as leaving:
        if leaving.code in (0, None):
            # The help has been printed.
            print(examples_text(verb))
            raise
        raise ConfigError(one_line(complaint.getvalue(), verb)) from None


def given(argv: Sequence[str], flag: str) -> str | None:
    """Return the value of a flag before everything is parsed; None if it is not given.

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


def read_settings(settings: Sequence[str], flag: str = "--env") -> dict[str, Any]:
    """Return settings given as KEY=VALUE; a value is read as JSON where it is valid, else as text.

    Example:
        >>> read_settings(["mode=NORMAL", "keep_mode=false", "speed=1.5"])
        {'mode': 'NORMAL', 'keep_mode': False, 'speed': 1.5}
    """
    kwargs: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.isidentifier():
            raise ConfigError(
                f"{flag} must be KEY=VALUE; got {setting!r}. Write it as {flag} mode=NORMAL."
            )
        try:
            kwargs[key] = parsed_json(value)
        except ValueError:
            kwargs[key] = value
    return kwargs


def read_checkpoint(text: str) -> str | int:
    """Return which checkpoint ``--checkpoint`` asks for: last, best or a step.

    Example:
        >>> read_checkpoint("best"), read_checkpoint("16,384")
        ('best', 16384)
    """
    if text in (LAST, BEST):
        return text
    digits = text.replace(",", "").replace("_", "")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= MAX_STEP_DIGITS):
        raise ConfigError(f"--checkpoint must be last, best or a step; got {text!r}.")
    return int(digits)


def command_line(verb: str, *words: object, **flags: object) -> str:
    """Return a command line as it can be typed; flags that are None or False are left out.

    Example:
        >>> command_line("train", "--resume", "runs/my run", total_steps=5, trust=True)
        "stepladder train --resume 'runs/my run' --total-steps 5 --trust"
    """
    parts = ["stepladder", verb, *map(str, words)]
    for name, value in flags.items():
        if value is not None and value is not False:
            parts.append(f"--{name.replace('_', '-')}")
            parts += [] if value is True else [str(value)]
    return shlex.join(parts)


def one_line(complaint: str, verb: str) -> str:
    """Return the content of tyro's error box as one line: problem, similar flags, where to look."""
    lines = [line.strip().strip("│|").strip() for line in _ESCAPE.sub("", complaint).splitlines()]
    blocks = groupby(lines[1:], lambda line: _RULE.fullmatch(line) is not None)
    texts = [" ".join(block) for is_rule, block in blocks if not is_rule]
    problem = _WHERE.sub("", texts[0]).rstrip(".") if texts else "the options cannot be read"
    parts = [problem]
    for text in texts[1:]:
        if text.startswith("Perhaps you meant:"):
            flags = dict.fromkeys(re.findall(r"(?<!\S)--[\w.-]+", text.replace("--help", "")))
            parts += [f"Perhaps you meant {' or '.join(list(flags)[:3])}"] if flags else []
        # The names of the subcommands do not help to correct a flag.
        elif text.startswith("Available subcommands:") and "options: -" not in problem:
            parts.append(text)
    return f"{'. '.join(parts)}. See stepladder {verb} --help."


@_registry.struct_rule
def _documented(info: StructTypeInfo) -> StructConstructorSpec | None:
    """Read a dataclass as tyro does, with our help texts."""
    if not dataclasses.is_dataclass(info.type):
        return None
    hints = hints_of(info.type)
    docs = _field_docs(info.type)
    has_default = info.default is not MISSING and info.default is not MISSING_NONPROP
    fields: list[StructFieldSpec] = []
    for field in dataclasses.fields(info.type):
        name, default = field.name, field.default
        if has_default:
            default = getattr(info.default, name)
        elif field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        elif default is dataclasses.MISSING:
            default = MISSING_NONPROP
        text = docs.get(name)
        kind = _flag_type(hints[name], default, text or "")
        fields.append(StructFieldSpec(name=name, type=kind, default=default, helptext=text))
    return StructConstructorSpec(instantiate=info.type, fields=tuple(fields))


def _flag_type(hint: Any, default: Any, text: str) -> Any:
    """Return the type of a flag, with what the help says about its default."""
    inner = get_args(hint)
    if any(map(_is_of_settings, (hint, *inner))):
        # Lists of settings, and settings by name, have no flags.
        return tyro.conf.Suppress[tyro.conf.Fixed[hint]]
    word_form = _word_form(hint)
    if word_form is not None:
        return Annotated[hint, word_form]
    shown = None
    if default is True:
        shown = "(on by default; this flag turns it off)"
    elif default is False or default == () or "by default" in text.lower():
        shown = ""
    return Annotated[hint, tyro.conf.arg(help_behavior_hint=shown)]


def _is_of_settings(hint: Any) -> bool:
    """Return whether a hint is of settings by name, or of a list of settings or tasks."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is tuple:
        return dataclasses.is_dataclass(inner[0]) or hasattr(inner[0], "from_json")
    return origin is dict


def _word_form(hint: Any) -> PrimitiveConstructorSpec[Any] | None:
    """Return how words become settings that have a form for the command line (`from_words`)."""
    kinds = [kind for kind in (hint, *get_args(hint)) if hasattr(kind, "from_words")]
    if not kinds:
        return None
    (kind,) = kinds
    return PrimitiveConstructorSpec(
        nargs="*",
        metavar="[NAME[=WEIGHT] …]",
        instance_from_str=lambda words: kind.from_words(words) if words else None,
        is_instance=lambda value: value is None or isinstance(value, kind),
        str_from_instance=lambda value: [] if value is None else value.words(),
    )


@cache
def _field_docs(kind: type[Any]) -> dict[str, str]:
    """Return the docstring under each field of a dataclass, bases included, as one paragraph.

    tyro reads them too, but keeps some line breaks of the source.
    """
    bases = [base for base in reversed(kind.__mro__) if dataclasses.is_dataclass(base)]
    found = (entry for base in bases for entry in parse_from_object(base).params)
    return {entry.arg_name: " ".join((entry.description or "").split()) for entry in found}
