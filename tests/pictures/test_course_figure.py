"""The picture of a run: what was practised, and what succeeded."""

from math import nan

import numpy as np
import pytest

from stepladder.errors import ConfigError
from stepladder.pictures.course import course_figure

STEPS = np.array([0, 10, 20])
SHARES = {"a": (STEPS, np.array([1.0, 0.5, 0.0])), "b": ([10, 30], [0.5, 1.0])}
SUCCESS = {"a": (STEPS, np.array([0.1, nan, 0.9])), "b": (STEPS, np.array([0.0, 0.2, 0.4]))}


def test_shares_add_up_to_one_where_labels_were_logged_at_different_steps() -> None:
    figure = course_figure(SHARES, SUCCESS, title="mine")
    upper, lower = figure.axes
    # At 0, 10, 20, 30 the label a has 1, 0.5, 0, 0 and b has 0, 0.5, 0.5, 1, of which shares are
    # shown: a 1, 0.5, 0, 0. Between steps the areas are straight, so the outline of a passes there.
    outline = upper.collections[0].get_paths()[0].vertices
    tops = {float(x): float(y) for x, y in outline[::-1] if y > 0}
    assert tops == {0.0: 1.0, 10.0: 0.5}
    top = upper.collections[1].get_paths()[0].vertices
    assert {float(x) for x, y in top if y == 1.0} == {0.0, 10.0, 20.0, 30.0}
    assert [np.asarray(line.get_ydata()).tolist()[2] for line in lower.lines] == [0.9, 0.4]


def test_a_label_has_one_colour_and_the_legend_goes_upwards() -> None:
    figure = course_figure(SHARES, SUCCESS, title="mine")
    upper, lower = figure.axes
    for area, line in zip(upper.collections, lower.lines, strict=True):
        assert np.allclose(area.get_facecolor()[0][:3], _rgb(str(line.get_color())), atol=0.01)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["b", "a"]


def test_changes_are_marked_in_every_panel_and_named_in_the_first() -> None:
    changes = [(10.0, "success"), (20.0, "trend")]
    upper, lower = course_figure(SHARES, SUCCESS, title="mine", changes=changes).axes
    assert [text.get_text() for text in upper.texts] == ["success", "trend"]
    assert len(lower.lines) == 4
    assert lower.texts[:] == []


def test_one_kind_of_series_makes_one_panel_and_none_no_picture() -> None:
    assert len(course_figure({}, SUCCESS, title="mine").axes) == 1
    assert len(course_figure(SHARES, {}, title="mine").axes) == 1
    with pytest.raises(ConfigError, match="there is nothing to draw"):
        course_figure({}, {}, title="mine")


def _rgb(colour: str) -> list[float]:
    return [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
