"""Send objects to a worker that are defined in the main program.

Used by `worker_handle` for everything that goes from the parent to a worker. A forked worker has
the main program as it was at the fork; a spawned one imports it, if it is a file. A notebook, a
prompt, ``python -c`` and a program read from standard input cannot be imported: what was defined
there, or after the fork, is pickled by value.
"""

import io
import multiprocessing
import pickle
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from types import FunctionType
from typing import Any

import cloudpickle

MAIN = "__main__"

Known = Mapping[str, Any]
"""Classes and functions of the main program that a worker has too, by name."""

_hiding = threading.Lock()


def known_to_worker(start_method: str) -> Known:
    """Return what a worker that is started now has of the main program."""
    if start_method != "fork" and not can_be_imported():
        return {}
    defined = vars(sys.modules[MAIN]).items()
    return {name: value for name, value in defined if isinstance(value, type | FunctionType)}


def can_be_imported() -> bool:
    """Whether the main program is a file or a module, so that a spawned worker can import it."""
    main = sys.modules[MAIN]
    if getattr(getattr(main, "__spec__", None), "name", None) is not None:
        return True
    path = getattr(main, "__file__", None)
    return path is not None and Path(path).suffix != ".ipynb" and Path(path).exists()


def pickled_for(value: Any, known: Known) -> bytes:
    """Pickle a value for a worker: by name what the worker has too, by value all else."""
    try:
        data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        if MAIN.encode() not in data:
            return data
    except (pickle.PicklingError, AttributeError, TypeError):
        # A lambda, or a class made in a function.
        pass
    buffer = io.BytesIO()
    _Pickler(buffer, known).dump(value)
    return buffer.getvalue()


class _Pickler(cloudpickle.Pickler):
    """Pickles by value whatever is defined in the main program, but for what the worker has."""

    def __init__(self, file: io.BytesIO, known: Known):
        super().__init__(file)
        self._known = known

    def reducer_override(self, obj: Any) -> Any:
        """Return how an object is made again."""
        if isinstance(obj, type | FunctionType) and obj.__module__ == MAIN:
            first, *others = obj.__qualname__.split(".")
            if _attribute(self._known.get(first), others) is obj:
                return _found_in_main, (first, others)
        return super().reducer_override(obj)


def _found_in_main(name: str, others: list[str]) -> Any:
    """Return what has this name in the main program of this process."""
    return _attribute(getattr(sys.modules[MAIN], name), others)


def _attribute(owner: Any, names: list[str]) -> Any:
    return reduce(lambda found, name: getattr(found, name, None), names, owner)


@contextmanager
def main_can_start() -> Iterator[None]:
    """Let workers start though the main program has the name of a file that does not exist.

    `multiprocessing` would have them run that file: ``<stdin>``.
    """
    main = sys.modules[MAIN]
    if can_be_imported() or getattr(main, "__file__", None) is None:
        yield
        return
    with _hiding:
        name = vars(main).pop("__file__", None)
        try:
            yield
        finally:
            if name is not None:
                main.__file__ = name


def exit_if_imported_by_worker() -> None:
    """End a worker that imports the main program and would run all of it once more.

    Raises:
        SystemExit: The program starts workers while it is imported.
    """
    # Set by multiprocessing while a new process imports the main program.
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit(
            "A worker that imports this program would start workers of its own. Put what the "
            f"program runs under: if __name__ == {MAIN!r}:"
        )
