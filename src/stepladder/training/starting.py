"""Train an agent: from a config to a run, and from a run on.

The entry points of `training`: `train` begins, `resume` continues, `train_single_run` has the
parameters of the published trainer's function.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any

import torch

from stepladder.agents.config import AgentConfig, agent_named
from stepladder.envs.ids import give_env
from stepladder.errors import ConfigError, DivergenceError, RunError, SnapshotError, shown
from stepladder.runs import Logger, Run, RunWriter
from stepladder.runs.reopening import lock_run
from stepladder.runs.run_folder import RunInfo
from stepladder.runs.trust import require_trust
from stepladder.training import checkpoints
from stepladder.training.config import TrainingConfig, load_config
from stepladder.training.loop import Trainer
from stepladder.training.presets import ANY_ENV, DEFAULT_PRESET, PRESETS
from stepladder.training.results import OnEpoch, Progress, TrainingResult
from stepladder.training.session import Session
from stepladder.visible import visible

AnyConfig = TrainingConfig | Mapping[str, Any] | str | PathLike[str] | None
"""A config, its JSON, a file that holds it, the name of a preset; None is the default."""

MakeLoggers = Callable[[dict[str, Any]], Sequence[Logger]]
"""Makes loggers, given the config of the run."""


AnyEnv = str | Callable[..., Any]
"""An env's name, or a class or function that makes an env."""


LACKS_TASKS = "the env has set_task, and no tasks are given: name them with tasks (--tasks)"
"""Explains why an env without tasks fails."""


def train(
    config: AnyConfig = None,
    *,
    env: AnyEnv | None = None,
    num_envs: int | None = None,
    device: str | None = None,
    agent: AgentConfig | str | None = None,
    run_folder: str | PathLike[str] | None = None,
    resume: str | PathLike[str] | None = None,
    overwrite: bool = False,
    initial_weights: str | PathLike[str] | None = None,
    loggers: Sequence[Logger] | MakeLoggers = (),
    on_epoch: OnEpoch | None = None,
    **changes: Any,
) -> TrainingResult:
    """Train an agent.

    Ctrl-C ends it after the current step, with everything saved.

    Args:
        config: The settings; by default the first preset, or for `env` those that suit any env.
        env: A class or function that makes a Gymnasium env, or an env's name.
        num_envs: Envs that are stepped together; by default that of the config.
        device: Where the networks are, likewise.
        agent: Its config, or its name, such as ``"ppo"``.
        run_folder: Where the run is kept; None keeps nothing, and nothing can be resumed.
        resume: A run to continue instead; beside it only the arguments of `resume` may be given.
        overwrite: Whether an existing run is replaced.
        initial_weights: A run, checkpoint or file whose policy the agent begins with.
        loggers: TensorBoard, Weights & Biases, the console. Or a function that makes them from the
            run's settings.
        on_epoch: Called after every epoch; if it returns True, training is saved and ends.
        **changes: Other fields of the config to change, such as ``tasks``, ``curriculum``,
            ``num_workers``, ``total_steps`` or ``seed``.

    Raises:
        ConfigError: The config cannot work; all problems are listed, and nothing was started.
        DivergenceError: A loss, a gradient or a weight is no longer finite.
    """
    if resume is not None:
        given = {"config": config, "num_envs": num_envs, "agent": agent, "run_folder": run_folder}
        allowed = _only_for_resume(given | {"initial_weights": initial_weights, **changes})
        allowed |= {"env": env, "device": device, "loggers": loggers, "on_epoch": on_epoch}
        return _resume(resume, **allowed)
    chosen = agent_named(agent)() if isinstance(agent, str) else agent
    changes |= {"env": env, "num_envs": num_envs, "device": device, "agent": chosen}
    settings = changed(config, **changes).imported()
    if loggers and run_folder is None:
        raise ConfigError("loggers need a run, and none is kept. Give run_folder.")
    name = "run" if run_folder is None else Path(run_folder).name
    with threads(settings.num_threads), _session(settings, name) as session:
        if initial_weights is not None:
            _begin_with(session.trainer, initial_weights)
        session.trainer.begin()
        if run_folder is None:
            return _play(session, on_epoch)
        about, seed = settings.to_json(), settings.seed
        kept = {"overwrite": overwrite, "loggers": _loggers(loggers, about)}
        with Run.create(run_folder, kind="training", config=about, seed=seed, **kept) as run:
            return _play_in(run, session, on_epoch)


def resume(
    run_folder: str | PathLike[str],
    *,
    env: AnyEnv | None = None,
    device: str | None = None,
    total_steps: int | None = None,
    total_episodes: int | None = None,
    trust: bool = False,
    loggers: Sequence[Logger] | MakeLoggers = (),
    on_epoch: OnEpoch | None = None,
) -> TrainingResult:
    """Continue a training that was stopped, killed, or has come to its end.

    On a CPU, with built-in games, it continues bit for bit as if it had never stopped.

    Args:
        run_folder: The run.
        env: The env of the run, if it was defined in a script or a notebook, or must not be
            imported; by default it is found by its name.
        device: Where the networks are; by default as before.
        total_steps: Another end; by default the one that the run has.
        total_episodes: Likewise, where episodes are what ends it.
        trust: Whether modules that the run names may be imported, which runs their code.
        loggers: As in `train`.
        on_epoch: As in `train`.

    Raises:
        RunError: There is no such run, or it is being written, or it names a module and is not
            trusted.
        SnapshotError: It has no checkpoint that can be used.
    """
    folder = Path(run_folder)
    with ExitStack() as stack:
        # Before anything is read: another process could replace what was read.
        lock = lock_run(folder)
        stack.callback(lock.release)
        info = RunInfo.read(folder)
        if info.kind != "training":
            raise RunError(
                f"{folder} is a {info.kind}, not a training, and cannot be resumed. Name a "
                "training."
            )
        if env is not None:
            give_env(str(info.config.get("env")), env)
        # An env that is given need not be imported.
        named = {name: value for name, value in info.config.items() if env is None or name != "env"}
        require_trust(folder, named, trust)
        ends = {"total_steps": total_steps, "total_episodes": total_episodes}
        loaded = changed(load_config(info.config), device=device, **ends)
        settings = loaded.imported()
        checkpoint, refused = checkpoints.load_newest(folder)
        stack.enter_context(threads(settings.num_threads))
        session = stack.enter_context(_session(settings, folder.name))
        # Before the run is opened: a checkpoint that does not fit must not change it.
        session.restore(checkpoint)
        had_ended = session.has_ended
        made = _loggers(loggers, info.config)
        with Run.resume(folder, checkpoint=checkpoint.name, loggers=made, lock=lock) as run:
            for text in refused:
                run.event(checkpoint.step, "checkpoint_refused", text, None)
            result = _play_in(run, session, on_epoch)
        result.had_ended, result.refused_checkpoints = had_ended, refused
        return result


_resume = resume


def _only_for_resume(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments that a resumed training takes; raise if others were given."""
    names = ("total_steps", "total_episodes", "trust")
    allowed = {name: given.pop(name) for name in names if name in given}
    for name, value in given.items():
        if value is not None:
            raise ConfigError(
                f"{name} cannot be given beside resume: a training continues as it began. "
                "Leave it out, or start another training."
            )
    return allowed


def _loggers(loggers: Sequence[Logger] | MakeLoggers, config: dict[str, Any]) -> list[Logger]:
    return list(loggers(config) if callable(loggers) else loggers)


@contextmanager
def _session(config: TrainingConfig, name: str) -> Iterator[Session]:
    """Make a trainer and its session; close the trainer at the end."""
    trainer = Trainer(config, name)
    try:
        yield Session(config, trainer)
    except Exception as error:  # the env may raise anything, and it is raised on
        if trainer.world.lacks_tasks and hasattr(error, "env_index"):
            error.add_note(LACKS_TASKS)
        raise
    finally:
        trainer.close()


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Let torch compute in so many threads meanwhile."""
    before = torch.get_num_threads()
    if count is not None:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def changed(config: AnyConfig, **changes: Any) -> TrainingConfig:
    """Return a config with some fields changed; those that are None stay.

    Raises:
        ConfigError: There is no such field, or the result cannot work.
    """
    given = {name: value for name, value in changes.items() if value is not None}
    unknown = sorted(given.keys() - TrainingConfig.__dataclass_fields__.keys())
    if unknown:
        raise ConfigError(
            f"a training has no setting {unknown[0]!r}; it has "
            f"{', '.join(TrainingConfig.__dataclass_fields__)}. Correct the name."
        )
    if isinstance(given.get("tasks"), list | tuple) and not given["tasks"]:
        raise ConfigError(
            f"tasks must hold at least one task; got {shown(given['tasks'])}. Give one, or leave "
            "tasks out to play the env as it is."
        )
    if config is None and "env" in given:
        return TrainingConfig(**{**ANY_ENV, **given})
    if config is None:
        config = PRESETS[DEFAULT_PRESET]
    base = config if isinstance(config, TrainingConfig) else load_config(config)
    return replace(base, **given) if given else base


def _begin_with(trainer: Trainer, path: str | PathLike[str]) -> None:
    """Give an agent the weights of another before it begins."""
    saved = checkpoints.read_policy(path)
    own = trainer.agent.description()
    for part in ("type", "observation_space", "action_space"):
        if saved.description.get(part) != own[part]:
            raise SnapshotError(
                f"{path} holds a policy whose {part} is {saved.description.get(part)!r}; expected "
                f"{own[part]!r}. Use one of the same kind."
            )
    try:
        trainer.agent.load_weights(saved.weights)
    except SnapshotError as error:
        raise SnapshotError(
            f"{path} holds a policy that this agent cannot begin with: {error} Use one with the "
            "same networks."
        ) from error


def _play(session: Session, on_epoch: OnEpoch | None) -> TrainingResult:
    try:
        return session.result(session.play(on_epoch))
    except DivergenceError as error:
        raise session.end_diverged(error) from error
    finally:
        session.close()


def _play_in(run: RunWriter, session: Session, on_epoch: OnEpoch | None) -> TrainingResult:
    """Train, keep everything in a run, and say there how it ended."""
    session.keep_in(run)
    result = _play(session, on_epoch)
    run.close("interrupted" if result.was_stopped else "finished")
    return result


def train_single_run(
    config_path: str | PathLike[str],
    base_output_dir: str | PathLike[str] = "results/runs",
    run_name: str | None = None,
    verbose: bool = True,
    eval_freq_steps: int | None = 800_000,
    eval_num_games: int = 200,
    eval_weak_opponent: bool = True,
    device: str | None = None,
    checkpoint_path: str | PathLike[str] | None = None,
    num_envs: int = 1,
) -> dict[str, Any]:
    """Train as the published trainer's function of this name did, with its parameters and results.

    Args:
        config_path: A config, in its schema or in ours.
        base_output_dir: Folder of runs.
        run_name: Name of this one; by default made of agent, settings, time and number of envs.
        verbose: Whether to print a line per epoch.
        eval_freq_steps: Env steps between two evaluations; None is only at the end.
        eval_num_games: Games of an evaluation, half from each side.
        eval_weak_opponent: Whether the weak opponent is played in evaluations, or the strong one.
        device: "cpu", "cuda:1" and so on; None is CUDA where there is one.
        checkpoint_path: A run, checkpoint or file whose policy the agent begins with.
        num_envs: Envs that are stepped together.

    Returns:
        run_name, final_reward, mean_reward (over the last 100 episodes), total_episodes,
        total_steps, total_gradient_steps, evaluation_results.
    """
    config = load_config(config_path)
    evaluation = replace(
        config.evaluation,
        every_steps=eval_freq_steps,
        num_games=eval_num_games,
        opponents=("weak" if eval_weak_opponent else "strong",),
    )
    name = run_name or _name_of(config, num_envs)
    result = train(
        config,
        num_envs=num_envs,
        device=device or "auto",
        evaluation=evaluation,
        run_folder=Path(base_output_dir) / name,
        initial_weights=checkpoint_path,
        on_epoch=_print_line if verbose else None,
    )
    names = ("run_name", "final_reward", "mean_reward", "total_episodes", "total_steps")
    names += ("total_gradient_steps", "evaluation_results")
    return {name: getattr(result, name) for name in names}


def _name_of(config: TrainingConfig, num_envs: int) -> str:
    """Return a name that differs between runs of different settings."""
    agent, now = config.agent, datetime.now()
    layers = "-".join(map(str, agent.hidden_sizes))
    moment = f"{now:%Y-%m-%d_%H-%M-%S}-{now.microsecond:06d}"
    return f"{agent.kind}_lr{agent.learning_rate:g}_h{layers}_{moment}_vec{num_envs}"


def _print_line(progress: Progress) -> None:
    success = "-" if progress.success is None else f"{progress.success:.2f}"
    where = progress.phase or progress.stage or ""
    print(  # noqa: T201, the caller asked for it
        f"{progress.num_steps:>10,} steps  {progress.num_episodes:>8,} episodes  "
        f"{visible(where):<16}  "
        f"success {success}  {progress.steps_per_second:,.0f} steps/s"
    )
