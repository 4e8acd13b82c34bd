"""What is wrong with a config, all of it, each with its path.

Used by `reading` and `ancestor_config`: whoever reads a document adds what it finds and goes on;
in the end one error says everything, and nothing has been started.
"""

from collections.abc import Collection
from difflib import get_close_matches
from itertools import islice
from typing import Any

from stepladder.configs.documents import MAX_FOUND, unreadable
from stepladder.errors import ConfigError


class Problems:
    """A list of what is wrong, in the order in which it was found."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __len__(self) -> int:
        return len(self.lines)

    def add(self, path: str, text: str) -> None:
        """Add one problem.

        Args:
            path: Where it is, such as ``agent.gamma``; empty for the document as a whole.
            text: What is wrong and what would be right, in one line.
        """
        self.lines.append(f"{path}: {text}" if path else text)

    def add_unknown(self, path: str, name: str, known: Collection[str]) -> None:
        """Add that a key is unknown, with the name that was probably meant."""
        hint = meant(name, known) or f" Known here: {', '.join(known)}."
        self.add(join(path, name), f"unknown key.{hint}")

    def add_unreadable(self, document: Any) -> None:
        """Add what no setting of a document can be, whichever it is."""
        for path, text in islice(unreadable(document), MAX_FOUND):
            self.add(path, text)

    def raise_if_any(self, document: str) -> None:
        """Raise one error that lists everything.

        Args:
            document: What was read, such as the name of a file.

        Raises:
            ConfigError: There is at least one problem.
        """
        if self.lines:
            count = "1 problem" if len(self.lines) == 1 else f"{len(self.lines)} problems"
            listed = "\n".join(f"  {line}" for line in self.lines)
            raise ConfigError(f"{count} in {document}; nothing was started:\n{listed}")


def meant(name: Any, known: Collection[str]) -> str:
    """Return a question after the name that was probably meant; nothing if none is near."""
    near = get_close_matches(str(name), known, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def join(path: str, name: str) -> str:
    """Return the path of a field inside what a path leads to."""
    return f"{path}.{name}" if path else name
