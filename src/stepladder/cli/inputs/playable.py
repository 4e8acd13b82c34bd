"""What ``watch`` shows: an env, a level in a file, or the env of a run.

Between the command line and `playing`: turns what the user named into one env that can draw
itself, and the tasks to play.
"""

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, cycle, zip_longest
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from stepladder.cli.inputs.finding import USER_CODE_ERRORS, look_for
from stepladder.cli.inputs.parsing import read_settings
from stepladder.cli.inputs.run_curriculum import is_training, run_curriculum, training_config
from stepladder.curricula.base import Curriculum
from stepladder.envs.env_settings import EnvSettings
from stepladder.envs.ids import UnknownEnvError, find_env, game_of, give_env, module_of
from stepladder.envs.parallel import as_gymnasium
from stepladder.errors import ConfigError, RunError, StepladderError
from stepladder.files import is_real_folder, read_bytes
from stepladder.games.registry import GAMES
from stepladder.runs import RunReader
from stepladder.runs.checkpoint_choice import LAST
from stepladder.runs.checkpoint_files import is_folder
from stepladder.runs.run_folder import CHECKPOINTS
from stepladder.runs.trust import names_of_code, require_trust
from stepladder.tasks import Task
from stepladder.training.evaluation.request import EvaluationRequest
from stepladder.training.pretrained import Pretrained

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

    pretrained: Pretrained | None = None
    """The policy that comes with the package and plays this; None if there is none."""

    settings: EnvSettings = field(default_factory=EnvSettings)
    """How the env gets its tasks, and where its success is read."""

    checkpoint: str | int = LAST
    """Which policy of a run plays: ``"last"``, ``"best"`` or that of a step."""

    num_groups: int = 1
    """How many groups of tasks take turns, such as stages or opponents."""


def find_playable(
    text: str,
    settings: Sequence[str],
    seed: int,
    *,
    env_id: str | None = None,
    trust: bool = False,
    checkpoint: str | int = LAST,
) -> Playable:
    """Return what the folder of a run, the file of a level, an env's id or a function stands for.

    Args:
        text: What the user named.
        settings: Arguments of the env, each as KEY=VALUE.
        seed: Decides which tasks of a run are drawn.
        env_id: Another name of the env of a run.
        trust: Whether modules that a run names may be imported.
        checkpoint: Which checkpoint of a run says what is drawn, and which policy plays.

    Raises:
        StepladderError: It cannot be watched; the message says why.
    """
    path, kwargs = Path(text), read_settings(settings)
    if path.is_dir():
        reader = RunReader(path)
        # An env that is named here need not be imported as the run says.
        unknown = dict(reader.config)
        if env_id is not None:
            unknown["env"] = None
        require_trust(reader.folder, unknown, trust)
        look_for(*names_of_code(unknown))
        return _of_run(reader, kwargs, seed, env_id, checkpoint)
    if env_id is not None:
        raise ConfigError(f"--env-id is for runs, and {text} is none. Leave it out.")
    if checkpoint != LAST:
        raise ConfigError(
            f"{text} is not a run, so it has no checkpoint {checkpoint!r}. Leave --checkpoint out."
        )
    if path.is_file():
        return _of_level(path, kwargs)
    return Playable(name=text, env=make_env(text, kwargs))


def pretrained_games(pretrained: Pretrained, settings: Sequence[str]) -> Playable:
    """Return the games that a policy of the package is evaluated in, one of each group in turn."""
    programme = EvaluationRequest.of(pretrained.config).programme(())
    groups = [[fixture.task for fixture in one.fixtures] for one in programme.by_group().values()]
    tasks = cycle(filter(None, chain.from_iterable(zip_longest(*groups))))
    kwargs = {**programme.env_kwargs, **read_settings(settings)}
    return Playable(
        name=pretrained.name,
        env=make_env(pretrained.config.env, kwargs),
        next_task=lambda: next(tasks),
        pretrained=pretrained,
        num_groups=len(groups),
    )


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


def make_env(
    text: str, kwargs: Mapping[str, Any], wrappers: Sequence[Callable[[Any], Any]] = ()
) -> gym.Env[Any, Any]:
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
            mode = {"render_mode": MODE} if takes(make, "render_mode") else {}
            env = as_gymnasium(make(**mode, **kwargs), wrappers)
    except StepladderError:
        raise
    except USER_CODE_ERRORS as error:
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


def takes(make: Callable[..., Any], argument: str) -> bool:
    """Return whether a function can be called with an argument; True if that is not known."""
    try:
        parameters = inspect.signature(make).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(one.name == argument or one.kind is one.VAR_KEYWORD for one in parameters)


def _of_run(
    reader: RunReader,
    kwargs: Mapping[str, Any],
    seed: int,
    env_id: str | None,
    checkpoint: str | int,
) -> Playable:
    config = reader.config
    if "simulator" in config:
        raise RunError(
            f"{reader.folder} is a run of the simulator, which has no env to watch. See it with: "
            f"stepladder report {reader.folder}"
        )
    env_id, run_kwargs = env_id or config.get("env"), config.get("env_kwargs") or {}
    if not isinstance(env_id, str) or not isinstance(run_kwargs, Mapping):
        raise RunError(
            f"the run {reader.folder} does not say which env it plays: its config must have 'env', "
            f"an id, and may have 'env_kwargs'; got {env_id!r} and {run_kwargs!r}. See it with: "
            f"stepladder report {reader.folder}"
        )
    look_for(env_id)
    named = str(config.get("env"))
    if env_id != named and module_of(named) is not None:
        # What the env says about itself, such as its tasks, is asked of the one named here.
        give_env(named, env_id)
    next_task: Callable[[], Task] | None = None
    settings = EnvSettings()
    if is_training(reader):
        settings = training_config(reader).env_settings()
    if _has_tasks(reader, env_id):
        curriculum = run_curriculum(reader, checkpoint)
        curriculum.draw_batch(seed % MOST_PASSED_OVER)
        next_task = partial(_drawn_task, curriculum)
    folder = reader.folder / CHECKPOINTS
    # A loop of the user has other files there.
    is_trained = reader.kind == "training" and is_real_folder(folder)
    has_learnt = is_trained and any(map(is_folder, folder.iterdir()))
    return Playable(
        name=reader.name,
        env=make_env(env_id, {**run_kwargs, **kwargs}, settings.wrappers),
        settings=settings,
        next_task=next_task,
        learnt=reader.folder if has_learnt else None,
        checkpoint=checkpoint,
    )


def _drawn_task(curriculum: Curriculum) -> Task:
    return curriculum.task(curriculum.draw_one())


def _has_tasks(reader: RunReader, env: str) -> bool:
    """Return whether a curriculum chooses what is played; a training may also have no tasks."""
    config = reader.config
    if is_training(reader):
        game_of(env)
        return bool(config["tasks"]) or training_config(reader).own_source() is not None
    return "curriculum" in config or "tasks" in config or bool(reader.checkpoints())
