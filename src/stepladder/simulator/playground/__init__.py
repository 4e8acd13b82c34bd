"""WHAT IF: one curriculum beside uniform and the oracle on a simulated learner, at once."""

from stepladder.simulator.playground.course import PlayedCourse
from stepladder.simulator.playground.playing import CURVES, SPREAD_CURVES, Playground, Superseded
from stepladder.simulator.playground.question import Question, Setup

__all__ = [
    "CURVES",
    "SPREAD_CURVES",
    "PlayedCourse",
    "Playground",
    "Question",
    "Setup",
    "Superseded",
]
