"""One object of a document that is read key by key.

Used by `ancestor_config` and its parts, whose keys are not the fields of any dataclass. Whatever is
wrong goes to `Problems`, and something sensible is returned in its place so that reading goes on.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from stepladder.configs.checks import is_finite, is_number
from stepladder.configs.documents import MAX_INTEGER
from stepladder.errors import shown
from stepladder.training.problems import Problems, join, meant


class Section:
    """The keys of one object, taken one after the other.

    Args:
        value: What the document has; anything but an object is a problem, and then read as empty.
        path: Where it is.
        problems: Where all that is wrong goes.
    """

    def __init__(self, value: Any, path: str, problems: Problems):
        self.path, self.problems = path, problems
        self.is_object = isinstance(value, Mapping)
        self.values: Mapping[str, Any] = value if self.is_object else {}
        self._taken: dict[str, None] = {}
        if not self.is_object:
            self.refuse(None, f"must be an object with settings; got {shown(value)}.")

    def refuse(self, name: str | None, text: str) -> None:
        """Add a problem of one key, or of the object as a whole."""
        self.problems.add(self.path if name is None else join(self.path, name), text)

    def has(self, name: str) -> bool:
        """Whether something is said under a key; null says nothing."""
        self._taken[name] = None
        return self.values.get(name) is not None

    def require(self, name: str) -> bool:
        """Whether something is said under a key; that it is missing is a problem."""
        if not self.has(name) and self.is_object:
            self.refuse(name, "is missing. Give it.")
        return self.has(name)

    def whole(self, name: str, default: int, least: int = 1) -> int:
        """Return a whole number of at least `least`, or the default if nothing is said."""
        if not self.has(name):
            return default
        value = self.values[name]
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is int and least <= value <= MAX_INTEGER:
            return value
        self._refuse_value(name, f"a whole number of at least {least}")
        return default

    def number(
        self, name: str, default: float, *, low: float = -math.inf, high: float = math.inf
    ) -> float:
        """Return a finite number from one limit to another, or the default if nothing is said."""
        if not self.has(name):
            return default
        value = self.values[name]
        if is_finite(value) and low <= value <= high:
            return float(value)
        upto = "" if high == math.inf else f" and at most {high:g}"
        least = "" if low == -math.inf else f" of at least {low:g}{upto}"
        self._refuse_value(name, f"a number{least}")
        return default

    def positive(self, name: str, default: float) -> float:
        """Return a finite number above 0, or the default if nothing is said."""
        if self.has(name) and is_number(self.values[name]) and not self.values[name] > 0:
            self._refuse_value(name, "above 0")
            return default
        return self.number(name, default)

    def truth(self, name: str, default: bool) -> bool:
        """Return true or false, or the default."""
        return self._of_kind(name, bool, "true or false", default)

    def text(self, name: str, default: str) -> str:
        """Return a text that is not empty, or the default."""
        if self.has(name) and self.values[name] == "":
            self._refuse_value(name, "a text that is not empty")
            return default
        return self._of_kind(name, str, "a text", default)

    def choice(self, name: str, choices: Collection[str], default: str) -> str:
        """Return one of several texts, or the default."""
        if not self.has(name):
            return default
        value = self.values[name]
        if isinstance(value, str) and value in choices:
            return value
        self._refuse_value(name, f"one of {', '.join(choices)}", meant(value, choices))
        return default

    def entries(self, name: str) -> list[Any]:
        """Return the entries of a list that must have some; none if it has not."""
        if not self.require(name):
            return []
        value = self.values[name]
        if isinstance(value, str) or not isinstance(value, Sequence) or not value:
            self._refuse_value(name, "a list with at least one entry")
            return []
        return list(value)

    def section(self, name: str) -> "Section":
        """Return the object under a key; an empty one if nothing is said."""
        value = self.values[name] if self.has(name) else {}
        return Section(value, join(self.path, name), self.problems)

    def close(self) -> None:
        """Refuse every key that nobody has asked for."""
        for name in self.values:
            if name not in self._taken:
                self.problems.add_unknown(self.path, name, list(self._taken))

    def _of_kind(self, name: str, kind: type, words: str, default: Any) -> Any:
        if not self.has(name):
            return default
        if isinstance(self.values[name], kind):
            return self.values[name]
        self._refuse_value(name, words)
        return default

    def _refuse_value(self, name: str, wanted: str, hint: str = "") -> None:
        value = self.values[name]
        if isinstance(value, list) and not wanted.startswith("a list"):
            self.refuse(
                name,
                f"is a list of values to try, {shown(value)}; a training has one. Choose one, and "
                "train once for each.",
            )
        else:
            self.refuse(name, f"must be {wanted}; got {shown(value)}.{hint}")
