"""Policies that nobody has trained, and observations of every kind for them."""

from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete

from agents.small_worlds import KINDS, SEEN
from stepladder.agents.base import make_agent
from stepladder.training.checkpoints import SavedPolicy

MIXED = Dict(
    {
        "big": Box(0, 255, (4,), np.uint8),
        "many": MultiDiscrete([3, 4], start=[1, 0]),
        "place": Discrete(5, start=2),
        "tiles": Box(-1, 3, (2, 3), np.int8),
        "x": Box(-5.0, 5.0, (2, 2), np.float64),
    }
)
"""Every kind of observation that agents know."""

PICTURES = Dict({"seen": Box(0, 255, (12, 12, 3), np.uint8), "x": Box(-5.0, 5.0, (2,))})

SPACES = {"numbers": SEEN, "mixed": MIXED, "pictures": PICTURES}


def saved(kind: str, space: Any = SEEN, **settings: Any) -> SavedPolicy:
    """Return an untrained policy of a kind."""
    config, actions = KINDS[kind]
    agent = make_agent(replace(config, **settings), space, actions, 2, seed=3)
    return SavedPolicy(description=agent.description(), weights=agent.weights())


def looks(space: Any, count: int) -> list[Any]:
    """Return what is seen in some envs."""
    space.seed(5)
    return [space.sample() for _ in range(count)]


def stacked(rows: list[Any]) -> Any:
    if isinstance(rows[0], dict):
        return {key: np.stack([row[key] for row in rows]) for key in rows[0]}
    return np.stack(rows)
