"""Neural opponents of an evaluation: from their names to whoever makes them.

Between `config`, which names them, and `evaluation`, which lets them play.
"""

from functools import partial

from stepladder.agents.base import Agent
from stepladder.agents.player import make_player
from stepladder.errors import ConfigError
from stepladder.games.hockey.task import CALLED
from stepladder.training.config import TrainingConfig
from stepladder.training.contradictions import HOCKEY
from stepladder.training.evaluation import PlayerMaker
from stepladder.training.evaluation_request import EvaluationRequest
from stepladder.training.opponents.archive import Archive
from stepladder.training.opponents.loading import find_opponent
from stepladder.training.opponents.member import misfit


def rivals_of(
    config: TrainingConfig, request: EvaluationRequest, agent: Agent
) -> dict[str, PlayerMaker]:
    """Return makers of the opponents of an evaluation whom the env does not play itself.

    Raises:
        ConfigError: There is nobody of that name, or he does not fit the env.
        SnapshotError: A file that is named cannot be played with.
    """
    if config.env != HOCKEY:
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
            # Seeds of their own: a rival shall not draw what the agent draws.
            makers[name] = partial(
                make_player,
                member.description,
                member.weights,
                device=agent.device,
                seed=config.evaluation.seed + 1,
            )
    return makers
