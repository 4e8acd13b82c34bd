"""Configs as JSON and back: one reader and one writer for all of them.

A config is a frozen dataclass that derives from `Config`. Its annotations say what each setting
holds (a number, a choice, a list, another config) and within which limits (`checks`). The same
function, `fit`, compares values with annotations when a config is made in Python and when it is
read from a document; every problem goes to `Problems` with its path.

A class changes this by `kinds`, `expand`, `derive`, `contradictions` and `to_json`; this module
names no class.
"""

import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from stepladder.configs.checks import Limit, is_finite, is_integer
from stepladder.configs.documents import DOCUMENT, Bounds, to_plain
from stepladder.configs.problems import Problems, what_to_give
from stepladder.errors import ConfigError, StepladderError, nearest, shown

UNREAD: Final[Any] = object()
"""Stands for a value that does not fit; `Problems` says why."""

Made = TypeVar("Made", bound="Config")


class Kinds(Protocol):
    """Classes by name: a dict, or a registry."""

    def __contains__(self, name: object, /) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def __getitem__(self, name: str, /) -> Any: ...


class Config:
    """Base of all configs; checks every field when it is made.

    A field holds what its annotation says: numbers as `int` or `float`, tuples for lists, configs
    for objects. Fields of type `Any` hold plain JSON.
    """

    type_key: ClassVar[str] = "type"
    """Key of the kind in JSON, for classes with several `kinds`."""

    large: ClassVar[Mapping[str, Bounds]] = {}
    """Bounds of fields in a document that may be larger than settings are."""

    def __post_init__(self) -> None:
        problems = Problems()
        for name, form in forms_of(type(self)).items():
            value = fit(getattr(self, name), form, problems.at(name))
            object.__setattr__(self, name, value)
        if not problems:
            self.derive()
            for path, text in self.contradictions():
                problems.at(path).add(text)
        problems.raise_if_any()

    def derive(self) -> None:
        """Set fields that follow from others; called when every field fits its annotation."""

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield the path and the text of settings that do not go together."""
        yield from ()

    @classmethod
    def expand(cls, value: Any, problems: Problems) -> Any:
        """Return the object that a short form in a document stands for.

        `UNREAD` if `problems` says why there is nothing to read. If it says something else, the
        fields are read for their own problems.
        """
        return value

    def to_json(self) -> dict[str, Any]:
        """Return the settings as plain JSON, from which `from_json` makes an equal config."""
        return fields_to_json(self)

    @classmethod
    def from_json(cls: type[Made], data: Any, document: str = "the config") -> Made:
        """Return the config that `to_json` wrote; fields left out have their defaults.

        Args:
            data: What `json` made of a file, say.
            document: What to call it in messages.

        Raises:
            ConfigError: Something is wrong; all of it is listed, with paths.
        """
        problems = Problems()
        fields_given: Mapping[str, Any] = {}
        if isinstance(data, Mapping):
            fields_given = cast("Mapping[str, Any]", data)
        apart = {
            name: to_plain(fields_given[name], name, bounds=bounds, found=problems.found)
            for name, bounds in cls.large.items()
            if name in fields_given
        }
        rest = {name: fields_given[name] for name in fields_given if name not in apart}
        plain = to_plain(rest if apart else data, "", bounds=DOCUMENT, found=problems.found)
        problems.raise_if_any(document)
        if apart:
            plain = {**plain, **apart}
        config = fit(plain, form_of(cls), problems)
        problems.raise_if_any(document)
        return config


def fields_to_json(instance: Any) -> dict[str, Any]:
    """Return all fields of a dataclass as plain JSON."""
    return {field.name: to_json(getattr(instance, field.name)) for field in fields(instance)}


_PLAIN = frozenset((bool, float, int, str))
"""Nearly all values; the other questions take ten times as long."""


def to_json(value: Any) -> Any:
    """Return a value as JSON would give it back: lists for tuples, objects for dataclasses."""
    if value is None or type(value) in _PLAIN:
        return value
    if hasattr(value, "to_json"):
        return value.to_json()
    if is_dataclass(value):
        return fields_to_json(value)
    if isinstance(value, Mapping):
        entries = cast("Mapping[Any, Any]", value)
        return {str(key): to_json(entry) for key, entry in entries.items()}
    if isinstance(value, list | tuple):
        return [to_json(entry) for entry in cast("list[Any]", value)]
    return cast("Any", value).item() if isinstance(value, np.generic) else value


class Form(NamedTuple):
    """What an annotation says, taken apart."""

    kind: Any
    """A class, `Any` or `Literal[…]`; of the others, None."""

    limits: tuple[Limit, ...]
    origin: Any
    inner: tuple["Form", ...]
    """Of the entries of a tuple, the values of a dict, the alternatives of a union but None."""

    is_open: bool
    """Whether a tuple has any number of entries; whether a union has None."""


def form_of(annotation: Any) -> Form:
    """Return what an annotation says, with the limits in `Annotated`."""
    limits: tuple[Limit, ...] = ()
    if get_origin(annotation) is Annotated:
        annotation, *found = get_args(annotation)
        limits = tuple(cast("Limit", one) for one in found if callable(one))
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        rest = tuple(form_of(one) for one in arguments if one is not types.NoneType)
        return Form(None, limits, Union, rest, len(rest) < len(arguments))
    if origin is tuple:
        entries = tuple(form_of(one) for one in arguments if one is not Ellipsis)
        return Form(None, limits, tuple, entries, arguments[-1] is Ellipsis)
    if origin is dict:
        return Form(None, limits, dict, (form_of(arguments[1]),), True)
    is_object = is_dataclass(annotation) or hasattr(annotation, "from_json")
    return Form(annotation, limits, object if is_object else None, (), False)


def hints_of(kind: type) -> dict[str, Any]:
    """Return the annotations of a dataclass by name.

    Raises:
        ConfigError: One names something that is imported for type checkers only.
    """
    try:
        return get_type_hints(kind, include_extras=True)
    except NameError as error:
        named = [field for field in fields(kind) if str(error.name) in str(field.type)]
        where = f"the annotation {named[0].type!r} of {named[0].name}" if named else "an annotation"
        raise ConfigError(
            f"{where} in {kind.__name__} names {error.name!r}, which does not exist at run time. "
            "Import it at run time, not only under TYPE_CHECKING."
        ) from None


@cache
def forms_of(kind: type) -> Mapping[str, Form]:
    """Return what the annotation of every field of a dataclass says, by name."""
    hints = hints_of(kind)
    return {field.name: form_of(hints[field.name]) for field in fields(kind)}


def fit(value: Any, form: Form, problems: Problems) -> Any:
    """Return a value as an annotation requires it.

    Args:
        value: From a document, or from Python.
        form: What the annotation says.
        problems: Collects what does not fit.

    Returns:
        The value: tuples for lists, configs for objects, plain numbers for NumPy's. `UNREAD` if
        anything in it does not fit.
    """
    if form.origin is None:
        return _fit_leaf(value, form, problems)
    got = _FITS[form.origin](value, form, problems)
    text = None if got is UNREAD else _broken(got, form)
    if text is not None:
        problems.add(text)
    return got if text is None else UNREAD


def fitted(value: Any, annotation: Any, name: str) -> Any:
    """Return one value as an annotation requires it.

    Raises:
        ConfigError: It does not fit.
    """
    problems = Problems(key=name)
    got = fit(value, form_of(annotation), problems)
    problems.raise_if_any()
    return got


def _broken(value: Any, form: Form) -> str | None:
    """Return what the first limit says that a value breaks."""
    for limit in form.limits:
        text = limit(value)
        if text is not None:
            return text
    return None


def _fit_union(value: Any, form: Form, problems: Problems) -> Any:
    if value is None and form.is_open:
        return None
    if len(form.inner) == 1:
        return fit(value, form.inner[0], problems)
    objects = [one for one in form.inner if one.origin is object]
    for one in objects:
        # An object in a document is the one whose fields it has, all of them.
        has_fields = isinstance(value, Mapping) and value.keys() == forms_of(one.kind).keys()
        if has_fields or isinstance(value, one.kind):
            return fit(value, one, problems)
    others = [one for one in form.inner if one.origin is not object]
    texts = [one for one in others if one.kind is str]
    if isinstance(value, str) and texts:
        return fit(value, texts[0], problems)
    return fit(value, (others or objects)[0], problems)


def _fit_tuple(value: Any, form: Form, problems: Problems) -> Any:
    if not isinstance(value, list | tuple):
        problems.add(f"must be a list; got {shown(value)}. Give a list or a tuple, even of one.")
        return UNREAD
    entries, inner = cast("list[Any]", value), form.inner
    if form.is_open:
        inner *= len(entries)
    if len(inner) != len(entries):
        problems.add(f"must be a list of {len(inner)}; got {shown(entries)}. Correct its length.")
        return UNREAD
    got = tuple(fit(entry, inner[i], problems.at(i)) for i, entry in enumerate(entries))
    return UNREAD if any(entry is UNREAD for entry in got) else got


def _fit_dict(value: Any, form: Form, problems: Problems) -> Any:
    if not isinstance(value, Mapping):
        problems.add(f"must be an object; got {shown(value)}. Give values by name.")
        return UNREAD
    got: dict[str, Any] = {}
    for key, entry in cast("Mapping[Any, Any]", value).items():
        if isinstance(key, str):
            got[key] = fit(entry, form.inner[0], problems.at(key))
        else:
            problems.add(f"has the key {shown(key)}; keys must be strings. Quote it.")
            got[""] = UNREAD
    return UNREAD if any(entry is UNREAD for entry in got.values()) else got


def _fit_object(value: Any, form: Form, problems: Problems) -> Any:
    kind: Any = form.kind
    if isinstance(value, kind):
        return value
    before = len(problems)
    try:
        if not hasattr(kind, "__dataclass_fields__"):
            return kind.from_json(value)
        if hasattr(kind, "expand"):
            value = kind.expand(value, problems)
        if hasattr(kind, "kinds") and isinstance(value, Mapping):
            kind, value = _of_kind(cast("Mapping[str, Any]", value), kind, problems)
        if value is UNREAD:
            return UNREAD
        if isinstance(value, Mapping):
            return make(kind, cast("Mapping[str, Any]", value), problems, before)
        fix = what_to_give(kind, value)
        problems.add(f"must be of type {kind.__name__}; got {shown(value)}. {fix}")
        return UNREAD
    except StepladderError as error:
        problems.add_error(error)
        return UNREAD


def _of_kind(settings: Mapping[str, Any], base: Any, problems: Problems) -> tuple[Any, Any]:
    """Return the class that an object names, and the rest of the object or `UNREAD`."""
    key, kinds = base.type_key, cast("Kinds", base.kinds())
    name = settings.get(key)
    if not isinstance(name, str) or name not in kinds or not issubclass(kinds[name], base):
        got = f"got {shown(name)}" if key in settings else "it is missing"
        text = f"must be one of {', '.join(kinds)}; {got}.{nearest(name, kinds)}"
        problems.at(key).add(text)
        return base, UNREAD
    rest = {field: entry for field, entry in settings.items() if field != key}
    return kinds[name], kinds[name].expand(rest, problems)


def make(
    kind: type[Any], settings: Mapping[str, Any], problems: Problems, before: int | None = None
) -> Any:
    """Return a config made of settings by name, or `UNREAD` if there are more problems than before.

    Raises:
        StepladderError: The config refuses what fits its annotations.
    """
    before = len(problems) if before is None else before
    forms, values = forms_of(kind), dict[str, Any]()
    for field in fields(kind):
        if field.name in settings:
            place = problems.at(field.name)
            values[field.name] = fit(settings[field.name], forms[field.name], place)
        elif field.default is MISSING and field.default_factory is MISSING:
            problems.at(field.name).add("is missing. Give it.")
    for name in settings:
        if name not in forms:
            problems.add_unknown(name, forms)
    return kind(**values) if len(problems) == before else UNREAD


def _fit_leaf(value: Any, form: Form, problems: Problems) -> Any:
    """Return a value that holds no settings of its own."""
    kind = form.kind
    if kind is Any:
        before = len(problems)
        plain = to_plain(value, problems.path, found=problems.found)
        return plain if len(problems) == before else UNREAD
    text = _broken(value, form)
    if text is None:
        fits, wanted = _LEAVES[kind] if kind in _LEAVES else _other_leaf(kind)
        if fits(value):
            return kind(value) if kind in (bool, int, float) else value
        text = f"must be {wanted}; got {shown(value)}."
    if isinstance(value, list):
        text += " This is a list of values to try, and a config has one: choose one."
    problems.add(text)
    return UNREAD


Leaf: TypeAlias = tuple[Callable[[Any], bool], str]
"""Whether a value is of a kind, and that kind in words."""

_LEAVES: Mapping[Any, Leaf] = {
    bool: (lambda value: isinstance(value, bool | np.bool_), "true or false"),
    int: (is_integer, "an integer"),
    float: (is_finite, "a finite number"),
    str: (lambda value: isinstance(value, str), "a text"),
}


def _other_leaf(kind: Any) -> Leaf:
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        *others, last = map(repr, choices)
        wanted = f"{', '.join(others)} or {last}" if others else last
        return lambda value: isinstance(value, str) and value in choices, wanted
    if isinstance(kind, type):
        return lambda value: isinstance(value, kind), f"of type {kind.__name__}"
    # Something that only another package's config can hold; it has its own checks.
    return lambda value: True, ""


_FITS = {Union: _fit_union, tuple: _fit_tuple, dict: _fit_dict, object: _fit_object}
