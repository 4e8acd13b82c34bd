"""One level of the game, and the text it is written in.

A level comes from a file, a generator or a task's parameters; `world.pack` turns it into the arrays
that the kernels read.

The text has one character per tile and one line per row: ``#`` wall, ``.`` or space air, ``-``
platform, ``*`` mine, ``@`` start, ``S`` switch, ``D`` door; the last three exactly once. Lines
before the first row that start with ``;`` are notes (``; time_limit: 400``) or comments. Short rows
are filled with air, and everything outside the map is wall.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

from stepladder.errors import TaskError
from stepladder.games.ledge.tiles import (
    AIR,
    CHARACTERS,
    CODES,
    DOOR,
    START_CHARACTER,
    SWITCH,
)

MAX_HEIGHT = 24
MAX_WIDTH = 40
MAX_LEVEL_STEPS = 1_000_000

STAGES = (
    "simplest",
    "simpler",
    "simple",
    "medium",
    "complex",
    "exploration",
    "mine_heavy",
)
"""Difficulty rises over the first five; exploration is large, mine_heavy is full of mines."""

NOTE_MARK = ";"
TIME_LIMIT_NOTE = "time_limit"

TilePlace = tuple[int, int]
"""Row and column of a tile, counted from the upper left."""


def default_time_limit(height: int, width: int) -> int:
    """Return the time limit for a level of this size: several times what a solution needs."""
    return 200 + 2 * height * width


def check_stage(stage: str) -> str:
    """Return the stage, or raise TaskError if it does not exist."""
    if stage not in STAGES:
        raise TaskError(
            f"There is no stage {stage!r}; expected one of {', '.join(STAGES)}. Choose one."
        )
    return stage


@dataclass(frozen=True, eq=False)
class Level:
    """A level; immutable. Levels with equal names and texts are equal."""

    name: str
    """For messages and captions."""

    tiles: npt.NDArray[np.uint8]
    """Codes of `tiles`, shape ``(height, width)``, read-only."""

    start: TilePlace
    switch: TilePlace
    door: TilePlace

    time_limit: int
    """Steps until the episode is truncated."""

    notes: tuple[tuple[str, str], ...] = ()
    """The other notes of the header, as pairs of key and value in order."""

    @property
    def height(self) -> int:
        """Number of rows."""
        return self.tiles.shape[0]

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.tiles.shape[1]

    @property
    def rows(self) -> list[str]:
        """The map as text, one string per row."""
        lines = [[CHARACTERS[int(code)] for code in row] for row in self.tiles]
        lines[self.start[0]][self.start[1]] = START_CHARACTER
        return ["".join(line) for line in lines]

    @property
    def text(self) -> str:
        """Header and map; `parse` makes an equal level of it."""
        notes = ((TIME_LIMIT_NOTE, str(self.time_limit)), *self.notes)
        header = [f"{NOTE_MARK} {key}: {value}" for key, value in notes]
        return "\n".join([*header, *self.rows]) + "\n"

    def note(self, key: str) -> str | None:
        """Return the value of a note, or None."""
        return dict(self.notes).get(key)

    def with_time_limit(self, time_limit: int) -> Level:
        """Return the same level with another time limit, in steps."""
        return replace(self, time_limit=time_limit)

    @staticmethod
    def parse(text: str, name: str = "level") -> Level:
        """Read a level.

        Args:
            text: Header and map as described above; empty lines before and behind the map are
                ignored.
            name: Its name, also for messages.

        Raises:
            TaskError: If a character is unknown, start, switch or door do not occur exactly once,
                the map is empty or too large, or the time limit is not an integer.
        """
        if not isinstance(text, str):
            raise TaskError(
                f"Level {name!r} must be text, one character per tile; got "
                f"{type(text).__name__}. Pass the content of a level file."
            )
        lines = text.splitlines()
        while lines and not lines[-1].strip():
            lines.pop()
        is_row = [bool(line.strip()) and not line.startswith(NOTE_MARK) for line in lines]
        first = is_row.index(True) if any(is_row) else len(lines)
        notes = _read_notes(lines[:first], name)
        tiles, places = _read_rows(lines[first:], name, first)
        time_limit = notes.pop(TIME_LIMIT_NOTE, None)
        return Level(
            name=name,
            tiles=tiles,
            start=places[START_CHARACTER],
            switch=places[CHARACTERS[SWITCH]],
            door=places[CHARACTERS[DOOR]],
            time_limit=_read_time_limit(time_limit, name, tiles.shape),
            notes=tuple(notes.items()),
        )

    def __eq__(self, other: object) -> bool:
        """Compare by name and text."""
        return isinstance(other, Level) and (self.name, self.text) == (other.name, other.text)

    def __hash__(self) -> int:
        """Hash by name and text."""
        return hash((self.name, self.text))


def _read_notes(lines: list[str], name: str) -> dict[str, str]:
    notes: dict[str, str] = {}
    for i, line in enumerate(lines):
        key, colon, value = line.removeprefix(NOTE_MARK).partition(":")
        key = key.strip()
        # A comment may contain a colon too; a key is one word.
        if not colon or not key.isidentifier():
            continue
        if key != TIME_LIMIT_NOTE and get_close_matches(key.lower(), [TIME_LIMIT_NOTE], 1, 0.8):
            raise TaskError(
                f"Level {name!r}, line {i + 1}: unknown note {key!r}; did you mean "
                f"{TIME_LIMIT_NOTE!r}?"
            )
        if key in notes:
            raise TaskError(
                f"Level {name!r}, line {i + 1}: the header has {key!r} twice; once is expected. "
                "Remove one."
            )
        notes[key] = value.strip()
    return notes


def _read_rows(
    rows: list[str], name: str, first: int
) -> tuple[npt.NDArray[np.uint8], dict[str, TilePlace]]:
    """Return the codes and the places of start, switch and door."""
    if not rows:
        raise TaskError(f"Level {name!r} has no rows; at least one is expected. Add a map.")
    width = max(len(row) for row in rows)
    if len(rows) > MAX_HEIGHT or width > MAX_WIDTH:
        raise TaskError(
            f"Level {name!r} has {len(rows)} rows and {width} columns; at most {MAX_HEIGHT} and "
            f"{MAX_WIDTH} fit. Make it smaller."
        )
    tiles = np.full((len(rows), width), AIR, dtype=np.uint8)
    places: dict[str, TilePlace] = {}
    unique = (START_CHARACTER, CHARACTERS[SWITCH], CHARACTERS[DOOR])
    for i, row in enumerate(rows):
        for j, character in enumerate(row):
            where = f"Level {name!r}, line {first + i + 1}, column {j + 1}"
            if character not in CODES:
                raise TaskError(
                    f"{where}: {character!r} is not a tile; expected one of "
                    f"{' '.join(sorted(CODES)).strip()} or a space. Replace it."
                )
            if character in unique and character in places:
                raise TaskError(
                    f"{where}: a second {character!r}; exactly one is expected. Remove one."
                )
            if character in unique:
                places[character] = (i, j)
            tiles[i, j] = CODES[character]
    for character in unique:
        if character not in places:
            raise TaskError(
                f"Level {name!r} has no {character!r}; exactly one each of {' '.join(unique)} is "
                "expected. Add it."
            )
    tiles.flags.writeable = False
    return tiles, places


def _read_time_limit(value: str | None, name: str, shape: tuple[Any, ...]) -> int:
    if value is None:
        return default_time_limit(*shape)
    # isdecimal is also true for digits of other scripts, which int reads as well.
    if not value.isdecimal() or not 1 <= int(value) <= MAX_LEVEL_STEPS:
        raise TaskError(
            f"Level {name!r} has the time_limit {value!r}; an integer from 1 to {MAX_LEVEL_STEPS} "
            "is expected. Correct its header."
        )
    return int(value)
