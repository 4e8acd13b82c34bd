"""What ``watch`` is asked to show: an env, a level in a file, or the env of a run.

Between the command line and `playing`: whatever was named becomes one env that can draw itself, and
the tasks that it is to play.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from stepladder.cli.finding import FOREIGN_ERRORS, find_function, look_for
from stepladder.curricula.base import Curriculum
from stepladder.curricula.registry import rebuilt
from stepladder.envs.ids import UnknownEnvError, find_env, game_of, module_of
from stepladder.errors import ConfigError, RunError, StepladderError
from stepladder.files import is_real_folder, parsed_json, read_bytes
from stepladder.games.registry import GAMES
from stepladder.runs import RunReader
from stepladder.runs.checkpoint_files import is_folder
from stepladder.runs.run_folder import CHECKPOINTS, CONFIG
from stepladder.runs.trust import require_trust
from stepladder.tasks import FolderSource, ListSource, Source, Task
from stepladder.training.config import TrainingConfig

MODE = "rgb_array"

OWN_SETTINGS = ("agent", "curriculum", "evaluation", "source")
"""By these the config of a training is known."""

MOST_PASSED_OVER = 4096
"""Draws that a seed may pass over; two seeds this far apart give the same tasks."""


@dataclass(frozen=True, kw_only=True)
class Playable:
    """Something to watch."""

    name: str
    """What it is called."""

    env: gym.Env[Any, Any]
    """Gives a picture at every ``render()``."""

    next_task: Callable[[], Task] | None = None
    """What is to be played next; None where the env itself decides."""

    learnt: Path | None = None
    """The folder of a run that has learnt to play it."""


def find_playable(
    text: str, settings: Sequence[str], seed: int, *, trust: bool = False
) -> Playable:
    """Return what is meant by the name of a run's folder, a level's file, an env or a function.

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
    text = _text_of(path)
    tasks = {env: GAMES[env].level_task(path.stem, text) for env in GAMES}
    env, task = next((env, task) for env, task in tasks.items() if task is not None)
    for name in GAMES[env].level_arguments:
        if name in kwargs:
            raise ConfigError(
                f"--env {name}={kwargs[name]} and the level {path} were given. Leave one out."
            )
    return Playable(name=path.stem, env=make_env(env, kwargs), next_task=lambda: task)


def read_settings(settings: Sequence[str], flag: str = "--env") -> dict[str, Any]:
    """Return arguments of an env; a value is read as JSON where it is that, else as text.

    Example:
        >>> read_settings(["mode=NORMAL", "keep_mode=false", "speed=1.5"])
        {'mode': 'NORMAL', 'keep_mode': False, 'speed': 1.5}
    """
    kwargs: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.isidentifier():
            raise ConfigError(f"{flag} must be KEY=VALUE; got {setting!r}. Give it as mode=NORMAL.")
        try:
            kwargs[key] = parsed_json(value)
        except ValueError:
            kwargs[key] = value
    return kwargs


def make_env(text: str, kwargs: Mapping[str, Any]) -> gym.Env[Any, Any]:
    """Make an env that draws itself, from its id or from a function that makes it."""
    look_for(text)
    found = _found(text)
    make: Callable[..., Any] = (
        partial(gym.make, found, disable_env_checker=True) if isinstance(found, EnvSpec) else found
    )
    try:
        with warnings.catch_warnings():
            # Gymnasium's own words about an env that cannot draw itself; ours come below.
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


def _found(text: str) -> EnvSpec | Callable[..., Any]:
    try:
        return find_env(text)
    except UnknownEnvError as error:
        if module_of(text) is not None:
            raise
        raise ConfigError(
            f"{text!r} is neither the folder of a run nor the file of a level; {error}"
        ) from error


def _text_of(path: Path) -> str:
    try:
        return read_bytes(path, follow=True).decode()
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path} must be a text file with a level; it is not text ({error.reason}). Name a "
            "level's file, an env or the folder of a run."
        ) from error


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
    next_task = None
    if _has_tasks(reader):
        curriculum = curriculum_of(reader)
        curriculum.draw_batch(seed % MOST_PASSED_OVER)
        next_task = partial(_drawn, curriculum)
    folder = reader.folder / CHECKPOINTS
    has_learnt = is_real_folder(folder) and any(map(is_folder, folder.iterdir()))
    return Playable(
        name=reader.name,
        env=make_env(env_id, {**run_kwargs, **kwargs}),
        next_task=next_task,
        learnt=reader.folder if has_learnt else None,
    )


def _has_tasks(reader: RunReader) -> bool:
    """Return whether a curriculum says what is played; a training may also play an env as it is."""
    config = reader.config
    if is_training(reader):
        game_of(config["env"])
        return bool(config["tasks"]) or _config_of(reader).own_source() is not None
    return "curriculum" in config or "tasks" in config or bool(reader.checkpoints())


def is_training(reader: RunReader) -> bool:
    """Return whether a run was made by ``stepladder train``, rather than a loop of the user's."""
    return reader.kind == "training" and set(OWN_SETTINGS) <= reader.config.keys()


def _config_of(reader: RunReader) -> TrainingConfig:
    return TrainingConfig.from_json(reader.config, str(reader.folder / CONFIG))


def _drawn(curriculum: Curriculum) -> Task:
    return curriculum.task(curriculum.draw_one())


def curriculum_of(reader: RunReader) -> Curriculum:
    """Return the curriculum of a run as its last checkpoint left it; it is a copy.

    Raises:
        RunError: The run has no checkpoint, or does not say what its tasks are.
        SnapshotError: The checkpoint is damaged, or was made with other tasks.
    """
    if not reader.checkpoints():
        raise RunError(
            f"the run {reader.folder} has no checkpoint yet, so there is no curriculum to draw "
            "from. Wait for its first one, or watch its env by itself."
        )
    snapshot = reader.checkpoint()
    if "channel" in snapshot.state:
        # Saved with its envs.
        snapshot = snapshot.part("curriculum")
    return rebuilt(snapshot, _source_of(reader))


def _source_of(reader: RunReader) -> Source:
    """Return the tasks of a run: listed, in a folder, or made by a function."""
    if is_training(reader):
        return _config_of(reader).task_source()
    tasks = reader.config.get("tasks")
    if isinstance(tasks, list):
        return ListSource([Task.from_json(task) for task in tasks])
    if isinstance(tasks, str) and ":" in tasks:
        made = find_function(tasks, "makes the tasks of a run")()
        return made if isinstance(made, Source) else ListSource(made)
    if isinstance(tasks, str):
        return FolderSource(tasks)
    raise RunError(
        f"the run {reader.folder} does not say what its tasks are: its config must have 'tasks', a "
        f"list of tasks, a folder or module:function; got {tasks!r}. Watch its env by itself."
    )
