"""Levels kept back for evaluation: a fixed set per stage."""

from stepladder.games.ledge.held_out.levels import FOLDER, held_out

__all__ = ["FOLDER", "held_out"]
