"""An env of RLlib with several agents, as one that a curriculum can play through, and back.

`CurriculumEnv` knows Gymnasium's step. `AgentsAsOne` gives it the sum of the rewards and what the
infos of all agents say together; `CurriculumMultiAgentEnv` gives RLlib what the env itself said.
"""

from typing import Any

import numpy as np
from gymnasium import Env
from gymnasium.spaces import Space
from ray.rllib.env.multi_agent_env import MultiAgentEnv

from stepladder.envs import CurriculumEnv
from stepladder.envs.success import USUAL_KEYS

WHOLE_ENV = "__all__"
"""RLlib's name for the flag of the whole env."""

COMMON = "__common__"
"""RLlib's name for the info of the whole env."""


class AgentsAsOne(Env[Any, Any]):
    """Sums the rewards of all agents; keeps what the env returned for `CurriculumMultiAgentEnv`.

    An episode's success is what the info of the whole env says; else the mean of what the last
    infos of the agents say.

    Args:
        env: The env. Its methods, such as ``set_task``, are found through this one.
        success_key: Info key that holds success; None looks for the usual ones.
    """

    def __init__(self, env: MultiAgentEnv, success_key: str | None):
        self.many = env
        self.metadata = env.metadata
        self.last_step: tuple[Any, ...] = ()
        """What the env returned for the last step."""
        self._keys = USUAL_KEYS if success_key is None else (success_key,)
        self._found: dict[Any, Any] = {}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[Any, Any]]:
        """Begin an episode; the infos of the agents are under their names."""
        self._found = {}
        observations, infos = self.many.reset(seed=seed, options=options)
        return observations, {**(infos or {})}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Let the agents act; the info of the last step says how successful they were."""
        self.last_step = result = self.many.step(action)
        observations, rewards, terminated, truncated, infos = result
        for agent, info in (infos or {}).items():
            key = next((key for key in self._keys if key in (info or {})), None)
            if key is not None:
                self._found[agent] = info[key]
        is_terminated, is_truncated = (
            bool(terminated[WHOLE_ENV]),
            bool(truncated.get(WHOLE_ENV, False)),
        )
        info = self._success() if is_terminated or is_truncated else {}
        return observations, float(sum(rewards.values())), is_terminated, is_truncated, info

    def _success(self) -> dict[str, Any]:
        if COMMON in self._found:
            return {self._keys[0]: self._found[COMMON]}
        if not self._found:
            return {}
        return {self._keys[0]: float(np.mean([float(found) for found in self._found.values()]))}

    def close(self) -> None:
        """Close the env."""
        self.many.close()

    def has_wrapper_attr(self, name: str) -> bool:
        """Return whether this env or the one with the agents has an attribute."""
        return hasattr(self, name) or hasattr(self.many, name)

    def get_wrapper_attr(self, name: str) -> Any:
        """Return an attribute of this env, else of the one with the agents."""
        return getattr(self if hasattr(self, name) else self.many, name)


class CurriculumMultiAgentEnv(MultiAgentEnv):
    """What RLlib steps: the env with its agents, each episode a task of the curriculum.

    Args:
        env: A `CurriculumEnv` around `AgentsAsOne`.
    """

    def __init__(self, env: CurriculumEnv):
        self._env = env
        self._one: AgentsAsOne = env.unwrapped  # type: ignore[assignment]
        many = self._one.many
        self.possible_agents = list(many.possible_agents)
        self.agents = list(many.agents)
        self.observation_spaces, self.action_spaces = many.observation_spaces, many.action_spaces
        self.observation_space, self.action_space = many.observation_space, many.action_space
        super().__init__()
        self.metadata, self.render_mode = many.metadata, many.render_mode

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Any]:
        """Draw a task and begin an episode; the common info says which."""
        observations, info = self._env.reset(seed=seed, options=options)
        self.agents = list(self._one.many.agents)
        about = {key: value for key, value in info.items() if str(key).startswith("curriculum_")}
        infos = {key: value for key, value in info.items() if key not in about}
        infos[COMMON] = {**infos.get(COMMON, {}), **about}
        return observations, infos

    def step(self, action_dict: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Let the agents act; return what the env returned."""
        self._env.step(action_dict)
        self.agents = list(self._one.many.agents)
        observations, rewards, terminated, truncated, infos = self._one.last_step
        return observations, rewards, terminated, truncated, infos

    def get_observation_space(self, agent_id: Any) -> Space[Any]:
        """Return the observation space of an agent."""
        return self._one.many.get_observation_space(agent_id)

    def get_action_space(self, agent_id: Any) -> Space[Any]:
        """Return the action space of an agent."""
        return self._one.many.get_action_space(agent_id)

    def render(self) -> Any:
        """Render the env."""
        return self._one.many.render()

    def close(self) -> None:
        """Close the env, and give its place in the channel back."""
        self._env.close()
