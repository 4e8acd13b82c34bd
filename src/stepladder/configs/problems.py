"""What is wrong with a config: all of it, each problem with the path of its setting.

`codec` adds what it finds and continues; in the end one `ConfigError` lists everything.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from stepladder.errors import ConfigError, StepladderError, nearest
from stepladder.visible import one_visible_line


class Problems:
    """Problems of one document, in the order in which they were found.

    Args:
        found: Path and text of each.
        key: Where the part of the document that is read now is, such as ``agent``; empty for the
            whole of it.
        outer: The part that it is in.
    """

    __slots__ = ("_key", "_outer", "found")

    def __init__(
        self,
        found: Iterable[tuple[str, str]] = (),
        key: str | int = "",
        outer: "Problems | None" = None,
    ):
        self.found = found if isinstance(found, list) else list(found)
        self._key, self._outer = key, outer

    @property
    def path(self) -> str:
        """Where this part is in the document."""
        # Computed on demand: there is a part for every value, and few have problems.
        path = "" if self._outer is None else self._outer.path
        if isinstance(self._key, int):
            return f"{path}[{self._key}]"
        return f"{path}.{self._key}" if path and self._key else path or self._key

    def __len__(self) -> int:
        return len(self.found)

    def at(self, key: str | int) -> "Problems":
        """Return the same list for a part of this part: a field, a key or an entry of a list."""
        return Problems(self.found, key, self)

    def add(self, text: str) -> None:
        """Add a problem of this part: what is wrong and what would be right, in one line."""
        self.found.append((self.path, text))

    def add_error(self, error: StepladderError) -> None:
        """Add what an error says, each of its problems at its own path."""
        for path, text in getattr(error, "problems", ()) or (("", str(error)),):
            self.at(path).add(text)

    def add_unknown(self, key: str, known: Iterable[str]) -> None:
        """Add that a key of this part is unknown, with the known one that is nearest."""
        names = list(known)
        fix = nearest(key, names) or f" Known here: {', '.join(names)}."
        self.at(key).add(f"unknown key.{fix}")

    def raise_if_any(self, document: str | None = None) -> None:
        """Raise one error that lists everything.

        Args:
            document: What was read, such as the name of a file; None for a config made in Python.

        Raises:
            ConfigError: There is at least one problem.
        """
        if not self.found:
            return
        lines = [one_visible_line(f"{path}: {text}" if path else text) for path, text in self.found]
        count = "1 problem" if len(lines) == 1 else f"{len(lines)} problems"
        if document is not None:
            count += f" in {document}; nothing was started"
        text = f"{count}: {lines[0]}" if len(lines) == 1 else "\n  ".join([f"{count}:", *lines])
        if document is None and len(lines) == 1:
            text = _sentence(*self.found[0])
        error = ConfigError(text)
        error.problems = tuple(self.found)
        raise error


def _sentence(path: str, text: str) -> str:
    """Return one problem as a sentence, such as "gamma must lie in [0, 1]; got 3"."""
    colon = "" if not path or text.startswith(("must ", "is ", "has ")) else ":"
    return one_visible_line(f"{path}{colon} {text}")


def what_to_give(kind: Any, value: Any) -> str:
    """Return the fix for a value that is no object: of several kinds, the one that is meant."""
    if not hasattr(kind, "kinds"):
        return f"Give {kind.__name__}(…), in JSON an object with its settings."
    kinds: Mapping[str, type] = kind.kinds()
    if isinstance(value, str) and value in kinds:
        return f'Give {kinds[value].__name__}(), in JSON {{"{kind.type_key}": "{value}"}}.'
    known = f'in JSON {{"{kind.type_key}": …}} with one of {", ".join(kinds)}'
    return f"Give the config of one kind, {known}.{nearest(value, kinds)}"
