"""YAML as plain JSON values: what a config or a list of tasks in a ``.yaml`` file says.

Beside `files.parsed_json`, with its bounds. PyYAML reads the text into events, and nothing but
values comes of them: no tags, no objects, and no aliases, by which a small file can stand for a
huge one. Words mean what JSON and YAML 1.2 say, so that ``1e-3`` is a number and ``no`` a text.
"""

import math
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NoReturn, TypeAlias, cast

from stepladder.files import MAX_JSON_DIGITS, MOST_DEPTH

MOST_YAML_BYTES = 16 * 2**20
"""Largest YAML that is read: it takes many times as long as JSON, which has a larger bound."""

YAML_SUFFIXES = (".yaml", ".yml")

_CONSTANTS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")

_Yaml: TypeAlias = Any
"""The module ``yaml``, or what it returns; it has no types of its own."""


def parsed_yaml(text: bytes) -> Any:
    """Return what a YAML text says: null, booleans, numbers, texts, lists and objects.

    Raises:
        ValueError: It is not such YAML; the line is named.
        ModuleNotFoundError: PyYAML is not installed.
    """
    yaml: _Yaml = import_module("yaml")
    # The compiled parser is ten times as fast; not every installation has it.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        events = yaml.parse(text.decode(), Loader=loader)
        return _value(_Events(yaml, events))
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 text ({error.reason} at byte {error.start})") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f"line {mark.line + 1}: "
        problem = getattr(error, "problem", None) or " ".join(str(error).split())
        raise ValueError(f"{where}{problem}") from error


class _Events:
    """The events of a text, one after the other.

    Args:
        yaml: The module.
        events: Of PyYAML's parser.
    """

    def __init__(self, yaml: _Yaml, events: Iterator[_Yaml]):
        self._events, self.yaml = events, yaml

    def next(self) -> _Yaml:
        """Return the next event that is not about the text as a whole."""
        yaml = self.yaml
        while True:
            event = next(self._events)
            if not isinstance(event, yaml.StreamStartEvent | yaml.DocumentStartEvent):
                return event


def refuse(event: _Yaml, text: str) -> NoReturn:
    """Raise, with the line of an event."""
    raise ValueError(f"line {event.start_mark.line + 1}: {text}")


def _value(events: _Events) -> Any:
    """Return the value of the only document."""
    yaml, first = events.yaml, events.next()
    if isinstance(first, yaml.StreamEndEvent):
        return None
    value = _built(first, events)
    events.next()
    if not isinstance(last := events.next(), yaml.StreamEndEvent):
        refuse(last, "a second document begins; one is read")
    return value


def _built(event: _Yaml, events: _Events) -> Any:
    """Return the value that begins with an event; without recursion, which deep texts exhaust."""
    yaml = events.yaml
    whole: list[Any] = []
    open_values: list[Any] = [whole]
    keys: list[Any] = [None]
    while True:
        if isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
            open_values.pop()
            keys.pop()
        else:
            value = _started(event, yaml)
            parent = open_values[-1]
            if isinstance(parent, list):
                cast("list[Any]", parent).append(value)
            elif keys[-1] is None:
                keys[-1] = _key(value, event, parent)
            else:
                parent[keys[-1]] = value
                keys[-1] = None
            if isinstance(value, dict | list):
                open_values.append(value)
                keys.append(None)
                if len(open_values) > MOST_DEPTH:
                    refuse(event, f"it is nested deeper than {MOST_DEPTH} levels")
        if len(open_values) == 1:
            return whole[0]
        event = events.next()


def _started(event: _Yaml, yaml: _Yaml) -> Any:
    """Return the value of a scalar, or an empty list or object for one that begins."""
    if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
        refuse(event, "it has an anchor or alias (& or *); write the value again instead")
    if event.tag is not None:
        refuse(event, f"it has the tag {event.tag[:80]}; only plain values are read")
    if isinstance(event, yaml.SequenceStartEvent):
        return []
    if isinstance(event, yaml.MappingStartEvent):
        return {}
    return _scalar(event) if event.implicit[0] else event.value


def _scalar(event: _Yaml) -> Any:
    """Return what a word without quotes means."""
    text: str = event.value
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        if len(text) > MAX_JSON_DIGITS:
            refuse(
                event, f"an integer has {len(text):,} digits; at most {MAX_JSON_DIGITS} are read"
            )
        return int(text)
    if _NOT_FINITE.fullmatch(text):
        refuse(event, f"{text} is not a finite number")
    if _FLOAT.fullmatch(text):
        number = float(text)
        if math.isinf(number):
            refuse(event, f"the number {text[:40]} is too large for a float")
        return number
    return text


def _key(value: Any, event: _Yaml, parent: dict[str, Any]) -> str:
    """Return a key of an object; a number or a boolean counts as it is written."""
    if isinstance(value, dict | list):
        refuse(event, "a key is a list or an object; keys must be texts")
    key: str = event.value
    if key in parent:
        refuse(event, f"the key {key[:80]!r} is there twice in one object")
    return key
