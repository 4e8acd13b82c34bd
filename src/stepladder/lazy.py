"""Names of a package that are imported when first used.

At the bottom of the package, for the `__init__` of packages whose modules load numba or torch: who
needs one of their modules, such as a worker process, does not wait for all others.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package.

    Args:
        package: Its full name.
        homes: Names that it offers, separated by spaces, by the module that has them.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name in home_of:
            return getattr(import_module(home_of[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def listed() -> list[str]:
        return sorted(home_of)

    return get, listed
