"""How every picture is written."""

from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
import pytest

from stepladder.errors import ConfigError
from stepladder.pictures import check_picture
from stepladder.pictures.comparison import comparison_figure
from stepladder.pictures.figure import STYLE, Figure, colours_of

ROWS = [
    {
        "scenario": "<b>$x_1$ \x1b[2J \ud800 한국어" + "long " * 30,
        "curriculum": f"method {number}" + "&" * 40,
        "ratio_to_oracle": 0.2 * 7.0**number,
        "ratio_low": 0.15 * 7.0**number,
        "ratio_high": 0.3 * 7.0**number,
    }
    for number in range(5)
]


def test_the_same_values_give_the_same_bytes() -> None:
    first, second = (comparison_figure(ROWS).encoded(".svg") for _ in range(2))
    assert first == second
    assert b"<dc:date>" not in first


def test_texts_from_outside_are_shown_and_nothing_else() -> None:
    written = comparison_figure(ROWS, title="<script>").encoded(".svg").decode()
    tree = ElementTree.fromstring(written)
    assert "<script" not in written
    texts = ["".join(t.itertext()) for t in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert "<script>" in texts
    assert any(text.startswith("<b>$x_1$ \\x1b") for text in texts)
    assert max(map(len, texts)) < 120


def test_everything_lies_inside_the_picture() -> None:
    figure = comparison_figure(ROWS)
    figure.draw_without_rendering()
    width, height = figure.bbox.size
    for axes in figure.axes:
        box = axes.get_tightbbox()
        assert box is not None
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= width
        assert box.y1 <= height


def test_a_picture_is_svg_or_png_and_names_who_made_it(tmp_path: Path) -> None:
    figure = comparison_figure(ROWS)
    for name, head in (("deep/a.svg", b"<?xml"), ("a.PNG", b"\x89PNG")):
        figure.save(tmp_path / name, mark="made by a test")
        content = (tmp_path / name).read_bytes()
        assert content.startswith(head)
        assert b"made by a test" in content
    assert figure._repr_svg_().startswith("<?xml")
    with pytest.raises(ConfigError, match=r"must be called \.svg or \.png; got .*a\.pdf"):
        figure.save(tmp_path / "a.pdf")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["a.PNG"]


def test_the_settings_of_matplotlib_stay_as_the_user_has_them() -> None:
    before = {name: mpl.rcParams[name] for name in STYLE}
    Figure(3.0, 2.0, "mine").encoded(".svg")
    comparison_figure(ROWS)
    assert before == {name: mpl.rcParams[name] for name in STYLE}
    assert before["font.size"] != STYLE["font.size"]


def test_neighbouring_labels_have_different_colours() -> None:
    colours = list(colours_of([f"label {number}" for number in range(30)]).values())
    assert all(one != next_one for one, next_one in pairwise(colours))


def test_without_matplotlib_the_fix_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(module: str) -> Any:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    monkeypatch.setattr("stepladder.pictures.import_module", missing)
    with pytest.raises(ConfigError, match=r"needs the package matplotlib, .*stepladder\[plot\]"):
        check_picture("a.svg")
