"""Files from unknown places: opened safely, read within bounds.

At the bottom of the package: runs, checkpoints, configs and levels are all read here. Symbolic
links are not followed, pipes and devices are not waited for, and JSON is refused if it is too
large, too deep or not valid. Errors are an `OSError` or a `ValueError` with one line, which the
caller puts into its own error.
"""

import errno
import json
import math
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from io import BufferedReader, BufferedWriter
from pathlib import Path
from typing import Any, NoReturn, cast

MOST_JSON_BYTES = 256 * 2**20
"""Largest JSON that is read; the largest that is written has a line for each of a million tasks."""

MOST_DEPTH = 120
"""Deepest nesting of JSON: what `tasks.plain` accepts, and the objects that it is put into."""

MAX_JSON_DIGITS = 300
"""Longest integer in JSON: any that is shorter can become a float."""


class IrregularFileError(OSError):
    """Something else is where a regular file or a folder should be."""

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


def open_regular(
    path: str | os.PathLike[str], flags: int = os.O_RDONLY, *, follow: bool = False
) -> int:
    """Open a regular file and return its descriptor; nothing else is opened or waited for.

    Args:
        path: The file.
        flags: As for `os.open`.
        follow: Whether it may be a link: only where the user has named the file.

    Raises:
        OSError: It is a link, a folder, a pipe, a socket or a device, or cannot be opened.
    """
    # Without O_NONBLOCK, opening a pipe would block until another process writes to it.
    careful = flags | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    try:
        descriptor = os.open(path, careful | (0 if follow else os.O_NOFOLLOW), 0o644)
    except OSError:
        # Say what it is, if it is something else than a file.
        if not follow:
            require_regular(path, missing_ok=True)
        raise
    kind = _kind(os.fstat(descriptor).st_mode)
    if kind is not None:
        os.close(descriptor)
        raise _irregular(path, kind)
    return descriptor


def require_regular(path: str | os.PathLike[str], *, missing_ok: bool = False) -> None:
    """Raise OSError unless a path is a regular file, for readers that open it themselves."""
    try:
        kind = _kind(os.lstat(path).st_mode)
    except FileNotFoundError:
        if missing_ok:
            return
        raise
    if kind is not None:
        raise _irregular(path, kind)


def require_folder(path: str | os.PathLike[str]) -> None:
    """Raise OSError unless a path is a folder itself, and not a link to one."""
    mode = os.lstat(path).st_mode
    if not stat.S_ISDIR(mode):
        raise _irregular(path, _kind(mode) or "a file", "a folder")


def is_real_folder(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a folder itself, and not a link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def is_there(path: str) -> bool:
    """Whether there is something at a path; a text that no file can have as its name is none."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def _kind(mode: int) -> str | None:
    """Return what a path is in words; None is a regular file."""
    kinds = (
        (stat.S_ISLNK, "a symbolic link, which is not followed"),
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
    )
    if stat.S_ISREG(mode):
        return None
    return next((text for is_kind, text in kinds if is_kind(mode)), "a device")


def _irregular(path: str | os.PathLike[str], kind: str, wanted: str = "a regular file") -> OSError:
    return IrregularFileError(errno.EINVAL, f"it is {kind}; expected {wanted}", os.fspath(path))


def read_bytes(
    path: str | os.PathLike[str], most: int = MOST_JSON_BYTES, *, follow: bool = False
) -> bytes:
    """Return the content of a regular file; it may be a link if `follow` is set.

    Raises:
        OSError: It is not a regular file, cannot be read, or has more than `most` bytes.
    """
    with open_for_reading(path, follow=follow) as file:
        size = os.fstat(file.fileno()).st_size
        # One more than it has: it may be growing.
        content = file.read(min(size, most) + 1)
    if len(content) > most:
        raise OSError(
            errno.EFBIG, f"it has more than {most:,} bytes, the most that is read", os.fspath(path)
        )
    return content


@contextmanager
def open_for_reading(
    path: str | os.PathLike[str], *, follow: bool = False
) -> Generator[BufferedReader, None, None]:
    """Open a regular file as `open_regular` does; it is closed at the end of the block."""
    with os.fdopen(open_regular(path, follow=follow), "rb") as file:
        yield file


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Generator[BufferedWriter, None, None]:
    """Write a file beside its place and put it there at the end of the block, as a whole.

    A reader sees the old file or the new one; it is safe on disk when the block has ended. An
    exception leaves the old one. A link in its place is replaced, not followed.

    Raises:
        OSError: It cannot be written.
    """
    target = Path(path)
    draft = draft_of(target)
    draft.unlink(missing_ok=True)
    try:
        descriptor = open_regular(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        # A full disk: writing names no file by itself.
        raise OSError(error.errno, error.strerror, os.fspath(target)) from error
    finally:
        draft.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Wait until a file or a folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def draft_of(path: Path) -> Path:
    """Return where a file is written first: beside its place, with the number of this process."""
    return path.with_name(f".{path.name}.{os.getpid()}.part")


def read_json(
    path: str | os.PathLike[str], most: int = MOST_JSON_BYTES, *, follow: bool = False
) -> Any:
    """Return what a JSON file holds; raises as `read_bytes` and `parsed_json` do."""
    return parsed_json(read_bytes(path, most, follow=follow))


def parsed_json(text: str | bytes) -> Any:
    """Return what a JSON text says.

    Raises:
        ValueError: It is not JSON or not UTF-8, is nested deeper than `MOST_DEPTH`, names a key
            twice in one object, or has a number that is infinite, NaN or has more than
            `MAX_JSON_DIGITS` digits.

    Example:
        >>> parsed_json('{"a": [1, 2.5]}')
        {'a': [1, 2.5]}
    """
    try:
        value = json.loads(
            text.decode() if isinstance(text, bytes) else text,
            object_pairs_hook=_each_key_once,
            parse_int=_short_integer,
            parse_float=_finite_number,
            parse_constant=_refuse_constant,
        )
    except UnicodeDecodeError as error:
        reason = f"{error.reason} at byte {error.start}"
        raise ValueError(f"it is not UTF-8 text ({reason})") from error
    except RecursionError as error:
        raise ValueError(f"it is nested deeper than {MOST_DEPTH} levels") from error
    # Level by level: recursion is what this check protects from.
    layer = _containers([value])
    for _ in range(MOST_DEPTH):
        layer = [inner for one in layer for inner in _containers(one)]
    if layer:
        raise ValueError(f"it is nested deeper than {MOST_DEPTH} levels")
    return value


def _containers(values: Any) -> list[Any]:
    """Return the objects and lists directly inside one."""
    entries = cast("dict[str, Any]", values).values() if isinstance(values, dict) else values
    return [entry for entry in entries if isinstance(entry, dict | list)]


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))
        raise ValueError(f"the key {twice[:80]!r} is there twice in one object")
    return entries


def _short_integer(text: str) -> int:
    if len(text) > MAX_JSON_DIGITS:
        raise ValueError(f"an integer has {len(text):,} digits; at most {MAX_JSON_DIGITS} are read")
    return int(text)


def _finite_number(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text[:40]} is too large for a float")
    return value


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"it has {text}, which is not a JSON number")
