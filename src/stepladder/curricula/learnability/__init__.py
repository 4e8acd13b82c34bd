"""Favour tasks that are solved about half of the time."""
