"""Shafts: high and narrow, to be climbed from wall to wall.

One shaft with an alcove at each end for the medium stage; several in a row, joined by turns at top
and bottom, with mines on their walls, for the later ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from stepladder.games.ledge.generators.chance import Chance, IntegerBounds
from stepladder.games.ledge.generators.sketch import Sketch
from stepladder.games.ledge.level import TilePlace
from stepladder.games.ledge.tiles import AIR, MINE, PLATFORM

_HALL = 3
"""Tiles that the halls joining two shafts are high."""


@dataclass(frozen=True, kw_only=True)
class Shafts:
    """What shafts are like."""

    num_shafts: IntegerBounds
    height: IntegerBounds
    """Tiles from the floor of a shaft to its ceiling."""

    width: IntegerBounds
    mine_every: IntegerBounds = (0, 0)
    """Rows between two mines on the walls of a shaft; 0 for none."""

    num_rests: IntegerBounds = (0, 1)
    """Platforms to rest on in each shaft."""

    def draw(self, chance: Chance) -> Sketch:
        """Draw shafts side by side, joined at the bottom and at the top by turns."""
        num_shafts = chance.within(self.num_shafts)
        height = chance.within(self.height)
        widths = [chance.within(self.width) for _ in range(num_shafts)]
        alcove = chance.whole(3, 4)
        sketch = Sketch(height + 2, 2 * alcove + sum(widths) + 2 * (num_shafts - 1) + 2)
        left = 1 + alcove
        sketch.paint(AIR, height + 1 - _HALL, 1, _HALL, alcove)
        for i, width in enumerate(widths):
            sketch.paint(AIR, 1, left, height, width)
            _furnish(chance, sketch, self, left, width)
            # The first shaft is entered at the bottom and left at the top, the next one reversed.
            top = 1 if i % 2 == 0 else height + 1 - _HALL
            sketch.paint(AIR, top, left + width, _HALL, 2 if i < num_shafts - 1 else alcove)
            left += width + 2
        end_row = _HALL if num_shafts % 2 == 1 else height
        entry: TilePlace = (height, 1)
        middle: TilePlace = (height, 1 + chance.whole(1, alcove - 1))
        end: TilePlace = (end_row, sketch.width - 2)
        if chance.happens(50):
            sketch.place(middle, end, entry)
        else:
            sketch.place(entry, (end_row, sketch.width - 1 - alcove), end)
        return sketch


def _furnish(chance: Chance, sketch: Sketch, settings: Shafts, left: int, width: int) -> None:
    """Add platforms and mines to one shaft, clear of the halls at both ends."""
    first, last = _HALL + 2, sketch.height - 3 - _HALL
    for _ in range(chance.within(settings.num_rests)):
        # On one side only: a runner that comes from above has to get past it.
        length = width // 2
        at = chance.pick((left, left + width - length))
        sketch.paint(PLATFORM, chance.whole(first, last), at, 1, length)
    if settings.mine_every[1] == 0:
        return
    row, side = last, chance.whole(0, 1)
    while row >= first:
        sketch.paint(MINE, row, left + side * (width - 1))
        row -= chance.within(settings.mine_every)
        side = 1 - side
