"""Begin the run of the user's own loop, or go on with it: `stepladder.run`.

Decides between a new run and an old one, describes the curriculum and its envs in ``config.json``,
and restores what a checkpoint holds; `loop_run` does the rest.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import Any

from stepladder.configs.checks import require_integer, require_kind
from stepladder.configs.documents import to_plain
from stepladder.curricula.base import Curriculum
from stepladder.errors import ConfigError, RunError, SnapshotError
from stepladder.runs import Logger, Run, RunReader
from stepladder.runs.checkpoint_folders import find
from stepladder.runs.reopening import lock_run
from stepladder.runs.run_folder import RunInfo, holds_run
from stepladder.saving.snapshot import Snapshot
from stepladder.tasks import FolderSource, ListSource
from stepladder.training.config import CheckpointConfig
from stepladder.training.loop_run import LOOP_KIND, LoopRun, Save, curriculum_of, tracked_of

MOST_TASKS = 10_000
"""Tasks that are written into ``config.json``."""

EPOCH_STEPS = 2_048


def run(
    folder: str | PathLike[str],
    envs: Any,
    *,
    config: Mapping[str, Any] | None = None,
    seed: int | Sequence[int] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    save: Save | None = None,
    epoch_steps: int = EPOCH_STEPS,
    checkpoints: CheckpointConfig | None = None,
    loggers: Sequence[Logger] = (),
) -> LoopRun:
    """Keep the run of a loop of your own.

    Give it the envs before their first reset. Step them with `LoopRun.step`, and call
    `LoopRun.report` after every update of the agent::

        with stepladder.run("runs/mine", envs) as run:
            observations, infos = run.reset(seed=0)
            while run.num_steps < 1_000_000:
                observations, rewards, terminated, truncated, infos = run.step(actions)
                ...
                run.report({"policy": loss})

    Args:
        folder: Where the run is kept.
        envs: A vector env with a curriculum (`make_vec`, `CurriculumVectorEnv`, for
            Stable-Baselines3 `as_vec_env`), also inside wrappers; or the curriculum of a loop
            without a vector env.
        config: Settings to keep with the run, plain JSON; ``env`` and ``tasks`` are what
            ``stepladder watch`` plays, if they are not found in the envs.
        seed: Of the run; by default the seed of the curriculum.
        resume: Whether to go on with the run that the folder holds, if there is one, from its
            newest checkpoint: curriculum, episodes in flight and all counts. What was logged after
            that is removed.
        overwrite: Whether to replace a run that the folder holds.
        save: Called with a new folder at every checkpoint, to write the agent into it. After a
            resume, `LoopRun.saved` is the folder to load it from.
        epoch_steps: Env steps between two lines of metrics, at least.
        checkpoints: How often everything is saved, and how many checkpoints are kept.
        loggers: Where metrics and events go as well.

    Raises:
        ConfigError: The envs have no curriculum, or an argument is wrong.
        RunError: The folder holds a run and neither `resume` nor `overwrite` is given, or something
            else, or it is being written.
        SnapshotError: None of its checkpoints can be used; nothing was changed.
    """
    require_integer("epoch_steps", epoch_steps, 1)
    chosen = CheckpointConfig() if checkpoints is None else checkpoints
    require_kind("checkpoints", chosen, CheckpointConfig, fix="Make one: CheckpointConfig().")
    if save is not None and not callable(save):
        raise ConfigError(f"save must be a function that takes a folder; got {save!r}.")
    if resume and overwrite:
        raise ConfigError("resume and overwrite contradict each other. Give one of them.")
    curriculum, path = curriculum_of(envs), Path(folder).absolute()
    settings: dict[str, Any] = {"epoch_steps": epoch_steps, "checkpoints": chosen, "save": save}
    if resume and _can_resume(path):
        return _resumed(path, envs, loggers, settings)
    about = {**_described(envs, curriculum), **(config or {})}
    made = Run.create(
        path,
        kind=LOOP_KIND,
        config=about,
        seed=curriculum.seed if seed is None else seed,
        # Without a checkpoint there is nothing to go on from.
        overwrite=overwrite or resume,
        loggers=loggers,
    )
    return LoopRun(made, envs, **settings)


def _can_resume(path: Path) -> bool:
    """Whether a folder holds a run of a loop with a checkpoint.

    Raises:
        RunError: It holds another run, or something else.
    """
    if not holds_run(path):
        return False
    kind = RunInfo.read(path).kind
    if kind != LOOP_KIND:
        raise RunError(
            f"{path} holds a {kind}, not the run of a loop, and cannot be continued by one. Choose "
            "another folder; a training is continued by train(resume=...)."
        )
    return bool(find(path))


def _resumed(
    path: Path, envs: Any, loggers: Sequence[Logger], settings: Mapping[str, Any]
) -> LoopRun:
    """Go on from the newest checkpoint that can be used."""
    with ExitStack() as undo:
        # Before anything is read: another process could replace what was read.
        lock = lock_run(path)
        undo.callback(lock.release)
        snapshot, place, refused = _newest(path)
        # Before the run is opened: a checkpoint that does not fit must not change it.
        own = envs if isinstance(envs, Curriculum) else tracked_of(envs)
        own.restore(snapshot)
        opened = Run.resume(path, checkpoint=place.name, loggers=loggers, lock=lock)
        undo.pop_all()
    with ExitStack() as undo:
        undo.enter_context(opened)
        loop = LoopRun(opened, envs, **settings)
        undo.callback(loop.detach)
        loop.restore(snapshot, place)
        for text in refused:
            loop.event("checkpoint_refused", text)
        undo.pop_all()
    return loop


def _newest(path: Path) -> tuple[Snapshot, Path, list[str]]:
    """Return the newest checkpoint that is whole, its folder, and why newer ones are not."""
    reader, refused = RunReader(path), list[str]()
    known = set(reader.checkpoints())
    for folder in find(path):
        if folder.name not in known:
            # Its save was not completed.
            continue
        try:
            return reader.checkpoint(folder.name), folder, refused
        except SnapshotError as error:
            refused.append(f"{folder.name} was refused: {' '.join(str(error).split())}")
    raise SnapshotError(
        f"the run {path} has no checkpoint that can be used"
        f"{''.join(f'; {reason}' for reason in refused)} Start a new run, with overwrite=True."
    )


def _described(envs: Any, curriculum: Curriculum) -> dict[str, Any]:
    """Return what ``config.json`` says of envs and curriculum, as far as it can be said."""
    found: dict[str, Any] = {"curriculum": curriculum.config.to_json()}
    source = curriculum.pool.source
    if isinstance(source, ListSource) and source.num_tasks <= MOST_TASKS:
        found["tasks"] = [source.get(index).to_json() for index in range(source.num_tasks)]
    elif isinstance(source, FolderSource):
        found["tasks"] = str(source.root)
    if isinstance(envs, Curriculum):
        return found
    found["num_envs"] = envs.num_envs
    spec = getattr(tracked_of(envs), "spec", None)
    if spec is not None:
        found |= {"env": spec.id} | _plain_arguments(spec.kwargs)
    return found


def _plain_arguments(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return {"env_kwargs": to_plain(kwargs, "env_kwargs", error=ConfigError)}
    except ConfigError:
        # An argument is an object: to watch the run, it has to be given again.
        return {}
