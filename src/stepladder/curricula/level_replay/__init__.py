"""Replay levels with a high score: PLR and robust PLR."""
