"""Fixed games, one batch per group: from players and a request to scores.

Called by the training loop and by ``stepladder eval``. The request says which games are played
(`games.programme`), and `scores` counts the results. The envs are its own: no curriculum sees
these games, and no env of a training takes part. A group has envs and players of its own, so
that its results are the same whatever other groups are played.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Space
from gymnasium.vector.utils import batch_space

from stepladder.arrays import Flags
from stepladder.envs import make_vec
from stepladder.envs.agent_rows import AgentRows, shows_agents
from stepladder.envs.make import batched_entry
from stepladder.envs.success import SuccessReader
from stepladder.games.game import PLAYERS
from stepladder.games.programme import Programme
from stepladder.training.evaluation.repeats import Repeats
from stepladder.training.evaluation.request import EvaluationRequest
from stepladder.training.evaluation.scores import Evaluation, GameResults, Score, score

MOST_STEPS = 100_000
"""An episode that does not end is cut off here, so that an evaluation ends."""

ONE, TWO = PLAYERS


class PlayerLike(Protocol):
    """A policy that plays but does not learn."""

    def act_batch(self, observations: Any, deterministic: bool = True) -> npt.NDArray[Any]:
        """Choose an action in every row."""
        ...

    def begin(self, rows: Flags | None = None) -> None:
        """Begin a new episode in some rows, by default in all."""
        ...


PlayerMaker = Callable[[int], PlayerLike]
"""From a number of rows to a player of so many games at once; called for each group of games."""

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

    def begin(self, rows: Flags | None = None) -> None:
        """Do nothing: nothing is remembered."""


class InOneWay:
    """A player that acts in one way whatever is asked for: an opponent stays the same.

    Args:
        player: Acts.
        deterministic: Whether it takes its best actions rather than draw them.
    """

    def __init__(self, player: PlayerLike, deterministic: bool):
        self._player, self._is_deterministic = player, deterministic

    def act_batch(self, observations: Any, deterministic: bool = True) -> npt.NDArray[Any]:
        """Choose an action in every row."""
        return self._player.act_batch(observations, deterministic=self._is_deterministic)

    def begin(self, rows: Flags | None = None) -> None:
        """Begin a new episode in some rows, by default in all."""
        self._player.begin(rows)


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
    rivals, is_random = rivals or {}, player_maker == "random"
    if is_random:
        request = replace(request, is_deterministic=False)
    programme = request.programme(rivals)
    has_rivals = bool(programme.rivals())
    results: dict[str, GameResults] = {}
    for group, part in programme.by_group().items():
        envs = _make_envs(request, part, part.num_games)
        try:
            players = _Players(envs, player_maker, rivals, part, request, has_rivals)
            results[group] = _play(envs, players, part, request)
        finally:
            envs.close()
    drawn_or_best = "best" if request.is_deterministic else "drawn"
    return Evaluation(
        env=request.name,
        seed=request.seed,
        way="random" if is_random else drawn_or_best,
        levels=request.held_out_set,
        total=_scored(results, programme),
    )


def spaces_of(request: EvaluationRequest) -> tuple[Space[Any], Space[Any]]:
    """Return what a player of a request sees and does: observation space and action space."""
    programme = request.programme(request.opponents)
    envs = _make_envs(request, programme, 1)
    try:
        stepped = AgentRows(envs) if shows_agents(envs) else envs
        spaces: list[Any] = [stepped.single_observation_space, stepped.single_action_space]
    finally:
        envs.close()
    seen, done = (space[ONE] if programme.rivals() else space for space in spaces)
    return seen, done


def _make_envs(request: EvaluationRequest, programme: Programme, num_envs: int) -> Any:
    env: Any = request.env
    settings, wrappers = request.settings, request.settings.wrappers
    is_single = bool(wrappers) or settings.deliver != "auto" or batched_entry(env) is None
    if programme.tasks is not None and is_single:
        wrappers = settings.receiving()
    # In this process: workers would take longer to start than most games to play.
    return make_vec(
        env,
        num_envs,
        num_workers=0,
        env_kwargs=programme.env_kwargs or None,
        wrappers=wrappers,
    )


class _Players:
    """All players, each with their own rows."""

    def __init__(
        self,
        envs: Any,
        player_maker: PlayerMaker | Random,
        rivals: Mapping[str, PlayerMaker | Random],
        programme: Programme,
        request: EvaluationRequest,
        has_rivals: bool,
    ):
        self._is_deterministic, self._has_rivals = request.is_deterministic, has_rivals
        rows_by_rival = programme.rivals()
        self._agents = AgentRows(envs) if shows_agents(envs) else None
        self._alive = np.zeros(0, dtype=np.bool_)
        stepped: Any = self._agents or envs
        space = stepped.single_action_space
        # With rivals there is an action of either player, alike for both.
        space = space[ONE] if has_rivals else space
        self._player = _made(player_maker, space, stepped.num_envs, request.seed)
        self._rivals = [
            # With other draws than those of its opponent.
            (rows, _made(rivals[name], space, rows.stop - rows.start, request.seed + number))
            for number, (name, rows) in enumerate(rows_by_rival.items(), start=1)
        ]
        for player in (self._player, *(rival for _, rival in self._rivals)):
            player.begin()

    def act(self, observations: Any) -> Any:
        """Return the actions of all players, as the envs take them."""
        if self._agents is not None:
            return self._act_in_rows(self._agents, observations)
        if not self._has_rivals:
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

    def _act_in_rows(self, agents: AgentRows, observations: Any) -> Any:
        """Let every agent of every env act with the same policy."""
        alive = observations["alive"].astype(np.bool_).reshape(-1)
        if len(self._alive):
            # Of an agent that was not there, nothing is remembered when it enters.
            self._player.begin(alive & ~self._alive)
        self._alive = alive
        rows = agents.rows_of(observations)
        actions = self._player.act_batch(rows, deterministic=self._is_deterministic)
        return agents.actions_of(actions, len(alive) // agents.num_agents)


def _made(maker: PlayerMaker | Random, space: Space[Any], num_rows: int, seed: int) -> PlayerLike:
    return RandomPlayer(space, num_rows, seed) if maker == "random" else maker(num_rows)


def _play(
    envs: Any, players: _Players, programme: Programme, request: EvaluationRequest
) -> GameResults:
    """Play one game in every row; rows that are done play on unseen until all are.

    Only the first episode of a row counts: counting the first that end would prefer short ones.
    """
    num_games = programme.num_games
    returns, lengths = np.zeros(num_games), np.zeros(num_games, dtype=np.int64)
    successes, winners = np.full(num_games, np.nan), np.zeros(num_games, dtype=np.int64)
    playing = np.ones(num_games, dtype=np.bool_)
    most_steps, reader = request.max_episode_steps or MOST_STEPS, request.settings.success
    may_repeat = request.is_deterministic and not programme.is_fixed
    repeats = Repeats(programme.rows() if may_repeat else ())
    observations = _begin(envs, programme)
    for step in range(1, most_steps + 1):
        repeats.compare(observations, playing)
        observations, rewards, terminated, truncated, infos = envs.step(players.act(observations))
        repeats.compare(rewards, playing)
        returns[playing] += rewards[playing]
        lengths[playing] += 1
        over = terminated | truncated
        ended = playing if step == most_steps else playing & over
        if ended.any():
            rows = np.flatnonzero(ended)
            successes[rows] = [
                _success(infos, row, returns[row], reader, is_over=bool(over[row]))
                for row in rows.tolist()
            ]
            if programme.is_match:
                winners[rows] = infos["winner"][rows]
            playing = playing & ~ended
            if not playing.any():
                break
    repeats.compare(successes, np.ones_like(playing))
    return GameResults(
        returns=returns,
        lengths=lengths,
        successes=successes,
        winners=winners if programme.is_match else None,
        trials=_trials(num_games, programme.rows() if programme.is_fixed else repeats.alike),
    )


def _trials(num_games: int, same: Sequence[range]) -> npt.NDArray[np.int64]:
    """Return a number for each game; games that are one trial have the same."""
    trials = np.arange(num_games)
    for rows in same:
        trials[rows.start : rows.stop] = rows.start
    return trials


def _begin(envs: Any, programme: Programme) -> Any:
    """Give every row its task and its seed; return what is seen."""
    tasks = programme.tasks
    if tasks is not None and hasattr(envs, "set_tasks"):
        envs.set_tasks(tasks)
    elif tasks is not None:
        for row, task in enumerate(tasks):
            envs.call_on([row], "set_task", task)
    return envs.reset(seed=programme.seeds)[0]


def _success(
    infos: Mapping[str, Any],
    row: int,
    episode_return: float,
    reader: SuccessReader,
    is_over: bool,
) -> float:
    """Return what a row says about its success, NaN if nothing."""
    info = {key: infos[key][row] for key in reader.keys if key in infos and infos[f"_{key}"][row]}
    if not is_over:
        return reader.read_cut_off(info, episode_return)
    return reader.read(info, episode_return, needed=False)


def _scored(results: Mapping[str, GameResults], programme: Programme) -> Score:
    """Return the score of all games, with its groups, with their parts."""
    groups: list[Score] = []
    for name, part in programme.by_group().items():
        games = results[name]
        fixtures = zip(part.fixtures, part.rows(), strict=True)
        parts = [score(fixture.part, games.of(rows)) for fixture, rows in fixtures]
        groups.append(score(name, games, parts))
    is_plain = len(programme.fixtures) == 1 and programme.tasks is None
    whole = GameResults.joined(list(results.values()))
    return score("all", whole, () if is_plain else groups)
