"""The picture of an evaluation."""

from math import nan

import numpy as np
import pytest

from stepladder.errors import ConfigError
from stepladder.pictures.evaluation import evaluation_figure

WAYS = {
    "random": {"easy": (0.1, 0.05, 0.5), "hard": (0.0, 0.0, 0.2)},
    "drawn": {"easy": (0.8, 0.4, 0.9), "hard": (0.3, nan, nan)},
}


def test_there_is_a_bar_for_each_way_and_group_as_long_as_its_figure() -> None:
    (axes,) = evaluation_figure(WAYS, title="mine", own="drawn").axes
    widths = [[bar.get_width() for bar in bars] for bars in axes.containers]  # type: ignore[attr-defined]
    assert widths == [[0.1, 0.0], [0.8, 0.3]]
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["random", "drawn (own way)"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["easy", "hard"]
    assert axes.get_xlim() == (0.0, 1.0)
    ends = [tuple(np.asarray(line.get_xdata())) for line in axes.lines if line.get_marker() == "|"]
    assert ends[:3] == [(0.05, 0.5), (0.0, 0.2), (0.4, 0.9)]


def test_groups_of_one_way_lie_together_with_the_first_on_top() -> None:
    (axes,) = evaluation_figure(WAYS, title="mine").axes
    random, drawn = ([bar.get_y() for bar in bars] for bars in axes.containers)  # type: ignore[attr-defined]
    assert random[0] < drawn[0] < random[1] < drawn[1]
    assert axes.get_ylim()[0] > axes.get_ylim()[1], "the axis goes downwards"


def test_returns_have_an_axis_that_holds_them_all() -> None:
    ways = {"random": {"all": (-90.0, -140.0, -60.0)}, "best": {"all": (-5.0, nan, nan)}}
    (axes,) = evaluation_figure(ways, title="mine", is_share=False).axes
    low, high = axes.get_xlim()
    assert low < -140.0
    assert high >= 0.0


def test_without_any_figure_there_is_no_picture() -> None:
    with pytest.raises(ConfigError, match="there is nothing to draw"):
        evaluation_figure({"best": {"all": (nan, nan, nan)}}, title="mine")
