"""Code that this process may import because the user has named it or trusts who did.

Lowest layer. `runs.trust` adds what a run names once the user allows it, `agents.own_encoder` what
a config made in Python names; nothing else that a file names is imported.
"""

from collections.abc import Iterable

_names: set[str] = set()


def allow(names: Iterable[str]) -> None:
    """Allow imports of what these names say, each as ``module:name``, until the process ends."""
    _names.update(names)


def is_allowed(name: str) -> bool:
    """Whether a name was allowed."""
    return name in _names
