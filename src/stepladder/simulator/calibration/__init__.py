"""COPIES OF TRAININGS: the learner that generalises, fitted to runs."""

from stepladder.simulator.calibration.calibrate import Calibration, calibrate
from stepladder.simulator.calibration.judging import LabelFit, Likelihoods, PartFit
from stepladder.simulator.calibration.practice import HeldOut, Practice
from stepladder.simulator.calibration.reading import read_practice
from stepladder.simulator.calibration.repeats import RepeatedPlays, repeats_of

__all__ = [
    "Calibration",
    "HeldOut",
    "LabelFit",
    "Likelihoods",
    "PartFit",
    "Practice",
    "RepeatedPlays",
    "calibrate",
    "read_practice",
    "repeats_of",
]
