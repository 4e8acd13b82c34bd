"""Episodes played for somebody to look at: a policy, an env, a picture after every step.

Between `playable` and a film or a window. An episode is played when its pictures are asked for.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete

from stepladder.cli.finding import find_function, guarded, learning
from stepladder.cli.playable import Playable
from stepladder.envs.delivery import Delivery
from stepladder.envs.success import SuccessReader
from stepladder.errors import ConfigError
from stepladder.games.drawing import Picture

Policy = Callable[[Any], Any]
"""From an observation to an action; one with a method ``begin`` is told when an episode begins."""

END_S = 0.5
"""How long the last picture of an episode is shown, so that one sees how it ended."""


@dataclass(kw_only=True)
class Tally:
    """What has been played so far."""

    num_episodes: int = 0
    """Episodes that have ended, those that were cut off included."""

    num_judged: int = 0
    """Those of them that said whether they succeeded."""

    num_successes: int = 0
    num_pictures: int = 0


class Shutter:
    """Decides after which steps a picture is taken.

    Args:
        rate: Steps per second at the speed at which the env is to be seen.
        fps: Pictures per second, at most `rate`.
    """

    def __init__(self, rate: float, fps: float):
        self._share = min(1.0, fps / rate)
        self._exposed = 1.0

    def opens(self) -> bool:
        """Return whether there is a picture of this step; asked once for each."""
        is_due = self._exposed >= 1.0
        self._exposed += self._share - is_due
        return is_due


def play(
    playable: Playable,
    policy: Policy,
    *,
    num_episodes: int,
    max_steps: int,
    seed: int,
    shutter: Shutter,
    end_pictures: int,
    tally: Tally,
) -> Iterator[Picture]:
    """Play episodes one after the other, and give pictures of them.

    Args:
        playable: What to play.
        policy: Who plays.
        num_episodes: How many.
        max_steps: Steps after which an episode is cut off.
        seed: Of the first episode; each further one has the next number.
        shutter: Decides which steps there are pictures of.
        end_pictures: How often the last picture of an episode is repeated.
        tally: Counts, in place.

    Raises:
        EnvError: The env or the policy raised something.
    """
    env = playable.env
    begin_policy = getattr(policy, "begin", None)
    for episode_index in range(num_episodes):
        observation = _begin(playable, seed + episode_index)
        if begin_policy is not None:
            guarded("the policy", begin_policy)
        episode_return, length, has_ended, info = 0.0, 0, False, {}
        while True:
            is_last = has_ended or length == max_steps
            if is_last or shutter.opens():
                picture = guarded(playable.name, env.render)
                for _ in range(1 + (end_pictures if is_last else 0)):
                    tally.num_pictures += 1
                    yield picture
            if is_last:
                break
            action = guarded("the policy", policy, observation)
            observation, reward, terminated, truncated, info = guarded(
                playable.name, env.step, action
            )
            episode_return, length = episode_return + float(reward), length + 1
            has_ended = bool(terminated or truncated)
        _count(tally, info, episode_return)


def make_policy(name: str | None, playable: Playable) -> Policy:
    """Return who plays.

    Args:
        name: ``random``, ``idle``, ``scripted`` or ``planner`` (the env's own expert), ``learnt``
            (the run's own policy), module:function, or the path of a learnt policy; None takes what
            the run has learnt, else the expert where there is one, else random actions.
        playable: What it plays.

    Raises:
        ConfigError: There is no such policy for this env.
    """
    env = playable.env
    expert = getattr(env.unwrapped, "scripted_action", None)
    if name is None and playable.learnt is not None:
        name = "learnt"
    elif name is None:
        name = "random" if expert is None else "scripted"
    if name == "random":
        return lambda observation: env.action_space.sample()
    if name == "idle":
        action = _idle_action(env.action_space)
        return lambda observation: action
    if name in ("scripted", "planner"):
        if expert is None:
            raise ConfigError(
                f"{playable.name} has no expert of its own, so --policy {name} cannot play it. Use "
                "random, idle or module:function."
            )
        return lambda observation: expert()
    if name == "learnt":
        return _learnt(playable.learnt, playable)
    if Path(name).exists():
        return _learnt(Path(name), playable)
    return _written(name, env)


def _learnt(path: Path | None, playable: Playable) -> Policy:
    if path is None:
        raise ConfigError(
            f"{playable.name} has learnt no policy yet, so --policy learnt cannot play it. Name a "
            "run that has, or use another --policy."
        )
    learnt = learning()
    return learnt.SinglePolicy(learnt.find_learnt(str(path)), playable.env, playable.name)


def _written(name: str, env: gym.Env[Any, Any]) -> Policy:
    """Return a policy of the user's own."""
    if ":" not in name:
        raise ConfigError(
            f"there is no policy {name!r}; there are random, idle, scripted, planner, learnt, "
            "module:function and the folders of runs."
        )
    policy = guarded(name, find_function(name, "takes an env and returns a policy"), env)
    if not callable(policy):
        raise ConfigError(
            f"{name} must return a function from observation to action; it returned something of "
            f"type {type(policy).__name__}."
        )
    return policy


def _idle_action(space: gym.Space[Any]) -> Any:
    """Return the action that does nothing, as far as a space tells: 0, or what is nearest to it."""
    if isinstance(space, Discrete | MultiDiscrete):
        return space.start
    if isinstance(space, Box):
        return np.clip(np.zeros(space.shape), space.low, space.high).astype(space.dtype)
    if isinstance(space, Dict):
        return {name: _idle_action(part) for name, part in space.items()}
    raise ConfigError(f"nobody knows how to be idle in {space}. Use another --policy.")


def _begin(playable: Playable, seed: int) -> Any:
    if playable.next_task is None:
        return guarded(playable.name, playable.env.reset, seed=seed)[0]
    delivery = Delivery(playable.env, "auto")
    return guarded(playable.name, delivery.reset, playable.next_task(), seed, None)[0]


def _count(tally: Tally, info: dict[str, Any], episode_return: float) -> None:
    success = SuccessReader().read(info, episode_return, needed=False)
    tally.num_episodes += 1
    tally.num_judged += not math.isnan(success)
    tally.num_successes += success > 0.5
