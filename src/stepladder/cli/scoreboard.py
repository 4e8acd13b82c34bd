"""An evaluation as a table, for whoever reads it in a terminal.

Used by the verbs that evaluate; the figures are those of `training.evaluation.scores`.
"""

from rich.table import Table
from rich.text import Text

from stepladder.training.evaluation.scores import Evaluation, Interval, Score
from stepladder.visible import visible

INDENT = "  "


def scoreboard(evaluation: Evaluation, *, in_full: bool = False) -> Table:
    """Return the scores of an evaluation as a table.

    Args:
        evaluation: What came of it.
        in_full: Whether every part of a group has a line; otherwise only starting sides have.
    """
    total = evaluation.total
    is_match, is_judged = total.num_draws is not None, total.rate is not None
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("opponent" if is_match else "", overflow="fold")
    columns = ["games"]
    if is_judged:
        columns += ["won" if is_match else "solved", "95 % interval"]
    if is_match:
        columns += ["drawn", "lost"]
    columns += ["return"] if is_judged else ["return", "95 % interval"]
    for column in (*columns, "length"):
        table.add_column(column, justify="right", no_wrap=True)
    for group in total.parts:
        _add(table, group, "")
        if len(group.parts) > 1 and (is_match or in_full):
            for part in group.parts:
                _add(table, part, INDENT)
    if len(total.parts) != 1:
        _add(table, total, "")
    return table


def _add(table: Table, score: Score, indent: str) -> None:
    cells = [f"{score.num_games:,}"]
    if score.rate is not None:
        cells += [f"{score.rate.value:.3f}", _ends(score.rate, 3)]
    if score.num_draws is not None and score.num_losses is not None:
        cells += [f"{count / score.num_games:.3f}" for count in (score.num_draws, score.num_losses)]
    cells.append(f"{score.mean_return.value:.2f}")
    if score.rate is None:
        cells.append(_ends(score.mean_return, 2))
    style = "dim" if indent else ""
    name = Text(indent + visible(score.name))
    table.add_row(name, *cells, f"{score.mean_length:.1f}", style=style)


def _ends(interval: Interval, digits: int) -> str:
    return f"{interval.low:.{digits}f} to {interval.high:.{digits}f}"
