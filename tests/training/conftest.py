"""What every test of trainings relies on."""

from agents.one_thread import one_thread

__all__ = ["one_thread"]
