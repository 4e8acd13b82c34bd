"""``stepladder sweep``: many settings of one curriculum, by a grid or a search, in one folder."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from stepladder.cli.compare import MEASURED_HEADINGS, UNFINISHED, measured
from stepladder.cli.inputs.parsing import command_line, parse
from stepladder.cli.output import console
from stepladder.cli.output.dashboard_beside import dashboard_beside
from stepladder.configs.checks import PositiveInteger
from stepladder.configs.codec import Config
from stepladder.errors import ConfigError
from stepladder.simulator.scenarios import scenario
from stepladder.simulator.sweeps import (
    Dimension,
    SweepConfig,
    SweepResult,
    SweepTrial,
    parse_choice,
    parse_range,
    sweep,
)


@dataclass(frozen=True, kw_only=True)
class SweepArguments(Config):
    """Search for good settings of a curriculum, by a grid or by Optuna.

    Every finished trial is saved at once; the same command resumes a sweep that was stopped. Fields
    of the curriculum have their own names, fields of the learner names such as dynamics.eta or
    noise.reward, fields of the simulation names such as simulation.num_envs.
    """

    grid: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """A field and its values, such as probing=0.02,0.05,0.1; may be given several times. All
    combinations are played, or those that Optuna proposes."""

    range: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """A field and its range for Optuna, such as trial_episodes=10..80 or probing=0.01..0.5:log; may
    be given several times."""

    optuna_trials: PositiveInteger | None = None
    """Number of trials that Optuna proposes; by default all combinations are played. A finished
    search can be continued with a larger number."""

    common: Annotated[SweepConfig, tyro.conf.arg(name="")] = field(default_factory=SweepConfig)

    out: Path | None = None
    """Folder for the trials; by default sweeps/SCENARIO-CURRICULUM."""

    jobs: PositiveInteger | None = None
    """Number of threads; by default the number of cores. The results do not depend on it."""

    dashboard: bool = False
    """Also show the sweep on a local web page while it is being played; its address is printed."""

    top: PositiveInteger = 10
    """Number of settings to show at the end, the best ones."""

    json: bool = False
    """Write one line of JSON per trial, best first, and nothing else to standard output."""


def main(argv: Sequence[str]) -> int:
    """Run the verb; return the exit code."""
    arguments = parse(SweepArguments, argv, "sweep")
    common = arguments.common
    fields = common.fields()
    if arguments.range and arguments.optuna_trials is None:
        raise ConfigError("only a search can try a --range. Give --optuna-trials as well.")
    dimensions: list[Dimension] = [parse_choice(text, fields) for text in arguments.grid]
    dimensions += [parse_range(text, fields) for text in arguments.range]
    out = arguments.out
    if out is None:
        out = Path("sweeps", f"{scenario(common.scenario).name}-{common.curriculum}")
    with dashboard_beside(out, arguments.dashboard), console.progress("playing") as show:

        def tell(trial: SweepTrial, done: int, total: int) -> None:
            values = " ".join(f"{name}={_text(value)}" for name, value in trial.params.items())
            show(f"{done} of {total} trials; {values}")

        result = sweep(
            common,
            dimensions,
            folder=out,
            num_trials=arguments.optuna_trials,
            jobs=arguments.jobs,
            on_trial=tell,
        )
    if arguments.json:
        for trial in result.ranked():
            console.print_json(trial.to_json())
    else:
        _print(result, arguments, out)
    return 0


def _print(result: SweepResult, arguments: SweepArguments, out: Path) -> None:
    ranked, common = result.ranked(), arguments.common
    resumed = f", {result.num_resumed} of them resumed" if result.num_resumed else ""
    console.say(
        f"{common.curriculum} on {common.scenario}: {len(result.trials)} trials of "
        f"{common.num_seeds} seeds{resumed}, kept in {out}"
    )
    skipped = [trial for trial in result.trials if trial.error is not None]
    if skipped:
        console.say(f"invalid combinations: {len(skipped)}, such as: {skipped[0].error}")
    if not ranked:
        return
    best = ranked[0]
    table = console.plain_table("")
    for name in best.params:
        table.add_column(name, justify="right", overflow="fold")
    for heading in MEASURED_HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for trial in ranked[: arguments.top]:
        assert trial.cell is not None
        mark = "~" if trial is not best and _overlap(best, trial) else ""
        table.add_row(mark, *map(_text, trial.params.values()), *measured(trial.cell))
    console.results().print(table)
    alike = sum(_overlap(best, trial) for trial in ranked[1:])
    if alike:
        console.say(f"~  its interval overlaps that of the best: {alike} in all")
    if any(trial.cell is not None and trial.cell.finished_share < 1.0 for trial in ranked):
        console.say(UNFINISHED)
    console.say("\nplay the best again, with seeds that were not used to choose it:")
    console.say(f"  {_again(best, common, out)}")
    watched = _simulated(best, common)
    if watched:
        console.say(f"or watch one run of it:\n  {watched}")


def _overlap(best: SweepTrial, other: SweepTrial) -> bool:
    assert best.cell is not None
    assert other.cell is not None
    return other.cell.ratio_low <= best.cell.ratio_high


def _text(value: Any) -> str:
    """Return a value as ``--grid`` reads it."""
    return "+".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _again(best: SweepTrial, common: SweepConfig, out: Path) -> str:
    return command_line(
        "sweep",
        *(f"--grid={name}={_text(value)}" for name, value in best.params.items()),
        scenario=common.scenario,
        curriculum=common.curriculum,
        num_seeds=max(32, common.num_seeds),
        seed=common.seed + common.num_seeds,
        num_envs=common.num_envs if common.num_envs != 1 else None,
        budget=common.budget,
        out=f"{out}-best",
    )


def _simulated(best: SweepTrial, common: SweepConfig) -> str | None:
    """Return the command that simulates a trial; None if a value has no flag there."""
    words: list[str] = [common.curriculum]
    for name, value in best.params.items():
        if "." in name:
            return None
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            words += [f"--{flag}", *(value if isinstance(value, tuple) else [str(value)])]
    settings = {"scenario": common.scenario, "num_envs": common.num_envs, "seed": common.seed}
    return command_line("simulate", *words, **settings)
