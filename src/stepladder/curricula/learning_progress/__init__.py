"""Favour tasks whose success is still moving."""
