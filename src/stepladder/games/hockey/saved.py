"""What a saved game of hockey must be, so that kernels can play on.

Read by the vector env when games are restored in mid-flight; `saving.saved_array` checks it.
"""

from stepladder.games.hockey.holding import CAUGHT
from stepladder.games.hockey.rules import TRAIN_DEFENSE
from stepladder.games.hockey.task import MAX_TIME_LIMIT
from stepladder.games.hockey.world import MAX_CONTACTS
from stepladder.saving.saved_array import Part

FAR = 100.0
"""Metres from the centre of the rink; its corners are 6.4 away."""

FAST = 1e4
"""Metres or turns a second: a launch has 60. Phases and angles stay below it as well."""

WORLD_PARTS = (
    *(Part(f"{name} of a body", f"bodies.{name}", -FAR, FAR) for name in ("x", "y")),
    *(
        Part(f"{name} of a body", f"bodies.{name}", -FAST, FAST)
        for name in ("vx", "vy", "spin", "angle")
    ),
    *(
        Part(f"{name} of a body", f"bodies.{name}", -1.001, 1.001)
        for name in ("facing_x", "facing_y")
    ),
    Part.count("hold of a body", "bodies.hold", CAUGHT),
    Part.count("touching of a body", "bodies.touching", 1),
    *(Part(name, name, -FAST, FAST) for name in ("launch_x", "launch_y", "phase_one", "phase_two")),
    Part.count("mode", "mode", TRAIN_DEFENSE),
    Part.count("keep_mode", "keep_mode", 1),
    Part.count("steps", "steps", MAX_TIME_LIMIT),
    Part("winner", "winner", -1, 1),
    Part.count("number of contacts", "num_contacts", MAX_CONTACTS),
)
"""Everything near the rink and at possible speeds, and all that is counted inside its table."""
