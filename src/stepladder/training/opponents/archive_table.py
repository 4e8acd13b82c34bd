"""An archive as a table in a terminal: the rating of each agent, and its games. Needs rich."""

from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from stepladder.training.opponents.archive import Archive
from stepladder.training.opponents.ratings import BASELINES
from stepladder.visible import visible


def archive_table(archive: Archive) -> Table:
    """Return a table of an archive's agents and the baselines, the strongest first.

    The rating is the mean less three deviations, and ± these three.
    """
    listing, ratings = archive.list(), archive.ratings()
    rows = [(entry.agent_id, f"{entry.step:,}", entry.origin) for entry in listing.entries]
    rows += [(name, "", "scripted") for name in BASELINES]
    table = Table(title=escape(visible(archive.folder)), caption=_caption(listing.skipped))
    table.add_column("agent", no_wrap=True)
    for heading in ("rating", "±", "won", "drawn", "lost", "steps"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("run", overflow="fold")
    for name, step, origin in sorted(rows, key=lambda row: -ratings[row[0]].value):
        rating = ratings[name]
        numbers = (f"{rating.value:.1f}", f"{3 * rating.sigma:.1f}")
        counts = map(str, (rating.num_won, rating.num_drawn, rating.num_lost))
        table.add_row(escape(visible(name)), *numbers, *counts, step, escape(visible(origin)))
    return table


def print_archive(archive: Archive, console: Console | None = None) -> None:
    """Print the table of an archive."""
    (console or Console()).print(archive_table(archive))


def _caption(skipped: Mapping[str, str]) -> str | None:
    lines = [escape(visible(f"skipped: {name}: {reason}")) for name, reason in skipped.items()]
    return "\n".join(lines) or None
