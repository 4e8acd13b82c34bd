"""Levels as text: what is read, what is written, and what is refused by line and column."""

import numpy as np
import pytest

from stepladder.errors import TaskError
from stepladder.games.ledge.level import MAX_HEIGHT, MAX_WIDTH, Level, default_time_limit
from stepladder.games.ledge.tiles import AIR, DOOR, MINE, PLATFORM, SWITCH, WALL
from stepladder.games.ledge.world import MARGIN, PACKED_HEIGHT, PACKED_WIDTH, UNREACHABLE, pack

TEXT = """\
; time_limit: 123
; author: someone
######
#@.S-#
#. *D#
######
"""


def test_each_character_becomes_its_code():
    level = Level.parse(TEXT)
    assert level.tiles.tolist() == [
        [WALL] * 6,
        [WALL, AIR, AIR, SWITCH, PLATFORM, WALL],
        [WALL, AIR, AIR, MINE, DOOR, WALL],
        [WALL] * 6,
    ]
    assert (level.start, level.switch, level.door) == ((1, 1), (1, 3), (2, 4))
    assert (level.height, level.width, level.time_limit) == (4, 6, 123)
    assert level.note("author") == "someone"
    assert level.note("nothing") is None


def test_text_makes_an_equal_level():
    level = Level.parse(TEXT, "mine")
    again = Level.parse(level.text, "mine")
    assert again == level
    assert hash(again) == hash(level)
    assert again.text == TEXT.replace("#. *D#", "#..*D#")
    assert Level.parse(level.text, "other") != level


def test_a_level_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        Level.parse(TEXT).tiles[0, 0] = AIR


def test_short_rows_are_filled_with_air_and_empty_lines_around_count_for_nothing():
    level = Level.parse("\n\n#@SD.#\n##\n\n######\n\n")
    assert level.rows == ["#@SD.#", "##....", "......", "######"]


def test_prose_in_the_header_is_a_comment_even_with_a_colon():
    level = Level.parse("; a level by hand: the first\n; nothing\n@SD")
    assert level.notes == ()
    assert level.time_limit == default_time_limit(1, 3)


def test_windows_line_ends_are_read():
    assert Level.parse(TEXT.replace("\n", "\r\n")) == Level.parse(TEXT)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("@SD\n.x.", r"line 2, column 2: 'x' is not a tile"),
        ("; note: 1\n@SD\n.\t.", r"line 3, column 2: '\\t' is not a tile"),
        ("@S\nD@", r"line 2, column 2: a second '@'"),
        ("@SSD", r"line 1, column 3: a second 'S'"),
        ("@SDD", r"line 1, column 4: a second 'D'"),
        ("SD", r"has no '@'"),
        ("@D", r"has no 'S'"),
        ("@S", r"has no 'D'"),
        ("", r"has no rows"),
        ("; time_limit: 3\n\n", r"has no rows"),
        ("@SD" + "." * MAX_WIDTH, rf"1 rows and {MAX_WIDTH + 3} columns; at most"),
        ("@SD\n" + "#\n" * MAX_HEIGHT, rf"{MAX_HEIGHT + 1} rows and 3 columns; at most"),
        ("; time_limit: soon\n@SD", r"time_limit 'soon'"),
        ("; time_limit: 0\n@SD", r"time_limit '0'"),
        ("; time_limit: 1000001\n@SD", r"time_limit '1000001'"),
        ("; time_limit: 1.5\n@SD", r"time_limit '1.5'"),
        ("; a: 1\n; a: 2\n@SD", r"line 2: the header has 'a' twice"),
        (["@SD"], r"must be text.*got list"),
    ],
)
def test_what_is_no_level_is_refused_in_one_line_that_names_it(text, words):
    with pytest.raises(TaskError, match=words) as caught:
        Level.parse(text, "some level")
    assert "'some level'" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_largest_level_fits():
    rows = ["#" * MAX_WIDTH] * (MAX_HEIGHT - 1) + ["@SD" + "." * (MAX_WIDTH - 3)]
    packed = pack(Level.parse("\n".join(rows)))
    assert packed.tiles.shape == (PACKED_HEIGHT, PACKED_WIDTH)
    assert packed.tiles[MARGIN + MAX_HEIGHT - 1, MARGIN + 4] == AIR
    assert packed.tiles[MARGIN + MAX_HEIGHT, MARGIN + 4] == WALL


def test_a_packed_level_is_wall_all_around():
    packed = pack(Level.parse("@SD\n..."))
    inner = packed.tiles[MARGIN : MARGIN + 2, MARGIN : MARGIN + 3]
    assert inner.tolist() == [[AIR, SWITCH, DOOR], [AIR] * 3]
    assert np.count_nonzero(packed.tiles != WALL) == inner.size


def test_distances_go_around_walls_and_mines():
    # From the start: one down, four right, one up to the switch; the door is shut in.
    level = Level.parse(
        """\
@.*.S#D
.....##"""
    )
    packed = pack(level)
    to_switch = packed.to_switch[MARGIN : MARGIN + 2, MARGIN : MARGIN + 7]
    assert to_switch[0].tolist() == [6, 5, UNREACHABLE, 1, 0, UNREACHABLE, UNREACHABLE]
    assert to_switch[1].tolist() == [5, 4, 3, 2, 1, UNREACHABLE, UNREACHABLE]
    assert packed.to_door[MARGIN, MARGIN] == UNREACHABLE
    assert packed.record["switch_to_door"] == 0.0
    assert packed.record["way"] == 6.0
