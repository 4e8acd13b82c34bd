"""Our own method: find the tasks that can be learned now."""

from stepladder.curricula.frontier.config import FrontierConfig
from stepladder.curricula.frontier.frontier import Frontier
from stepladder.curricula.frontier.report import FrontierExplanation

__all__ = ["Frontier", "FrontierConfig", "FrontierExplanation"]
