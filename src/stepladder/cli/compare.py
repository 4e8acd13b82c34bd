"""``stepladder compare``: curricula x scenarios x seeds, as a table and a picture."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from stepladder.cli.inputs.parsing import parse
from stepladder.cli.output import console
from stepladder.configs.checks import NotNegativeInteger, PositiveInteger
from stepladder.configs.codec import Config
from stepladder.curricula.registry import curriculum_variant, curriculum_variants
from stepladder.curricula.target import Target
from stepladder.errors import ConfigError, counted
from stepladder.pictures import check_picture
from stepladder.simulator.base import Scenario
from stepladder.simulator.compare import ORACLE, UNIFORM, ComparisonCell, compare
from stepladder.simulator.generalising.scenarios import GENERAL_SUITE
from stepladder.simulator.scenarios import SUITE, scenario

PICTURE = Path("comparison.svg")
PICTURE_MARK = "made by stepladder compare"
"""Text that every picture of this command holds."""

MEASURED_HEADINGS = ("samples", "95 % interval", "x oracle")
"""Headings of `measured`."""

ORACLE_UNFINISHED = (
    "beware: within the budget of {budget:,} not even the oracle learned {place}, so these samples "
    "and ratios tell nothing. Raise --budget, or leave it out"
)

UNFINISHED = ">  some seeds did not finish within the budget, so the mean is higher"

WIDE = 100
"""Columns of a terminal from which the kinds of wasted plays are shown one by one."""


@dataclass(frozen=True, kw_only=True)
class CompareArguments(Config):
    """Compare curricula on simulated learners: samples until everything is learned.

    The table always includes uniform and the oracle, which sees the hidden skills.
    """

    scenarios: tuple[str, ...] = ("chain-10", "chain-30")
    """Names of scenarios, such as chain-10, tree-31 or grid-6x6, or .json or .yaml files; "suite"
    stands for all scenarios of the test suite for curricula, "general" for those with a learner
    that generalises."""

    curricula: tuple[str, ...] = ("frontier", "learning-progress", "learnability", "level-replay")
    """Names of curricula, as the subcommands of stepladder simulate; "all" stands for all of
    them."""

    num_seeds: PositiveInteger = 32
    """Seeds per curriculum and scenario; the same ones for every curriculum."""

    seed: NotNegativeInteger = 0
    """First of the seeds."""

    num_envs: PositiveInteger = 1
    """Envs that play at the same time."""

    budget: PositiveInteger | None = None
    """Samples after which a seed ends unfinished: plays, or env steps for a learner that
    generalises; by default the scenario's own budget."""

    target: Target | None = None
    """Labels that count, as NAME or NAME=WEIGHT: a curriculum is done when the tasks with these
    labels are learned. By default the scenario's own, mostly all tasks."""

    with_target: bool = False
    """Also measure every curriculum that takes a target with this one, as NAME+target."""

    picture: Path | None = None
    """File for the picture, .svg or .png (extra plot). By default comparison.svg; none with --json,
    and none where matplotlib is not installed."""

    json: bool = False
    """Write one line of JSON per curriculum and scenario, and nothing else to standard output."""


def main(argv: Sequence[str]) -> int:
    """Run the verb; return the exit code."""
    arguments = parse(CompareArguments, argv, "compare")
    chosen = _expanded(arguments.scenarios, "suite", SUITE)
    places = [scenario(name) for name in _expanded(chosen, "general", GENERAL_SUITE)]
    if arguments.target is not None:
        places = [place.aimed_at(arguments.target.weights) for place in places]
    names = _expanded(arguments.curricula, "all", curriculum_variants(can_edit=False))
    picture, why_none = _picture_of(arguments)
    _check(names, places)
    cells: list[ComparisonCell] = []
    for place in places:
        row = _compared(place, names, arguments)
        cells += row
        if arguments.json:
            for cell in row:
                console.print_json(cell.to_json())
        else:
            _print_table(place, row)
    if picture is not None:
        from stepladder.pictures.comparison import comparison_figure

        comparison_figure(cells).save(picture, PICTURE_MARK)
    if not arguments.json:
        _print_notes(places, cells)
        console.say(f"no picture: {why_none}" if picture is None else f"picture: {picture}")
    return 0


def _print_notes(places: Sequence[Scenario], cells: Sequence[ComparisonCell]) -> None:
    """Say what the columns mean, and what to beware of."""
    for measure in dict.fromkeys(place.measure for place in places):
        console.say(f"samples: mean {measure}")
    console.say("wasted: share of them on tasks that were mastered, locked or impossible")
    if any(cell.is_winner for cell in cells):
        console.say("*  its interval lies below that of every other curriculum")
    if any(cell.finished_share < 1.0 for cell in cells):
        console.say(UNFINISHED)
    for cell in cells:
        if cell.curriculum == ORACLE and cell.finished_share < 1.0:
            console.say(ORACLE_UNFINISHED.format(budget=cell.budget, place=cell.scenario))


def _picture_of(arguments: CompareArguments) -> tuple[Path | None, str]:
    """Return where the picture is written, or why there is none.

    Raises:
        ConfigError: A picture was asked for that cannot be written.
    """
    picture = arguments.picture or PICTURE
    if arguments.picture is None and arguments.json:
        return None, ""
    try:
        check_picture(picture)
    except ConfigError as error:
        if arguments.picture is not None:
            raise
        return None, str(error)
    console.refuse_foreign(picture, PICTURE_MARK, "--picture")
    return picture, ""


def _expanded(names: Sequence[str], word: str, meaning: Iterable[str]) -> list[str]:
    """Replace a word that stands for many names; every name once."""
    return list(
        dict.fromkeys(entry for name in names for entry in (meaning if name == word else (name,)))
    )


def _check(names: Sequence[str], places: Sequence[Scenario]) -> None:
    """Raise on every mistake before anything is played."""
    for name in names:
        curriculum_variant(name)
    if not places:
        raise ConfigError("there is no scenario to compare on. Name at least one.")
    shown = [place.name for place in places]
    for name in shown:
        if shown.count(name) > 1:
            raise ConfigError(f"two scenarios are called {name!r}. Rename one of the files.")


def _compared(
    place: Scenario, names: Sequence[str], arguments: CompareArguments
) -> list[ComparisonCell]:
    """Compare on one scenario, and show the progress."""
    total, done = len({UNIFORM, *names}) * (2 if arguments.with_target else 1), 0
    with console.progress(f"{place.name}: {total} curricula") as tell:

        def count(cell: ComparisonCell) -> None:
            nonlocal done
            done += 1
            tell(f"{place.name}: {cell.curriculum} done, {done} of {total}")

        comparison = compare(
            [place],
            names,
            num_seeds=arguments.num_seeds,
            seed=arguments.seed,
            num_envs=arguments.num_envs,
            budget=arguments.budget,
            with_target=arguments.with_target,
            on_cell=count,
        )
    return list(comparison.cells)


def _print_table(place: Scenario, row: Sequence[ComparisonCell]) -> None:
    screen = console.results()
    is_wide = screen.width >= WIDE
    seeds = max(cell.num_seeds for cell in row)
    about = f"; {place.about}" if place.about else ""
    title = f"{place.name}: {counted(place.num_tasks, 'task')}, {counted(seeds, 'seed')}{about}"
    screen.print(title, style="bold", markup=False, no_wrap=True, overflow="ellipsis")
    wasted = ("wasted", "mastered", "locked", "impossible") if is_wide else ("wasted",)
    table = console.plain_table("curriculum", numbers=(*MEASURED_HEADINGS, *wasted))
    for cell in row:
        table.add_row(*_columns(cell, is_wide), style="bold" if cell.is_winner else None)
    screen.print(table)
    screen.print()


def measured(cell: ComparisonCell) -> list[str]:
    """Return mean samples, their interval and their ratio to the oracle, as text."""
    at_least = ">" if cell.finished_share < 1.0 else ""
    return [
        f"{at_least}{cell.mean_samples:,.0f}",
        "" if cell.num_seeds == 1 else f"{cell.low:,.0f} to {cell.high:,.0f}",
        f"{at_least}{cell.ratio_to_oracle:.2f}",
    ]


def _columns(cell: ComparisonCell, is_wide: bool) -> list[str]:
    columns = [f"{cell.curriculum}{' *' if cell.is_winner else ''}", *measured(cell)]
    if cell.curriculum != ORACLE:
        shares = (cell.share_mastered, cell.share_locked, cell.share_impossible)
        columns += [f"{share:.0%}" for share in (sum(shares), *(shares if is_wide else ()))]
    return columns
