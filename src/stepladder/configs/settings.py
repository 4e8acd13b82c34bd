"""The single settings of a config by dotted name: what each holds, and copies with some changed.

Above `codec`, for everything that lets a user change one value at a time: the names, kinds and
limits come from the annotations of the config itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, TypeVar, cast, get_args, get_origin

from stepladder.configs.checks import Integer, Within
from stepladder.configs.codec import UNREAD, Config, Form, forms_of, make
from stepladder.configs.problems import Problems
from stepladder.errors import StepladderError

Kind = Literal["number", "integer", "switch", "choice", "text", "names"]

Changed = TypeVar("Changed", bound=Config)

_KINDS: Final[Mapping[Any, Kind]] = {
    bool: "switch",
    int: "integer",
    float: "number",
    str: "text",
}

_READERS: Final[Mapping[str, type[int] | type[float]]] = {"integer": int, "number": float}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting that holds a single value, or a list of names."""

    name: str
    """With the names of the settings that it is in, such as ``demotion.threshold``."""

    kind: Kind
    value: Any
    owner: type[Any]
    """The class whose field it is."""

    low: float | None = None
    high: float | None = None
    """Ends of the range of a number; None where it has none."""

    choices: tuple[str, ...] = ()
    can_be_none: bool = False

    @property
    def field(self) -> str:
        """The name of its field."""
        return self.name.rpartition(".")[2]

    def read(self, text: str) -> Any:
        """Return the value that a text stands for; the text itself if it fits no value.

        Lists of names are joined by "+", and "none" is no value.
        """
        if self.can_be_none and text.lower() == "none":
            return None
        if self.kind == "names":
            return tuple(name for name in text.split("+") if name)
        try:
            if self.kind == "switch":
                return {"true": True, "false": False}[text.lower()]
            return _READERS[self.kind](text) if self.kind in _READERS else text
        except (KeyError, ValueError):
            return text


def settings_of(config: Config, prefix: str = "") -> list[Setting]:
    """Return the settings of a config in order; those of configs in it are dotted."""
    found: list[Setting] = []
    for name, form in forms_of(type(config)).items():
        value = getattr(config, name)
        if isinstance(value, Config):
            found += settings_of(value, f"{prefix}{name}.")
            continue
        described = _described(form)
        if described is not None:
            place = {"name": prefix + name, "value": value, "owner": type(config)}
            found.append(Setting(**place, **described))
    return found


def _described(form: Form) -> dict[str, Any] | None:
    """Return kind, range and choices of a form; None if it does not hold a single value."""
    if len(form.inner) == 1 and form.is_open and form.kind is None:
        if form.origin is tuple:
            return {"kind": "names"} if form.inner[0].kind is str else None
        inner = _described(form.inner[0]) if form.origin is not dict else None
        return None if inner is None else {**inner, "can_be_none": True}
    if get_origin(form.kind) is Literal:
        return {"kind": "choice", "choices": get_args(form.kind)}
    if form.origin is not None or form.kind not in _KINDS:
        return None
    low: float | None = None
    high: float | None = None
    for limit in form.limits:
        if isinstance(limit, Within):
            low, high = limit.low, limit.high
        elif isinstance(limit, Integer):
            low, high = limit.least, limit.most
    return {"kind": _KINDS[form.kind], "low": low, "high": high}


def with_settings(config: Changed, values: Mapping[str, Any], problems: Problems) -> Changed:
    """Return a config in which settings, by dotted name, have other values.

    Args:
        config: What is changed.
        values: New values by name.
        problems: Collects what is wrong; then the config is returned as it was.
    """
    own: dict[str, Any] = {}
    inner: dict[str, dict[str, Any]] = {}
    before = len(problems)
    for name, value in values.items():
        field, dot, rest = name.partition(".")
        if dot:
            inner.setdefault(field, {})[rest] = value
        else:
            own[field] = value
    for field, entries in inner.items():
        part = getattr(config, field, None) if field in forms_of(type(config)) else None
        if isinstance(part, Config):
            own[field] = with_settings(part, entries, problems.at(field))
        else:
            known = [one.name for one in settings_of(config)]
            problems.add_unknown(f"{field}.{next(iter(entries))}", known)
    present = {field.name: getattr(config, field.name) for field in fields(cast("Any", config))}
    try:
        made = make(type(config), {**present, **own}, problems)
    except StepladderError as error:
        problems.add_error(error)
        made = UNREAD
    return config if made is UNREAD or len(problems) > before else made
