"""Episodes played for `watch`: a policy, an env, pictures of the steps.

Between `playable` and a film or a window. Steps are played when their pictures are asked for.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete

from stepladder.agents.config import OwnWay
from stepladder.cli.inputs.finding import find_function, guarded, learning
from stepladder.cli.inputs.playable import Playable
from stepladder.envs.delivery import Delivery
from stepladder.errors import ConfigError
from stepladder.games.drawing import Picture
from stepladder.runs.checkpoint_choice import LAST

ChooseAction = Callable[[Any], Any]
"""A policy: from an observation to an action. Its method ``begin``, if it has one, is called at the
beginning of an episode."""

LAST_PICTURE_S = 0.5
"""How long the last picture of an episode is shown."""


@dataclass(kw_only=True)
class PlayCounts:
    """What has been played so far."""

    num_episodes: int = 0
    """Episodes that have ended, including those that were cut off."""

    num_judged: int = 0
    """Episodes that reported whether they succeeded."""

    num_successes: int = 0
    num_pictures: int = 0

    @property
    def outcome(self) -> str:
        """Successes and failures in words; empty if no episode says."""
        if not self.num_judged:
            return ""
        text = f"{self.num_successes} succeeded, {self.num_judged - self.num_successes} failed"
        unknown = self.num_episodes - self.num_judged
        return f"{text}, {unknown} did not say" if unknown else text


class Shutter:
    """Decides after which steps a picture is taken.

    Args:
        rate: Steps per second at which the env is shown.
        fps: Pictures per second, at most `rate`.
    """

    def __init__(self, rate: float, fps: float):
        self._share = min(1.0, fps / rate)
        self._exposed = 1.0

    def opens(self) -> bool:
        """Return whether there is a picture of this step; call it once per step."""
        is_due = self._exposed >= 1.0
        self._exposed += self._share - is_due
        return is_due


def play(
    playable: Playable,
    policy: ChooseAction,
    *,
    num_episodes: int,
    max_steps: int,
    seed: int,
    shutter: Shutter,
    end_pictures: int,
    counts: PlayCounts,
) -> Iterator[Picture]:
    """Play episodes one after the other, and yield pictures of them.

    Args:
        playable: What to play.
        policy: The policy that plays.
        num_episodes: Number of episodes.
        max_steps: Steps after which an episode is cut off.
        seed: Seed of the first episode; each further one has the next number.
        shutter: Decides which steps there are pictures of.
        end_pictures: How often the last picture of an episode is repeated.
        counts: Updated in place.

    Raises:
        EnvError: The env or the policy raised something.
    """
    env, name, reader = playable.env, playable.name, playable.settings.success
    begin_policy = getattr(policy, "begin", None)
    for episode_seed in range(seed, seed + num_episodes):
        if playable.next_task is None:
            observation = guarded(name, env.reset, seed=episode_seed)[0]
        else:
            reset = Delivery(env, playable.settings.deliver).reset
            observation = guarded(name, reset, playable.next_task(), episode_seed, None)[0]
        if begin_policy is not None:
            guarded("the policy", begin_policy)
        episode_return, length, has_ended, info = 0.0, 0, False, {}
        while True:
            is_last = has_ended or length == max_steps
            if is_last or shutter.opens():
                picture = guarded(name, env.render)
                for _ in range(1 + (end_pictures if is_last else 0)):
                    counts.num_pictures += 1
                    yield picture
            if is_last:
                break
            action = guarded("the policy", policy, observation)
            observation, reward, terminated, truncated, info = guarded(name, env.step, action)
            episode_return, length = episode_return + float(reward), length + 1
            has_ended = bool(terminated or truncated)
        read = reader.read_cut_off
        if has_ended:
            read = partial(reader.read, needed=False)
        success = read(info, episode_return)
        counts.num_episodes += 1
        counts.num_judged += not math.isnan(success)
        counts.num_successes += success > 0.5


def make_policy(
    name: str | None,
    playable: Playable,
    checkpoint: str | int = LAST,
    *,
    trust: bool = False,
    way: OwnWay | None = None,
    seed: int = 0,
) -> ChooseAction:
    """Return the policy that plays.

    Args:
        name: ``random``, ``idle``, ``scripted`` or ``planner`` (the env's own expert), ``learnt``
            (the policy of the run), module:function, or the path of a trained policy. None takes
            the policy of the run, else the expert where there is one, else random actions.
        playable: What it plays.
        checkpoint: Which policy of the run that `name` is the path of.
        trust: Whether a network that a trained policy names may be imported.
        way: How a trained policy acts; None is its own way.
        seed: Of what a trained policy draws.

    Raises:
        ConfigError: This env has no such policy, or it cannot act in this way.
    """
    env = playable.env
    expert = getattr(env.unwrapped, "scripted_action", None)
    if name is None:
        name = "random" if expert is None else "scripted"
        name = name if playable.learnt is None and playable.pretrained is None else "learnt"
    is_learnt = name == "learnt" or Path(name).exists()
    if way is not None and not is_learnt:
        raise ConfigError(
            f"--drawn and --best are for trained policies, and --policy {name} is none. Leave "
            f"--{way} out."
        )
    if name == "random":
        return lambda observation: env.action_space.sample()
    if name == "idle":
        action = idle_action(env.action_space)
        return lambda observation: action
    if name in ("scripted", "planner"):
        if expert is None:
            raise ConfigError(
                f"{playable.name} has no expert of its own, so --policy {name} cannot play it. Use "
                "random, idle or module:function."
            )
        return lambda observation: expert()
    if is_learnt:
        found = _found_policy(name, playable, checkpoint, trust)
        return learning().SinglePolicy(found, env, playable.name, way=way, seed=seed)
    return _user_policy(name, env)


def _found_policy(name: str, playable: Playable, checkpoint: str | int, trust: bool) -> Any:
    """Return a trained policy: one that comes with the package, or that of a path."""
    learnt = learning()
    if name == "learnt" and playable.pretrained is not None:
        return learnt.pretrained_learnt(playable.pretrained)
    path, chosen = name, checkpoint
    if name == "learnt":
        path, chosen = playable.learnt, playable.checkpoint
    if path is None:
        raise ConfigError(
            f"{playable.name} has no trained policy yet, so --policy learnt cannot play it. "
            "Name a run that has one, or use another --policy."
        )
    return learnt.find_learnt(str(path), chosen, trust=trust)


def _user_policy(name: str, env: gym.Env[Any, Any]) -> ChooseAction:
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


def idle_action(space: gym.Space[Any]) -> Any:
    """Return the action that does nothing: 0, or the nearest to it in the space."""
    if isinstance(space, Discrete | MultiDiscrete):
        return space.start
    if isinstance(space, MultiBinary):
        return np.zeros(space.shape, space.dtype)
    if isinstance(space, Box):
        return np.clip(np.zeros(space.shape), space.low, space.high).astype(space.dtype)
    if isinstance(space, Dict):
        return {name: idle_action(part) for name, part in space.items()}
    raise ConfigError(f"{space} has no idle action. Use another --policy.")
