"""An evaluation as a table: one way of acting with all its figures, or several side by side.

Used by `eval` and `train`; the figures are those of `training.evaluation.scores`.
"""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from stepladder.cli.output.console import plain_table
from stepladder.training.evaluation.scores import WAYS_IN_WORDS, Evaluation, Interval, Score
from stepladder.visible import visible

INDENT = "  "

HEADINGS = {"success": "solved", "win_rate": "won"}
"""What figures are called in tables, where it is not their name."""


def scoreboard(evaluation: Evaluation, *, in_full: bool = False) -> Table:
    """Return the scores of an evaluation as a table.

    What was measured beside it has a column too; figures that count less are left out then.

    Args:
        evaluation: The scores.
        in_full: Whether every part of a group has a row; by default only starting sides have.
    """
    total = evaluation.total
    ways = [one for way in WAYS_IN_WORDS if (one := evaluation.in_way(way)) is not None]
    is_alone = len(ways) == 1
    columns = ["games"]
    if _has_repeats(total):
        columns.append("distinct")
    columns += _columns_of_one(total) if is_alone else _columns_of_ways(evaluation, ways)
    heading = "" if total.num_draws is None else "opponent"
    if not is_alone:
        heading = HEADINGS.get(total.headline[0], total.headline[0])
    table = plain_table(heading, numbers=columns)
    for path in _paths(total, in_full=in_full):
        scores = [_find(one.total, path) for one in ways]
        own = _find(total, path)
        assert own is not None
        indent = INDENT if len(path) > 1 else ""
        cells: list[Text | str] = [Text(indent + visible(own.name)), f"{own.num_games:,}"]
        if _has_repeats(total):
            cells.append(f"{own.num_trials:,}")
        cells += _cells_of_one(own) if is_alone else _cells_of_ways(own, scores, ways)
        table.add_row(*cells, style="dim" if indent else "")
    return table


def _has_repeats(score: Score) -> bool:
    return any(part.num_trials < part.num_games for part in (score, *score.parts))


def _paths(total: Score, *, in_full: bool) -> list[tuple[str, ...]]:
    """Return the rows of a table, each as the names that lead to a score."""
    paths: list[tuple[str, ...]] = []
    for group in total.parts:
        paths.append((group.name,))
        if len(group.parts) > 1 and (total.num_draws is not None or in_full):
            paths += [(group.name, part.name) for part in group.parts]
    return paths if len(total.parts) == 1 else [*paths, ()]


def _find(score: Score, path: Sequence[str]) -> Score | None:
    """Return the score that some names lead to; None where there is none."""
    if not path:
        return score
    found = next((part for part in score.parts if part.name == path[0]), None)
    return None if found is None else _find(found, path[1:])


# One way of acting.


def _columns_of_one(total: Score) -> list[str]:
    if total.rate is None:
        return ["return", "95 % interval", "length"]
    if total.num_draws is None:
        return ["solved", "95 % interval", "return", "length"]
    return ["won", "95 % interval", "draw", "lost", "return", "length"]


def _cells_of_one(score: Score) -> list[str]:
    mean, length = score.mean_return, f"{score.mean_length:.1f}"
    if score.rate is None:
        return [f"{mean.value:.2f}", f"{mean.low:.2f} to {mean.high:.2f}", length]
    rate = [f"{score.rate.value:.3f}", f"{score.rate.low:.3f} to {score.rate.high:.3f}"]
    return [*rate, *_draw_and_lost(score), f"{mean.value:.2f}", length]


def _draw_and_lost(score: Score) -> list[str]:
    if score.num_draws is None or score.num_losses is None:
        return []
    return [f"{count / score.num_games:.3f}" for count in (score.num_draws, score.num_losses)]


# Several ways side by side.


def _columns_of_ways(evaluation: Evaluation, ways: Sequence[Evaluation]) -> list[str]:
    columns = [f"{one.way} (own way)" if one is evaluation else one.way for one in ways]
    return columns + (["draw", "lost"] if evaluation.total.num_draws is not None else [])


def _cells_of_ways(
    own: Score, scores: Sequence[Score | None], ways: Sequence[Evaluation]
) -> list[str]:
    cells: list[str] = []
    for score, one in zip(scores, ways, strict=True):
        # In a match draws and losses need the room.
        is_short = one.way == "random" or (own.num_draws is not None and score is not own)
        cells.append("" if score is None else _figure(score.headline[1], is_short=is_short))
    return [*cells, *_draw_and_lost(own)]


def _figure(measured: Interval, *, is_short: bool) -> str:
    """Return a figure with its interval; without, where it only serves as a measure."""
    value = f"{measured.value:.2f}"
    return value if is_short else f"{value} ({measured.low:.2f} to {measured.high:.2f})"
