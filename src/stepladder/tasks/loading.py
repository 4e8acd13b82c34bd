"""Tasks that a user names: those in a file, or those that a module has.

Before the sources: what is named becomes a source. A file holds data and is read; a module is
imported, which runs its code (`stepladder.named`).
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import Any, cast

from stepladder import named
from stepladder.configs.codec import fit, form_of
from stepladder.configs.documents import load_document, to_plain
from stepladder.configs.problems import Problems
from stepladder.errors import ConfigError, TaskError
from stepladder.tasks.source import ListSource, Source
from stepladder.tasks.task import Task

PURPOSE = "a list of tasks, a source, or a function that returns one"

_made: dict[str, tuple[Any, Source]] = {}
"""Sources that were made in this process: by name, what was named and the source."""


def load_tasks(path: str | PathLike[str]) -> tuple[Task, ...]:
    """Return the tasks in a JSON or YAML file: a list of them, or an object with it as ``tasks``.

    Each task is an object with a ``name``, and may have a ``label``, ``params`` and a ``seed``.

    Raises:
        ConfigError: The file cannot be read, or something in it is wrong; all of it is listed, with
            its place in the file.
    """
    data, problems = load_document(path), Problems()
    if isinstance(data, dict) and data.keys() == {"tasks"}:
        data, problems = cast("dict[str, Any]", data)["tasks"], Problems(key="tasks")
    plain = to_plain(data, problems.path, found=problems.found)
    if not problems and not (isinstance(plain, list) and plain):
        problems.add("must be a list of tasks, at least one. Write each with a name.")
    problems.raise_if_any(str(path))
    tasks = fit(plain, form_of(tuple[Task, ...]), problems)
    problems.raise_if_any(str(path))
    for index, name in repeated_names(tasks):
        problems.at(index).at("name").add(name)
    problems.raise_if_any(str(path))
    return tasks


def repeated_names(tasks: Iterable[Task]) -> Iterable[tuple[int, str]]:
    """Yield the position of every task that has the name of an earlier one, and what to do."""
    names: set[str] = set()
    for index, task in enumerate(tasks):
        if task.name in names:
            yield index, f"is {task.name!r}, as of an earlier task. Rename one."
        names.add(task.name)


def find_tasks(name: str) -> Source:
    """Return the source that ``module:name`` stands for; the module is imported.

    Raises:
        ConfigError: There is nothing of this name, or it has no tasks.
    """
    thing = named.find(name, PURPOSE)
    known = _made.get(name)
    if known is not None and known[0] is thing:
        return known[1]
    made: Any = thing() if callable(thing) else thing
    try:
        source = made if isinstance(made, Source) else ListSource(made)
    except (TaskError, TypeError) as error:
        reason = str(error) if isinstance(error, TaskError) else f"it is {type(made).__name__}."
        raise ConfigError(f"{name} has no tasks: {reason} Name {PURPOSE}.") from error
    _made[name] = thing, source
    return source


def known_tasks(name: str) -> Source | None:
    """Return the source that a name stands for if it was made in this process before."""
    known = _made.get(name)
    return None if known is None else known[1]
