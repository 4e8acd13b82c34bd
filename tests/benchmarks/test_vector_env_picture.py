"""The picture of a race between vector envs."""

import math
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

from stepladder.pictures.figure import Figure

ROOT = Path(__file__).resolve().parents[2]
drawn_by = runpy.run_path(str(ROOT / "benchmarks/vector_env_picture.py"))

TIMES = "\N{MULTIPLICATION SIGN}"


def drawn(rows: list[dict[str, Any]], **others: Any) -> Figure:
    return drawn_by["throughput_figure"](rows, **{"num_cores": 2, **others})


def row(world: str, library: str, num_envs: int, steps_per_s: float | None) -> dict[str, Any]:
    named = {"world": world, "library": library}
    return {**named, "num_envs": num_envs, "steps_per_s": steps_per_s}


LOOPS = {"pole": 1000.0, "grid": 50.0}
ROWS = [
    row(world, library, num_envs, share * LOOPS[world])
    for world in LOOPS
    for library, share in (("plain loop", 1.0), ("Stepladder", 1.8), ("Gym Sync", 0.5))
    for num_envs in (1, 16, 256)
]


def beside_loop(rows: list[dict[str, Any]], rate: float = 1000.0) -> list[dict[str, Any]]:
    """Return rows with the plain loop that they are compared with."""
    cells = dict.fromkeys((entry["world"], entry["num_envs"]) for entry in rows)
    return [*(row(world, "plain loop", num_envs, rate) for world, num_envs in cells), *rows]


def heights(axes: Axes) -> dict[str, list[float]]:
    """Return the values of each library's line."""
    lines = {str(line.get_label()): line for line in axes.lines}
    return {
        name: np.asarray(line.get_ydata()).tolist()
        for name, line in lines.items()
        if not name.startswith("_")
    }


def test_a_line_per_library_shows_multiples_of_the_loop_from_zero_in_a_panel_per_world() -> None:
    pole, grid, _ = drawn(ROWS).axes
    every = {"Stepladder": [1.8] * 3, "plain loop": [1.0] * 3, "Gym Sync": [0.5] * 3}
    assert heights(pole) == heights(grid) == every
    assert (pole.get_title("left"), pole.get_title("right")) == ("pole", f"1{TIMES} = 1,000/s")
    assert grid.get_title("right") == f"1{TIMES} = 50/s"
    assert pole.get_ylim()[0] == 0.0
    assert pole.get_xscale() == "log"


def test_a_line_shows_what_all_cores_can_do() -> None:
    axes = drawn(beside_loop([row("pole", "Stepladder", 1, 500.0)]), num_cores=3).axes[0]
    (rule,) = [line for line in axes.lines if line.get_linestyle() == ":"]
    assert set(np.asarray(rule.get_ydata()).tolist()) == {3.0}
    assert axes.get_ylim()[1] > 3.0
    assert [text.get_text() for text in axes.texts] == ["3 cores"]


def test_ours_is_the_boldest_line_and_lies_on_top() -> None:
    lines = {str(line.get_label()): line for line in drawn(ROWS).axes[0].lines}
    ours, other = lines["Stepladder"], lines["Gym Sync"]
    assert ours.get_linewidth() > 2 * other.get_linewidth()
    assert ours.get_zorder() > other.get_zorder()


def test_libraries_of_one_family_share_a_colour_and_differ_in_dashes() -> None:
    names = ("Gym Sync", "Gym Async", "Puffer Serial", "Stepladder")
    axes = drawn(beside_loop([row("pole", name, 1, 1000.0) for name in names])).axes[0]
    lines = {str(line.get_label()): line for line in axes.lines}
    sync, asynchronous, puffer, ours = (lines[name] for name in names)
    assert sync.get_color() == asynchronous.get_color()
    assert (sync.get_linestyle(), asynchronous.get_linestyle()) == ("-", "--")
    assert len({str(line.get_color()) for line in (sync, puffer, ours)}) == 3


def test_the_legend_names_every_library_once_and_ours_first() -> None:
    legend = drawn(ROWS).axes[-1].get_legend()
    assert legend is not None
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["Stepladder", "plain loop", "Gym Sync"]


@pytest.mark.parametrize("rate", [None, math.nan, math.inf, 0.0, -1.0])
def test_what_was_not_measured_leaves_a_gap(rate: float | None) -> None:
    rows = [row("pole", "x", n, 100.0) for n in (1, 2)]
    rows += [row("pole", "x", 4, rate), row("pole", "x", 8, 100.0), row("pole", "none", 1, rate)]
    found = heights(drawn(beside_loop(rows)).axes[0])
    assert np.isnan(found["x"]).tolist() == [False, False, True, False]
    assert "none" not in found


def test_each_rate_is_compared_with_the_loop_over_as_many_envs() -> None:
    rows = [row("pole", "plain loop", n, rate) for n, rate in ((1, 1000.0), (2, 500.0))]
    axes = drawn([*rows, row("pole", "x", 1, 1500.0), row("pole", "x", 2, 750.0)]).axes[0]
    assert heights(axes)["x"] == [1.5, 1.5]


def test_rows_that_cannot_be_drawn_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one rate"):
        drawn([])
    with pytest.raises(ValueError, match="'sea' with 3 envs needs a rate of 'plain loop'"):
        drawn([row("sea", "x", 3, 1.0), row("sea", "plain loop", 3, None)])
    with pytest.raises(ValueError, match=r"\('pole', 'x', 1\) twice"):
        drawn([row("pole", "x", 1, 1.0)] * 2)
