"""What tests of Ledge play with: one runner in one level, and random play in compiled code."""

from typing import Any

import numpy as np

from stepladder.compiled import compiled
from stepladder.games.dice import uniform
from stepladder.games.ledge.level import Level
from stepladder.games.ledge.physics import (
    HALF_HEIGHT,
    HALF_WIDTH,
    NOTHING,
    NUM_ACTIONS,
    SUCCEEDED,
    Runner,
    advance,
    begin,
)
from stepladder.games.ledge.tiles import WALL
from stepladder.games.ledge.world import pack

NEARLY = 1e-5
"""By how much a runner may seem to be in a wall: more than the physics' own skin."""


class Play:
    """One runner in one level."""

    def __init__(self, level: Level | str) -> None:
        self.level = level if isinstance(level, Level) else Level.parse(level)
        self.packed = pack(self.level)
        self.runner = Runner.zeros()[0]
        begin(self.runner, self.packed.record)

    def __getattr__(self, name: str) -> Any:
        return self.runner[name].item()

    def step(self, *actions: int) -> int:
        """Play actions; return the last event."""
        event = NOTHING
        for action in actions:
            event = advance(self.runner, self.packed.tiles, self.packed.record, action)
        return event

    def settle(self) -> "Play":
        """Do nothing until the runner stands."""
        while not self.on_ground:
            assert self.step(0) == NOTHING
        return self

    def is_in_a_wall(self) -> bool:
        """Return whether any corner of the runner is in a wall or outside the map."""
        for x in (self.x - HALF_WIDTH + NEARLY, self.x + HALF_WIDTH - NEARLY):
            for y in (self.y - HALF_HEIGHT + NEARLY, self.y + HALF_HEIGHT - NEARLY):
                if not (0 <= x < self.level.width and 0 <= y < self.level.height):
                    return True
                if self.level.tiles[int(y), int(x)] == WALL:
                    return True
        return False


def random_success(level: Level, num_episodes: int, hold: int, seed: int) -> float:
    """Return how often a runner succeeds that holds each random action for a few steps."""
    packed = pack(level)
    runner = Runner.zeros()[0]
    dice = np.array([seed], dtype=np.uint64)
    return _count(packed.tiles, packed.record, runner, dice, num_episodes, hold) / num_episodes


@compiled
def _count(tiles: Any, level: Any, runner: Any, dice: Any, num_episodes: int, hold: int) -> int:
    successes = 0
    for _ in range(num_episodes):
        begin(runner, level)
        event, action = NOTHING, 0
        while event == NOTHING and runner.steps < level.time_limit:
            if runner.steps % hold == 0:
                action = int(uniform(dice, 0) * NUM_ACTIONS)
            event = advance(runner, tiles, level, action)
        successes += event == SUCCEEDED
    return successes
