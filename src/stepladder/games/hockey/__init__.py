"""Laser hockey for two, thousands of games at once."""
