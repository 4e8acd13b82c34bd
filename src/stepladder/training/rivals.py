"""Neural opponents of an evaluation: from their names to whoever makes them.

Between `config`, which names them, and `evaluation`, which lets them play.
"""

from functools import partial
from pathlib import Path

import torch

from stepladder.agents.player import make_player
from stepladder.games.hockey.task import CALLED
from stepladder.training.checkpoints import load_policy
from stepladder.training.config import TrainingConfig
from stepladder.training.contradictions import HOCKEY
from stepladder.training.evaluation import PlayerMaker
from stepladder.training.evaluation_request import EvaluationRequest


def rivals_of(
    config: TrainingConfig, request: EvaluationRequest, device: torch.device
) -> dict[str, PlayerMaker]:
    """Return makers of the opponents of an evaluation whom the env does not play itself.

    Raises:
        SnapshotError: A file that is named cannot be played with.
    """
    if config.env != HOCKEY:
        return {}
    makers: dict[str, PlayerMaker] = {}
    for name in request.opponents:
        if name.startswith(CALLED):
            description, weights = load_policy(Path(name.removeprefix(CALLED)))
            # Seeds of their own: a rival shall not draw what the agent draws.
            makers[name] = partial(
                make_player, description, weights, device=device, seed=config.evaluation.seed + 1
            )
    return makers
