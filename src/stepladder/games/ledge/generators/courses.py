"""Courses: a way from one side to the other over steps, pits, blocks and mines.

The family behind the first stages, whose levels are a walk with a few things in it, and behind the
minefields at the end. A course is drawn as a profile of the ground, stretch by stretch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stepladder.games.ledge.generators.chance import Chance, IntegerBounds
from stepladder.games.ledge.generators.sketch import Sketch, Unfit
from stepladder.games.ledge.level import MAX_WIDTH
from stepladder.games.ledge.tiles import AIR, MINE

ALONG = "along"
"""Switch on the way, door at the end."""

TURN = "turn"
"""Start in the middle, switch at one end, door at the other."""

RETURN = "return"
"""Switch at the end, door back at the start."""


@dataclass(frozen=True, kw_only=True)
class Course:
    """What a course is made of."""

    features: tuple[str, ...]
    """Kinds to choose from: plain, up, down, pit, block, mine, mined_pit, hanging_mine."""

    num_features: IntegerBounds
    stretch: IntegerBounds
    """Tiles of flat ground between two features."""

    order: str = ALONG
    step: IntegerBounds = (1, 1)
    """Tiles that steps and blocks are high."""

    pit_width: IntegerBounds = (1, 2)
    pit_depth: IntegerBounds = (1, 1)
    headroom: IntegerBounds = (4, 5)
    """Tiles of air above the highest ground."""

    def draw(self, chance: Chance) -> Sketch:
        """Draw a course."""
        profile = _draw_profile(chance, self)
        highest = max(profile.elevations)
        width = len(profile.elevations) + 2
        sketch = Sketch(highest + chance.within(self.headroom) + 2, width)
        grounds = [sketch.height - 1 - elevation for elevation in profile.elevations]
        for i, ground in enumerate(grounds):
            sketch.paint(AIR, 1, i + 1, ground - 1)
        for column, above in profile.mines:
            sketch.paint(MINE, grounds[column] - 1 - above, column + 1)
        columns = _choose_columns(chance, profile.flats, self.order)
        start, switch, door = ((grounds[column] - 1, column + 1) for column in columns)
        sketch.place(start, switch, door)
        return sketch


@dataclass
class _Profile:
    """The ground from left to right."""

    elevations: list[int] = field(default_factory=list)
    mines: list[tuple[int, int]] = field(default_factory=list)  # column, tiles above its ground
    flats: list[list[int]] = field(default_factory=list)  # columns of each flat stretch

    def add(self, elevation: int, width: int) -> list[int]:
        first = len(self.elevations)
        self.elevations += [elevation] * width
        return list(range(first, first + width))


def _draw_profile(chance: Chance, settings: Course) -> _Profile:
    profile = _Profile()
    num_features = chance.within(settings.num_features)
    elevation = 1 + settings.pit_depth[1] + chance.whole(0, settings.step[1])
    if settings.features == ("down",):
        elevation += num_features * settings.step[1]
    profile.flats.append(profile.add(elevation, chance.within(settings.stretch)))
    for _ in range(num_features):
        elevation = _add_feature(chance, settings, profile, elevation)
        profile.flats.append(profile.add(elevation, chance.within(settings.stretch)))
        if len(profile.elevations) + 2 > MAX_WIDTH:
            raise Unfit
    return profile


def _add_feature(chance: Chance, settings: Course, profile: _Profile, elevation: int) -> int:
    """Add one feature; return the elevation behind it."""
    kind = chance.pick(settings.features)
    lowest = 1 + settings.pit_depth[1]
    if kind in ("up", "down"):
        step = chance.within(settings.step)
        if kind == "down" and elevation - step >= lowest:
            return elevation - step
        # At the bottom the only way is up.
        return elevation + step
    if kind in ("pit", "mined_pit"):
        depth = min(chance.within(settings.pit_depth), elevation - 1)
        columns = profile.add(elevation - depth, chance.within(settings.pit_width))
        if kind == "mined_pit":
            profile.mines += [(column, 0) for column in columns]
    elif kind == "block":
        profile.add(elevation + chance.within(settings.step), chance.whole(1, 2))
    elif kind == "mine":
        profile.mines += [(column, 0) for column in profile.add(elevation, 1)]
    elif kind == "hanging_mine":
        profile.mines += [(column, chance.whole(1, 2)) for column in profile.add(elevation, 1)]
    return elevation


def _choose_columns(chance: Chance, flats: list[list[int]], order: str) -> tuple[int, int, int]:
    """Return the columns of start, switch and door, each on flat ground."""
    first, last = flats[0], flats[-1]
    middle = chance.pick(flats[1:-1] if len(flats) > 2 else flats)
    if order == ALONG:
        return first[0], chance.pick(middle), last[-1]
    if order == TURN:
        return chance.pick(middle), first[0], last[-1]
    return first[-1], last[-1], first[0]
