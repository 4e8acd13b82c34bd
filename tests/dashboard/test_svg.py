"""Pieces of a plot as SVG text."""

import base64
import itertools
import re
import struct
import zlib
from xml.etree import ElementTree

import numpy as np
import pytest

from stepladder.dashboard import svg
from stepladder.dashboard.colours import scale_rgb
from stepladder.dashboard.svg import Frame, Scale, area_path, line_path

NAN = np.nan


def test_a_line_goes_through_its_points() -> None:
    path = line_path(np.array([0.0, 10, 20.26]), np.array([5.0, 6.04, 7]))
    assert path == "M0 5L10 6L20.3 7"


def test_a_gap_breaks_a_line_and_a_lone_point_is_a_dot() -> None:
    xs = np.arange(6.0)
    assert line_path(xs, np.array([1.0, 2, NAN, 4, NAN, 6])) == "M0 1L1 2M3 4h0M5 6h0"
    assert line_path(xs, np.full(6, NAN)) == ""


def test_an_area_goes_there_above_and_back_below() -> None:
    xs = np.array([0.0, 1, 2, 3])
    path = area_path(xs, np.array([9.0, 9, NAN, 9]), np.array([1.0, 2, 3, 4]))
    assert path == "M0 1L1 2L1 9L0 9ZM3 4L3 9Z"


def test_a_scale_maps_ends_to_ends() -> None:
    linear = Scale(0, 10, 100, 0)
    assert [linear.one(v) for v in (0, 5, 10)] == [100, 50, 0]
    log = Scale(1, 100, 0, 200, log=True)
    assert [log.one(v) for v in (1, 10, 100)] == pytest.approx([0, 100, 200])
    assert np.isnan(log(np.array([0.0, -1.0]))).all()


def test_both_axes_are_drawn_and_numbers_lie_inside() -> None:
    frame = Frame()
    axes = (
        svg.x_axes(frame, 90_000)
        + svg.y_axis(frame, (0, 1))
        + svg.y_axis(frame, (0.01, 1), log=True)
    )
    tree = ElementTree.fromstring(f"<svg>{axes}</svg>")
    kinds = {group.get("class") for group in tree.iter("g")}
    assert kinds == {"axis x-steps", "axis x-fraction", "axis y-linear", "axis y-log"}
    texts = {group.get("class"): [t.text for t in group.iter("text")] for group in tree.iter("g")}
    assert texts["axis x-steps"] == ["0", "20k", "40k", "60k", "80k", "agent steps"]
    assert texts["axis x-fraction"] == [
        "0.0",
        "0.2",
        "0.4",
        "0.6",
        "0.8",
        "1.0",
        "fraction of the run",
    ]
    assert texts["axis y-log"] == ["0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1"]
    for text in tree.iter("text"):
        assert 0 <= float(text.get("x", "")) <= frame.width
        assert 0 <= float(text.get("y", "")) <= frame.height


def test_names_beside_rows_never_touch() -> None:
    for count in (1, 13, 40, 200):
        axis = svg.label_axis(Frame(height=300), [f"taskclass{k}" for k in range(count)])
        heights = [float(y) for y in re.findall(r' y="([\d.]+)"', axis)]
        assert len(heights) >= min(count, 12)
        assert all(b - a >= 10.9 for a, b in itertools.pairwise(heights))


def test_a_long_name_loses_its_middle() -> None:
    assert svg.shortened("abcdefghij", 10) == "abcdefghij"
    assert svg.shortened("abcdefghijk", 10) == "abcd…ghijk"


def pixels(image: str) -> tuple[int, int, list[tuple[int, ...]], list[bytes]]:
    """Decode the picture of a heat map: size, palette, rows."""
    found = re.search(r"base64,([^\"]+)", image)
    assert found
    png = base64.b64decode(found[1])
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    chunks, place = {}, 8
    while place < len(png):
        size, kind = struct.unpack(">I4s", png[place : place + 8])
        body = png[place + 8 : place + 8 + size]
        (check,) = struct.unpack(">I", png[place + 8 + size : place + 12 + size])
        assert check == zlib.crc32(kind + body)
        chunks[kind] = body
        place += 12 + size
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    palette = [tuple(chunks[b"PLTE"][k : k + 3]) for k in range(0, 768, 3)]
    raw = zlib.decompress(chunks[b"IDAT"])
    rows = [raw[k * (width + 1) + 1 : (k + 1) * (width + 1)] for k in range(height)]
    assert chunks[b"tRNS"] == b"\x00"
    return width, height, palette, rows


def test_a_heat_map_is_a_picture_with_one_pixel_per_cell() -> None:
    image = svg.heat_image(
        np.array([[0.0, 5.0, 10.0], [NAN, 20.0, -3.0]]), (0, 10), (40, 8, 90, 20)
    )
    width, height, palette, rows = pixels(image)
    assert (width, height) == (3, 2)
    # 0 is transparent; 1 to 255 run along the scale; what lies beyond takes the end's colour.
    assert [list(row) for row in rows] == [[1, 128, 255], [0, 255, 1]]
    assert palette[1] == scale_rgb(0)
    assert palette[255] == scale_rgb(1)
    assert 'x="40" y="8" width="90" height="20" preserveAspectRatio="none"' in image


def test_a_heat_map_of_one_value_can_be_drawn() -> None:
    _, _, _, rows = pixels(svg.heat_image(np.array([[3.0]]), (3, 3), (0, 0, 1, 1)))
    assert list(rows[0]) == [1]


def test_an_element_escapes_its_name() -> None:
    text = svg.element(Frame(), "", name='"><script>', kind="", plot="p0")
    assert "<script" not in text
    ElementTree.fromstring(text)
