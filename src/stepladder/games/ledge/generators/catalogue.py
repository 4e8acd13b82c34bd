"""The seven stages: which generators each has, and how they are set.

Read by `generate`. Difficulty rises over the first five stages: longer ways, higher steps, wider
gaps, first mines, walls to climb, ways to be found.
"""

from __future__ import annotations

from typing import Protocol

from stepladder.games.ledge.generators.caves import Caves
from stepladder.games.ledge.generators.chance import Chance
from stepladder.games.ledge.generators.courses import RETURN, TURN, Course
from stepladder.games.ledge.generators.ledges import Islands, Ledges
from stepladder.games.ledge.generators.rooms import Rooms
from stepladder.games.ledge.generators.shafts import Shafts
from stepladder.games.ledge.generators.sketch import Sketch


class Generator(Protocol):
    """Draws levels of one kind."""

    def draw(self, chance: Chance) -> Sketch:
        """Draw a level; raise `Unfit` if this attempt cannot become one."""
        ...


GENERATORS: dict[str, dict[str, Generator]] = {
    "simplest": {
        "flat": Course(features=("plain",), num_features=(2, 2), stretch=(2, 3)),
        "turn": Course(features=("plain",), num_features=(2, 2), stretch=(2, 3), order=TURN),
        "drop": Course(features=("down",), num_features=(2, 2), stretch=(2, 3)),
    },
    "simpler": {
        "steps": Course(features=("up", "down"), num_features=(2, 3), stretch=(3, 4)),
        "pits": Course(features=("pit",), num_features=(2, 3), stretch=(3, 4)),
        "blocks": Course(
            features=("block", "plain"), num_features=(2, 3), stretch=(3, 4), order=TURN
        ),
    },
    "simple": {
        "gaps": Course(
            features=("pit", "block"),
            num_features=(3, 4),
            stretch=(3, 5),
            step=(1, 2),
            pit_width=(2, 3),
            pit_depth=(2, 3),
        ),
        "mines": Course(
            features=("mine", "up", "down", "mine"),
            num_features=(3, 4),
            stretch=(3, 5),
            step=(1, 2),
        ),
        "ledges": Ledges(num_ledges=(2, 3), width=(11, 14), rise=(2, 2)),
    },
    "medium": {
        "hills": Course(
            features=("up", "down", "mined_pit", "pit", "mine"),
            num_features=(5, 6),
            stretch=(2, 4),
            step=(2, 3),
            pit_width=(2, 3),
            pit_depth=(2, 3),
        ),
        "islands": Islands(num_islands=(4, 6), length=(2, 4), gap=(2, 3), climb=1),
        "shaft": Shafts(num_shafts=(1, 1), height=(9, 13), width=(3, 4)),
        "chambers": Rooms(
            num_rows=(2, 2), num_columns=(2, 3), height=(4, 5), width=(5, 6), furniture_percent=50
        ),
    },
    "complex": {
        "gauntlet": Course(
            features=("up", "down", "mined_pit", "block", "mine", "hanging_mine"),
            num_features=(6, 7),
            stretch=(2, 3),
            order=RETURN,
            step=(2, 4),
            pit_width=(2, 4),
            pit_depth=(2, 3),
        ),
        "shafts": Shafts(num_shafts=(2, 4), height=(10, 14), width=(3, 4), mine_every=(4, 6)),
        "maze": Rooms(
            num_rows=(4, 5),
            num_columns=(6, 8),
            height=(2, 2),
            width=(2, 3),
            num_loops=(1, 3),
            num_mines=(0, 2),
        ),
        "chambers": Rooms(
            num_rows=(3, 3),
            num_columns=(3, 4),
            height=(4, 5),
            width=(5, 6),
            furniture_percent=60,
            num_mines=(3, 6),
        ),
    },
    "exploration": {
        "caves": Caves(height=(22, 24), width=(36, 40), num_mines=(0, 3)),
        "maze": Rooms(
            num_rows=(7, 7),
            num_columns=(9, 13),
            height=(2, 2),
            width=(2, 3),
            num_loops=(4, 8),
            num_mines=(0, 2),
        ),
        "chambers": Rooms(
            num_rows=(3, 4),
            num_columns=(5, 6),
            height=(4, 4),
            width=(5, 5),
            num_loops=(2, 4),
            furniture_percent=60,
            num_mines=(0, 4),
        ),
    },
    "mine_heavy": {
        "minefield": Course(
            features=("mine", "mined_pit", "hanging_mine", "mine", "up", "down"),
            num_features=(8, 9),
            stretch=(2, 3),
            step=(1, 2),
            pit_width=(2, 3),
            pit_depth=(2, 2),
        ),
        "islands": Islands(
            num_islands=(6, 7), length=(2, 3), gap=(2, 4), climb=2, is_return=True, num_mines=(4, 8)
        ),
        "shafts": Shafts(
            num_shafts=(3, 4), height=(12, 16), width=(3, 4), mine_every=(3, 4), num_rests=(0, 0)
        ),
        "chambers": Rooms(
            num_rows=(3, 3),
            num_columns=(4, 5),
            height=(4, 5),
            width=(5, 6),
            num_loops=(1, 2),
            furniture_percent=50,
            num_mines=(18, 28),
        ),
    },
}
"""For each stage, its generators by name."""

MIN_STEPS = {
    "simplest": 15,
    "simpler": 40,
    "simple": 60,
    "medium": 90,
    "complex": 160,
    "exploration": 200,
    "mine_heavy": 120,
}
"""Shortest solution that a level of a stage may have; easier levels are drawn again."""
