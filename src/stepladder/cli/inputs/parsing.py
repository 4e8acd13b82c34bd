"""Arguments of a verb, read from the command line by tyro.

The only module that calls tyro's parser. A verb describes its options as a dataclass; the docstring
under each field is the help text of its flag. What is wrong with flags and values is listed at once
(`flag_problems`). The rest, such as a flag without a value, tyro prints as a box and exits: its
hook for errors is private and may change in any release, so the box is read and joined into one
line.
"""

import contextlib
import dataclasses
import io
import re
import shlex
from collections.abc import Callable, Sequence
from itertools import groupby, pairwise
from typing import Annotated, Any, TypeVar, get_args, get_origin

import tyro
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
from stepladder.cli.inputs.flag_problems import (
    FLAG,
    keeping_words,
    make_or_refuse,
    problems_in,
    raise_for_flags,
    read_leniently,
    unknown_flags,
)
from stepladder.configs.codec import hints_of
from stepladder.configs.field_docs import field_docs
from stepladder.errors import ConfigError, nearest
from stepladder.files import parsed_json
from stepladder.runs.checkpoint_choice import BEST, LAST

Arguments = TypeVar("Arguments")

MAX_STEP_DIGITS = 19
"""Of a step."""

_registry = ConstructorRegistry()

_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_RULE = re.compile(r"[\s─│╭╮╰╯+|-]*")
_WHERE = re.compile(r"^Error parsing [\w.]+: ")
_UNRECOGNISED, _SUBCOMMANDS = "Unrecognized options:", "Available subcommands:"


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
    # With subcommands, flags may stand before or after the name of the subcommand.
    style = tyro.conf.AvoidSubcommands if dotted else tyro.conf.CascadeSubcommandArgs
    # A switch has only the flag that changes it: --json, --no-keep.
    markers = (tyro.conf.FlagCreatePairsOff, tyro.conf.PositionalMetavarFromFieldName, style)

    def read(words: Sequence[str], *, with_unknown: bool) -> Any:
        complaint = io.StringIO()
        try:
            with contextlib.redirect_stderr(complaint), _registry:
                return tyro.cli(
                    kind,
                    args=list(words),
                    prog=f"stepladder {verb}",
                    default=MISSING_NONPROP if default is None else default,
                    config=markers,
                    return_unknown_args=with_unknown,
                )
        except SystemExit as leaving:
            if leaving.code in (0, None):
                # The help has been printed.
                print(examples_text(verb))
                raise
            raise ConfigError(one_line(complaint.getvalue(), verb)) from None

    arguments, unknown = read(argv, with_unknown=True)
    found = problems_in(arguments)
    if unknown:
        if not FLAG.match(unknown[0]):
            read(argv, with_unknown=False)  # raises: there is a word too many
        found = unknown_flags(unknown, _known_flags(read, argv, unknown), verb) + found
    raise_for_flags(found)
    return arguments


def _known_flags(
    read: Callable[..., Any], argv: Sequence[str], unknown: Sequence[str]
) -> list[str]:
    """Return all flags beside those that are given, as the help has them."""
    printed = io.StringIO()
    rest = [word for word in argv if word not in unknown]
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        read([*rest, "--help"], with_unknown=False)
    return re.findall(r"(?<!\S)--[a-z][\w.-]*", _ESCAPE.sub("", printed.getvalue()))


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
    """Return the content of tyro's error box as one line: problem, subcommands, where to look."""
    lines = [line.strip().strip("│|").strip() for line in _ESCAPE.sub("", complaint).splitlines()]
    blocks = groupby(lines[1:], lambda line: _RULE.fullmatch(line) is not None)
    texts = [" ".join(block) for is_rule, block in blocks if not is_rule]
    problem = _WHERE.sub("", texts[0]).rstrip(".") if texts else "the options cannot be read"
    choices = [text for text in texts[1:] if text.startswith(_SUBCOMMANDS)]
    word = problem.removeprefix(_UNRECOGNISED).partition(",")[0]
    known = choices[0].removeprefix(_SUBCOMMANDS).rstrip(".").split(",") if choices else ()
    near = nearest(word.strip(), [name.strip() for name in known])
    return f"{'. '.join([problem, *choices])}.{near} See stepladder {verb} --help."


@_registry.struct_rule
def _documented(info: StructTypeInfo) -> StructConstructorSpec | None:
    """Read a dataclass as tyro does, with our help texts."""
    if not dataclasses.is_dataclass(info.type):
        return None
    hints = hints_of(info.type)
    docs = field_docs(info.type)
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

    def instantiate(**values: Any) -> Any:
        return make_or_refuse(info.type, hints, values)

    return StructConstructorSpec(instantiate=instantiate, fields=tuple(fields))


def _flag_type(hint: Any, default: Any, text: str) -> Any:
    """Return the type of a flag, with what the help says about its default."""
    inner = get_args(hint)
    if any(map(_is_of_settings, (hint, *inner))):
        # Lists of settings, and settings by name, have no flags.
        return tyro.conf.Suppress[tyro.conf.Fixed[hint]]
    word_form = _word_form(hint)
    if word_form is not None:
        return Annotated[hint, keeping_words(word_form)]
    shown = None
    if default is True:
        shown = "(on by default; this flag turns it off)"
    elif default is False or default == () or "by default" in text.lower():
        shown = ""
    return Annotated[read_leniently(hint), tyro.conf.arg(help_behavior_hint=shown)]


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
