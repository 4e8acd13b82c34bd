"""What a saved runner must be, so that kernels can move it.

Read by the vector env when games are restored in mid-flight; `saving.saved_array` checks it.
Kernels look up tiles without asking whether they exist: a runner has to be inside the largest level
and slower than a tile per step, and then the margin of wall keeps it there.
"""

from stepladder.games.ledge import physics
from stepladder.games.ledge.level import MAX_HEIGHT, MAX_TIME_LIMIT, MAX_WIDTH
from stepladder.saving.saved_array import Part

RUNNER_PARTS = (
    Part("x", "x", 0.0, MAX_WIDTH),
    Part("y", "y", 0.0, MAX_HEIGHT),
    Part("speed x", "vx", -physics.RUN_SPEED, physics.RUN_SPEED),
    Part("speed y", "vy", -physics.JUMP_SPEED, physics.FALL_SPEED),
    *(Part(name, name, -1, 1) for name in ("wall", "facing", "grace_wall")),
    *(Part.count(name, name, 1) for name in ("on_ground", "rising", "jump_held", "switch_touched")),
    Part.count("jump_buffer", "jump_buffer", physics.JUMP_BUFFER),
    Part.count("ground_grace", "ground_grace", physics.GROUND_GRACE),
    Part.count("wall_grace", "wall_grace", physics.WALL_GRACE),
    Part.count("steps", "steps", MAX_TIME_LIMIT),
)
