"""What ``watch`` shows: an env, a level in a file, or the env of a run.

Between the command line and `playing`: turns what the user named into one env that can draw
itself, and the tasks to play.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from stepladder.cli.finding import FOREIGN_ERRORS, look_for
from stepladder.cli.parsing import read_settings
from stepladder.cli.run_curriculum import is_training, run_curriculum, training_config
from stepladder.curricula.base import Curriculum
from stepladder.envs.ids import UnknownEnvError, find_env, game_of, module_of
from stepladder.errors import ConfigError, RunError, StepladderError
from stepladder.files import is_real_folder, read_bytes
from stepladder.games.registry import GAMES
from stepladder.runs import RunReader
from stepladder.runs.checkpoint_files import is_folder
from stepladder.runs.run_folder import CHECKPOINTS
from stepladder.runs.trust import require_trust
from stepladder.tasks import Task

MODE = "rgb_array"

MOST_PASSED_OVER = 4096
"""Draws that a seed may skip; two seeds this far apart give the same tasks."""


@dataclass(frozen=True, kw_only=True)
class Playable:
    """Something to watch."""

    name: str
    env: gym.Env[Any, Any]
    """Returns a picture at every ``render()``."""

    next_task: Callable[[], Task] | None = None
    """Returns the task of the next episode; None leaves it to the env."""

    learnt: Path | None = None
    """The folder of a run that holds a trained policy."""


def find_playable(
    text: str, settings: Sequence[str], seed: int, *, trust: bool = False
) -> Playable:
    """Return what the folder of a run, the file of a level, an env's id or a function stands for.

    Args:
        text: What the user named.
        settings: Arguments of the env, each as KEY=VALUE.
        seed: Decides which tasks of a run are drawn.
        trust: Whether modules that a run names may be imported.

    Raises:
        StepladderError: It cannot be watched; the message says why.
    """
    path, kwargs = Path(text), read_settings(settings)
    if path.is_dir():
        reader = RunReader(path)
        require_trust(reader.folder, reader.config, trust)
        return _of_run(reader, kwargs, seed)
    if path.is_file():
        return _of_level(path, kwargs)
    return Playable(name=text, env=make_env(text, kwargs))


def _of_level(path: Path, kwargs: Mapping[str, Any]) -> Playable:
    """Return the env of the game whose level a file holds."""
    try:
        text = read_bytes(path, follow=True).decode()
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path} must be a text file with a level; it is not text ({error.reason}). Name a "
            "level's file, an env or the folder of a run."
        ) from error
    tasks = {env: GAMES[env].level_task(path.stem, text) for env in GAMES}
    env, task = next((env, task) for env, task in tasks.items() if task is not None)
    for name in GAMES[env].level_arguments:
        if name in kwargs:
            raise ConfigError(
                f"--env {name}={kwargs[name]} and the level {path} were given. Leave one out."
            )
    return Playable(name=path.stem, env=make_env(env, kwargs), next_task=lambda: task)


def make_env(text: str, kwargs: Mapping[str, Any]) -> gym.Env[Any, Any]:
    """Make an env that can draw itself, from its id or from a function that makes it."""
    look_for(text)
    try:
        found = find_env(text)
    except UnknownEnvError as error:
        if module_of(text) is not None:
            raise
        raise ConfigError(
            f"{text!r} is neither the folder of a run nor the file of a level; {error}"
        ) from error
    make: Callable[..., Any] = (
        partial(gym.make, found, disable_env_checker=True) if isinstance(found, EnvSpec) else found
    )
    try:
        with warnings.catch_warnings():
            # Gymnasium warns of an env that cannot draw itself; the error below says more.
            warnings.simplefilter("ignore", UserWarning)
            env = make(render_mode=MODE, **kwargs)
    except StepladderError:
        raise
    except FOREIGN_ERRORS as error:
        raise ConfigError(
            f"the env {text!r} cannot be made: {type(error).__name__}: {error} Correct --env, or "
            "install what it needs."
        ) from error
    if not isinstance(env, gym.Env):
        raise ConfigError(
            f"{text} must make a gymnasium.Env; it made something of type {type(env).__name__}. "
            "Let it return an env."
        )
    if env.render_mode != MODE or MODE not in env.metadata.get("render_modes", ()):
        env.close()
        raise ConfigError(
            f"{text} cannot draw itself: it has no render_mode {MODE!r}. Add one, or watch "
            "another env."
        )
    return env


def _of_run(reader: RunReader, kwargs: Mapping[str, Any], seed: int) -> Playable:
    config = reader.config
    if "simulator" in config:
        raise RunError(
            f"{reader.folder} is a run of the simulator, which has no env to watch. See it with: "
            f"stepladder report {reader.folder}"
        )
    env_id, run_kwargs = config.get("env"), config.get("env_kwargs") or {}
    if not isinstance(env_id, str) or not isinstance(run_kwargs, Mapping):
        raise RunError(
            f"the run {reader.folder} does not say which env it plays: its config must have 'env', "
            f"an id, and may have 'env_kwargs'; got {env_id!r} and {run_kwargs!r}. See it with: "
            f"stepladder report {reader.folder}"
        )
    look_for(env_id)
    next_task: Callable[[], Task] | None = None
    if _has_tasks(reader):
        curriculum = run_curriculum(reader)
        curriculum.draw_batch(seed % MOST_PASSED_OVER)
        next_task = partial(_drawn_task, curriculum)
    folder = reader.folder / CHECKPOINTS
    has_learnt = is_real_folder(folder) and any(map(is_folder, folder.iterdir()))
    return Playable(
        name=reader.name,
        env=make_env(env_id, {**run_kwargs, **kwargs}),
        next_task=next_task,
        learnt=reader.folder if has_learnt else None,
    )


def _drawn_task(curriculum: Curriculum) -> Task:
    return curriculum.task(curriculum.draw_one())


def _has_tasks(reader: RunReader) -> bool:
    """Return whether a curriculum chooses what is played; a training may also have no tasks."""
    config = reader.config
    if is_training(reader):
        game_of(config["env"])
        return bool(config["tasks"]) or training_config(reader).own_source() is not None
    return "curriculum" in config or "tasks" in config or bool(reader.checkpoints())
