"""Levels without end: seven stages, each with a few generators."""

from stepladder.games.ledge.generators.catalogue import GENERATORS
from stepladder.games.ledge.generators.generate import generate

__all__ = ["GENERATORS", "generate"]
