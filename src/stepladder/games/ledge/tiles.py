"""The tiles of a level: their codes in arrays, and their characters in text.

Lowest module of the game: `level` reads and writes the characters; `physics`, `views` and the
painter use the codes.
"""

AIR = 0
WALL = 1
PLATFORM = 2
"""Solid for feet that come from above, air for everything else."""
MINE = 3
SWITCH = 4
DOOR = 5

# Seen in patches only; a level's own tiles never change.
SWITCH_TOUCHED = 6
DOOR_OPEN = 7

NUM_CODES = 8
"""Number of codes that may be seen in a patch."""

CODE_NAMES = ("air", "wall", "platform", "mine", "switch", "door", "switch touched", "door open")

START_CHARACTER = "@"
"""Where the runner starts; the tile itself is air."""

CHARACTERS = {
    AIR: ".",
    WALL: "#",
    PLATFORM: "-",
    MINE: "*",
    SWITCH: "S",
    DOOR: "D",
}
"""How each code is written."""

CODES = {character: code for code, character in CHARACTERS.items()} | {
    " ": AIR,
    START_CHARACTER: AIR,
}
"""How each character is read."""
