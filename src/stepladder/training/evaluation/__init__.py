"""How well a policy plays what it was not trained on: requests, fixed games, scores.

Called by the training loop and by ``stepladder eval``; which games are played, a `Game` says.
"""

from stepladder.training.evaluation.playing import (
    PlayerLike,
    PlayerMaker,
    Random,
    RandomPlayer,
    evaluate,
    spaces_of,
)
from stepladder.training.evaluation.request import EvaluationRequest
from stepladder.training.evaluation.scores import Evaluation

__all__ = [
    "Evaluation",
    "EvaluationRequest",
    "PlayerLike",
    "PlayerMaker",
    "Random",
    "RandomPlayer",
    "evaluate",
    "spaces_of",
]
