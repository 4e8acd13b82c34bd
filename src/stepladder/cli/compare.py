"""``stepladder compare``: curricula x scenarios x seeds, as a table and a picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from stepladder.cli import console
from stepladder.cli.parsing import parse
from stepladder.configs.checks import Count, CountOrZero
from stepladder.configs.codec import Config
from stepladder.curricula.registry import curriculum_variant, curriculum_variants
from stepladder.dashboard import comparison_svg
from stepladder.errors import ConfigError
from stepladder.simulator.compare import ORACLE, UNIFORM, Cell, compare
from stepladder.simulator.scenarios import SUITE, Scenario, scenario

PICTURE = Path("comparison.svg")
MARK = "<!-- stepladder compare -->"
"""What tells our pictures from anybody else's."""

WIDE = 100
"""Columns from which the wasted plays are told apart."""


@dataclass(frozen=True, kw_only=True)
class CompareArguments(Config):
    """Measure curricula on scenarios: plays until every learnable task is mastered, over seeds.

    The oracle, which sees the hidden skills, and uniform are always shown.
    """

    scenarios: tuple[str, ...] = ("chain-10", "chain-30")
    """Names of scenarios, such as chain-10, tree-31 or grid-6x6, or graphs in .json files; "suite"
    stands for all that curricula are judged by."""

    curricula: tuple[str, ...] = ("frontier", "learning-progress", "learnability", "level-replay")
    """Names of curricula, which are the subcommands of stepladder simulate; "all" stands for all
    of them."""

    num_seeds: Count = 32
    """Seeds per curriculum and scenario; the same ones for every curriculum."""

    seed: CountOrZero = 0
    """First of the seeds."""

    num_envs: Count = 1
    """Envs that play at the same time."""

    budget: Count | None = None
    """Plays after which a seed is given up; by default the scenario's own, some twenty times what
    uniform needs."""

    picture: Path | None = None
    """SVG file for the picture; by default comparison.svg, and none with --json."""

    json: bool = False
    """Whether to write one line of JSON per curriculum and scenario, and nothing else to standard
    output."""


def main(argv: Sequence[str]) -> int:
    """Run the verb; return the exit code."""
    arguments = parse(CompareArguments, argv, "compare")
    places = [scenario(name) for name in _expanded(arguments.scenarios, "suite", SUITE)]
    names = _expanded(arguments.curricula, "all", tuple(curriculum_variants()))
    _check(names, places)
    picture = arguments.picture or (None if arguments.json else PICTURE)
    if picture is not None:
        console.refuse_foreign(picture, MARK, "--picture")
    cells: list[Cell] = []
    for place in places:
        row = _compared(place, names, arguments)
        cells += row
        if arguments.json:
            for cell in row:
                console.print_json(cell.to_json())
        else:
            _print_table(console.results(), place, row)
    if not arguments.json:
        _print_notes(cells)
    if picture is not None:
        console.write_whole(picture, f"{comparison_svg(cells)}{MARK}\n")
        if not arguments.json:
            console.say(f"picture: {picture}")
    return 0


def _expanded(names: Sequence[str], word: str, meaning: Sequence[str]) -> list[str]:
    """Replace the word that stands for many names; every name once."""
    return list(
        dict.fromkeys(entry for name in names for entry in (meaning if name == word else (name,)))
    )


def _check(names: Sequence[str], places: Sequence[Scenario]) -> None:
    """Find mistakes before anything is played."""
    for name in names:
        curriculum_variant(name)
    if not places:
        raise ConfigError("there is no scenario to compare on. Name at least one.")
    shown = [place.name for place in places]
    for name in shown:
        if shown.count(name) > 1:
            raise ConfigError(f"two scenarios are called {name!r}. Rename one of the files.")


def _compared(place: Scenario, names: Sequence[str], arguments: CompareArguments) -> list[Cell]:
    """Compare in one scenario, and show the progress."""
    total = len(dict.fromkeys([UNIFORM, *names]))
    aside, done = console.asides(), 0

    def tell(cell: Cell) -> None:
        nonlocal done
        done += 1
        if status is not None:
            status.update(f"{place.name}: {cell.curriculum} done, {done} of {total}")

    status = None if aside is None else aside.status(f"{place.name}: {total} curricula")
    if status is not None:
        status.start()
    try:
        comparison = compare(
            [place],
            names,
            num_seeds=arguments.num_seeds,
            seed=arguments.seed,
            num_envs=arguments.num_envs,
            budget=arguments.budget,
            on_cell=tell,
        )
    finally:
        if status is not None:
            status.stop()
    return list(comparison.cells)


def _print_table(screen: Console, place: Scenario, row: Sequence[Cell]) -> None:
    is_wide = screen.width >= WIDE
    seeds = max(cell.num_seeds for cell in row)
    about = f"; {place.about}" if place.about else ""
    title = f"{place.name}: {place.graph.num_tasks} tasks, {seeds} seeds{about}"
    screen.print(title, style="bold", markup=False, no_wrap=True, overflow="ellipsis")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("curriculum")
    for heading in ("samples", "95 % interval", "x oracle", "wasted"):
        table.add_column(heading, justify="right", no_wrap=True)
    if is_wide:
        for heading in ("mastered", "locked", "impossible"):
            table.add_column(heading, justify="right", no_wrap=True)
    for cell in row:
        table.add_row(*_columns(cell, is_wide), style="bold" if cell.is_winner else None)
    screen.print(table)
    screen.print()


def _columns(cell: Cell, is_wide: bool) -> list[str]:
    at_least = ">" if cell.finished_share < 1.0 else ""
    mark = " *" if cell.is_winner else ""
    columns = [
        f"{cell.curriculum}{mark}",
        f"{at_least}{cell.mean_samples:,.0f}",
        "" if cell.num_seeds == 1 else f"{cell.low:,.0f} to {cell.high:,.0f}",
        f"{at_least}{cell.ratio_to_oracle:.2f}",
    ]
    shares = (cell.share_mastered, cell.share_locked, cell.share_impossible)
    if cell.curriculum == ORACLE:
        return columns + [""] * (4 if is_wide else 1)
    columns.append(f"{sum(shares):.0%}")
    return columns + [f"{share:.0%}" for share in shares] if is_wide else columns


def _print_notes(cells: Sequence[Cell]) -> None:
    console.say("samples: mean plays until every learnable task was mastered at once")
    console.say("wasted: share of them on tasks that were mastered, locked or impossible")
    if any(cell.is_winner for cell in cells):
        console.say("*  its interval lies below that of every other curriculum")
    if any(cell.finished_share < 1.0 for cell in cells):
        console.say(">  some seeds did not finish within the budget, so the mean is higher")
