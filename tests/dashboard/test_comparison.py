"""The picture of a comparison of curricula."""

import math
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from stepladder.dashboard import comparison_svg
from stepladder.errors import ConfigError

TIMES = "\N{MULTIPLICATION SIGN}"
SVG = "{http://www.w3.org/2000/svg}"


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


def drawn(rows: list[Any], **others: Any) -> ElementTree.Element:
    return ElementTree.fromstring(comparison_svg(rows, **others))


def results(tree: ElementTree.Element) -> list[ElementTree.Element]:
    return [g for g in tree.iter(f"{SVG}g") if g.get("class") == "result"]


def texts(tree: ElementTree.Element) -> list[str]:
    return [t.text or "" for t in tree.iter(f"{SVG}text")]


def test_there_is_a_panel_per_scenario_and_a_dot_per_row() -> None:
    tree = drawn(ROWS)
    panels = [g for g in tree.iter(f"{SVG}g") if g.get("class") == "panel"]
    assert len(panels) == 2
    assert len(list(tree.iter(f"{SVG}circle"))) == 4
    assert texts(tree).count("uniform") == 1, "names stand beside the first panel only"
    assert {"chain-10", "chain-30", *(f"{n}{TIMES}" for n in ("4.50", "1.50", "12.0"))} <= set(
        texts(tree)
    )


def test_the_axis_is_logarithmic_and_the_same_in_all_panels() -> None:
    circles = [float(c.get("cx", "")) for c in drawn(ROWS).iter(f"{SVG}circle")]
    # ln(4.5 / 1.5) / ln(12 / 3) = 1.0986 / 1.3863
    assert (circles[0] - circles[1]) / (circles[2] - circles[3]) == pytest.approx(0.7925, abs=0.01)


@pytest.mark.parametrize("others", [(), (5.0, 9.0)])
def test_the_oracle_has_a_line_at_one(others: tuple[float, ...]) -> None:
    tree = drawn([row("s", "oracle itself", 1.0), *(row("s", f"c{r}", r) for r in others)])
    circle = next(tree.iter(f"{SVG}circle"))
    lines = {p.get("d", "").split()[0] for p in tree.iter(f"{SVG}path")}
    assert f"M{circle.get('cx')}" in lines
    assert "oracle" in texts(tree)


def test_the_oracle_is_in_the_picture_though_all_need_much_more() -> None:
    tree = drawn([row("s", "c", 40.0), row("s", "d", 50.0)])
    (oracle,) = [t for t in tree.iter(f"{SVG}text") if t.text == "oracle"]
    names = [t for t in tree.iter(f"{SVG}text") if t.text in ("c", "d")]
    assert float(oracle.get("x", "")) > max(float(n.get("x", "")) for n in names)


def test_unfinished_seeds_make_a_hollow_dot_and_a_mark() -> None:
    tree = drawn(ROWS)
    fills = [c.get("fill") for c in tree.iter(f"{SVG}circle")]
    assert [fill == "#ffffff" for fill in fills] == [False, False, False, True]
    assert f">3.00{TIMES}" in texts(tree)
    assert "75% of seeds mastered all" in (results(tree)[3].findtext(f"{SVG}title") or "")
    assert any("Hollow" in text for text in texts(tree))
    assert not any("Hollow" in text for text in texts(drawn(ROWS[:2])))


@pytest.mark.parametrize("name", ["uniform", "Uniform"])
def test_uniform_is_larger_than_the_rest(name: str) -> None:
    rows = [{**r, "curriculum": r["curriculum"].replace("uniform", name)} for r in ROWS]
    sizes = [float(c.get("r", "")) for c in drawn(rows).iter(f"{SVG}circle")]
    assert sizes[0] == sizes[2] > sizes[1] == sizes[3]


@pytest.mark.parametrize("ratio", [None, math.nan, math.inf, 0.0])
def test_a_curriculum_that_never_finished_has_no_dot(ratio: float | None) -> None:
    tree = drawn([*ROWS[:2], row("chain-10", "random", ratio, finished_share=0.0)])
    assert len(list(tree.iter(f"{SVG}circle"))) == 2
    assert "not mastered" in texts(tree)


def test_a_single_seed_has_no_interval() -> None:
    with_interval, without = (
        len(list(results(drawn(rows))[0].iter(f"{SVG}path")))
        for rows in (ROWS[:1], [row("s", "c", 2.0, ratio_low=None, ratio_high=math.nan)])
    )
    assert (with_interval, without) == (1, 0)


def test_objects_are_rows_too() -> None:
    assert comparison_svg([SimpleNamespace(**r) for r in ROWS]) == comparison_svg(ROWS)


def test_names_are_escaped_and_long_ones_shortened() -> None:
    name = "<script>alert(1)</script>" + "x" * 80
    tree = drawn([row(name, name, 2.0)], title="<b>&")
    assert texts(tree)[0] == "<b>&"
    assert max(map(len, texts(tree))) < 120


def test_everything_lies_inside_the_picture() -> None:
    rows = [
        row(f"scenario {s}", f"curriculum {c}", 0.2 * 7.0**s + c, ratio_low=0.01)
        for s in range(7)
        for c in range(9)
    ]
    tree = drawn(rows)
    width, height = float(tree.get("width", "")), float(tree.get("height", ""))
    for text in tree.iter(f"{SVG}text"):
        assert 0 <= float(text.get("x", "")) <= width
        assert 0 <= float(text.get("y", "")) <= height
    for circle in tree.iter(f"{SVG}circle"):
        assert 0 <= float(circle.get("cx", "")) <= width


def test_rows_that_cannot_be_drawn_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least one result"):
        comparison_svg([])
    with pytest.raises(ConfigError, match=r"scenario and a curriculum; got \{'scenario': 'x'\}"):
        comparison_svg([{"scenario": "x"}])
    with pytest.raises(ConfigError, match="'chain-10' with curriculum 'uniform' twice"):
        comparison_svg([ROWS[0], ROWS[0]])
    with pytest.raises(ConfigError, match="columns must be at least 1; got 0"):
        comparison_svg(ROWS, columns=0)
