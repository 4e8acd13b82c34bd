"""All agents against each other, so that ratings are based on games of agents that do not learn.

Above `training.evaluation`, which plays all games of one agent as a single batch, half from each
starting side. The results change the archive's ratings. The scripted players take part,
but not against each other: the env plays them on one side only.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from stepladder.agents.player import make_player
from stepladder.agents.spaces import space_to_json
from stepladder.envs import make_vec
from stepladder.errors import SnapshotError
from stepladder.training.evaluation import evaluate
from stepladder.training.evaluation.request import EvaluationRequest
from stepladder.training.evaluation.scores import Score
from stepladder.training.opponents.archive import Archive
from stepladder.training.opponents.lineup import MakePlayer
from stepladder.training.opponents.member import Member, misfit
from stepladder.training.opponents.ratings import BASELINES, PairGames


@dataclass(frozen=True)
class Tournament:
    """The results."""

    games: tuple[PairGames, ...]
    """One entry per pair."""

    skipped: Mapping[str, str]
    """Agents that could not take part, with the reason."""


def round_robin(
    archive: Archive,
    agent_ids: Sequence[str] | None = None,
    *,
    env: str,
    num_games: int = 100,
    env_kwargs: Mapping[str, Any] | None = None,
    deterministic: bool = False,
    seed: int = 0,
    device: str = "cpu",
    make: MakePlayer = make_player,
) -> Tournament:
    """Let agents of an archive play against each other and the baselines; rate them.

    Args:
        archive: Where they are, and where the games are counted.
        agent_ids: Which agents play; None is all.
        env: The game, for two players.
        num_games: Per pair; an even number.
        env_kwargs: Arguments of the env, such as ``{"actions": "discrete"}``; agents that do not
            fit it are skipped.
        deterministic: Whether they take their best actions, rather than draw them.
        seed: Of the games and of the players.
        device: Where they compute.
        make: Makes players.
    """
    members, skipped = _players(archive, agent_ids, env, dict(env_kwargs or {}))
    makers = {
        member.name: partial(
            make, member.description, member.weights, device=device, seed=seed + number
        )
        for number, member in enumerate(members)
    }
    games: list[PairGames] = []
    for number, member in enumerate(members):
        later = [rival.name for rival in members[number + 1 :]]
        request = EvaluationRequest(
            env=env,
            env_kwargs=dict(env_kwargs or {}),
            num_games=num_games,
            seed=seed,
            opponents=(*BASELINES, *later),
            is_deterministic=deterministic,
        )
        rivals: dict[str, Callable[[int], Any]] = {name: makers[name] for name in later}
        result = evaluate(makers[member.name], request, rivals=rivals)
        games += [
            PairGames.of(member.name, group.name, in_turn(*results(group)))
            for group in result.groups
        ]
    if games:
        archive.rate(games)
    return Tournament(tuple(games), skipped)


def _players(
    archive: Archive, agent_ids: Sequence[str] | None, env: str, env_kwargs: dict[str, Any]
) -> tuple[list[Member], dict[str, str]]:
    """Return the agents that can play, and why the others cannot."""
    listing = archive.list()
    skipped = dict(listing.skipped) if agent_ids is None else {}
    if agent_ids is None:
        agent_ids = [entry.agent_id for entry in listing.entries]
    envs = make_vec(env, 1, num_workers=0, env_kwargs={**env_kwargs, "players": "one"})
    wanted = {
        "observation_space": space_to_json(envs.single_observation_space),
        "action_space": space_to_json(envs.single_action_space),
    }
    envs.close()
    members: list[Member] = []
    for agent_id in agent_ids:
        try:
            member = archive.load(agent_id)
        except SnapshotError as error:
            skipped[agent_id] = str(error)
            continue
        reason = misfit(member.description, wanted)
        if reason:
            skipped[agent_id] = reason
        else:
            members.append(member)
    return members, skipped


def results(score: Score) -> tuple[int, int, int]:
    """Return how many games were won, drawn and lost."""
    assert score.num_draws is not None
    assert score.num_losses is not None
    return (
        score.num_games - score.num_draws - score.num_losses,
        score.num_draws,
        score.num_losses,
    )


def in_turn(num_won: int, num_drawn: int, num_lost: int) -> list[int]:
    """Return as many outcomes of each kind, evenly mixed: ratings depend a little on the order.

    Example:
        >>> in_turn(2, 1, 1)
        [1, 0, -1, 1]
    """
    places = [
        ((index + 0.5) / count, kind, outcome)
        for kind, (outcome, count) in enumerate(((1, num_won), (0, num_drawn), (-1, num_lost)))
        for index in range(count)
    ]
    return [outcome for _, _, outcome in sorted(places)]
