"""Soft actor-critic: its settings and its noise."""
