"""``stepladder simulate``: try a curriculum on a simulated learner, and keep the run."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Union

import tyro

from stepladder.cli.inputs.parsing import command_line, given, parse
from stepladder.cli.inputs.run_flags import RunFlags
from stepladder.cli.main import INTERRUPTED
from stepladder.cli.output import console
from stepladder.cli.output.dashboard_beside import dashboard_beside
from stepladder.cli.output.views import SimulationView
from stepladder.configs.documents import load_document
from stepladder.configs.problems import Problems
from stepladder.curricula.config import CurriculumConfig, TaskKnowledge
from stepladder.curricula.registry import curriculum_variants
from stepladder.errors import ConfigError
from stepladder.runs.interrupting import InterruptGuard
from stepladder.simulator.base import Scenario
from stepladder.simulator.dynamics import recipe
from stepladder.simulator.playground.question import read_learner, with_learner
from stepladder.simulator.scenarios import GraphScenario, scenario
from stepladder.simulator.simulate import SimulationConfig, SimulationResult, simulate

DEFAULT = "learning-progress"
"""The curriculum that is simulated unless another is named."""


@dataclass(frozen=True, kw_only=True)
class SimulateArguments(RunFlags):
    """Try a curriculum on a simulated learner.

    The curriculum is a subcommand with its own flags, for example: stepladder simulate frontier
    --probing 0.1 --scenario grid-6x6
    """

    simulation: Annotated[SimulationConfig, tyro.conf.arg(name="")] = field(
        default_factory=SimulationConfig
    )

    recipe: str | None = None
    """Use the learner of an earlier simulator: train, train-seed, config, tool-seed or
    large-chain. Its numbers of tasks, envs, epochs and plays replace the defaults; none by
    default."""

    learner: tuple[str, ...] = ()
    """Settings of the simulated learner that differ from the scenario's, as NAME=VALUE: such as
    dynamics.eta=0.02 or noise.reward=skill; none by default."""

    keep_records: bool = False
    """Also keep a record of every single episode."""

    json: bool = False
    """Write one line of JSON at the end, and nothing else to standard output."""


@dataclass(frozen=True)
class ChosenCurriculum:
    """A curriculum as it was chosen on the command line."""

    name: str
    config: CurriculumConfig


def main(argv: Sequence[str]) -> int:
    """Run the verb; return the exit code."""
    chosen, arguments = read_arguments(argv)
    place, config, name = _scenario(arguments), arguments.simulation, chosen.name
    folder = arguments.folder(f"{place.name}-{name}-{config.seed}")
    title = f"{name} on {place.name}, {config.num_envs} envs, seed {config.seed}"
    shown = console.progress_console() if arguments.json else console.results()
    with (
        dashboard_beside(folder, arguments.dashboard),
        SimulationView(title, config.num_epochs, shown) as view,
        InterruptGuard() as guard,
    ):

        def end_epoch(epoch: int, logged: dict[str, float]) -> bool:
            view(epoch, logged)
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
        console.say(f"\nkept in {folder}; see {command_line('explain', folder)}")
    return code


def read_arguments(argv: Sequence[str]) -> tuple[ChosenCurriculum, SimulateArguments]:
    """Return the curriculum that a command line chooses, and the other options.

    Raises:
        ConfigError: An option is unknown or has a wrong value.
        SystemExit: The help was printed.
    """
    defaults = SimulateArguments()
    recipe_name, scenario_name = given(argv, "--recipe"), given(argv, "--scenario")
    # The defaults of a curriculum depend on the learner, too.
    defaults = replace(defaults, learner=_given_learner(argv))
    if recipe_name is not None:
        # A recipe changes defaults only: flags beside it still count.
        taken = recipe(recipe_name)
        simulation = SimulationConfig(
            scenario=f"chain-{taken.num_tasks}",
            num_envs=taken.num_envs,
            num_epochs=taken.num_epochs,
            samples_per_epoch=taken.dynamics.samples_per_epoch,
        )
        defaults = replace(defaults, recipe=recipe_name, simulation=simulation)
    if scenario_name is not None:
        simulation = replace(defaults.simulation, scenario=scenario_name)
        defaults = replace(defaults, simulation=simulation)
    tasks = _scenario(defaults).knowledge
    usual = ChosenCurriculum(DEFAULT, curriculum_variants()[DEFAULT].make(tasks))

    def simulate(
        curriculum: Any = usual, options: Any = defaults
    ) -> tuple[ChosenCurriculum, SimulateArguments]:
        return curriculum, options

    simulate.__doc__ = SimulateArguments.__doc__
    unprefixed = tyro.conf.arg(name="")
    simulate.__annotations__.update(
        curriculum=Annotated[_subcommands(tasks), unprefixed],
        options=Annotated[SimulateArguments, unprefixed],
    )
    return parse(simulate, argv, "simulate")


def _subcommands(tasks: TaskKnowledge) -> Any:
    """Return a union of subcommands for tyro, one per curriculum and one for a file.

    The flags of a curriculum begin with its settings for the scenario that is simulated, because
    some of them depend on what is known about the tasks.
    """
    variants = curriculum_variants()
    # tyro takes the first subcommand if none is given.
    names = dict.fromkeys([DEFAULT, *variants])
    members = [
        _subcommand(name, variants[name].make(tasks), variants[name].about) for name in names
    ]
    file = tyro.conf.subcommand("from-file", prefix_name=False, constructor=from_file)
    # Made at run time, which the operator | cannot do.
    return Union[(*members, Annotated[ChosenCurriculum, file])]


def _subcommand(name: str, config: CurriculumConfig, about: str) -> Any:
    def choose(config: Any = config) -> ChosenCurriculum:
        return ChosenCurriculum(name, config)

    # Settings inside settings have dotted flags, such as --demotion.threshold.
    flags = Annotated[type(config), tyro.conf.arg(name="")]
    choose.__annotations__["config"] = tyro.conf.AvoidSubcommands[flags]
    described = tyro.conf.subcommand(name, prefix_name=False, description=about, constructor=choose)
    return Annotated[ChosenCurriculum, described]


def from_file(file: tyro.conf.Positional[Path]) -> ChosenCurriculum:
    """Settings in a JSON or YAML file, as in a run's config.json under "curriculum".

    Args:
        file: A file with an object such as {"type": "frontier", "probing": 0.1}. Phased, staged and
            mixed curricula can be given this way too.

    Raises:
        ConfigError: The file cannot be read, or does not describe a curriculum.
    """
    return ChosenCurriculum(file.stem, CurriculumConfig.from_json(load_document(file), str(file)))


def _given_learner(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the values of ``--learner`` before everything is parsed."""
    found: list[str] = []
    is_value = False
    for word in argv:
        flag, equals, value = word.partition("=")
        if word.startswith("--"):
            is_value = flag == "--learner"
            found += [value] if is_value and equals else []
        elif is_value:
            found.append(word)
    return tuple(found)


def _scenario(arguments: SimulateArguments) -> Scenario:
    place = scenario(arguments.simulation.scenario)
    if arguments.learner:
        problems = Problems(key="--learner")
        place = with_learner(place, read_learner(arguments.learner, place), problems)
        problems.raise_if_any()
    if arguments.recipe is None:
        return place
    if not isinstance(place, GraphScenario):
        raise ConfigError(
            f"a recipe is for a graph of tasks, and {place.name!r} has none. Leave it out, or "
            "choose a scenario such as chain-10."
        )
    taken = recipe(arguments.recipe)
    samples = arguments.simulation.samples_per_epoch or taken.dynamics.samples_per_epoch
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
        "samples": result.simulator.num_samples,
        "progress": result.simulator.progress,
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
