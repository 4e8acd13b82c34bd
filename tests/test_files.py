"""Files of others: nothing is followed or waited for, and JSON is read within bounds."""

import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from stepladder.files import (
    MAX_JSON_DIGITS,
    MOST_DEPTH,
    IrregularFileError,
    open_regular,
    parsed_json,
    read_bytes,
    read_json,
    replacing,
    require_folder,
    require_regular,
)
from stepladder.visible import one_visible_line, visible


def make_socket(path: Path) -> None:
    here = os.getcwd()
    # The name of a socket may only be short.
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    finally:
        os.chdir(here)


def make_link(path: Path) -> None:
    (path.parent / "elsewhere").write_text("{}")
    path.symlink_to(path.parent / "elsewhere")


IRREGULAR: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a folder": os.mkdir,
    "a socket": make_socket,
    "a symbolic link": make_link,
    "a device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.timeout(10)
@pytest.mark.parametrize("kind", IRREGULAR)
def test_only_regular_files_are_opened(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file"
    IRREGULAR[kind](path)
    said = "a symbolic link" if kind == "a device" else kind
    for use in (open_regular, read_bytes, read_json, require_regular):
        with pytest.raises(IrregularFileError, match=f"it is {said}.*; expected a regular file"):
            use(path)
    for flags in (os.O_RDWR, os.O_RDWR | os.O_CREAT):
        with pytest.raises(IrregularFileError):
            open_regular(path, flags)


def test_a_link_is_followed_only_where_the_user_has_named_it(tmp_path: Path) -> None:
    make_link(tmp_path / "link")
    assert read_json(tmp_path / "link", follow=True) == {}
    (tmp_path / "device").symlink_to("/dev/zero")
    with pytest.raises(IrregularFileError, match="a device"):
        read_json(tmp_path / "device", follow=True)
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "missing", follow=True)


def test_a_link_to_a_folder_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    require_folder(tmp_path)
    with pytest.raises(IrregularFileError, match=r"a symbolic link.*expected a folder"):
        require_folder(tmp_path / "link")


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(OSError, match="more than 256,000 bytes"):
        read_bytes(path, 256_000)


def test_an_interrupted_replacement_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(TypeError), replacing(path) as file:
        file.write("no bytes")  # type: ignore[arg-type]
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("is_draft", [True, False])
def test_a_replacement_does_not_write_through_links(tmp_path: Path, is_draft: bool) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    path = tmp_path / "file"
    (tmp_path / f".file.{os.getpid()}.part" if is_draft else path).symlink_to(victim)
    with replacing(path) as file:
        file.write(b"new")
    assert victim.read_text() == "mine"
    assert path.read_text() == "new"
    assert not path.is_symlink()


def test_json_is_read_as_ever() -> None:
    text = '{"a": [1, -2.5e3, true, null, "\\u00e9"], "b": {"c": {}}, "d": 340282366920938463463}'
    assert parsed_json(text) == {
        "a": [1, -2500.0, True, None, "é"],
        "b": {"c": {}},
        "d": 340282366920938463463,
    }
    deepest = "[" * MOST_DEPTH + "]" * MOST_DEPTH
    assert isinstance(parsed_json(deepest), list)
    assert parsed_json("9" * MAX_JSON_DIGITS) == 10**MAX_JSON_DIGITS - 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * (MOST_DEPTH + 1) + "]" * (MOST_DEPTH + 1), "nested deeper than 120"),
        ("[" * 100_000, "nested deeper"),
        ('{"a":' * 100_000, "nested deeper"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "the key 'c' is there twice"),
        ("NaN", "NaN"),
        ("[-Infinity]", "-Infinity"),
        ("1e400", "too large for a float"),
        ("-1e999", "too large for a float"),
        ("1" * (MAX_JSON_DIGITS + 1), "301 digits"),
        ("1" * 5_000_000, "5,000,000 digits"),
        ("", "Expecting value"),
        ("{", "Expecting property name"),
        (b"\xff\xfe", "not UTF-8"),
        (b'"\xc3"', "not UTF-8"),
        ("[1,]", "Expecting|Illegal trailing comma"),
    ],
)
def test_json_that_is_none_is_refused_in_one_line(text: str | bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        parsed_json(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_what_a_terminal_obeys_is_written_out() -> None:
    assert visible("plain é 漢 🙂\tand\nmore") == "plain é 漢 🙂\tand\nmore"
    for code in (*range(9), *range(11, 32), *range(127, 160), 0x202E, 0x2066, 0xFEFF, 0xE0041):
        shown = visible(f"a{chr(code)}b")
        assert shown.isascii()
        assert shown.isprintable()
        assert shown.startswith("a\\")
    assert visible("\x1b]0;title\x07") == "\\x1b]0;title\\x07"
    assert visible("\ud800") == "\\ud800"
    assert one_visible_line(" a\n\tb\x1b ") == "a b\\x1b"


def test_a_full_disk_is_named_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("older")
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    said = r"No space left on device: .*report\.html"
    with pytest.raises(OSError, match=said), replacing(path):
        raise full
    assert path.read_text() == "older"
    assert os.listdir(tmp_path) == ["report.html"]
