"""What an episode is worth: one for reaching the open door, and an optional potential for shaping.

Used by the vector env after each step. Shaping adds ``gamma * potential(after) -
potential(before)``, with a potential of zero after an ending by death or success: it leads the way
and changes nothing about which behaviour is best (Ng, Harada and Russell 1999).
"""
# pyright: reportArgumentType=false
# Reason: a record's fields are of no type that NumPy's stubs know.

from stepladder.compiled import bare
from stepladder.games.ledge.world import MARGIN, UNREACHABLE, Distances, LevelRecord, Runner

SUCCESS_REWARD = 1.0
"""The reward of the step that reaches the open door; every other step has none, death included."""


@bare
def potential(
    runner: Runner, level: LevelRecord, to_switch: Distances, to_door: Distances
) -> float:
    """Return the share of the way that lies behind the runner: 0 at the start, 1 at the open door.

    Below 0 where it has gone astray by more than it has come; at least -1.
    """
    row, column = int(runner.y) + MARGIN, int(runner.x) + MARGIN
    if runner.switch_touched != 0:
        left, beyond = to_door[row, column], 0.0
    else:
        left, beyond = to_switch[row, column], level.switch_to_door
    if left == UNREACHABLE:
        return -1.0
    return max(1.0 - (left + beyond) / level.way, -1.0)
