"""Ordered stages that unlock each other."""
