"""THE LEARNER THAT GENERALISES: groups of tasks, memory, cost in env steps, held-out success."""

from stepladder.simulator.generalising.config import Generalising
from stepladder.simulator.generalising.learner import GeneralisingSimulator

__all__ = ["Generalising", "GeneralisingSimulator"]
