"""What a user may say to a game's vector env, checked: counts, modes, options of a reset.

Used by `batch` and the games' own vector envs.
"""

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from stepladder.errors import ConfigError, EnvError, TaskError
from stepladder.tasks import Task

OPTIONS = ("reset_mask", "task", "tasks")

MAX_WHOLE = 2**63 - 1


def require_positive(name: str, value: Any) -> int:
    """Return a count of at least one.

    Raises:
        ConfigError: It is something else.
    """
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_integer or int(value) < 1:
        raise ConfigError(f"{name} must be a whole number of at least 1; got {value!r}.")
    return int(value)


def as_autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    """Return an autoreset mode from itself or its value."""
    try:
        return AutoresetMode(mode)
    except ValueError:
        known = [each.value for each in AutoresetMode]
        raise ConfigError(f"autoreset_mode must be one of {known}; got {mode!r}.") from None


def rows_of_mask(options: Any, num_envs: int) -> npt.NDArray[np.int64]:
    """Return the envs that a reset is for.

    Raises:
        ConfigError: An option is unknown, or the mask is no array of one truth value per env.
    """
    if options is None:
        return np.arange(num_envs)
    if not isinstance(options, Mapping):
        return _check_list(options, num_envs)
    _check_names(options)
    mask = options.get("reset_mask")
    if mask is None:
        return np.arange(num_envs)
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (num_envs,):
        raise ConfigError(
            f"options['reset_mask'] must be an array of {num_envs} truth values; got {mask!r}."
        )
    if not mask.any():
        raise ConfigError("options['reset_mask'] has no True, so nothing would be reset.")
    return np.flatnonzero(mask)


def _check_list(options: Any, num_envs: int) -> npt.NDArray[np.int64]:
    if not isinstance(options, Sequence) or len(options) != num_envs:
        raise ConfigError(f"options must be a dict, or a list of {num_envs}; got {options!r}.")
    for each in options:
        if each is not None and not isinstance(each, Mapping):
            raise ConfigError(f"options of one env must be a dict or None; got {each!r}.")
        for name in each or {}:
            if name != "task":
                raise ConfigError(f"options of one env may say 'task'; got {name!r}.")
    return np.arange(num_envs)


def _check_names(options: Mapping[str, Any]) -> None:
    for name in options:
        if name not in OPTIONS:
            raise ConfigError(f"unknown option {name!r} of reset; known are {list(OPTIONS)}.")


def tasks_for(
    options: Any, rows: npt.NDArray[np.int64], num_envs: int
) -> list[tuple[int, Task]] | None:
    """Return which env is to play which task, or None if the options do not say.

    Raises:
        ConfigError: Something else than tasks was given, or not one per env.
    """
    if not options:
        return None
    if not isinstance(options, Mapping):
        given = [(row, each.get("task")) for row, each in enumerate(options) if each]
        return [(row, _as_task(task)) for row, task in given if task is not None] or None
    if options.get("task") is not None:
        task = _as_task(options["task"])
        return [(row, task) for row in rows.tolist()]
    tasks = options.get("tasks")
    if tasks is None:
        return None
    each = check_tasks(tasks, num_envs)
    return [(row, each[row]) for row in rows.tolist()]


def check_tasks(tasks: Any, num_tasks: int) -> Sequence[Task]:
    """Return tasks if there are so many, and nothing else among them.

    Raises:
        ConfigError: There are more, fewer or other things.
    """
    if not isinstance(tasks, Sequence) or len(tasks) != num_tasks:
        raise ConfigError(f"expected a list of {num_tasks} tasks, one per env; got {tasks!r}.")
    for task in tasks:
        _as_task(task)
    return tasks


def _as_task(task: object) -> Task:
    if not isinstance(task, Task):
        raise ConfigError(f"expected a Task; got {task!r}. Make one: Task(name, params={{...}}).")
    return task


def check_rows(env_indices: Any, num_envs: int) -> Sequence[int]:
    """Return indices of envs, by default of all, if there are such envs.

    Raises:
        ConfigError: There is no such env.
    """
    if env_indices is None:
        return range(num_envs)
    for index in env_indices:
        is_integer = isinstance(index, int | np.integer) and not isinstance(index, bool)
        if not is_integer or not 0 <= index < num_envs:
            raise ConfigError(f"there is no env {index!r}; expected 0 to {num_envs - 1}.")
    return [int(index) for index in env_indices]


def check_spelling(params: Mapping[str, Any], known: Collection[str], name: str) -> None:
    """Refuse parameters of a task that look like misspellings of known ones.

    Others pass: a curriculum may have use for parameters that mean nothing to the game.

    Raises:
        TaskError: One does.
    """
    for key in params:
        if key not in known and (close := get_close_matches(key, known, 1, 0.8)):
            raise TaskError(f"task {name!r} has no parameter {key!r}; did you mean {close[0]!r}?")


def whole_actions(actions: Any, num_envs: int) -> npt.NDArray[np.int64]:
    """Return discrete actions as an array of one whole number per env.

    Raises:
        EnvError: They are something else.
    """
    given = as_array(actions, "actions")
    if given.shape != (num_envs,):
        raise EnvError(
            f"actions must have shape ({num_envs},), one per env; got shape {given.shape}."
        )
    if given.dtype.kind not in "iu":
        raise EnvError(
            f"actions must be whole numbers; got {given.dtype}, in env 0 {given[0]!r}. Give "
            "integers. No env was stepped."
        )
    if given.dtype == np.uint64 and given.max() > MAX_WHOLE:
        raise EnvError(
            f"action {given.max()} of env {given.argmax()} is unknown. No env was stepped."
        )
    return np.ascontiguousarray(given, dtype=np.int64)


def as_array(actions: Any, what: str) -> npt.NDArray[Any]:
    """Return actions as an array.

    Raises:
        EnvError: They are of different lengths, or no numbers at all.
    """
    try:
        return np.asarray(actions)
    except (ValueError, TypeError) as error:
        raise EnvError(f"{what} must be an array with one row per env ({error}).") from None
