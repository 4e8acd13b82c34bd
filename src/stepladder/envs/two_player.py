"""Games of two players whose action joins the actions of both.

Inside any vector env, so that a step is one round trip for both players: `BothPlayers` returns both
observations; `AgainstOpponent` plays the second player in the worker, against the opponent that the
task names.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, MultiDiscrete

from stepladder.arrays import Array
from stepladder.envs.delivery import METADATA_KEY
from stepladder.envs.types import (
    Action,
    EnvStep,
    GymEnv,
    GymSpace,
    GymWrapper,
    Info,
    Observation,
    ResetResult,
)
from stepladder.errors import ConfigError
from stepladder.tasks import Task

NO_OPPONENT = "none"
"""The built-in opponent that does nothing: its actions are zeros."""


class TwoPlayerEnv(GymWrapper):
    """The common part: an action of two halves, an observation for each player.

    Args:
        env: Its action space is a flat Box or MultiDiscrete: player one's half, then player two's.
        player_two_view: Its method that returns player two's observation, found through wrappers.
    """

    def __init__(self, env: GymEnv, player_two_view: str = "obs_agent_two"):
        super().__init__(env)
        if not env.has_wrapper_attr(player_two_view):
            raise ConfigError(
                f"{env} has no method {player_two_view!r} that gives player two's observation. "
                "Name it with player_two_view=..."
            )
        self._view: Callable[[], Observation] = env.get_wrapper_attr(player_two_view)
        self._view_space = env.observation_space
        self._halves = halves(env.action_space)

    def _observation_one(self, observation: Observation) -> Observation:
        return as_declared(self._view_space, observation, "player one's observation")

    def _observation_two(self) -> Observation:
        return as_declared(self._view_space, self._view(), "player two's observation")

    def _join(self, action_one: Action, action_two: Action, name_of_two: str) -> Array:
        one = as_declared(self._halves[0], action_one, "player one's action")
        return np.concatenate([one, as_declared(self._halves[1], action_two, name_of_two)])


class BothPlayers(TwoPlayerEnv):
    """Sends out both players' observations and takes both players' actions.

    Observations and actions are dicts of ``player_one`` and ``player_two``. The reward is the
    env's: player one's.
    """

    def __init__(self, env: GymEnv, player_two_view: str = "obs_agent_two"):
        super().__init__(env, player_two_view)
        view = env.observation_space
        self.observation_space = Dict({"player_one": view, "player_two": view})
        self.action_space = Dict({"player_one": self._halves[0], "player_two": self._halves[1]})

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> ResetResult:
        """Reset the env; return both players' observations."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._both(observation), info

    def step(self, action: Mapping[str, Action]) -> EnvStep:
        """Let both players act; return both observations."""
        joint = self._join(action["player_one"], action["player_two"], "player two's action")
        observation, reward, terminated, truncated, info = self.env.step(joint)
        return self._both(observation), reward, terminated, truncated, info

    def _both(self, observation: Observation) -> dict[str, Observation]:
        return {
            "player_one": self._observation_one(observation),
            "player_two": self._observation_two(),
        }


class AgainstOpponent(TwoPlayerEnv):
    """Player one's game against an opponent that is chosen for each episode and plays here.

    The task names the opponent, in ``params["opponent"]``; if it does not, or there are no tasks,
    `set_opponent` does; else it is the first one. A choice holds from the next reset on. The info
    of the step that ends an episode has the opponent's name under ``opponent``.

    Args:
        env: The game of two players.
        opponents: By name: a function of player two's observation that returns its action; an
            object with ``act(observation)``; or a class or function that makes one and needs no
            argument, called when first needed, so that each env has its own. If the object has
            ``reset(seed=...)``, that is called before each episode, with a seed derived from the
            env's. ``"none"`` is built in: it does nothing.
        player_two_view: The env's method that returns player two's observation.
    """

    def __init__(
        self, env: GymEnv, opponents: Mapping[str, Any], player_two_view: str = "obs_agent_two"
    ):
        super().__init__(env, player_two_view)
        if NO_OPPONENT in opponents:
            raise ConfigError(f"the opponent {NO_OPPONENT!r} is built in. Give yours another name.")
        for name, opponent in opponents.items():
            if not callable(opponent) and not hasattr(opponent, "act"):
                raise ConfigError(
                    f"opponent {name!r} must be a function of the observation, have a method act, "
                    f"or make what has one; got a {type(opponent).__name__}."
                )
        self.action_space = self._halves[0]
        has_method = env.has_wrapper_attr("set_task")
        self._pass_on = env.get_wrapper_attr("set_task") if has_method else None
        self._opponents = dict(opponents)
        self._players: dict[str, Any] = {}
        self._chosen = next(iter(opponents), NO_OPPONENT)
        self._task: Task | None = None
        self._named_by_task: str | None = None
        self._opponent = self._chosen
        self._act: Callable[[Observation], Action] | None = None
        self._rng = np.random.default_rng()

    @property
    def opponent_names(self) -> tuple[str, ...]:
        """All opponents that can be chosen."""
        return (*self._opponents, NO_OPPONENT)

    def set_opponent(self, name: str) -> None:
        """Play against this one from the next episode on, unless a later task names another."""
        self._require(name)
        self._chosen = name
        self._named_by_task = None

    def set_task(self, task: Task) -> None:
        """Play against the opponent that the task names; the env below gets the task as well.

        An env that has opponents of its own (``scripts_opponents``) does not get the name, which
        may stand for another one there.
        """
        params = task.params
        name = params.pop("opponent", None)
        if name is not None:
            self._require(name)
        self._task, self._named_by_task = task, name
        if self._pass_on is not None:
            hides_name = name is not None and self.env.has_wrapper_attr("scripts_opponents")
            self._pass_on(Task(task.name, task.label, params, task.seed) if hides_name else task)

    def _require(self, name: str) -> None:
        if name not in self.opponent_names:
            raise ConfigError(
                f"unknown opponent {name!r}; expected one of {', '.join(self.opponent_names)}."
            )

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> ResetResult:
        """Begin an episode against the opponent chosen last."""
        if seed is not None:
            self._rng = np.random.default_rng([seed, 2])
        opponent_seed = int(self._rng.integers(2**31))
        self._opponent = self._named_by_task or self._chosen
        if self._task is not None and (self.env.metadata or {}).get(METADATA_KEY):
            options = {**(options or {}), "task": self._task}
        observation, info = self.env.reset(seed=seed, options=options)
        self._act = None
        if self._opponent != NO_OPPONENT:
            player = self._player(self._opponent)
            self._act = player.act if hasattr(player, "act") else player
            if hasattr(player, "reset"):
                player.reset(seed=opponent_seed)
        return self._observation_one(observation), info

    def _player(self, name: str) -> Any:
        """Return the player with a name; made when first needed."""
        if name not in self._players:
            player = self._opponents[name]
            if makes_players(player):
                player = player()
                if not hasattr(player, "act"):
                    raise ConfigError(
                        f"opponent {name!r} made a {type(player).__name__}, which has no method "
                        "act(observation). A function that acts itself takes the observation."
                    )
            self._players[name] = player
        return self._players[name]

    def step(self, action: Action) -> EnvStep:
        """Let the opponent choose by its present observation, then let both act."""
        if self._act is None:
            action_two: Action = np.zeros(self._halves[1].shape, self._halves[1].dtype)
        else:
            action_two = self._act(self._observation_two())
        joint = self._join(action, action_two, f"the action of opponent {self._opponent!r}")
        observation, reward, terminated, truncated, info = self.env.step(joint)
        if terminated or truncated:
            info = {**info, "opponent": self._opponent}
        return self._observation_one(observation), reward, terminated, truncated, info


def halves(space: GymSpace) -> tuple[Box | MultiDiscrete, Box | MultiDiscrete]:
    """Split a joint action space into those of player one and player two."""
    if not isinstance(space, Box | MultiDiscrete) or len(space.shape) != 1 or space.shape[0] % 2:
        raise ConfigError(
            "the action space must be a flat Box or MultiDiscrete of even length, player one's "
            f"half first; got {' '.join(repr(space).split())}. Join the actions in a wrapper."
        )
    half = space.shape[0] // 2
    parts = slice(None, half), slice(half, None)
    dtype: Any = space.dtype
    if isinstance(space, MultiDiscrete):
        one, two = (MultiDiscrete(space.nvec[p], dtype=dtype, start=space.start[p]) for p in parts)
    else:
        one, two = (Box(space.low[part], space.high[part], dtype=dtype) for part in parts)
    return one, two


def as_declared(space: GymSpace, value: Any, what: str) -> Any:
    """Return a value as an array of the type that its space declares.

    Raises:
        ConfigError: It has another shape, or would lose its fractions.
    """
    if not isinstance(space, Box | MultiDiscrete):
        return value
    array = np.asarray(value)
    if array.shape != space.shape:
        raise ConfigError(
            f"{what} must have shape {space.shape}; got {array.shape}: {_brief(array)}."
        )
    if not np.can_cast(array.dtype, space.dtype, "same_kind"):
        raise ConfigError(
            f"{what} must be of type {space.dtype}; got {array.dtype}: {_brief(array)}."
        )
    return array.astype(space.dtype)


def _brief(array: Array) -> str:
    return np.array2string(array.reshape(-1), threshold=8, edgeitems=4, max_line_width=10_000)


def makes_players(opponent: Any) -> bool:
    """Return whether a callable makes players rather than being one: it needs no argument."""
    if isinstance(opponent, type):
        return True
    if hasattr(opponent, "act"):
        return False
    # ``*args`` takes an observation: neural networks are called so.
    return not any(
        each.default is each.empty and each.kind is not each.VAR_KEYWORD
        for each in inspect.signature(opponent).parameters.values()
    )
