"""A dict whose entries are made when they are read.

Made by `outcomes` in every step of a game, and returned to the user as the step's infos. Most of
them are never looked at, and making them takes longer than stepping the envs.
"""

from collections.abc import Collection, Iterator
from typing import Any, Protocol, Self


class Entries(Protocol):
    """What a `LazyInfos` is made of. It must not change any more."""

    def names(self) -> Collection[str]:
        """Return the keys."""
        ...

    def one(self, name: str) -> dict[str, Any]:
        """Return an entry that there is, alone or together with others."""
        ...

    def all(self) -> dict[str, Any]:
        """Return all entries, in order."""
        ...


class LazyInfos(dict[str, Any]):
    """A dict that makes its entries when it is read; to its readers it is like any other dict.

    Looking up a key makes this entry alone; whatever looks at all of them makes all. Because
    ``__iter__`` is its own, ``dict(infos)`` and ``{**infos}`` go through the methods here too,
    instead of copying what has been made so far.

    Args:
        entries: What it is made of.
    """

    __slots__ = ("_entries",)

    def __init__(self, entries: Entries):
        super().__init__()
        self._entries: Entries | None = entries

    def _complete(self) -> None:
        """Make all entries; what was looked up or set before stays."""
        entries = self._entries
        if entries is None:
            return
        made, own = entries.all(), dict(super().items())
        if own:
            super().clear()
        super().update(made)
        super().update(own)
        self._entries = None

    # Looking up one.

    def __missing__(self, key: str) -> Any:
        """Make one entry."""
        entries = self._entries
        if entries is None or key not in entries.names():
            raise KeyError(key)
        super().update(entries.one(key))
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        """Return whether there is such a key."""
        entries = self._entries
        return super().__contains__(key) or (entries is not None and key in entries.names())

    def get(self, key: str, default: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return an entry, or the default."""
        if key in self:
            return self[key]
        return default

    def __bool__(self) -> bool:
        """Return whether there is any entry."""
        return len(self) > 0

    # Looking at all.

    def __len__(self) -> int:
        """Return the number of entries."""
        self._complete()
        return super().__len__()

    def __iter__(self) -> Iterator[str]:
        """Go through the keys."""
        self._complete()
        return super().__iter__()

    def __reversed__(self) -> Iterator[str]:
        """Go through the keys from the last one on."""
        self._complete()
        return super().__reversed__()

    def keys(self) -> Any:
        """Return the keys."""
        self._complete()
        return super().keys()

    def values(self) -> Any:
        """Return the values."""
        self._complete()
        return super().values()

    def items(self) -> Any:
        """Return keys and values."""
        self._complete()
        return super().items()

    def __eq__(self, other: object) -> bool:
        """Compare with another dict."""
        self._complete()
        if isinstance(other, LazyInfos):
            other._complete()
        return super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        """Compare with another dict."""
        return not self == other

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        """Show all entries, as a dict does."""
        self._complete()
        return super().__repr__()

    # Copies are plain dicts.

    def copy(self) -> dict[str, Any]:
        """Return all entries in a dict of their own."""
        self._complete()
        return dict(super().items())

    __copy__ = copy

    def __or__(self, other: Any) -> dict[str, Any]:
        """Return both together; of equal keys, the entry of the other."""
        return self.copy() | other

    def __ror__(self, other: Any) -> dict[str, Any]:
        """Return both together; of equal keys, the entry of this."""
        return other | self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy as a dict."""
        return dict, (self.copy(),)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Pickle and copy as a dict."""
        return self.__reduce__()

    # Changing: what was not made yet is made first, except where a single key is set.

    def __ior__(self, other: Any) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Add the entries of another dict."""
        self._complete()
        super().update(other)
        return self

    def update(self, *others: Any, **named: Any) -> None:
        """Add entries."""
        self._complete()
        super().update(*others, **named)

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return an entry, which is the default if there was none."""
        self._complete()
        return super().setdefault(key, default)

    def __delitem__(self, key: str) -> None:
        """Remove an entry."""
        self._complete()
        super().__delitem__(key)

    def pop(self, *arguments: Any) -> Any:
        """Remove an entry and return it."""
        self._complete()
        return super().pop(*arguments)

    def popitem(self) -> tuple[str, Any]:
        """Remove the last entry and return it with its key."""
        self._complete()
        return super().popitem()

    def clear(self) -> None:
        """Remove all entries."""
        self._entries = None
        super().clear()
