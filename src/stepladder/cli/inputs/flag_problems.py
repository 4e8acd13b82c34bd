"""What is wrong with the flags of a verb: all of it at once, each problem with its flag.

Between tyro and the dataclass of a verb's options. tyro stops at the first value that it cannot
read, and a config that is made of flags cannot know what is wrong with its neighbours. So words
that cannot be read are kept until the dataclass is made (`Unreadable`), and settings with problems
are replaced by a list of them until the whole is complete (`Refused`). The problems are those that
a document would have (`configs.codec`).
"""

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, NamedTuple, get_args

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from stepladder.configs.codec import Config, Form, fit, form_of
from stepladder.configs.problems import Problems
from stepladder.errors import StepladderError

FLAG = re.compile(r"--[a-z][\w.-]*")


class Unreadable(NamedTuple):
    """Words after a flag that its type cannot be made of."""

    words: list[str]
    reason: str | None
    """A sentence of the type about them; None if its annotation says what is wrong."""


class Refused(NamedTuple):
    """Takes the place of settings that could not be made."""

    found: list[tuple[str, str]]
    """Path of each problem, and its text."""


def read_leniently(hint: Any) -> Any:
    """Return an annotation that tyro reads as before, but with `Unreadable` where it would stop."""
    if bool in (hint, *get_args(hint)[:1]) or tyro.conf.UseAppendAction in get_args(hint):
        return hint  # words that cannot be wrong
    spec = ConstructorRegistry.get_primitive_spec(PrimitiveTypeInfo.make(hint, set()))
    is_one_flag = isinstance(spec, PrimitiveConstructorSpec)
    return Annotated[hint, keeping_words(spec)] if is_one_flag else hint


def keeping_words(spec: PrimitiveConstructorSpec[Any]) -> PrimitiveConstructorSpec[Any]:
    """Return a way to read words that gives `Unreadable` where it would stop."""
    read: Callable[[list[str]], Any] = spec.instance_from_str

    def read_or_keep(words: list[str]) -> Any:
        try:
            return read(words)
        except StepladderError as error:
            return Unreadable(words, str(error))
        except (ValueError, TypeError, KeyError):
            return Unreadable(words, None)

    # tyro stops at a word that is none of the choices.
    return dataclasses.replace(spec, instance_from_str=read_or_keep, choices=None)


def make_or_refuse(kind: type[Any], hints: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
    """Return a dataclass made of values by name, or `Refused` with all that is wrong with them."""
    problems = Problems()
    for name, value in values.items():
        place = problems.at(_key(name, hints[name]))
        if isinstance(value, Refused):
            for path, text in value.found:
                place.at(path).add(text)
        elif isinstance(value, Unreadable):
            _say_why(value, form_of(hints[name]), place)
        elif issubclass(kind, Config):
            fit(value, form_of(hints[name]), place)
    if not problems:
        try:
            return kind(**values)
        except StepladderError as error:
            problems.add_error(error)
    return Refused(problems.found)


def _say_why(unreadable: Unreadable, form: Form, place: Problems) -> None:
    """Add what is wrong with words, as it is reported for a document with these values."""
    if unreadable.reason is not None:
        place.found.append(("", unreadable.reason))
        return
    before = len(place)
    words = [_number_or_word(word) for word in unreadable.words]
    fit(words[0] if len(words) == 1 and form.origin is not tuple else words, form, place)
    if len(place) == before:
        place.add(f"cannot be read; got {' '.join(unreadable.words)!r}.")


def problems_in(result: Any) -> list[tuple[str, str]]:
    """Return the problems of what tyro has made: options, or a tuple with a chosen subcommand."""
    parts = result if type(result) is tuple else (result,)
    inner = [
        value for part in parts if dataclasses.is_dataclass(part) for value in vars(part).values()
    ]
    return [one for part in (*parts, *inner) if isinstance(part, Refused) for one in part.found]


def unknown_flags(unknown: Sequence[str], known: Iterable[str], verb: str) -> list[tuple[str, str]]:
    """Return a problem per unknown flag, with the known one that is nearest.

    Args:
        unknown: What is left over of a command line: unknown flags, each with its values.
        known: All flags of the verb.
        verb: Its name.
    """
    found: list[tuple[str, str]] = []
    for word in unknown:
        flag = word.partition("=")[0]
        if FLAG.fullmatch(flag):
            near = get_close_matches(flag, list(known), n=1, cutoff=0.75)
            fix = f"Did you mean {near[0]}?" if near else f"See stepladder {verb} --help."
            found.append((flag, f"unknown flag. {fix}"))
    return found


def raise_for_flags(found: Iterable[tuple[str, str]]) -> None:
    """Raise one error that lists problems, each with the flag that its path stands for.

    Raises:
        ConfigError: There is at least one problem.
    """
    named = [(_flag(path), text) for path, text in found]
    Problems(named).raise_if_any("the options" if len(named) > 1 else None)


def _key(name: str, hint: Any) -> str:
    """Return what a field is called in flags; the empty text if its own fields have no prefix."""
    names = (getattr(mark, "name", None) for mark in get_args(hint)[1:])
    return next((text for text in names if isinstance(text, str)), name)


def _flag(path: str) -> str:
    """Return the flag of a setting; an entry of a list has that of the list."""
    if not path or path.startswith("-"):
        return path
    return "--" + re.sub(r"\[\d+\]", "", path).replace("_", "-")


def _number_or_word(word: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            pass
    return word
