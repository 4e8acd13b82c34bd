"""Find actions that solve a level, by searching with the game's own physics.

Used to prove that generated levels can be solved, as the scripted expert, and as a measure of
difficulty. `solve` plays its actions back before it returns them, so they always succeed.

The search is A*, with a heuristic that overestimates the rest of the way, because a solution found
soon is better here than the shortest one. Its moves are actions held for a few steps. Two runners
count as the same if they are in the same quarter of a tile at about the same speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stepladder.arrays import Bytes
from stepladder.compiled import compiled, inlined
from stepladder.errors import ConfigError
from stepladder.games.ledge.level import Level
from stepladder.games.ledge.physics import (
    DIED,
    FALL_SPEED,
    JUMP_SPEED,
    NOTHING,
    NUM_ACTIONS,
    RUN_SPEED,
    SUCCEEDED,
    Runner,
    advance,
    begin,
)
from stepladder.games.ledge.world import MARGIN, UNREACHABLE, LevelRecord, PackedLevel, pack
from stepladder.tasks.plain import checked_integer

MAX_STATES = 50_000
"""States that one search looks at before it gives up."""

RUNNER = Runner.dtype

_MOST_STATES = 10_000_000
"""A search of this size takes more than a gigabyte."""

_REPEATS = (3, 2)
"""Steps for which an action is held: coarse first, finer where that finds nothing."""

_WEIGHT = 1.5
_CELLS = 4  # per tile and axis
_SPEEDS_X = 5
_SPEEDS_Y = 6
_FLAGS = 16
_NOT_FOUND = -1


@dataclass(frozen=True)
class Solution:
    """Actions that solve a level from its start."""

    actions: Bytes
    """One action per step, shape ``(num_steps,)``; the last one reaches the open door."""

    num_states: int
    """How many states were looked at to find it."""

    @property
    def num_steps(self) -> int:
        """Number of steps: a measure of how long the way is."""
        return len(self.actions)


def solve(level: Level, max_states: int = MAX_STATES) -> Solution | None:
    """Look for actions that succeed within the level's time limit.

    Args:
        level: The level to solve.
        max_states: Most states looked at per search; if a coarse search finds nothing, a finer one
            follows.

    Returns:
        A solution, or None if none was found, which does not prove that there is none.

    Raises:
        ConfigError: If `max_states` is not an integer from 1 to 10,000,000.
    """
    max_states = checked_integer(max_states, "max_states", 1, _MOST_STATES, ConfigError)
    packed = pack(level)
    if packed.to_switch[_place(level.start)] == UNREACHABLE:
        return None
    if packed.to_door[_place(level.switch)] == UNREACHABLE:
        return None
    num_states = 0
    for repeat in _REPEATS:
        actions, looked_at = _search(packed, repeat, max_states)
        num_states += looked_at
        if len(actions):
            event, num_steps = replay(level, actions)
            assert event == SUCCEEDED, "the search and the game disagree"
            return Solution(actions[:num_steps], num_states)
    return None


def replay(level: Level, actions: Bytes) -> tuple[int, int]:
    """Play actions from the start of a level until they end, the level ends or time is up.

    Returns:
        The last step's event as in `physics`, and the number of steps played.
    """
    packed = pack(level)
    runner = Runner.zeros()
    event = _play(runner[0], packed.tiles, packed.record, np.asarray(actions, dtype=np.uint8))
    return int(event), int(runner["steps"][0])


def _place(place: tuple[int, int]) -> tuple[int, int]:
    return MARGIN + place[0], MARGIN + place[1]


@compiled
def _play(runner: Runner, tiles: Bytes, level: LevelRecord, actions: Bytes) -> int:
    begin(runner, level)
    event = NOTHING
    for action in actions:
        if event != NOTHING or runner.steps >= level.time_limit:
            break
        event = advance(runner, tiles, level, action)
    return event


@inlined
def _push(keys: Any, ids: Any, size: int, key: float, state: int) -> None:
    """Add a state to a binary heap of `size` entries."""
    i = size
    while i > 0 and keys[(i - 1) // 2] > key:
        keys[i], ids[i] = keys[(i - 1) // 2], ids[(i - 1) // 2]
        i = (i - 1) // 2
    keys[i], ids[i] = key, state


@compiled
def _pop(keys: Any, ids: Any, size: int) -> int:
    """Remove the state with the smallest key from a heap of `size` entries, and return it."""
    state = ids[0]
    key, last = keys[size - 1], ids[size - 1]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size - 1:
            break
        if child + 1 < size - 1 and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[i], ids[i] = keys[child], ids[child]
        i = child
    keys[i], ids[i] = key, last
    return state


@inlined
def _bucket(runner: Runner, level: LevelRecord) -> int:
    """Return the number of the bucket; runners in one bucket count as the same."""
    speed_x = int((runner.vx + RUN_SPEED) / (2.0 * RUN_SPEED) * (_SPEEDS_X - 0.001))
    share_y = (runner.vy + JUMP_SPEED) / (JUMP_SPEED + FALL_SPEED)
    speed_y = int(share_y * (_SPEEDS_Y - 0.001))
    flags = (
        runner.switch_touched
        + 2 * runner.jump_held
        + 4 * (1 if runner.ground_grace > 0 else 0)
        + 8 * (1 if runner.wall_grace > 0 else 0)
    )
    cell = int(runner.y * _CELLS) * level.width * _CELLS + int(runner.x * _CELLS)
    return ((cell * _SPEEDS_X + speed_x) * _SPEEDS_Y + speed_y) * _FLAGS + flags


@inlined
def _urgency(runner: Runner, packed: PackedLevel) -> float:
    """Return steps so far plus the estimate for the rest."""
    row, column = int(runner.y) + MARGIN, int(runner.x) + MARGIN
    if runner.switch_touched != 0:
        tiles_left = float(packed.to_door[row, column])
    else:
        tiles_left = packed.to_switch[row, column] + packed.record.switch_to_door
    return runner.steps + _WEIGHT / RUN_SPEED * tiles_left


@compiled
def _hold(runner: Runner, packed: PackedLevel, action: int, repeat: int) -> int:
    """Play an action several times, or until something happens; out of time counts as death."""
    event = NOTHING
    for _ in range(repeat):
        if runner.steps >= packed.record.time_limit:
            return DIED
        event = advance(runner, packed.tiles, packed.record, action)
        if event != NOTHING:
            break
    return event


@compiled
def _search(packed: PackedLevel, repeat: int, max_states: int) -> tuple[Bytes, int]:
    """Return actions that succeed (none if not found), and the number of states looked at."""
    level = packed.record
    runners = np.empty(max_states + 1, dtype=RUNNER)
    parents = np.empty(max_states, dtype=np.int32)
    choices = np.empty(max_states, dtype=np.uint8)
    keys = np.empty(max_states, dtype=np.float64)
    ids = np.empty(max_states, dtype=np.int32)
    cells = level.height * level.width * _CELLS * _CELLS
    seen = np.zeros(cells * _SPEEDS_X * _SPEEDS_Y * _FLAGS, dtype=np.uint8)
    begin(runners[0], level)
    parents[0] = _NOT_FOUND
    _push(keys, ids, 0, _urgency(runners[0], packed), 0)
    num_states, num_open = 1, 1
    while num_open > 0:
        state = _pop(keys, ids, num_open)
        num_open -= 1
        for action in range(NUM_ACTIONS):
            if num_states == max_states:
                return np.empty(0, dtype=np.uint8), num_states
            # Played in the place of the next state, and kept there if it is new.
            runners[num_states] = runners[state]
            event = _hold(runners[num_states], packed, action, repeat)
            parents[num_states], choices[num_states] = state, action
            if event == SUCCEEDED:
                return _retrace(parents, choices, num_states, repeat), num_states
            bucket = _bucket(runners[num_states], level)
            if event == DIED or seen[bucket]:
                continue
            seen[bucket] = 1
            key = _urgency(runners[num_states], packed)
            _push(keys, ids, num_open, key, num_states)
            num_states += 1
            num_open += 1
    return np.empty(0, dtype=np.uint8), num_states


@compiled
def _retrace(parents: Any, choices: Bytes, state: int, repeat: int) -> Bytes:
    """Return the actions that led to a state; the last one may be held longer than needed."""
    num_moves = 0
    at = state
    while parents[at] != _NOT_FOUND:
        num_moves += 1
        at = parents[at]
    actions = np.empty(num_moves * repeat, dtype=np.uint8)
    while parents[state] != _NOT_FOUND:
        num_moves -= 1
        actions[num_moves * repeat : (num_moves + 1) * repeat] = choices[state]
        state = parents[state]
    return actions
