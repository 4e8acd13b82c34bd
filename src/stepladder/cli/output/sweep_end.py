"""What ``stepladder sweep`` says at the end: the best settings, and the command that plays them.

Simulated learners and trainings are measured differently; all else is said alike.
"""

import json
from pathlib import Path

from stepladder.cli.compare import MEASURED_HEADINGS, UNFINISHED, measured
from stepladder.cli.inputs.parsing import command_line
from stepladder.cli.inputs.sweeping import AskedSweep
from stepladder.cli.output import console
from stepladder.runs.trust import names_of_code
from stepladder.simulator.compare import ComparisonCell
from stepladder.simulator.swept import SweepConfig
from stepladder.sweeps import Measured, SweepResult, SweepTrial
from stepladder.sweeps.space import value_text
from stepladder.training.evaluation.scores import EVALUATION_PREFIX

BEST_SETTINGS = "best.json"
"""File in the folder of a sweep over trainings: settings of the best trial."""


def tell_sweep_end(result: SweepResult, asked: AskedSweep) -> None:
    """Print the best trials, and the commands that play the best one again."""
    ranked, objective = result.ranked(), asked.objective
    resumed = f", {result.num_resumed} of them resumed" if result.num_resumed else ""
    about = objective.settings()
    what = (
        f"{objective.curriculum} on {objective.scenario}"
        if isinstance(objective, SweepConfig)
        else f"{about['training']['agent']['type']} on {about['training']['env']}"
    )
    console.say(
        f"{what}: {len(result.trials)} trials of {about['num_seeds']} "
        f"seed{'s' * (about['num_seeds'] > 1)}{resumed}, kept in {asked.out}"
    )
    skipped = [trial for trial in result.trials if trial.error is not None]
    if skipped:
        kind = "invalid combinations" if isinstance(objective, SweepConfig) else "failed trials"
        console.say(f"{kind}: {len(skipped)}, such as: {skipped[0].error}")
    if not ranked:
        return
    best = ranked[0]
    _print_table(ranked, asked.arguments.top)
    alike = sum(_overlap(best, trial) for trial in ranked[1:])
    if alike:
        console.say(f"~  its interval overlaps that of the best: {alike} in all")
    if isinstance(objective, SweepConfig):
        _print_simulations(ranked, objective, asked.out)
    else:
        _print_trainings(best, asked)


def _print_table(ranked: list[SweepTrial], top: int) -> None:
    best = ranked[0]
    assert best.cell is not None
    varied = [
        name
        for name in best.params
        if len({value_text(trial.params[name]) for trial in ranked}) > 1 or len(ranked) == 1
    ]
    table = console.plain_table("")
    for name in varied:
        # The last part says it, unless another one ends alike.
        short = name.rpartition(".")[2]
        is_clear = sum(other.rpartition(".")[2] == short for other in varied) == 1
        heading = short if is_clear and not isinstance(best.cell, ComparisonCell) else name
        table.add_column(heading, justify="right", overflow="fold")
    for heading in _headings(best.cell):
        table.add_column(heading, justify="right", no_wrap=True)
    for trial in ranked[:top]:
        assert trial.cell is not None
        mark = "~" if trial is not best and _overlap(best, trial) else ""
        values = (value_text(trial.params[name]) for name in varied)
        table.add_row(mark, *values, *_cells(trial.cell))
    console.results().print(table)


def _headings(cell: Measured) -> tuple[str, ...]:
    if isinstance(cell, ComparisonCell):
        return MEASURED_HEADINGS
    objective = cell.to_json()["objective"].removeprefix(EVALUATION_PREFIX)
    return (objective, "95 % interval", "steps/s")


def _cells(cell: Measured) -> list[str]:
    if isinstance(cell, ComparisonCell):
        return measured(cell)
    values = cell.to_json()
    interval = "" if values["low"] is None else f"{values['low']:.3g} to {values['high']:.3g}"
    return [f"{values['mean']:.3g}", interval, f"{values['steps_per_second']:,.0f}"]


def _overlap(best: SweepTrial, other: SweepTrial) -> bool:
    assert best.cell is not None
    assert other.cell is not None
    return other.cell.ends[0] <= best.cell.ends[1]


def _print_trainings(best: SweepTrial, asked: AskedSweep) -> None:
    """Keep the settings of the best trial in a file, and say how to train with them."""
    about = asked.objective.settings()
    if about["num_seeds"] > 1:
        console.say("mean over seeds with Student's interval of 95 %; none where all are alike")
    config = asked.objective.setup(best.params).to_json()  # pyright: ignore
    path = asked.out / BEST_SETTINGS
    console.write_whole(path, json.dumps(config, indent=2) + "\n")
    again = command_line(
        "train",
        path,
        seeds=max(3, about["num_seeds"]),
        seed=about["seed"] + about["num_seeds"],
        trust=bool(names_of_code(config)),
    )
    console.say("\ntrain with the best again, with seeds that were not used to choose it:")
    console.say(f"  {again}")
    console.say("or see its trainings:")
    console.say(f"  {command_line('report', asked.out / f'trial-{best.number}')}")


def _print_simulations(ranked: list[SweepTrial], common: SweepConfig, out: Path) -> None:
    best, cells = ranked[0], [trial.cell for trial in ranked]
    if any(isinstance(cell, ComparisonCell) and cell.finished_share < 1.0 for cell in cells):
        console.say(UNFINISHED)
    console.say("\nplay the best again, with seeds that were not used to choose it:")
    console.say(f"  {again_command(best, common, out)}")
    watched = simulate_command(best, common)
    if watched:
        console.say(f"or watch one run of it:\n  {watched}")


def again_command(best: SweepTrial, common: SweepConfig, out: Path) -> str:
    """Return the command that plays a trial again with other seeds."""
    return command_line(
        "sweep",
        *(f"--grid={name}={value_text(value)}" for name, value in best.params.items()),
        scenario=common.scenario,
        curriculum=common.curriculum,
        num_seeds=max(32, common.num_seeds),
        seed=common.seed + common.num_seeds,
        num_envs=common.num_envs if common.num_envs != 1 else None,
        budget=common.budget,
        out=f"{out}-best",
    )


def simulate_command(best: SweepTrial, common: SweepConfig) -> str | None:
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
