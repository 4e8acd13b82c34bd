"""The envs of a training: what a config asks for, as one vector env with a curriculum.

Between `config` and `loop`. Knows what is particular about the built-in games (shaping, both
players, their symmetry); everything else is any Gymnasium env.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete, Space
from gymnasium.wrappers import TimeLimit

from stepladder.agents.mirror import Mirror
from stepladder.curricula.base import Curriculum
from stepladder.envs import make_vec
from stepladder.envs.ids import find_env
from stepladder.errors import ConfigError, EnvError, shown
from stepladder.games.hockey.actions import num_actions
from stepladder.training.config import TrainingConfig
from stepladder.training.contradictions import HOCKEY, LEDGE

FLOAT32_MAX = float(np.finfo(np.float32).max)
"""Agents keep numbers in 32 bits."""

FLOAT64_MAX = float(np.finfo(np.float64).max)

Limits = tuple[Any, Any]
"""The smallest and the largest value, for all entries or each."""

ONE, TWO = "player_one", "player_two"

MIRRORED_NUMBERS = (1, 2, 4, 5, 7, 8, 10, 11, 13, 15)
"""What changes its sign when hockey is mirrored along its length: across, and angles."""

MIRRORED_FORCES = (1, 2)
"""Of an action: the force across, and the torque."""


class World:
    """All envs of a training, seen from the learner's side.

    Args:
        config: Of the training.
        curriculum: What chooses the tasks.
    """

    def __init__(self, config: TrainingConfig, curriculum: Curriculum):
        self.envs: Any = make_envs(config, curriculum)
        self.num_envs: int = self.envs.num_envs
        space = self.envs.single_observation_space
        self.has_rivals = (
            config.env == HOCKEY and isinstance(space, Dict) and set(space.spaces) == {ONE, TWO}
        )
        """Whether the training plays both players."""
        self.observation_space: Space[Any] = space[ONE] if self.has_rivals else space
        self.is_trusted = config.env in (HOCKEY, LEDGE)
        """Whether the envs are known to give finite numbers only."""
        self._limits = {} if self.is_trusted else _limits(self.observation_space)
        self._reward_scale = config.reward_scale
        # A return over several steps is a sum of so many rewards.
        num_added = getattr(config.agent, "num_step_returns", 1)
        self._largest_reward = min(FLOAT32_MAX / config.reward_scale / num_added, FLOAT64_MAX)
        actions = self.envs.single_action_space
        self.action_space: Space[Any] = actions[ONE] if self.has_rivals else actions

    def reset(self, seed: int | None = None) -> Any:
        """Begin a new episode everywhere; return what is seen.

        Raises:
            EnvError: It is nothing that an agent can learn from.
        """
        seen = self.envs.reset(seed=seed)[0]
        self._check_seen(self.of_learner(seen))
        return seen

    def of_learner(self, seen: Any) -> Any:
        """Return what the learner sees."""
        return seen[ONE] if self.has_rivals else seen

    def of_rival(self, seen: Any) -> npt.NDArray[np.float32]:
        """Return what the other player sees."""
        return seen[TWO]

    def step(
        self, actions: npt.NDArray[Any], rival_actions: npt.NDArray[Any] | None = None
    ) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step all envs."""
        if not self.has_rivals:
            return self.envs.step(actions)
        if rival_actions is None:
            rival_actions = np.zeros_like(actions)
        return self.envs.step({ONE: actions, TWO: rival_actions})

    def check(self, seen: Any, rewards: npt.NDArray[Any]) -> None:
        """Raise if an env gives what nobody can learn from, in the numbers that agents keep.

        Raises:
            EnvError: An observation or a reward is not finite in 32 bits, or outside its space.
        """
        # Also where the env is trusted: the scale is the user's.
        if not np.abs(rewards).max(initial=0.0) <= self._largest_reward:
            raise self._unusable(rewards, self._largest_reward, "reward")
        self._check_seen(seen)

    def _check_seen(self, seen: Any) -> None:
        if self.is_trusted:
            return
        parts: Any = seen.items() if isinstance(seen, Mapping) else (("", seen),)
        for name, part in parts:
            what = f"observation[{name!r}]" if name else "observation"
            if part.dtype.kind == "f":
                if not np.abs(part).max(initial=0.0) <= FLOAT32_MAX:
                    raise self._unusable(part, FLOAT32_MAX, what)
            elif name in self._limits:
                _require_inside(part, self._limits[name], what)

    def _unusable(self, numbers: npt.NDArray[Any], largest: float, what: str) -> EnvError:
        """Return the error that names an env, its value and what to do."""
        rows = np.abs(numbers.reshape(len(numbers), -1)).max(axis=1)
        env_index = int(np.flatnonzero(~(rows <= largest))[0])
        value = numbers[env_index].tolist()
        if not np.isfinite(numbers[env_index]).all():
            fix = f"Fix the env: an agent cannot learn from this {what}."
        elif what == "reward":
            fix = f"Lower reward_scale (now {self._reward_scale:g})."
        else:
            fix = "Scale it in the env."
        return EnvError(
            f"the {what} of env {env_index} is {shown(value)}; expected finite numbers, at most "
            f"{largest:.3g}, so that they fit into 32 bits. {fix}"
        )

    def has_begun(self) -> npt.NDArray[np.bool_]:
        """Return which games have begun in the last step or reset; of built-in games only."""
        return self.envs.unwrapped.batch.has_begun

    def opponents(self, rows: npt.NDArray[np.int64]) -> list[str]:
        """Return whom the learner plays in some envs."""
        return self.envs.unwrapped.opponents(rows)

    def seen_now(self) -> Any:
        """Return what is seen now, after games were restored in flight."""
        seen = self.envs.unwrapped.buffers.observations
        if isinstance(seen, Mapping):
            return {name: part.copy() for name, part in seen.items()}
        return seen.copy()


def _limits(space: Space[Any]) -> dict[str, Limits]:
    """Return the smallest and the largest value of every part that is whole numbers."""
    parts: Any = space.spaces if isinstance(space, Dict) else {"": space}
    limits: dict[str, Limits] = {}
    for name, part in parts.items():
        if isinstance(part, Discrete):
            limits[name] = part.start, part.start + part.n - 1
        elif isinstance(part, MultiDiscrete):
            limits[name] = part.start, part.start + part.nvec - 1
        elif isinstance(part, Box) and part.dtype is not None and part.dtype.kind in "iu":
            limits[name] = part.low, part.high
    return limits


def _require_inside(numbers: npt.NDArray[Any], limits: Limits, what: str) -> None:
    """Raise unless whole numbers lie in their space: they are places in tables."""
    low, high = limits
    is_outside = (numbers < low) | (numbers > high)
    if is_outside.any():
        env_index = int(np.argwhere(is_outside)[0][0])
        raise EnvError(
            f"the {what} of env {env_index} is {shown(numbers[env_index].tolist())}; its space "
            f"goes from {shown(np.asarray(low).tolist())} to {shown(np.asarray(high).tolist())}. "
            "Fix the env or its observation_space."
        )


def make_envs(config: TrainingConfig, curriculum: Curriculum) -> Any:
    """Make the vector env that a config asks for, with next-step autoreset.

    Raises:
        ConfigError: There is no such env, or it does not take these arguments.
    """
    kwargs, settings = env_kwargs(config), dict[str, Any]()
    if config.env in (HOCKEY, LEDGE):
        kwargs.setdefault("task_infos", False)
    else:
        if config.max_episode_steps is not None:
            limit: Callable[..., Any] = partial(
                TimeLimit, max_episode_steps=config.max_episode_steps
            )
            settings["wrappers"] = (limit,)
        if not config.tasks:
            settings["curriculum_env"] = {"deliver": play_as_it_is}
    try:
        if config.env not in (HOCKEY, LEDGE):
            # Before envs are tried out in workers: a misspelt name is said once.
            find_env(config.env)
        return make_vec(
            config.env,
            config.num_envs,
            curriculum=curriculum,
            env_kwargs=kwargs or None,
            **settings,
        )
    except (gym.error.Error, ModuleNotFoundError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(
            f"env {config.env!r} cannot be made with env_kwargs {kwargs}: {reason} Correct env or "
            "env_kwargs."
        ) from error


def env_kwargs(config: TrainingConfig) -> dict[str, Any]:
    """Return the arguments of the env, with what follows from the rest of the config.

    Ledge is shaped with the agent's own discount, unless the config says otherwise; shaping does
    not change what is best, and without it a way is not found by chance.
    """
    kwargs = dict(config.env_kwargs)
    if config.env == LEDGE:
        kwargs = {"shaping": True, "gamma": config.agent.gamma, **kwargs}
    if config.env in (HOCKEY, LEDGE) and config.max_episode_steps is not None:
        kwargs.setdefault("time_limit", config.max_episode_steps)
    return kwargs


def play_as_it_is(env: Any, task: Any) -> None:
    """Deliver the one task of an env without any: there is nothing to tell it."""


def mirror_of(config: TrainingConfig, device: torch.device) -> Mirror | None:
    """Return the symmetry of an env, if it has one: hockey looks the same from either side line."""
    if config.env != HOCKEY:
        return None
    signs = np.ones(18)
    signs[list(MIRRORED_NUMBERS)] = -1.0
    if config.env_kwargs.get("actions") != "discrete":
        forces = np.ones(4)
        forces[list(MIRRORED_FORCES)] = -1.0
        return Mirror(signs.tolist(), action_signs=forces.tolist(), device=device)
    swaps = mirrored_choices(config.env_kwargs.get("fineness", 1))
    return Mirror(signs.tolist(), action_swaps=swaps, device=device)


def mirrored_choices(fineness: int) -> list[int]:
    """Return what each discrete action of hockey becomes in the mirror.

    Nothing, forces along the rink and the shot stay; forces across and rotations change sides, at
    the same strength.

    Example:
        >>> mirrored_choices(1)
        [0, 1, 2, 4, 3, 6, 5, 7]
    """
    num_strengths = 1 if fineness < 3 else fineness - 1
    swaps = list(range(num_actions(fineness)))
    for direction, other in ((2, 3), (3, 2), (4, 5), (5, 4)):
        for strength in range(num_strengths):
            place = 1 + direction * num_strengths + strength
            swaps[place] = 1 + other * num_strengths + strength
    return swaps
