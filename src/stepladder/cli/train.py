"""``stepladder train``: train an agent, watch it learn, stop and resume; or several seeds of it."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepladder.cli.inputs.finding import look_for, needing_torch, one_line_for_env
from stepladder.cli.inputs.parsing import command_line
from stepladder.cli.inputs.run_flags import RunFlags
from stepladder.cli.inputs.training import (
    CHANGED_BY_RESUME,
    TrainArguments,
    given_flags,
    read_arguments,
)
from stepladder.cli.main import BAD_INPUT, INTERRUPTED
from stepladder.cli.output import console
from stepladder.cli.output.dashboard_beside import dashboard_beside
from stepladder.cli.output.seeds_end import tell_seeds_end
from stepladder.cli.output.seeds_view import SeedsView
from stepladder.cli.output.training_end import tell_end
from stepladder.cli.output.views import TrainingView
from stepladder.errors import ConfigError
from stepladder.runs.run_folder import RunInfo
from stepladder.runs.seeds import SeedsInfo, holds_seeds
from stepladder.runs.trust import names_of_code, require_trust
from stepladder.training.config import TrainingConfig, load_config
from stepladder.training.presets import PRESETS

if TYPE_CHECKING:
    from stepladder.training.results import TrainingResult
    from stepladder.training.seeds import SeedsResult


def main(argv: Sequence[str]) -> int:
    """Run the verb; return the exit code."""
    arguments, config = read_arguments(argv)
    if arguments.list_presets:
        table = console.plain_table(
            *("preset", "env", "agent", "curriculum"), numbers=("envs", "steps")
        )
        for name, preset in PRESETS.items():
            kinds = preset.env, preset.agent.kind, preset.curriculum.kind
            table.add_row(name, *kinds, f"{preset.num_envs:,}", f"{preset.total_steps:,}")
        console.results().print(table)
        return 0
    changes = _changes(arguments, given_flags(argv))
    resumed = arguments.resume
    if arguments.seeds is not None or (resumed is not None and holds_seeds(resumed)):
        return _several(arguments, config, changes)
    if resumed is not None:
        if arguments.jobs is not None:
            raise ConfigError(
                f"--jobs is for several seeds; {resumed} is a single run. Leave it out."
            )
        if arguments.engine != "local":
            raise ConfigError(
                f"--engine is for several seeds; {resumed} is a single run. Leave it out."
            )
        folder: Path | None = resumed
    else:
        folder = arguments.folder(arguments.run_name)
    with dashboard_beside(folder, arguments.dashboard):
        result = _train(arguments, config, folder, changes)
    # Another end or device is not kept in the run, and must be given again.
    can_resume = result.was_stopped and folder is not None
    about = {} if folder is None else RunInfo.read(folder).config
    changes["trust"] = bool(names_of_code(about))
    if result.had_ended:
        changes |= _later_end(about, result)
    can_resume = can_resume or result.had_ended
    again = command_line("train", "--resume", folder, **changes) if can_resume else ""
    if arguments.json:
        summary = {"run": None if folder is None else str(folder), **result.to_json()}
        del summary["run_folder"]
        console.print_json({**summary, "resume": again or None})
    else:
        tell_end(result, folder, again, needs_trust=changes["trust"])
    return INTERRUPTED if result.was_stopped else 0


def _changes(arguments: TrainArguments, flags: frozenset[str]) -> dict[str, Any]:
    """Return the settings that a resumed training changes."""
    if arguments.resume is None:
        return {}
    return {
        name: getattr(arguments, name)
        for name in CHANGED_BY_RESUME
        if f"--{name.replace('_', '-')}" in flags
    }


def _later_end(config: Mapping[str, Any], result: "TrainingResult") -> dict[str, int]:
    """Return the setting that continues a run that has ended, for twice as long."""
    most = config.get("total_episodes")
    if most is not None and result.total_episodes >= most:
        return {"total_episodes": 2 * result.total_episodes}
    return {"total_steps": 2 * result.total_steps}


def _train(
    arguments: TrainArguments, config: TrainingConfig, folder: Path | None, changes: dict[str, Any]
) -> "TrainingResult":
    """Start or resume a training, and show it."""
    shown = console.progress_console() if arguments.json else console.results()
    loggers = () if folder is None else partial(arguments.loggers, folder)
    if arguments.resume is None:
        look_for(*names_of_code(config.to_json()))
        title = f"{config.agent.kind} on {config.env}, {config.num_envs} envs"
        title += f", seed {config.seed}, {config.device}"
        with (
            one_line_for_env(config.env),
            TrainingView(title, config.to_json(), shown) as view,
        ):
            return needing_torch("stepladder.training.starting", "trainings").train(
                config,
                run_folder=folder,
                overwrite=arguments.overwrite,
                initial_weights=arguments.initial_weights,
                loggers=loggers,
                on_epoch=view,
            )
    info = RunInfo.read(arguments.resume)
    # An env that is named here need not be imported as the run says.
    unknown = {name: value for name, value in info.config.items() if name not in changes}
    require_trust(arguments.resume, unknown, arguments.trust)
    look_for(*names_of_code(unknown))
    about = load_config(info.config).to_json() if info.kind == "training" else {}
    with (
        one_line_for_env(str(info.config.get("env"))),
        TrainingView(f"{folder} is resumed", about, shown) as view,
    ):
        return needing_torch("stepladder.training.starting", "trainings").resume(
            folder, trust=arguments.trust, loggers=loggers, on_epoch=view, **changes
        )


def _several(arguments: TrainArguments, config: TrainingConfig, changes: dict[str, Any]) -> int:
    """Train several seeds, or continue them; return the exit code."""
    seeds = needing_torch("stepladder.training.seeds", "trainings")
    if arguments.resume is None:
        parent = arguments.free_folder(arguments.run_name)
        numbers: Sequence[int] = range(config.seed, config.seed + (arguments.seeds or 0))
        look_for(*names_of_code(config.to_json()))
    else:
        parent = arguments.resume
        info = SeedsInfo.read(parent)
        numbers = info.seeds
        look_for(*names_of_code(info.config))
        config = load_config(info.config)
    title = f"{config.agent.kind} on {config.env}, {config.num_envs} envs, {len(numbers)} seeds"
    title += f" in {parent}"
    shown = console.progress_console() if arguments.json else console.results()
    makes_loggers = arguments.tensorboard or arguments.wandb is not None
    with (
        dashboard_beside(parent, arguments.dashboard),
        SeedsView(title, config.to_json(), numbers, shown) as view,
    ):
        options = seeds.SeedsOptions(
            jobs=arguments.jobs,
            engine=arguments.engine,
            loggers=partial(RunFlags.loggers, arguments.only_flags()) if makes_loggers else None,
            on_epoch=view,
            on_end=view.end,
        )
        if arguments.resume is None:
            result = seeds.train_seeds(
                config,
                seeds=tuple(numbers),
                run_folder=parent,
                overwrite=arguments.overwrite,
                initial_weights=arguments.initial_weights,
                options=options,
            )
        else:
            result = seeds.resume_seeds(parent, trust=arguments.trust, options=options, **changes)
    return _print_several(arguments, result, config, changes)


def _print_several(
    arguments: TrainArguments,
    result: "SeedsResult",
    config: TrainingConfig,
    changes: dict[str, Any],
) -> int:
    """Say what came of several seeds; return the exit code."""
    if result.had_ended:
        name = "total_steps" if config.total_episodes is None else "total_episodes"
        changes |= {name: 2 * (changes.get(name) or getattr(config, name))}
    needs_trust = bool(names_of_code(config.to_json()))
    flags = {**changes, "jobs": arguments.jobs, "trust": needs_trust}
    if arguments.engine != "local":
        flags["engine"] = arguments.engine
    is_left = result.was_stopped or bool(result.failures) or result.had_ended
    again = command_line("train", "--resume", result.folder, **flags) if is_left else ""
    if arguments.json:
        summary = {"run": str(result.folder), **result.to_json()}
        del summary["folder"]
        console.print_json({**summary, "resume": again or None})
    else:
        tell_seeds_end(result, again)
    if result.was_stopped:
        return INTERRUPTED
    return BAD_INPUT if result.failures else 0
