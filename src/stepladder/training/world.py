"""The envs of a training, as one vector env with a curriculum.

Between `config` and `loop`. The env's `Game` provides its arguments, second player and symmetry.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Space
from gymnasium.wrappers import TimeLimit

from stepladder.agents.replay.mirror import Mirror
from stepladder.curricula.base import Curriculum
from stepladder.envs import make_vec
from stepladder.envs.agent_rows import AgentRows, shows_agents
from stepladder.envs.ids import game_of
from stepladder.envs.make import batched_entry
from stepladder.envs.parallel import as_gymnasium
from stepladder.envs.workers.vector_env import WorkerVectorEnv
from stepladder.errors import ConfigError, EnvError, shown
from stepladder.games.game import PLAYERS
from stepladder.training.config import TrainingConfig

FLOAT32_MAX = float(np.finfo(np.float32).max)
"""Agents keep numbers in 32 bits."""

FLOAT64_MAX = float(np.finfo(np.float64).max)

Limits = tuple[Any, Any]
"""The smallest and the largest value, for all entries or each."""

ONE, TWO = PLAYERS


class TrainingWorld:
    """All envs of a training, seen from the learner's side.

    The learner plays in rows: one per env; of envs with several agents, one per agent.

    Args:
        config: Of the training.
        curriculum: What chooses the tasks.
    """

    def __init__(self, config: TrainingConfig, curriculum: Curriculum):
        game = game_of(config.env)
        self.envs: Any = make_envs(config, curriculum)
        """What the curriculum knows, and what is saved."""
        self.agents = AgentRows(self.envs) if shows_agents(self.envs) else None
        """What is stepped, where envs have several agents."""
        self._stepped: Any = self.agents or self.envs
        self.num_rows: int = self._stepped.num_envs
        self.lacks_tasks = not has_tasks(config) and self._takes_tasks()
        """Whether the envs could be given tasks, and there are none."""
        space = self._stepped.single_observation_space
        self.has_rivals = (
            bool(game.opponents) and isinstance(space, Dict) and set(space.spaces) == {ONE, TWO}
        )
        """Whether the training plays both players."""
        self.observation_space: Space[Any] = space[ONE] if self.has_rivals else space
        self.is_trusted = game.is_finite
        """Whether the envs are known to give finite numbers only."""
        self._limits = {} if self.is_trusted else _limits(self.observation_space)
        self._reward_scale = config.reward_scale
        # A return over several steps is a sum of so many rewards.
        num_added = getattr(config.agent, "num_step_returns", 1)
        self._largest_reward = min(FLOAT32_MAX / config.reward_scale / num_added, FLOAT64_MAX)
        actions = self._stepped.single_action_space
        self.action_space: Space[Any] = actions[ONE] if self.has_rivals else actions

    def _takes_tasks(self) -> bool:
        base = self.envs.unwrapped
        is_single = isinstance(base, WorkerVectorEnv)
        return is_single and any(base.call_on([0], "has_wrapper_attr", "set_task"))

    def reset(self, seed: int | None = None) -> Any:
        """Begin a new episode everywhere; return what is seen.

        Raises:
            EnvError: An agent cannot learn from it.
        """
        seen = self._stepped.reset(seed=seed)[0]
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
            return self._stepped.step(actions)
        if rival_actions is None:
            rival_actions = np.zeros_like(actions)
        return self.envs.step({ONE: actions, TWO: rival_actions})

    def playing(self, ended: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[np.bool_]:
        """Return which rows take part in the next step.

        The others wait: their env is only reset in it, or their agent is not there.

        Args:
            ended: Whose episode has ended in the last step; None is after a reset.
        """
        if ended is None:
            ended = np.zeros(self.num_rows, dtype=np.bool_)
        return ~ended if self.agents is None else self.agents.alive & ~ended

    def check(self, seen: Any, rewards: npt.NDArray[Any]) -> None:
        """Raise if an env gives numbers that no agent can learn from.

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
                self._require_inside(part, self._limits[name], what)

    def _name_of_row(self, row: int) -> str:
        if self.agents is None:
            return f"env {row}"
        env_index, agent = divmod(row, self.agents.num_agents)
        return f"agent {self.agents.possible_agents[agent]!r} of env {env_index}"

    def _require_inside(self, numbers: npt.NDArray[Any], limits: Limits, what: str) -> None:
        """Raise unless integers lie in their space: they are indices of tables."""
        low, high = limits
        is_outside = (numbers < low) | (numbers > high)
        if is_outside.any():
            row = int(np.argwhere(is_outside)[0][0])
            raise EnvError(
                f"the {what} of {self._name_of_row(row)} is {shown(numbers[row].tolist())}; its "
                f"space goes from {shown(np.asarray(low).tolist())} to "
                f"{shown(np.asarray(high).tolist())}. Fix the env or its observation_space."
            )

    def _unusable(self, numbers: npt.NDArray[Any], largest: float, what: str) -> EnvError:
        """Return the error that names an env, its value and what to do."""
        rows = np.abs(numbers.reshape(len(numbers), -1)).max(axis=1)
        env_index = int(np.flatnonzero(~(rows <= largest))[0])
        value = numbers[env_index].tolist()
        whose = self._name_of_row(env_index)
        if not np.isfinite(numbers[env_index]).all():
            fix = f"Fix the env: an agent cannot learn from this {what}."
        elif what == "reward":
            fix = f"Lower reward_scale (now {self._reward_scale:g})."
        else:
            fix = "Scale it in the env."
        return EnvError(
            f"the {what} of {whose} is {shown(value)}; expected finite numbers, at most "
            f"{largest:.3g}, so that they fit into 32 bits. {fix}"
        )

    def has_begun(self) -> npt.NDArray[np.bool_]:
        """Return which games have begun in the last step or reset; of built-in games only."""
        return self.envs.unwrapped.batch.has_begun

    def opponents(self, rows: npt.NDArray[np.int64]) -> list[str]:
        """Return the opponents of the learner in some envs."""
        return self.envs.unwrapped.opponents(rows)

    def seen_now(self) -> Any:
        """Return what is seen now, after games were restored in flight."""
        seen = self.envs.unwrapped.buffers.observations
        if isinstance(seen, Mapping):
            return {name: part.copy() for name, part in seen.items()}
        return seen.copy()


def _limits(space: Space[Any]) -> dict[str, Limits]:
    """Return the smallest and the largest value of every part that holds integers."""
    parts: Any = space.spaces if isinstance(space, Dict) else {"": space}
    limits: dict[str, Limits] = {}
    for name, part in parts.items():
        if isinstance(part, Discrete):
            limits[name] = part.start, part.start + part.n - 1
        elif isinstance(part, MultiDiscrete):
            limits[name] = part.start, part.start + part.nvec - 1
        elif isinstance(part, MultiBinary):
            limits[name] = 0, 1
        elif isinstance(part, Box) and part.dtype is not None and part.dtype.kind in "iu":
            # Whatever the type can hold is allowed in a picture, so there is nothing to compare.
            every = np.iinfo(part.dtype)
            if (part.low > every.min).any() or (part.high < every.max).any():
                limits[name] = part.low, part.high
    return limits


def make_envs(config: TrainingConfig, curriculum: Curriculum) -> Any:
    """Make the vector env that a config asks for, with next-step autoreset.

    Raises:
        ConfigError: There is no such env, or it does not take these arguments.
    """
    # Before envs are tried out in workers: a misspelt name is reported once.
    game = game_of(config.env)
    kwargs = {**game.training_arguments(config.agent.gamma), **config.env_kwargs}
    env_settings = config.env_settings()
    wrappers = env_settings.wrappers
    if config.max_episode_steps is not None and game.time_limit_argument is not None:
        kwargs.setdefault(game.time_limit_argument, config.max_episode_steps)
    elif config.max_episode_steps is not None:
        limit: Callable[..., Any] = partial(_limited, num_steps=config.max_episode_steps)
        wrappers = (*wrappers, limit)
    curriculum_env = env_settings.curriculum_env()
    if not has_tasks(config) and (batched_entry(config.env) is None or wrappers or curriculum_env):
        # There is no task to be at fault: what the env raises is its own error.
        curriculum_env |= {"deliver": play_as_it_is, "build_errors": ()}
    try:
        return make_vec(
            config.env,
            config.num_envs,
            curriculum=curriculum,
            num_workers="auto" if config.num_workers is None else config.num_workers,
            env_kwargs=kwargs or None,
            wrappers=wrappers,
            curriculum_env=curriculum_env or None,
        )
    except (gym.error.Error, ModuleNotFoundError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(
            f"env {config.env!r} cannot be made with env_kwargs {kwargs}: {reason} Correct env or "
            "env_kwargs."
        ) from error


def _limited(env: Any, num_steps: int) -> Any:
    return TimeLimit(as_gymnasium(env), max_episode_steps=num_steps)


def has_tasks(config: TrainingConfig) -> bool:
    """Return whether a curriculum chooses among tasks; otherwise the env is played as it is."""
    return bool(config.tasks) or config.own_source() is not None


def play_as_it_is(env: Any, task: Any) -> None:
    """Deliver the only task of an env without tasks: do nothing."""


def mirror_of(config: TrainingConfig, device: torch.device) -> Mirror | None:
    """Return the symmetry of an env for an agent that learns from it, if the env has one."""
    found = game_of(config.env).symmetry(config.env_kwargs)
    if found is None:
        return None
    return Mirror(
        # All columns of one frame, then those of the next.
        tuple(found.number_signs) * getattr(config.agent, "frame_stack", 1),
        action_signs=found.action_signs,
        action_swaps=found.action_swaps,
        device=device,
    )
