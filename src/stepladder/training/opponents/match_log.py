"""Every game that counts for a rating: a file that only grows, one JSON object per line.

`archive` appends while it holds the lock. What a killed writer has left of a line has no end of
line, is not read, and is cut off by the next writer.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from stepladder.files import open_for_reading, open_regular, parsed_json


def append(path: Path, entry: Mapping[str, Any]) -> int:
    """Add an entry; return where the log ends now. The caller holds the lock."""
    line = json.dumps(entry, allow_nan=False, separators=(",", ":")).encode() + b"\n"
    descriptor = open_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    with os.fdopen(descriptor, "a+b") as file:
        end = _whole_end(file)
        file.truncate(end)
        file.write(line)
        file.flush()
        os.fsync(file.fileno())
    return end + len(line)


def read(path: Path, start: int) -> Iterator[Any]:
    """Yield every whole entry from a place on; None for a line that is no JSON."""
    try:
        with open_for_reading(path) as file:
            file.seek(start)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                yield _parsed(line)
    except FileNotFoundError:
        return


def _parsed(line: bytes) -> Any:
    try:
        return parsed_json(line)
    except ValueError:
        return None


def _whole_end(file: IO[bytes]) -> int:
    """Return where the last whole line ends."""
    size = file.seek(0, os.SEEK_END)
    if size == 0:
        return 0
    file.seek(size - 1)
    if file.read(1) == b"\n":
        return size
    file.seek(0)
    return file.read().rfind(b"\n") + 1
