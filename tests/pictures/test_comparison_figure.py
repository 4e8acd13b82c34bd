"""The picture of a comparison of curricula."""

import math
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from stepladder.errors import ConfigError
from stepladder.pictures.comparison import comparison_figure
from stepladder.pictures.figure import Figure

TIMES = "\N{MULTIPLICATION SIGN}"


def row(scenario: str, curriculum: str, ratio: float | None, **others: Any) -> dict[str, Any]:
    ends = {"ratio_low": ratio and ratio * 0.9, "ratio_high": ratio and ratio * 1.1}
    found = {"scenario": scenario, "curriculum": curriculum, "ratio_to_oracle": ratio}
    return {**found, **ends, "finished_share": 1.0, "mean_samples": 1.0, **others}


ROWS = [
    row("chain-10", "uniform", 4.5),
    row("chain-10", "frontier", 1.5),
    row("chain-30", "uniform", 12.0),
    row("chain-30", "frontier", 3.0, finished_share=0.75),
]


def dots(axes: Axes) -> list[Line2D]:
    return [line for line in axes.lines if line.get_marker() == "o"]


def intervals(axes: Axes) -> list[Line2D]:
    return [line for line in axes.lines if line.get_marker() == "|"]


def values(axes: Axes) -> list[float]:
    return [float(line.get_xdata()[0]) for line in dots(axes)]


def texts(figure: Figure) -> list[str]:
    tree = ElementTree.fromstring(figure.encoded(".svg"))
    return ["".join(t.itertext()) for t in tree.iter("{http://www.w3.org/2000/svg}text")]


def test_there_is_a_panel_per_scenario_and_a_dot_per_row() -> None:
    figure = comparison_figure(ROWS)
    first, second = figure.axes
    assert (values(first), values(second)) == ([4.5, 1.5], [12.0, 3.0])
    assert [len(intervals(axes)) for axes in figure.axes] == [2, 2]
    written = texts(figure)
    assert {"chain-10", "chain-30", "oracle"} <= set(written)
    assert {f"{number}{TIMES}" for number in ("4.50", "1.50", "12.0")} <= set(written)
    assert written.count("uniform") == 1, "names stand beside the first panel only"


def test_all_panels_share_one_logarithmic_axis_with_the_oracle_on_it() -> None:
    rows = [row("a", "c", 40.0), row("a", "d", 50.0), row("b", "c", 5.0)]
    left, right = comparison_figure(rows).axes
    assert left.get_xscale() == "log"
    assert left.get_xlim() == right.get_xlim()
    assert left.get_xlim()[0] < 1.0 < 55.0 < left.get_xlim()[1]


def test_unfinished_seeds_make_a_hollow_dot_and_a_mark() -> None:
    figure = comparison_figure(ROWS)
    fills = [dot.get_markerfacecolor() for axes in figure.axes for dot in dots(axes)]
    assert [fill == "white" for fill in fills] == [False, False, False, True]
    written = texts(figure)
    assert f">3.00{TIMES}" in written
    assert any("Hollow" in text for text in written)
    assert not any("Hollow" in text for text in texts(comparison_figure(ROWS[:2])))


@pytest.mark.parametrize("name", ["uniform", "Uniform"])
def test_uniform_is_larger_than_the_rest(name: str) -> None:
    rows = [{**r, "curriculum": r["curriculum"].replace("uniform", name)} for r in ROWS[:2]]
    (axes,) = comparison_figure(rows).axes
    uniform, other = (dot.get_markersize() for dot in dots(axes))
    assert uniform > other


@pytest.mark.parametrize("ratio", [None, math.nan, math.inf, 0.0])
def test_a_curriculum_that_never_finished_has_no_dot(ratio: float | None) -> None:
    figure = comparison_figure([*ROWS[:2], row("chain-10", "random", ratio, finished_share=0.0)])
    assert values(figure.axes[0]) == [4.5, 1.5]
    assert "not mastered" in texts(figure)


def test_a_single_seed_has_no_interval() -> None:
    figure = comparison_figure([row("s", "c", 2.0, ratio_low=None, ratio_high=math.nan)])
    assert intervals(figure.axes[0]) == []


def test_objects_are_rows_too() -> None:
    objects = [SimpleNamespace(**r) for r in ROWS]
    assert comparison_figure(objects).encoded(".svg") == comparison_figure(ROWS).encoded(".svg")


def test_rows_that_cannot_be_drawn_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least one result"):
        comparison_figure([])
    with pytest.raises(ConfigError, match=r"scenario and a curriculum; got \{'scenario': 'x'\}"):
        comparison_figure([{"scenario": "x"}])
    with pytest.raises(ConfigError, match="'chain-10' with curriculum 'uniform' twice"):
        comparison_figure([ROWS[0], ROWS[0]])
    with pytest.raises(ConfigError, match="columns must be at least 1; got 0"):
        comparison_figure(ROWS, columns=0)
