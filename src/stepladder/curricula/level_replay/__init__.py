"""Prioritised level replay."""
