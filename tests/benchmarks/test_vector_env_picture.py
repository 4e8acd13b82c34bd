"""The picture of a race between vector envs."""

import math
import re
import runpy
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
throughput_svg = runpy.run_path(str(ROOT / "benchmarks/vector_env_picture.py"))["throughput_svg"]

TIMES = "\N{MULTIPLICATION SIGN}"
SVG = "{http://www.w3.org/2000/svg}"


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


def drawn(rows: list[dict[str, Any]], **others: Any) -> ElementTree.Element:
    settings: dict[str, Any] = {"num_cores": 2, **others}
    return ElementTree.fromstring(throughput_svg(rows, **settings))


def beside_loop(rows: list[dict[str, Any]], rate: float = 1000.0) -> list[dict[str, Any]]:
    """Return rows with the plain loop that they are compared with."""
    cells = dict.fromkeys((entry["world"], entry["num_envs"]) for entry in rows)
    return [*(row(world, "plain loop", num_envs, rate) for world, num_envs in cells), *rows]


def groups(tree: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    return [group for group in tree.iter(f"{SVG}g") if group.get("class") == kind]


def texts(tree: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in tree.iter(f"{SVG}text")]


def path_of(tree: ElementTree.Element, library: str) -> ElementTree.Element:
    """Return the line of a library in the first panel."""
    for line in groups(tree, "line"):
        if (line.findtext(f"{SVG}title") or "").startswith(f"{library}: "):
            return next(line.iter(f"{SVG}path"))
    raise AssertionError(f"{library} has no line")


def points(path: ElementTree.Element) -> list[tuple[float, float]]:
    numbers = [float(text) for text in re.findall(r"[\d.]+", path.get("d", ""))]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def test_there_is_a_panel_per_world_and_a_line_per_library() -> None:
    tree = drawn(ROWS)
    assert len(groups(tree, "panel")) == 2
    assert len(groups(tree, "line")) == 6
    assert {"pole", "grid", f"1{TIMES} = 1,000/s", f"1{TIMES} = 50/s"} <= set(texts(tree))


def test_heights_are_multiples_of_the_loop_and_widths_are_doublings() -> None:
    tree = drawn(ROWS)
    ours, loop = points(path_of(tree, "Stepladder")), points(path_of(tree, "plain loop"))
    (zero,) = [t for t in groups(tree, "panel")[0].iter(f"{SVG}text") if t.text == f"0{TIMES}"]
    ground = float(zero.get("y", "")) - 4
    # 1.8 times the rate stands 1.8 times as high above the ground.
    assert (ground - ours[0][1]) / (ground - loop[0][1]) == pytest.approx(1.8, abs=0.01)
    # From 1 to 16 is as far as from 16 to 256.
    assert ours[1][0] - ours[0][0] == pytest.approx(ours[2][0] - ours[1][0], abs=0.2)


def test_a_line_shows_what_all_cores_can_do() -> None:
    rows = [row("pole", "Stepladder", n, 3000.0) for n in (1, 2)]
    tree = drawn(beside_loop(rows), num_cores=3)
    (rule,) = [p for p in tree.iter(f"{SVG}path") if p.get("stroke-dasharray") == "2 3"]
    height = float(rule.get("d", "").split()[1].partition("h")[0])
    assert height == pytest.approx(points(path_of(tree, "Stepladder"))[0][1], abs=0.1)
    assert "3 cores" in texts(tree)


def test_ours_is_the_boldest_line_and_lies_on_top() -> None:
    tree = drawn(ROWS)
    mine, other = (
        float(path_of(tree, name).get("stroke-width", "")) for name in ("Stepladder", "Gym Sync")
    )
    assert mine > 2 * other
    last = groups(groups(tree, "panel")[0], "line")[-1]
    assert (last.findtext(f"{SVG}title") or "").startswith("Stepladder: ")


def test_libraries_of_one_family_share_a_colour_and_differ_in_dashes() -> None:
    names = ("Gym Sync", "Gym Async", "Puffer Serial", "Stepladder")
    tree = drawn(beside_loop([row("pole", name, 1, 1000.0) for name in names]))
    sync, asynchronous, puffer, ours = (path_of(tree, name) for name in names)
    assert sync.get("stroke") == asynchronous.get("stroke")
    assert (sync.get("stroke-dasharray"), asynchronous.get("stroke-dasharray")) == (None, "5 4")
    assert len({path.get("stroke") for path in (sync, puffer, ours)}) == 3


def test_the_legend_names_every_library_once_and_ours_first() -> None:
    (legend,) = groups(drawn(ROWS), "legend")
    assert texts(legend) == ["Stepladder", "plain loop", "Gym Sync"]
    assert len(list(legend.iter(f"{SVG}path"))) == 3


def test_every_colour_has_a_shade_for_dark_pages() -> None:
    tree = drawn(ROWS)
    style = tree.findtext(f"{SVG}style") or ""
    assert style.startswith("@media (prefers-color-scheme:dark){")
    named = {element.get("class") for element in tree.iter() if element.get("stroke")}
    assert len(named) > 3
    for name in (*named, "ground"):
        assert f".{name}{{" in style, f"{name} has no dark shade"
    (ground,) = list(tree.iter(f"{SVG}rect"))
    assert ground.get("fill") == "#ffffff"


@pytest.mark.parametrize("rate", [None, math.nan, math.inf, 0.0, -1.0])
def test_what_was_not_measured_leaves_a_gap(rate: float | None) -> None:
    rows = [row("pole", "x", n, 100.0) for n in (1, 2)]
    rows += [row("pole", "x", 4, rate), row("pole", "x", 8, 100.0), row("pole", "none", 1, rate)]
    tree = drawn(beside_loop(rows))
    assert path_of(tree, "x").get("d", "").count("M") == 2
    assert len(groups(tree, "line")) == 2


def test_each_rate_is_compared_with_the_loop_over_as_many_envs() -> None:
    rows = [row("pole", "plain loop", n, rate) for n, rate in ((1, 1000.0), (2, 500.0))]
    tree = drawn([*rows, row("pole", "x", 1, 1500.0), row("pole", "x", 2, 750.0)])
    (left, right) = points(path_of(tree, "x"))
    assert left[1] == right[1]
    (line,) = [g for g in groups(tree, "line") if "x: " in (g.findtext(f"{SVG}title") or "")]
    said = f"x: 1 envs 1,500/s (1.50{TIMES}); 2 envs 750/s (1.50{TIMES})"
    assert line.findtext(f"{SVG}title") == said


def test_numbers_of_envs_that_would_touch_are_left_out() -> None:
    tree = drawn(beside_loop([row("pole", "x", n, 100.0) for n in (1, 256, 257, 258)]))
    shown = [text for text in texts(tree) if text.isdigit()]
    assert shown == ["1", "256"]


def test_everything_lies_inside_the_picture() -> None:
    rows = [
        row(f"world {world}", f"library{k} of many", n, 90.0 * 10.0**world)
        for world in range(7)
        for k in range(14)
        for n in (1, 100_000)
    ]
    tree = drawn(beside_loop(rows, rate=1.0), num_cores=64)
    width, height = float(tree.get("width", "")), float(tree.get("height", ""))
    for text in tree.iter(f"{SVG}text"):
        assert 0 <= float(text.get("x", "")) <= width
        assert 0 <= float(text.get("y", "")) <= height
    for line in groups(tree, "line"):
        for x, y in points(next(line.iter(f"{SVG}path"))):
            assert 0 <= x <= width
            assert 0 <= y <= height


def test_names_are_escaped() -> None:
    name = "<script>alert(1)</script>"
    tree = drawn(beside_loop([row(name, name, 1, 2.0)]), title="<b>&")
    assert texts(tree)[0] == "<b>&"


def test_rows_that_cannot_be_drawn_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one rate"):
        drawn([])
    with pytest.raises(ValueError, match="'sea' with 3 envs needs a rate of 'plain loop'"):
        drawn([row("sea", "x", 3, 1.0), row("sea", "plain loop", 3, None)])
    with pytest.raises(ValueError, match=r"\('pole', 'x', 1\) twice"):
        drawn([row("pole", "x", 1, 1.0)] * 2)
