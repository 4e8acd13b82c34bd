"""How well a policy plays what it was not trained on: requests, fixed games, scores.

Called by the training loop and by ``stepladder eval``; which games are played, a `Game` says.
"""

from stepladder.training.evaluation.playing import (
    InOneWay,
    PlayerLike,
    PlayerMaker,
    Random,
    RandomPlayer,
    evaluate,
    spaces_of,
)
from stepladder.training.evaluation.request import EvaluationRequest
from stepladder.training.evaluation.scores import Evaluation, Way

__all__ = [
    "Evaluation",
    "EvaluationRequest",
    "InOneWay",
    "PlayerLike",
    "PlayerMaker",
    "Random",
    "RandomPlayer",
    "Way",
    "evaluate",
    "spaces_of",
]
