"""``stepladder simulate``: try a curriculum on a simulated learner, and keep the run."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any

import tyro

from stepladder.cli import console
from stepladder.cli.choices import USUAL, Chosen, curriculum_choice
from stepladder.cli.keeping import Keeping
from stepladder.cli.parsing import given, parse
from stepladder.cli.watching import Watch
from stepladder.curricula.registry import curriculum_variant
from stepladder.runs.interrupting import InterruptGuard
from stepladder.simulator.dynamics import recipe
from stepladder.simulator.scenarios import Scenario, scenario
from stepladder.simulator.simulate import SimulationConfig, SimulationResult, simulate

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


@dataclass(frozen=True, kw_only=True)
class SimulateArguments(Keeping):
    """Try a curriculum on a simulated learner.

    The curriculum is a subcommand with flags of its own, which may stand anywhere after it:
    stepladder simulate frontier --probing 0.1 --scenario grid-6x6
    """

    simulation: Annotated[SimulationConfig, tyro.conf.arg(name="")] = field(
        default_factory=SimulationConfig
    )

    recipe: str | None = None
    """Take the learner of an earlier simulator, and as many tasks, envs, epochs and plays as it
    had, unless they are given: train, train-seed, config, tool-seed or large-chain."""

    keep_records: bool = False
    """Whether to keep every single episode too."""

    json: bool = False
    """Whether to write one line of JSON at the end, and nothing else to standard output."""


def main(argv: Sequence[str]) -> int:
    """Run the verb; return the exit code."""
    chosen, arguments = read_arguments(argv)
    place, config, name = _place(arguments), arguments.simulation, chosen.name
    folder = arguments.folder(f"{place.name}-{name}-{config.seed}")
    title = f"{name} on {place.name}, {config.num_envs} envs, seed {config.seed}"
    shown = console.asides() if arguments.json else console.results()
    with Watch(title, config.num_epochs, shown) as watch, InterruptGuard() as guard:

        def end_epoch(epoch: int, logged: dict[str, float]) -> bool:
            watch(epoch, logged)
            return guard.was_interrupted

        result = simulate(
            config,
            chosen.config,
            place=place,
            run_folder=folder,
            overwrite=arguments.overwrite,
            loggers=() if folder is None else partial(arguments.loggers, folder),
            keep_records=arguments.keep_records,
            on_epoch=end_epoch,
        )
    code = INTERRUPTED if result.was_stopped else 0
    if arguments.json:
        console.print_json(_summary(result, place, name, config))
        return code
    if result.was_stopped:
        console.say(f"\ninterrupted after {len(result.history)} of {config.num_epochs} epochs")
    console.say(f"\n{result.verdict}")
    if folder is not None:
        console.say(f"\nkept in {folder}; see stepladder explain {shlex.quote(str(folder))}")
    return code


def read_arguments(argv: Sequence[str]) -> tuple[Chosen, SimulateArguments]:
    """Return the curriculum that a command line chooses, and everything else it says.

    Raises:
        ConfigError: The command line makes no sense.
        SystemExit: The help was asked for.
    """
    defaults = _defaults(argv)
    named = given(argv, "--scenario")
    if named is not None:
        defaults = replace(defaults, simulation=replace(defaults.simulation, scenario=named))
    tasks = _place(defaults).knowledge

    usual = Chosen(USUAL, curriculum_variant(USUAL).make(tasks))

    def simulate(
        curriculum: Any = usual, options: Any = defaults
    ) -> tuple[Chosen, SimulateArguments]:
        return curriculum, options

    simulate.__doc__ = SimulateArguments.__doc__
    unprefixed = tyro.conf.arg(name="")
    simulate.__annotations__.update(
        curriculum=Annotated[curriculum_choice(tasks), unprefixed],
        options=Annotated[SimulateArguments, unprefixed],
    )
    return parse(simulate, argv, "simulate")


def _defaults(argv: Sequence[str]) -> SimulateArguments:
    """Return the defaults, which a recipe changes: what is given beside it still counts."""
    named = given(argv, "--recipe")
    if named is None:
        return SimulateArguments()
    taken = recipe(named)
    return SimulateArguments(
        recipe=named,
        simulation=SimulationConfig(
            scenario=f"chain-{taken.num_tasks}",
            num_envs=taken.num_envs,
            num_epochs=taken.num_epochs,
            samples_per_epoch=taken.dynamics.samples_per_epoch,
        ),
    )


def _place(arguments: SimulateArguments) -> Scenario:
    place = scenario(arguments.simulation.scenario)
    if arguments.recipe is None:
        return place
    taken = recipe(arguments.recipe)
    samples = arguments.simulation.samples_per_epoch
    return replace(
        place,
        name=f"{place.name}-{arguments.recipe}",
        dynamics=replace(taken.dynamics, samples_per_epoch=samples),
        noise=taken.noise,
    )


def _summary(
    result: SimulationResult, place: Scenario, curriculum: str, config: SimulationConfig
) -> dict[str, Any]:
    verdict = result.verdict
    return {
        "scenario": place.name,
        "curriculum": curriculum,
        "seed": config.seed,
        "num_envs": config.num_envs,
        "plays": result.simulator.num_plays,
        "done_at": verdict.done_at,
        "num_mastered": verdict.num_mastered,
        "num_learnable": verdict.num_learnable,
        "stalled_at": verdict.stalled_at,
        "share_mastered": verdict.share_mastered,
        "share_locked": verdict.share_locked,
        "share_impossible": verdict.share_hopeless,
        "mean_performance": float(result.simulator.P.mean()),
        "verdict": verdict.text,
        "run": None if result.run_folder is None else str(result.run_folder),
    }
