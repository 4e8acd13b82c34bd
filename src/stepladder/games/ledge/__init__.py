"""Ledge, a platform game: touch the switch, reach the door."""
