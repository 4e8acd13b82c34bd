"""What the docstring under each field of a config says: the help text of its flag or slider."""

from dataclasses import is_dataclass
from functools import cache
from typing import Any


@cache
def field_docs(kind: type[Any]) -> dict[str, str]:
    """Return the docstring under each field of a dataclass, bases included, as one paragraph."""
    # Of the extra `cli`: nothing else needs the source of a config.
    from docstring_parser import parse_from_object

    bases = [base for base in reversed(kind.__mro__) if is_dataclass(base)]
    found = (entry for base in bases for entry in parse_from_object(base).params)
    return {entry.arg_name: " ".join((entry.description or "").split()) for entry in found}
