"""Names in place of code, and tasks in place of a file: what a config keeps of what it is given.

First step of `config`: a run can hold names and tasks, and nothing else. Nothing is imported here.
"""

from collections.abc import Mapping
from os import PathLike
from typing import Any

from stepladder import named
from stepladder.envs.ids import name_of
from stepladder.errors import ConfigError
from stepladder.files import is_there
from stepladder.tasks import ListSource, Source
from stepladder.tasks.loading import load_tasks

WRAPPER = "wrappers must be classes or functions that take an env, or their names"
DELIVER = "deliver must be auto, method, options, or a function of env and task, or its name"
TASKS = "tasks must be a list of tasks, a file, or a function that returns them, or its name"


def names_in_place_of_code(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that can be code or a file, as a run keeps them.

    Raises:
        ConfigError: Something has no name, or the file of tasks is wrong.
    """
    wrappers: Any = settings["wrappers"]
    if isinstance(wrappers, list | tuple):
        wrappers = tuple(named.name_of(wrapper, WRAPPER) for wrapper in wrappers)
    return {
        "env": name_of(settings["env"]),
        "tasks": _tasks(settings["tasks"]),
        "deliver": named.name_of(settings["deliver"], DELIVER),
        "wrappers": wrappers,
    }


def _tasks(tasks: Any) -> Any:
    if is_file(tasks):
        return load_tasks(tasks)
    if isinstance(tasks, ListSource):
        return tuple(map(tasks.get, range(tasks.num_tasks)))
    if isinstance(tasks, Source):
        raise ConfigError(
            f"tasks is a {type(tasks).__name__}, which a run cannot keep. Give a function of a "
            "module that returns it, or the function's name: tasks='my_worlds:levels'."
        )
    return named.name_of(tasks, TASKS) if callable(tasks) else tasks


def is_file(tasks: Any) -> bool:
    """Whether tasks are the path of a file, rather than the name of a list in a module."""
    if not isinstance(tasks, str):
        return isinstance(tasks, PathLike)
    # A file may have a colon in its name.
    return named.module_of(tasks) is None or is_there(tasks)
