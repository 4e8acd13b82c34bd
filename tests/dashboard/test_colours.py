"""Colours of runs and labels."""

import itertools

from stepladder.dashboard.colours import label_colour, run_colour, run_dash, scale_rgb


def brightness(rgb: tuple[int, int, int]) -> float:
    return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2]


def test_ten_runs_have_their_own_colour_and_later_ones_are_dashed() -> None:
    assert len({run_colour(k).light for k in range(10)}) == 10
    assert len({run_colour(k).dark for k in range(10)}) == 10
    assert run_colour(13) == run_colour(3)
    assert [run_dash(k) for k in (0, 9)] == ["", ""]
    assert len({(run_colour(k), run_dash(k)) for k in range(40)}) == 40


def test_the_scale_gets_brighter_all_the_way() -> None:
    shades = [brightness(scale_rgb(k / 50)) for k in range(51)]
    assert all(a < b for a, b in itertools.pairwise(shades))
    assert scale_rgb(-1) == scale_rgb(0)
    assert scale_rgb(2) == scale_rgb(1)


def test_labels_of_a_family_differ() -> None:
    assert len({label_colour(k, 12) for k in range(12)}) == 12
    assert label_colour(0, 1) == label_colour(0, 5)
