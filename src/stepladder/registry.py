"""What can be chosen by name: one open registry per kind (curricula, agents, games).

Beside `errors`, below everything that has a registry. Commands, JSON configs, `compare`, `train`
and resume look names up here, so that a class of another package is treated like a built-in one.

An entry is built in (its module is imported on first use), or it comes from an
installed package through the entry-point group ``stepladder.KIND``, or from a decorator at run
time.
"""

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from stepladder.errors import ConfigError, nearest, shown

Entry = TypeVar("Entry")
Registered = TypeVar("Registered")


class Registry(Collection[str], Generic[Entry]):
    """Names of one kind of thing, each with its entry.

    Args:
        kind: What the entries are, in the plural: also the last part of the entry-point group.
        check: Raises `ConfigError` if something cannot be an entry.
        built_in: By name where each built-in entry is, as ``module:attribute``.
    """

    def __init__(self, kind: str, check: Callable[[str, Any], None], built_in: Mapping[str, str]):
        self.kind = kind
        self.group = f"stepladder.{kind}"
        self._check = check
        self._places = dict(built_in)
        self._entries: dict[str, Entry] = {}

    def register(self, name: str) -> Callable[[Registered], Registered]:
        """Add what is decorated under a name, for this process and the workers it forks.

        Raises:
            ConfigError: The name belongs to something else already, or the entry is unsuitable.
        """

        def add(entry: Registered) -> Registered:
            known = self._entries.get(name)
            if (known is not None and not _is_same(known, entry)) or name in self._places:
                raise ConfigError(
                    f"{self.kind} already have an entry {name!r}. Choose another name."
                )
            self._add(name, entry)
            return entry

        return add

    def names(self) -> tuple[str, ...]:
        """Return all names: built-in ones first, then those of other packages."""
        return tuple(dict.fromkeys([*self._places, *self._installed(), *self._entries]))

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def __contains__(self, name: object) -> bool:
        # Installed packages are looked at last: finding them takes milliseconds.
        return name in self._places or name in self._entries or name in self._installed()

    def __getitem__(self, name: str) -> Entry:
        """Return an entry; its module is imported if need be.

        Raises:
            ConfigError: No entry has this name, or it cannot be imported.
        """
        if name not in self._entries:
            self._add(name, self._load(name))
        return self._entries[name]

    def _add(self, name: str, entry: Any) -> None:
        self._check(name, entry)
        self._entries[name] = entry

    def _load(self, name: str) -> Any:
        if name in self._places:
            module, attribute = self._places[name].split(":")
            return getattr(import_module(module), attribute)
        point = self._installed().get(name)
        if point is None:
            raise ConfigError(
                f"{self.kind} have no entry {shown(name)}; there are {', '.join(self.names())}. "
                f"Choose one of these, or install the package that brings it."
                f"{nearest(name, self.names())}"
            )
        try:
            return point.load()
        except Exception as error:  # a foreign package may raise anything; it is reported
            raise ConfigError(
                f"the entry point {point.value!r} of the group {self.group!r} cannot be loaded "
                f"({type(error).__name__}: {error}). Repair or uninstall its package."
            ) from error

    def _installed(self) -> Mapping[str, Any]:
        return _entry_points(self.group, tuple(sys.path))


@lru_cache(maxsize=16)
def _entry_points(group: str, path: tuple[str, ...]) -> Mapping[str, Any]:
    """Return the entry points of a group, by name; reading them all takes milliseconds."""
    return {point.name: point for point in entry_points(group=group)}


def _is_same(known: Any, entry: Any) -> bool:
    """Whether an entry is one that is known: a notebook cell that runs again defines it again."""
    names = [
        (getattr(one, "__module__", None), getattr(one, "__qualname__", None))
        for one in (known, entry)
    ]
    return known is entry or (names[0] == names[1] and names[0][1] is not None)
