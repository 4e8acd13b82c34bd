"""Makes the envs of RLlib's env runners: the user's own env, playing the tasks of a channel.

Takes the place of the env in an `AlgorithmConfig`, and travels with it to every env runner, also
to one that is restarted.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
from ray.rllib.env.env_context import EnvContext
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.tune.registry import ENV_CREATOR, _global_registry

from stepladder.cluster.channel import Reach
from stepladder.cluster.rllib.many_agents import AgentsAsOne, CurriculumMultiAgentEnv
from stepladder.curricula.base import Curriculum
from stepladder.envs import CurriculumEnv
from stepladder.errors import ConfigError


@dataclass
class EnvMaker:
    """Makes one env after the other; RLlib calls it like a class of envs."""

    env: Any
    """What the user gave as env: a name, a class or a function."""

    make_curriculum: Callable[[], Curriculum]
    env_settings: dict[str, Any]
    """Arguments of `CurriculumEnv`."""

    channel_settings: dict[str, Any]
    """Arguments of `RayChannel`."""

    envs_per_runner: int = 1
    reach: Reach | None = None
    """Set by the algorithm, when its channel is there."""

    num_made: int = field(default=0, compare=False)

    def __call__(self, context: EnvContext) -> Any:
        """Make an env of this process and connect it."""
        if self.reach is None:
            raise ConfigError(
                "this config was not built by its own algorithm class, so its envs have no "
                "curriculum. Use config.build_algo(), or Tuner(config.algo_class, ...)."
            )
        place = max(context.worker_index - 1, 0) * self.envs_per_runner
        preferred = place + self.num_made % self.envs_per_runner
        self.num_made += 1
        env, settings = self._plain(context), dict(self.env_settings)
        if isinstance(env, MultiAgentEnv):
            one = AgentsAsOne(env, settings.get("success_key"))
            wrapped = CurriculumEnv(one, self.reach.client(preferred), **settings)
            return CurriculumMultiAgentEnv(wrapped)
        return CurriculumEnv(env, self.reach.client(preferred), **settings)

    def _plain(self, context: EnvContext) -> Any:
        if not isinstance(self.env, str):
            return self.env(context)
        if _global_registry.contains(ENV_CREATOR, self.env):
            return _global_registry.get(ENV_CREATOR, self.env)(context)
        return gym.make(self.env, **context)
