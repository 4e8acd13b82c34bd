"""A PettingZoo parallel env as one Gymnasium env, with all its agents in one observation.

Stepped by a vector env, in this process or in a worker: every leaf of the observation is an array,
so nothing is pickled. `AgentRows` around that vector env turns agents into rows. PettingZoo itself
is not needed, only an object with its methods.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Dict, MultiBinary
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from stepladder.envs.types import (
    Action,
    EnvStep,
    GymEnv,
    GymSpace,
    Info,
    Observation,
    ResetResult,
)
from stepladder.envs.workers.memory.spaces import leaves_of
from stepladder.errors import ConfigError


class ParallelAsEnv(GymEnv):
    """Plays all agents of a parallel env at once.

    The observation has the agents' observations stacked under ``agents``, in the order of
    ``possible_agents``, and four arrays of one entry per agent: ``rewards``, ``terminated``,
    ``truncated`` and ``alive``. An agent is alive in every step that it has acted in, its last one
    included, and when it enters. The row of an agent that has left, or has not entered yet, is all
    zeros; its action is not passed on. The flags of an agent are set in the step that ends it only;
    one that leaves without a flag counts as truncated. No agent comes back in the same episode.

    The reward is the sum over the agents: what a curriculum sees. The episode ends when no agent is
    left: terminated if an agent was terminated in the last step, else truncated. So an agent that
    died long before the others ran out of time does not make a truncated episode terminated.

    The info holds the agents' infos under their names, those that are not empty.

    Args:
        parallel_env: Has ``possible_agents``, which all have the same spaces. Its methods and
            attributes, such as ``set_task``, are found through this env as through a wrapper.
    """

    def __init__(self, parallel_env: Any):
        agents: Sequence[Hashable] | None = getattr(parallel_env, "possible_agents", None)
        if not agents:
            raise ConfigError(
                f"{type(parallel_env).__name__} has no list possible_agents, so the number of rows "
                "is not known. Give it the names of all agents that can ever take part."
            )
        self.parallel_env = parallel_env
        self.possible_agents = tuple(agents)
        self.num_agents = len(agents)
        self.metadata = dict(getattr(parallel_env, "metadata", None) or {})
        self.render_mode = getattr(parallel_env, "render_mode", None)
        self.agent_observation_space = _space_of_all(
            parallel_env.observation_space, agents, "observation"
        )
        self.agent_action_space = _space_of_all(parallel_env.action_space, agents, "action")
        self.action_space = batch_space(self.agent_action_space, self.num_agents)
        per_agent = (self.num_agents,)
        self.observation_space = Dict(
            {
                "agents": batch_space(self.agent_observation_space, self.num_agents),
                "rewards": Box(-np.inf, np.inf, per_agent, np.float64),
                "terminated": MultiBinary(per_agent),
                "truncated": MultiBinary(per_agent),
                "alive": MultiBinary(per_agent),
            }
        )
        self._rows = {agent: row for row, agent in enumerate(agents)}
        self._playing: list[Hashable] = []
        self._left: set[Hashable] = set()
        zeros = create_empty_array(self.agent_observation_space, n=1, fn=np.zeros)
        self._nothing = next(iter(iterate(batch_space(self.agent_observation_space, 1), zeros)))

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> ResetResult:
        """Begin an episode with the agents that the parallel env begins with."""
        super().reset(seed=seed)
        observations, infos = self.parallel_env.reset(seed=seed, options=options)
        self._playing = list(self.parallel_env.agents)
        self._left = set()
        observation = self._stack(observations, self._playing)
        observation |= {
            "rewards": np.zeros(self.num_agents),
            "terminated": np.zeros(self.num_agents, dtype=np.int8),
            "truncated": np.zeros(self.num_agents, dtype=np.int8),
        }
        return observation, self._merge(infos, self._playing)

    def step(self, action: Action) -> EnvStep:
        """Let every agent that takes part act; the actions of the others are ignored."""
        if not self._playing:
            raise ResetNeeded("no agent is there to act. Call reset before step.")
        by_row = list(iterate(self.action_space, action))
        actions = {agent: by_row[self._rows[agent]] for agent in self._playing}
        observations, rewards, terminations, truncations, infos = self.parallel_env.step(actions)
        staying = set(self.parallel_env.agents)
        known = self._left.union(actions)
        present = [*self._playing, *(a for a in self.parallel_env.agents if a not in known)]
        reward = np.zeros(self.num_agents)
        terminated = np.zeros(self.num_agents, dtype=np.int8)
        truncated = np.zeros(self.num_agents, dtype=np.int8)
        for agent in present:
            row = self._rows[agent]
            reward[row] = rewards.get(agent, 0.0)
            terminated[row] = terminations.get(agent, False)
            truncated[row] = truncations.get(agent, False)
            if agent not in staying and not terminated[row]:
                truncated[row] = True
        ended = terminated | truncated
        self._playing = [agent for agent in present if not ended[self._rows[agent]]]
        self._left.update(agent for agent in present if ended[self._rows[agent]])
        observation = self._stack(observations, present)
        observation |= {"rewards": reward, "terminated": terminated, "truncated": truncated}
        over, by_itself = not self._playing, bool(terminated.any())
        return (
            observation,
            float(reward.sum()),
            over and by_itself,
            over and not by_itself,
            self._merge(infos, present),
        )

    def _stack(
        self, observations: Mapping[Hashable, Observation], present: Sequence[Hashable]
    ) -> dict[str, Any]:
        """Return the stacked observations and which agents take part, in new arrays."""
        items = [self._nothing] * self.num_agents
        alive = np.zeros(self.num_agents, dtype=np.int8)
        for agent in present:
            row = self._rows[agent]
            alive[row] = True
            if agent in observations:
                items[row] = observations[agent]
            elif agent in self._playing:
                raise ConfigError(
                    f"the parallel env gave no observation of agent {agent!r}, which is still in "
                    f"play; got those of {list(observations)}. Fix its reset or step."
                )
        out = create_empty_array(self.agent_observation_space, n=self.num_agents)
        return {"agents": concatenate(self.agent_observation_space, items, out), "alive": alive}

    def _merge(self, infos: Mapping[Hashable, Info], present: Sequence[Hashable]) -> Info:
        """Return infos by name: those of agents that take part, and those of the whole env."""
        return {
            str(name): info
            for name, info in infos.items()
            if not _is_empty(info) and (name in present or name not in self._rows)
        }

    def render(self) -> Any:
        """Render the parallel env."""
        return self.parallel_env.render()

    def close(self) -> None:
        """Close the parallel env."""
        self.parallel_env.close()

    # What the parallel env has is found through this env, as through a wrapper.

    def has_wrapper_attr(self, name: str) -> bool:
        """Return whether this env or the parallel env has an attribute."""
        return hasattr(self, name) or hasattr(self.parallel_env, name)

    def get_wrapper_attr(self, name: str) -> Any:
        """Return an attribute of this env, else of the parallel env."""
        return getattr(self if hasattr(self, name) else self.parallel_env, name)

    def set_wrapper_attr(self, name: str, value: Any, *, force: bool = True) -> bool:
        """Set an attribute where it is; if it is nowhere, here, when forced."""
        if not hasattr(self, name) and hasattr(self.parallel_env, name):
            setattr(self.parallel_env, name, value)
            return True
        return super().set_wrapper_attr(name, value, force=force)


def _is_empty(info: Any) -> bool:
    """Return whether an agent says nothing; of the whole env, also 0 and False say something."""
    return info is None or (isinstance(info, Mapping) and not info)


def as_gymnasium(env: Any, wrappers: Sequence[Callable[[Any], Any]] = ()) -> Any:
    """Put wrappers around an env; return the result, as one Gymnasium env if it is a parallel env.

    Args:
        env: A Gymnasium env, or a parallel env.
        wrappers: The innermost first; each takes an env and returns one.

    Raises:
        ConfigError: It is an env of several agents that act in turn.
    """
    for wrap in wrappers:
        env = wrap(env)
    if isinstance(env, gym.Env) or not hasattr(env, "possible_agents"):
        return env
    if hasattr(env, "agent_iter"):
        raise ConfigError(
            f"in {type(env).__name__} the agents act in turn (AEC), and here all act at once. Use "
            "its parallel_env, or pettingzoo.utils.conversions.aec_to_parallel."
        )
    return ParallelAsEnv(env)


def _space_of_all(
    space_of: Callable[[Hashable], GymSpace], agents: Sequence[Hashable], kind: str
) -> GymSpace:
    """Return the one space that all agents have."""
    first = space_of(agents[0])
    for agent in agents[1:]:
        if space_of(agent) != first:
            raise ConfigError(
                f"all agents must have the same {kind} space; {agents[0]!r} has {_line(first)} and "
                f"{agent!r} has {_line(space_of(agent))}. Pad them to one space first."
            )
    if not all(leaf.is_array for leaf in leaves_of(first)):
        raise ConfigError(
            f"the {kind} space of agents must be Box, Discrete, MultiDiscrete, MultiBinary, or a "
            f"Dict or Tuple of these; got {_line(first)}. Leave the other parts out."
        )
    return first


def _line(space: GymSpace) -> str:
    """Return the text of a space on one line, also if its bounds are arrays."""
    return " ".join(repr(space).split())
