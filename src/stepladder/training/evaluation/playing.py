"""One batch of fixed games: from players and a request to scores.

Called by the training loop and by ``stepladder eval``. The request says which games are played
(`games.programme`), and `scores` counts the results. The envs are its own: no curriculum sees
these games, and no env of a training takes part.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Space
from gymnasium.vector.utils import batch_space

from stepladder.envs import make_vec
from stepladder.envs.delivery import METADATA_KEY
from stepladder.envs.success import USUAL_KEYS, SuccessReader
from stepladder.errors import DeliveryError
from stepladder.games.game import PLAYERS
from stepladder.games.programme import Programme
from stepladder.training.evaluation.request import EvaluationRequest
from stepladder.training.evaluation.scores import Evaluation, GameResults, Score, score

MOST_STEPS = 100_000
"""An episode that does not end is cut off here, so that an evaluation ends."""

ONE, TWO = PLAYERS

Mask = npt.NDArray[np.bool_]


class PlayerLike(Protocol):
    """A policy that plays but does not learn."""

    def act_batch(self, observations: Any, deterministic: bool = True) -> npt.NDArray[Any]:
        """Choose an action in every row."""
        ...

    def begin(self, rows: Mask | None = None) -> None:
        """Begin a new episode in some rows, by default in all."""
        ...


PlayerMaker = Callable[[int], PlayerLike]
"""From a number of rows to a player of so many games at once."""

Random = Literal["random"]
"""Instead of a maker: a `RandomPlayer`."""


class RandomPlayer:
    """Draws actions; the baseline without which no rate means anything.

    Args:
        space: Of one row's actions.
        num_rows: How many rows.
        seed: Of the draws.
    """

    def __init__(self, space: Space[Any], num_rows: int, seed: int = 0):
        self._space = batch_space(space, num_rows)
        self._space.seed(seed)

    def act_batch(self, observations: Any, deterministic: bool = True) -> npt.NDArray[Any]:
        """Draw an action for every row, whatever is seen."""
        return self._space.sample()

    def begin(self, rows: Mask | None = None) -> None:
        """Do nothing: nothing is remembered."""


def evaluate(
    player_maker: PlayerMaker | Random,
    request: EvaluationRequest,
    *,
    rivals: Mapping[str, PlayerMaker | Random] | None = None,
) -> Evaluation:
    """Let a policy play, and return its scores.

    The same players and the same request give the same result, bit for bit.

    Args:
        player_maker: Makes the player that is evaluated; or ``"random"``.
        request: What is played.
        rivals: Makers of those opponents of the request that the env does not play itself.

    Raises:
        ConfigError: An opponent is unknown.
    """
    rivals = rivals or {}
    programme = request.programme(rivals)
    envs = _make_envs(request, programme, programme.num_games)
    try:
        players = _Players(envs, player_maker, rivals, programme, request)
        games = _play(envs, players, programme, request.max_episode_steps or MOST_STEPS)
    finally:
        envs.close()
    return Evaluation(
        env=request.name,
        seed=request.seed,
        is_deterministic=request.is_deterministic,
        total=_scored(games, programme),
    )


def spaces_of(request: EvaluationRequest) -> tuple[Space[Any], Space[Any]]:
    """Return what a player of a request sees and does: observation space and action space."""
    programme = request.programme(request.opponents)
    envs = _make_envs(request, programme, 1)
    try:
        spaces: list[Any] = [envs.single_observation_space, envs.single_action_space]
    finally:
        envs.close()
    seen, done = (space[ONE] if programme.rivals() else space for space in spaces)
    return seen, done


def _make_envs(request: EvaluationRequest, programme: Programme, num_envs: int) -> Any:
    env: Any = request.env
    # In this process: workers would take longer to start than most games to play.
    return make_vec(env, num_envs, num_workers=0, env_kwargs=programme.env_kwargs or None)


class _Players:
    """All players, each with their own rows."""

    def __init__(
        self,
        envs: Any,
        player_maker: PlayerMaker | Random,
        rivals: Mapping[str, PlayerMaker | Random],
        programme: Programme,
        request: EvaluationRequest,
    ):
        self._is_deterministic = request.is_deterministic
        rows_by_rival = programme.rivals()
        space = envs.single_action_space
        # With rivals there is an action of either player, alike for both.
        space = space[ONE] if rows_by_rival else space
        self._player = _made(player_maker, space, envs.num_envs, request.seed)
        self._rivals = [
            # With other draws than those of its opponent.
            (rows, _made(rivals[name], space, rows.stop - rows.start, request.seed + number))
            for number, (name, rows) in enumerate(rows_by_rival.items(), start=1)
        ]
        for player in (self._player, *(rival for _, rival in self._rivals)):
            player.begin()

    def act(self, observations: Any) -> Any:
        """Return the actions of all players, as the envs take them."""
        if not self._rivals:
            return self._player.act_batch(observations, deterministic=self._is_deterministic)
        seen, seen_by_two = observations[ONE], observations[TWO]
        actions = self._player.act_batch(seen, deterministic=self._is_deterministic)
        # Where the env plays player two itself, it does not look at these.
        actions_two = np.zeros_like(actions)
        for rows, rival in self._rivals:
            actions_two[rows] = rival.act_batch(
                seen_by_two[rows], deterministic=self._is_deterministic
            )
        return {ONE: actions, TWO: actions_two}


def _made(maker: PlayerMaker | Random, space: Space[Any], num_rows: int, seed: int) -> PlayerLike:
    return RandomPlayer(space, num_rows, seed) if maker == "random" else maker(num_rows)


def _play(envs: Any, players: _Players, programme: Programme, most_steps: int) -> GameResults:
    """Play one game in every row; rows that are done play on unseen until all are.

    Only the first episode of a row counts: counting the first that end would prefer short ones.
    """
    num_games = programme.num_games
    returns, lengths = np.zeros(num_games), np.zeros(num_games, dtype=np.int64)
    successes, winners = np.full(num_games, np.nan), np.zeros(num_games, dtype=np.int64)
    playing = np.ones(num_games, dtype=np.bool_)
    observations = _begin(envs, programme)
    for step in range(1, most_steps + 1):
        observations, rewards, terminated, truncated, infos = envs.step(players.act(observations))
        returns[playing] += rewards[playing]
        lengths[playing] += 1
        ended = playing if step == most_steps else playing & (terminated | truncated)
        if ended.any():
            rows = np.flatnonzero(ended)
            successes[rows] = [_success(infos, row, returns[row]) for row in rows.tolist()]
            if programme.is_match:
                winners[rows] = infos["winner"][rows]
            playing = playing & ~ended
            if not playing.any():
                break
    trials = np.repeat(
        np.arange(len(programme.fixtures)), [fixture.num_games for fixture in programme.fixtures]
    )
    return GameResults(
        returns=returns,
        lengths=lengths,
        successes=successes,
        winners=winners if programme.is_match else None,
        trials=trials if programme.is_fixed else np.arange(num_games),
    )


def _begin(envs: Any, programme: Programme) -> Any:
    """Give every row its task, as its env takes it, and its seed; return what is seen."""
    seeds, tasks, options = programme.seeds, programme.tasks, None
    if tasks is None:
        pass
    elif hasattr(envs, "set_tasks"):
        envs.set_tasks(tasks)
    elif all(envs.call("has_wrapper_attr", "set_task")):
        for row, task in enumerate(tasks):
            envs.call_on([row], "set_task", task)
    elif envs.metadata.get(METADATA_KEY, False):
        options = [{"task": task} for task in tasks]
    else:
        raise DeliveryError(
            "the env offers no way to receive a task: it has no method set_task(task), and its "
            f"metadata has no {METADATA_KEY!r}. Add one of them, or leave tasks out."
        )
    return envs.reset(seed=seeds, options=options)[0]


def _success(infos: Mapping[str, Any], row: int, episode_return: float) -> float:
    """Return what a row says about its success, NaN if nothing."""
    info = {key: infos[key][row] for key in USUAL_KEYS if key in infos and infos[f"_{key}"][row]}
    return SuccessReader().read(info, episode_return, needed=False)


def _scored(games: GameResults, programme: Programme) -> Score:
    """Return the score of all games, with its groups, with their parts."""
    parts: dict[str, list[Score]] = {}
    rows_by_group: dict[str, list[int]] = {}
    start = 0
    for fixture in programme.fixtures:
        rows = range(start, start + fixture.num_games)
        parts.setdefault(fixture.group, []).append(score(fixture.part, games.of(rows)))
        rows_by_group.setdefault(fixture.group, []).extend(rows)
        start = rows.stop
    groups = [score(name, games.of(rows), parts[name]) for name, rows in rows_by_group.items()]
    is_plain = len(programme.fixtures) == 1 and programme.tasks is None
    return score("all", games, () if is_plain else groups)
