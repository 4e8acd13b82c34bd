"""Neural opponents of an evaluation: from their names to functions that make them.

Between `config`, which names them, and `playing`, which lets them play.
"""

import torch

from stepladder.agents.base import Agent
from stepladder.agents.config import own_way_of
from stepladder.agents.player import make_player
from stepladder.envs.ids import game_of
from stepladder.errors import ConfigError
from stepladder.games.game import CALLED
from stepladder.training.config import TrainingConfig
from stepladder.training.evaluation.playing import InOneWay, PlayerMaker
from stepladder.training.evaluation.request import EvaluationRequest
from stepladder.training.opponents.archive import Archive, find_opponent
from stepladder.training.opponents.member import Member, misfit


def rivals_of(
    config: TrainingConfig, request: EvaluationRequest, agent: Agent
) -> dict[str, PlayerMaker]:
    """Return makers of the opponents of an evaluation that the env does not play itself.

    Raises:
        ConfigError: No opponent has this name, or its weights do not fit this game.
        SnapshotError: A file that is named cannot be played with.
    """
    if not game_of(config.env).opponents:
        return {}
    folder = config.opponents.archive
    archive = None if folder is None else Archive(folder)
    makers: dict[str, PlayerMaker] = {}
    for name in request.opponents:
        if name.startswith(CALLED):
            member = find_opponent(name.removeprefix(CALLED), archive)
            reason = misfit(member.description, agent.description())
            if reason:
                raise ConfigError(
                    f"opponent {name!r} of the evaluation does not fit: {reason}. Choose another."
                )
            # A seed of its own, so that a rival does not draw what the agent draws.
            makers[name] = _maker(member, agent.device, config.evaluation.seed + 1)
    return makers


def _maker(member: Member, device: torch.device, seed: int) -> PlayerMaker:
    is_deterministic = own_way_of(member.description) == "best"

    def make(num_rows: int) -> InOneWay:
        player = make_player(member.description, member.weights, num_rows, device=device, seed=seed)
        return InOneWay(player, is_deterministic)

    return make
