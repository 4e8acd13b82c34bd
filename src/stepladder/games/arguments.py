"""Checks of what a user passes to a game's vector env: options of a reset, seeds, actions.

Used by `batch` and the games' own vector envs.
"""

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from stepladder.configs.checks import is_integer
from stepladder.errors import ConfigError, EnvError, TaskError
from stepladder.games.dice import Dice
from stepladder.tasks import Task
from stepladder.tasks.scramble import mix64
from stepladder.tasks.task import MAX_SEED

OPTIONS = ("reset_mask", "task", "tasks")


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
        ConfigError: An option is unknown, or the mask is not an array of one bool per env.
    """
    if not isinstance(options, Mapping):
        _check_list(options, num_envs)
        return np.arange(num_envs)
    for name in options:
        if name not in OPTIONS:
            raise ConfigError(f"unknown option {name!r} of reset; known are {list(OPTIONS)}.")
    mask = options.get("reset_mask")
    if mask is None:
        return np.arange(num_envs)
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (num_envs,):
        raise ConfigError(
            f"options['reset_mask'] must be an array of {num_envs} bools; got {mask!r}."
        )
    if not mask.any():
        raise ConfigError("options['reset_mask'] has no True, so nothing would be reset.")
    return np.flatnonzero(mask)


def _check_list(options: Any, num_envs: int) -> None:
    if options is None:
        return
    if not isinstance(options, Sequence) or len(options) != num_envs:
        raise ConfigError(f"options must be a dict, or a list of {num_envs}; got {options!r}.")
    for each in options:
        if each is not None and not isinstance(each, Mapping):
            raise ConfigError(f"options of one env must be a dict or None; got {each!r}.")
        for name in each or {}:
            if name != "task":
                raise ConfigError(f"unknown option {name!r} of one env; known is 'task'.")


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
    """Return a list of tasks if it has this length and contains only tasks."""
    if not isinstance(tasks, Sequence) or len(tasks) != num_tasks:
        raise ConfigError(f"expected a list of {num_tasks} tasks, one per env; got {tasks!r}.")
    return [_as_task(task) for task in tasks]


def _as_task(task: object) -> Task:
    if not isinstance(task, Task):
        raise ConfigError(f"expected a Task; got {task!r}. Make one: Task(name, params={{...}}).")
    return task


def check_rows(env_indices: Any, num_envs: int) -> Sequence[int]:
    """Return indices of envs, by default of all, if there are such envs."""
    if env_indices is None:
        return range(num_envs)
    for index in env_indices:
        if not is_integer(index) or not 0 <= index < num_envs:
            raise ConfigError(f"there is no env {index!r}; expected 0 to {num_envs - 1}.")
    return [int(index) for index in env_indices]


def check_spelling(params: Mapping[str, Any], known: Collection[str], name: str) -> None:
    """Refuse parameters of a task that look like misspellings of known ones.

    Others pass: a curriculum may use parameters that mean nothing to the game.

    Raises:
        TaskError: A parameter looks like a misspelling.
    """
    for key in params:
        if key not in known and (close := get_close_matches(key, known, 1, 0.8)):
            raise TaskError(f"task {name!r} has no parameter {key!r}; did you mean {close[0]!r}?")


def seeds_for(
    seed: int | Sequence[int | None] | None, num_envs: int
) -> tuple[Dice, npt.NDArray[np.bool_]]:
    """Return the state of each env's dice for its seed, and which envs have been given a seed.

    As in Gymnasium, one seed for all gives each env that seed plus its index.

    Raises:
        ConfigError: A seed is not an integer of 0 or more, or there are too few or too many.
    """
    if seed is None:
        each: list[int | None] = [None] * num_envs
    elif is_integer(seed):
        each = [int(seed) + index for index in range(num_envs)]  # pyright: ignore[reportArgumentType]
    elif isinstance(seed, Sequence | np.ndarray) and not isinstance(seed, str):
        each = list(seed)
    else:
        raise ConfigError(f"seed must be an integer, a list of them or None; got {seed!r}.")
    if len(each) != num_envs:
        raise ConfigError(f"expected {num_envs} seeds, one per env; got {len(each)}.")
    for one in each:
        if one is not None and not (is_integer(one) and 0 <= int(one) <= MAX_SEED):
            raise ConfigError(
                f"a seed must be an integer from 0 to {MAX_SEED - num_envs}; got {one!r}."
            )
    words = np.array([one or 0 for one in each], dtype=np.uint64)
    # Scrambled, because neighbouring seeds must not give overlapping streams.
    dice = mix64(mix64(words) ^ np.uint64(0x5DEECE66D1CE4E5B))
    return dice, np.array([one is not None for one in each])


def integer_actions(
    actions: Any, shape: tuple[int, ...], what: str = "actions"
) -> npt.NDArray[np.int64]:
    """Return discrete actions as an array of integers; the first axis of the shape is the env.

    Raises:
        EnvError: They are something else.
    """
    given = as_array(actions, what)
    if given.shape != shape:
        raise EnvError(f"{what} must have shape {shape}; got shape {given.shape}.")
    if given.dtype.kind not in "iu":
        raise EnvError(
            f"{what} must be integers; got {given.dtype}, in env 0 {given[0]!r}. Convert them. "
            "No env was stepped."
        )
    if given.dtype == np.uint64 and given.max() > MAX_SEED:
        raise EnvError(f"{what}: {given.max()} is unknown. No env was stepped.")
    return np.ascontiguousarray(given, dtype=np.int64)


def as_array(actions: Any, what: str) -> npt.NDArray[Any]:
    """Return actions as an array.

    Raises:
        EnvError: They have different lengths, or are not numbers at all.
    """
    try:
        return np.asarray(actions)
    except (ValueError, TypeError) as error:
        raise EnvError(f"{what} must be an array with one row per env ({error}).") from None


def keep_actions(buffer: Any, actions: Any) -> None:
    """Copy actions into the buffer that shows them, if they fit; `step` checks them."""
    if isinstance(buffer, dict):
        for key, part in buffer.items():
            keep_actions(part, actions[key])
    elif np.shape(actions) == buffer.shape:
        buffer[:] = actions
