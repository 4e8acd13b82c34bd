"""An evaluation as a table, and evaluations of a run read back from JSON.

Used by `eval` and `train`; the figures are those of `training.evaluation.scores`.
"""

from collections.abc import Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from stepladder.cli.console import plain_table
from stepladder.errors import SnapshotError
from stepladder.training.evaluation.scores import Evaluation, Interval, Score
from stepladder.visible import visible

INDENT = "  "

COUNTS = ("num_games", "num_trials", "num_steps", "mean_length")
"""Numbers that every score has."""


def scoreboard(evaluation: Evaluation, *, in_full: bool = False) -> Table:
    """Return the scores of an evaluation as a table.

    Args:
        evaluation: The scores.
        in_full: Whether every part of a group has a row; by default only starting sides have.
    """
    total = evaluation.total
    is_match, is_judged = total.num_draws is not None, total.rate is not None
    columns = ["games"]
    if is_judged:
        columns += ["won" if is_match else "solved", "95 % interval"]
    if is_match:
        columns += ["drawn", "lost"]
    columns += ["return"] if is_judged else ["return", "95 % interval"]
    table = plain_table("opponent" if is_match else "", numbers=[*columns, "length"])
    for group in total.parts:
        table.add_row(*_cells(group))
        if len(group.parts) > 1 and (is_match or in_full):
            for part in group.parts:
                table.add_row(*_cells(part, INDENT), style="dim")
    if len(total.parts) != 1:
        table.add_row(*_cells(total))
    return table


def _cells(score: Score, indent: str = "") -> list[Text | str]:
    cells: list[Text | str] = [Text(indent + visible(score.name)), f"{score.num_games:,}"]
    if score.rate is not None:
        cells += [f"{score.rate.value:.3f}", f"{score.rate.low:.3f} to {score.rate.high:.3f}"]
    if score.num_draws is not None and score.num_losses is not None:
        cells += [f"{count / score.num_games:.3f}" for count in (score.num_draws, score.num_losses)]
    mean = score.mean_return
    cells.append(f"{mean.value:.2f}")
    if score.rate is None:
        cells.append(f"{mean.low:.2f} to {mean.high:.2f}")
    return [*cells, f"{score.mean_length:.1f}"]


def evaluation_from_json(data: Mapping[str, Any]) -> Evaluation:
    """Return the evaluation that `Evaluation.to_json` wrote; other entries are ignored.

    Raises:
        SnapshotError: It is damaged.
    """
    try:
        return Evaluation(
            env=data["env"],
            seed=data["seed"],
            is_deterministic=data["is_deterministic"],
            total=_score(data["total"]),
        )
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise SnapshotError(
            f"an evaluation in the run is damaged ({error}). Evaluate the policy again with: "
            "stepladder eval"
        ) from error


def _score(data: Mapping[str, Any]) -> Score:
    for name in COUNTS:
        _number(name, data[name])
    for name in ("num_draws", "num_losses"):
        if data[name] is not None:
            _number(name, data[name])
    if data["num_games"] < 1 or type(data["name"]) is not str:
        raise ValueError(f"{data['name']!r} has {data['num_games']} games")
    changed = {
        "rate": None if data["rate"] is None else _interval(data["rate"]),
        "mean_return": _interval(data["mean_return"]),
        "parts": tuple(map(_score, data["parts"])),
    }
    return Score(**{**data, **changed})


def _interval(data: Mapping[str, float | None]) -> Interval:
    ends = (data[name] for name in Interval._fields)
    return Interval(*(float("nan") if end is None else _number("end", end) for end in ends))


def _number(name: str, value: Any) -> float:
    if type(value) not in (int, float):
        raise TypeError(f"{name} is {repr(value)[:80]}")
    return value
