"""How the runner moves: one step of running, jumping, falling and touching, and its reward.

Called by the vector env and by the planner, one runner at a time. The runner is a box smaller than
a tile and no speed reaches a tile per step, so a step looks only at the tiles that its leading edge
enters: nothing is passed through, and sub-steps are never needed.

All sizes are sums of powers of two: a runner that stands on a floor touches it exactly, without
rounding.

Optional shaping adds ``gamma * potential(after) - potential(before)`` to the reward, with a
potential of zero after death or success: it shows the way and does not change which behaviour is
best (Ng, Harada and Russell 1999).
"""

from typing import Annotated, TypeAlias

from stepladder.arrays import Bytes
from stepladder.compiled import bare, inlined
from stepladder.games.ledge.level import MAX_HEIGHT, MAX_LEVEL_STEPS, MAX_WIDTH
from stepladder.games.ledge.tiles import MINE, PLATFORM, WALL
from stepladder.games.ledge.world import MARGIN, UNREACHABLE, Distances, LevelRecord
from stepladder.records import Fields, Flag, Limits

NUM_ACTIONS = 6
IDLE, LEFT, RIGHT, JUMP, JUMP_LEFT, JUMP_RIGHT = range(NUM_ACTIONS)
ACTION_NAMES = ("idle", "left", "right", "jump", "jump-left", "jump-right")

NOTHING, DIED, SUCCEEDED = 0, 1, 2
"""What a step led to."""

HALF_WIDTH = 0.3125
HALF_HEIGHT = 0.375

# Speeds in tiles per step, accelerations in tiles per step and step.
RUN_SPEED = 0.25  # highest speed to the side; also the push away from a wall
GROUND_GRIP = 0.25  # share of the difference to the target speed made up per step on the ground
AIR_GRIP = 0.1  # the same in the air while steering
AIR_DRAG = 0.02  # the same in the air with no direction held
GRAVITY = 0.09
HELD_GRAVITY = 0.0375  # on the way up while jump is held: a tap rises 1.5 tiles, a long jump 3.3
FALL_SPEED = 0.5  # highest speed downwards
SLIDE_SPEED = 0.125  # the same while pushing against a wall
JUMP_SPEED = 0.52
WALL_JUMP_SPEED = 0.45

JUMP_BUFFER = 4  # steps for which a press of jump waits for something to jump off
GROUND_GRACE = 3  # steps after leaving the ground in which a jump still counts as one from there
WALL_GRACE = 4  # the same for a wall that was pushed against

MINE_REACH_X = HALF_WIDTH + 0.21875
MINE_REACH_Y = HALF_HEIGHT + 0.21875
"""A mine's core is a box of 0.4375; the runner dies when the boxes overlap."""

TOUCH_X = HALF_WIDTH + 0.375
TOUCH_Y = HALF_HEIGHT + 0.375
"""Switch and door are boxes of 0.75."""

EDGE_MARGIN = 2.0**-20
"""Edges across the direction of movement are drawn in by this much: a runner on the floor does not
bump into it while running. No other part of a runner ever overlaps a wall.
"""

SUCCESS_REWARD = 1.0
"""The reward of the step that reaches the open door; every other step has none, death included."""

Side: TypeAlias = Annotated[int, Limits(-1, 1)]


class Runner(Fields):
    """Everything about one runner in one episode."""

    x: Annotated[float, Limits(0.0, MAX_WIDTH)]
    y: Annotated[float, Limits(0.0, MAX_HEIGHT)]
    vx: Annotated[float, Limits(-RUN_SPEED, RUN_SPEED)]
    vy: Annotated[float, Limits(-JUMP_SPEED, FALL_SPEED)]
    on_ground: Flag
    wall: Side  # -1 or 1: pushes against a wall on its left or right; else 0
    facing: Side  # -1 or 1: the last direction of its actions
    rising: Flag  # 1 while a held jump still carries it up
    jump_held: Flag  # 1 if the last action was a jump
    jump_buffer: Annotated[int, Limits(0, JUMP_BUFFER)]  # steps left for which a press waits
    ground_grace: Annotated[int, Limits(0, GROUND_GRACE)]  # steps left to jump off the ground
    wall_grace: Annotated[int, Limits(0, WALL_GRACE)]  # steps left to jump off a wall
    grace_wall: Side  # which side that wall is on
    switch_touched: Flag
    steps: Annotated[int, Limits(0, MAX_LEVEL_STEPS)]


@bare
def begin(runner: Runner, level: LevelRecord) -> None:
    """Put a runner at the start of a level, standing on the lower edge of its tile."""
    runner.x = level.start_x
    runner.y = level.start_y + 0.5 - HALF_HEIGHT
    runner.vx = runner.vy = 0.0
    runner.facing = 1
    runner.on_ground = runner.wall = runner.rising = 0
    runner.jump_held = runner.jump_buffer = 0
    runner.ground_grace = runner.wall_grace = runner.grace_wall = 0
    runner.switch_touched = runner.steps = 0


@inlined
def _steer(runner: Runner, direction: int) -> None:
    """Bring the horizontal speed nearer to the target."""
    grip = GROUND_GRIP
    if runner.on_ground == 0:
        grip = AIR_DRAG if direction == 0 else AIR_GRIP
    runner.vx += (direction * RUN_SPEED - runner.vx) * grip
    if direction != 0:
        runner.facing = direction


@inlined
def _jump(runner: Runner, jump: int) -> None:
    """Update the jump buffer, and jump off the ground or a wall if possible."""
    buffer = max(runner.jump_buffer - 1, 0)
    if jump > runner.jump_held:
        buffer = JUMP_BUFFER
    runner.jump_held = jump
    runner.rising &= jump
    if buffer > 0:
        if runner.ground_grace > 0:
            runner.vy = -JUMP_SPEED
            runner.rising = jump
            buffer = 0
            runner.ground_grace = 0
        elif runner.wall_grace > 0:
            runner.vy = -WALL_JUMP_SPEED
            runner.vx = -runner.grace_wall * RUN_SPEED
            runner.rising = jump
            buffer = 0
            runner.wall_grace = 0
    runner.jump_buffer = buffer


@inlined
def _move_sideways(runner: Runner, tiles: Bytes) -> None:
    """Move along x until a wall, and note the wall that is pushed against."""
    x = runner.x + runner.vx
    wall = 0
    if runner.vx != 0.0:
        side = 1 if runner.vx > 0.0 else -1
        column = int(x + side * HALF_WIDTH + MARGIN)
        top = int(runner.y - HALF_HEIGHT + EDGE_MARGIN + MARGIN)
        bottom = int(runner.y + HALF_HEIGHT - EDGE_MARGIN + MARGIN)
        if tiles[top, column] == WALL or tiles[bottom, column] == WALL:
            # The near side of that column: its left edge going right, its right edge going left.
            x = column - MARGIN + (1 - side) // 2 - side * HALF_WIDTH
            runner.vx = 0.0
            wall = side
    runner.x = x
    runner.wall = wall
    if wall != 0:
        runner.wall_grace = WALL_GRACE
        runner.grace_wall = wall
    elif runner.wall_grace > 0:
        runner.wall_grace -= 1


@inlined
def _fall_faster(runner: Runner) -> None:
    """Add one step of gravity."""
    if runner.vy >= 0.0:
        runner.rising = 0
    runner.vy += HELD_GRAVITY if runner.rising != 0 else GRAVITY
    runner.vy = min(runner.vy, SLIDE_SPEED if runner.wall != 0 else FALL_SPEED)


@inlined
def _move_up_or_down(runner: Runner, tiles: Bytes) -> None:
    """Move along y until a floor, a platform under the feet, or a ceiling."""
    y = runner.y + runner.vy
    left = int(runner.x - HALF_WIDTH + EDGE_MARGIN + MARGIN)
    right = int(runner.x + HALF_WIDTH - EDGE_MARGIN + MARGIN)
    on_ground = 0
    if runner.vy > 0.0:
        row = int(y + HALF_HEIGHT + MARGIN)
        was_above = runner.y + HALF_HEIGHT <= row - MARGIN
        one, other = tiles[row, left], tiles[row, right]
        if one == WALL or other == WALL or (was_above and (one == PLATFORM or other == PLATFORM)):
            y = row - MARGIN - HALF_HEIGHT
            runner.vy = 0.0
            on_ground = 1
    else:
        row = int(y - HALF_HEIGHT + MARGIN)
        if tiles[row, left] == WALL or tiles[row, right] == WALL:
            y = row - MARGIN + 1 + HALF_HEIGHT
            runner.vy = 0.0
            runner.rising = 0
    runner.y = y
    runner.on_ground = on_ground
    if on_ground != 0:
        runner.ground_grace = GROUND_GRACE
    elif runner.ground_grace > 0:
        runner.ground_grace -= 1


@inlined
def _meets_mine(runner: Runner, tiles: Bytes) -> bool:
    """Return whether the runner overlaps the core of a mine."""
    left = int(runner.x - HALF_WIDTH + MARGIN)
    right = int(runner.x + HALF_WIDTH + MARGIN)
    top = int(runner.y - HALF_HEIGHT + MARGIN)
    bottom = int(runner.y + HALF_HEIGHT + MARGIN)
    # The runner is smaller than a tile: these four corners see every tile it overlaps.
    for row in (top, bottom):
        for column in (left, right):
            if tiles[row, column] == MINE:
                away_x = abs(runner.x - (column - MARGIN + 0.5))
                away_y = abs(runner.y - (row - MARGIN + 0.5))
                if away_x < MINE_REACH_X and away_y < MINE_REACH_Y:
                    return True
    return False


@inlined
def _touches(runner: Runner, x: float, y: float) -> bool:
    return abs(runner.x - x) < TOUCH_X and abs(runner.y - y) < TOUCH_Y


@bare
def advance(runner: Runner, tiles: Bytes, level: LevelRecord, action: int) -> int:
    """Play one step in a packed level; the action, as in `ACTION_NAMES`, is not checked.

    Returns:
        `NOTHING`, `DIED` or `SUCCEEDED`. The caller checks the time limit:
        ``runner.steps >= level.time_limit``.
    """
    runner.steps += 1
    jump = 1 if action >= JUMP else 0
    way = action - JUMP * jump
    _steer(runner, 1 if way == RIGHT else (-1 if way == LEFT else 0))
    _jump(runner, jump)
    _move_sideways(runner, tiles)
    _fall_faster(runner)
    _move_up_or_down(runner, tiles)
    if _meets_mine(runner, tiles):
        return DIED
    if runner.switch_touched == 0:
        if _touches(runner, level.switch_x, level.switch_y):
            runner.switch_touched = 1
        else:
            return NOTHING
    return SUCCEEDED if _touches(runner, level.door_x, level.door_y) else NOTHING


@bare
def potential(
    runner: Runner, level: LevelRecord, to_switch: Distances, to_door: Distances
) -> float:
    """Return the share of the way that the runner has covered: 0 at the start, 1 at the open door.

    Negative, down to -1, where it is farther away than at the start.
    """
    row, column = int(runner.y) + MARGIN, int(runner.x) + MARGIN
    if runner.switch_touched != 0:
        left, beyond = to_door[row, column], 0.0
    else:
        left, beyond = to_switch[row, column], level.switch_to_door
    if left == UNREACHABLE:
        return -1.0
    return max(1.0 - (left + beyond) / level.way, -1.0)
