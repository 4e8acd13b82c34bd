"""Types of values that cross the edge of the library: envs, observations, actions, infos.

Only the user's env defines the type of an observation, an action or an info value, so `Any` stands
here once, under a name.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Space
from gymnasium.vector import VectorEnv

from stepladder.arrays import Flags, Floats

GymEnv: TypeAlias = gym.Env[Any, Any]
GymVectorEnv: TypeAlias = VectorEnv[Any, Any, Any]
GymSpace: TypeAlias = Space[Any]

Observation: TypeAlias = Any
"""A value of an observation space; of a vector env, batched."""

Action: TypeAlias = Any
"""A value of an action space; of a vector env, batched."""

Info: TypeAlias = dict[str, Any]
"""What an env returns beside its numbers; of a vector env, merged as Gymnasium does."""

RowInfo: TypeAlias = tuple[int, Info]
"""Row of an env, and the info it returned."""

DType: TypeAlias = np.dtype[Any]

GymWrapper: TypeAlias = gym.Wrapper[Any, Any, Any, Any]

EnvFunction: TypeAlias = Callable[[], GymEnv]
"""Makes one env."""

Arguments: TypeAlias = Mapping[str, Any]
"""Keyword arguments for code of the user, such as a class of envs."""

EnvStep: TypeAlias = tuple[Observation, Any, bool, bool, Info]
"""What `step` of one env returns. The reward is a float, or whatever the env returns as one."""

VectorStep: TypeAlias = tuple[Observation, Floats, Flags, Flags, Info]
"""What `step` of a vector env returns: observations, rewards, terminated, truncated, infos."""

ResetResult: TypeAlias = tuple[Observation, Info]
"""What `reset` returns, of one env or of a vector env."""

EnvSeed: TypeAlias = int | Sequence[int | None] | None
"""Of a vector env: a number, to which each env's index is added; or one per env."""

ResetOptions: TypeAlias = dict[str, Any] | list[dict[str, Any] | None] | None
"""Of a reset: the same for every env, or one for each."""
