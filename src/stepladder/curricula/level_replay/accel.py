"""The published settings of ACCEL, for commands.

Parker-Holder et al. 2022, "Evolving curricula with regret-based environment design": level replay
whose new levels are mostly edits of levels that are replayed. Read by `config`.
"""

from typing import Any

from stepladder.curricula.config import Variant

REPLAYED, EDITED = 0.8, 1.0
"""In the paper's mazes: how often a round replays levels, and how often it then edits some."""


def accel_variant(config_class: Any) -> dict[str, Variant]:
    """Return the settings of the paper's mazes, in the terms of level replay, by name.

    In the paper a round either scores new levels, or replays some and then scores edits of them.
    Here draws are single: of a round's plays `REPLAYED` are replays, `REPLAYED * EDITED` are of
    edits and the rest of new levels.
    """
    num_edits, num_new = REPLAYED * EDITED, 1.0 - REPLAYED

    def make(tasks: object) -> Any:
        return config_class(
            scored_by="positive_value_loss",
            temperature=0.3,
            staleness=0.3,
            schedule="fixed",
            replay_prob=REPLAYED / (REPLAYED + num_edits + num_new),
            min_seen=0.5,
            eviction_plays=1,
            editing=num_edits / (num_edits + num_new),
            changes_per_edit=5,
        )

    about = "Level replay that edits what it replays (ACCEL); for tasks that can be edited."
    return {"accel": Variant(about, make, edits=True)}
