"""A vector env whose rows are agents, made of one whose envs are `ParallelAsEnv`.

Outermost: what a trainer of a shared policy sees. The vector env below may be any, and may carry a
curriculum; that one counts episodes of envs, this one shows episodes of agents.
"""

from collections.abc import Hashable, Iterable, Iterator
from typing import Any

import numpy as np
from gymnasium.spaces import Dict
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from stepladder.arrays import Array, Flags, Floats
from stepladder.envs.types import (
    Action,
    EnvSeed,
    GymVectorEnv,
    Info,
    Observation,
    ResetResult,
    VectorStep,
)
from stepladder.envs.workers.memory.spaces import map_leaves
from stepladder.errors import ConfigError

AGENT_PARTS = ("agents", "alive", "rewards", "terminated", "truncated")
LOST_KEY = "worker_died"
"""Info key of an env whose episode was lost with the worker that played it."""


class AgentRows(GymVectorEnv):
    """Shows every agent of every env as a row: env by env, agent by agent.

    Row ``env_index * num_agents + agent_index`` is one agent. ``num_envs`` counts rows.

    When an agent leaves before its env ends, its row waits, with zeros, until the env is reset:
    ``infos["alive"]`` says which rows took part in the step just made, and is there only if some
    did not. Leave out those that did not when you learn. With next-step autoreset, a whole env is
    reset in the step after its last agent has ended. With same-step autoreset every row that ends
    has ``final_obs`` and ``final_info``, also that of an agent whose env goes on. With autoreset
    disabled, reset the envs of ``ended_envs``. If a wrapper cuts an env off (a time limit), the
    agents still there are cut off with it.

    Infos of an agent are on its row; those of an env are on all rows of it.

    Args:
        env: A vector env of envs that are each a ``ParallelAsEnv``, or wrappers around one.
    """

    def __init__(self, env: GymVectorEnv):
        if not shows_agents(env):
            raise ConfigError(
                "AgentRows needs a vector env whose envs are ParallelAsEnv; got one whose "
                f"observations are {type(env.single_observation_space).__name__}. Make each env "
                "with ParallelAsEnv(env)."
            )
        self.env: Any = env
        names = set(self.get_attr("possible_agents"))
        if len(names) != 1:
            raise ConfigError(
                f"all envs must have the same possible_agents; got {' and '.join(map(str, names))}."
            )
        self.possible_agents: tuple[Hashable, ...] = names.pop()
        self.num_agents = len(self.possible_agents)
        self.num_envs = env.num_envs * self.num_agents
        self.metadata = dict(env.metadata)
        self.render_mode = env.render_mode
        self.spec = env.spec
        self.single_observation_space = self.get_attr("agent_observation_space")[0]
        self.single_action_space = self.get_attr("agent_action_space")[0]
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.ended_envs: Flags = np.zeros(env.num_envs, dtype=np.bool_)
        """Which envs, not rows, have ended in the last step."""
        self.alive: Flags = np.ones(self.num_envs, dtype=np.bool_)
        """Which rows took part in the last step, or were there after the last reset."""
        self._columns = {str(agent): index for index, agent in enumerate(self.possible_agents)}
        self._same_step = self.metadata.get("autoreset_mode") in (
            AutoresetMode.SAME_STEP,
            AutoresetMode.SAME_STEP.value,
        )

    # Playing.

    def reset(self, *, seed: EnvSeed = None, options: Info | None = None) -> ResetResult:
        """Reset all envs, or those of ``options["reset_mask"]``.

        Args:
            seed: One for all, which the vector env spreads over its envs; or one per env.
            options: For every env. A ``reset_mask`` has one entry per env or one per row; all rows
                of an env must agree.
        """
        mask = np.ones(self.env.num_envs, dtype=np.bool_)
        if options is not None and "reset_mask" in options:
            mask = self._mask_of_envs(options["reset_mask"])
            options = {**options, "reset_mask": mask.copy()}
        observations, infos = self.env.reset(seed=seed, options=options)
        self.ended_envs = self.ended_envs & ~mask
        alive = observations["alive"].astype(np.bool_)
        self.alive = alive.reshape(-1)
        rows = spread_infos(infos, self._columns, np.ones_like(alive))
        return self.rows_of(observations), add_alive(rows, alive)

    def _mask_of_envs(self, mask: Any) -> Flags:
        by_env: Any = np.asarray(mask)
        if by_env.shape == (self.num_envs,):
            by_agent = by_env.reshape(-1, self.num_agents)
            by_env = by_agent.any(axis=1)
            split = np.flatnonzero(by_env != by_agent.all(axis=1))
            if len(split):
                raise ConfigError(
                    f"reset_mask is set for some agents of env {split[0]} only; an env is reset "
                    "as a whole. Set all its rows or none, or pass ended_envs, one entry per env."
                )
        elif by_env.shape != (self.env.num_envs,):
            raise ConfigError(
                f"reset_mask must have one entry per env ({self.env.num_envs}) or per row "
                f"({self.num_envs}); got shape {by_env.shape}."
            )
        return by_env

    def step(self, actions: Action) -> VectorStep:
        """Step all envs with one action per row; those of agents that have left are ignored."""
        result = self.env.step(self.actions_of(actions, self.env.num_envs))
        return self._rows_of_step(result, slice(None))

    def send(self, actions: Action, batch_index: int = 0) -> None:
        """Begin to step the envs of a batch, if the vector env can do so."""
        envs = self._batches_of_envs()[batch_index]
        self.env.send(self.actions_of(actions, envs.stop - envs.start), batch_index)

    def recv(self, batch_index: int = 0) -> VectorStep:
        """Return what came of the step that was begun, for the rows of that batch."""
        return self._rows_of_step(self.env.recv(batch_index), self._batches_of_envs()[batch_index])

    @property
    def batches(self) -> tuple[slice, ...]:
        """The rows of each batch."""
        k = self.num_agents
        return tuple(slice(envs.start * k, envs.stop * k) for envs in self._batches_of_envs())

    def _batches_of_envs(self) -> tuple[slice, ...]:
        return self._below("batches")

    def actions_of(self, actions: Action, num_envs: int) -> Action:
        """Return one action per row as the envs take them."""

        def split(leaf: Any) -> Array:
            array = np.asarray(leaf)
            if array.shape[:1] != (num_envs * self.num_agents,):
                raise ConfigError(
                    f"expected one action for each of {num_envs * self.num_agents} rows "
                    f"({num_envs} envs of {self.num_agents} agents); got shape {array.shape}."
                )
            return array.reshape(num_envs, self.num_agents, *array.shape[1:])

        return map_leaves(self.single_action_space, actions, split)

    def rows_of(self, observations: Observation) -> Observation:
        """Return observations of envs with a row per agent."""
        return map_leaves(
            self.single_observation_space,
            observations["agents"],
            lambda leaf: leaf.reshape(-1, *leaf.shape[2:]),
        )

    def _rows_of_step(self, result: VectorStep, envs: slice) -> VectorStep:
        observations, _, env_terminated, env_truncated, infos = result
        alive, rewards, terminated, truncated = parts_of_step(observations, infos)
        self.ended_envs = self.ended_envs.copy()
        self.ended_envs[envs] = np.logical_or(env_terminated, env_truncated)
        # Agents without a flag of their own in an env that has ended: a wrapper has cut it off.
        cut = alive & ~(terminated | truncated)
        terminated |= cut & env_terminated[:, np.newaxis]
        truncated |= cut & env_truncated[:, np.newaxis]
        ended = terminated | truncated
        first = envs.start or 0
        rows_stepped = slice(first * self.num_agents, (first + len(alive)) * self.num_agents)
        self.alive = self.alive.copy()
        self.alive[rows_stepped] = alive.reshape(-1)
        if self._same_step and ended.any():
            rows = self._final_infos(observations, infos, ended)
        else:
            rows = spread_infos(infos, self._columns, np.ones_like(ended))
        return (
            self.rows_of(observations),
            rewards.reshape(-1),
            terminated.reshape(-1),
            truncated.reshape(-1),
            add_alive(rows, alive),
        )

    def _final_infos(self, observations: Observation, infos: Info, ended: Flags) -> Info:
        """Return the infos of rows, with the last observation and info of each that ended."""
        was_reset = infos.get("_final_obs", np.zeros(len(ended), dtype=np.bool_))
        leaving = ended & ~was_reset[:, np.newaxis]
        last = {key: infos[key] for key in ("final_obs", "final_info") if key in infos}
        now = {key: infos[key] for key in infos if key not in with_masks(last)}
        final_obs = np.full(ended.shape, None, dtype=object)
        for env_index, agent_index in np.argwhere(ended):
            stacked, place = observations, (env_index, agent_index)
            if was_reset[env_index]:
                stacked, place = last["final_obs"][env_index], agent_index
            final_obs[env_index, agent_index] = map_leaves(
                self.single_observation_space,
                stacked["agents"],
                lambda leaf, place=place: leaf[place].copy(),
            )
        # The info of an agent that leaves is its last, whether or not its env ends with it.
        of_leaving = {key: now[key] for key in now if key in with_masks(self._columns)}
        final_info = spread_infos(of_leaving, self._columns, leaving)
        spread_infos(last.get("final_info", {}), self._columns, ended & ~leaving, final_info)
        rows = spread_infos(now, self._columns, np.ones_like(ended), without=leaving)
        rows |= {"final_obs": final_obs.reshape(-1), "_final_obs": ended.reshape(-1)}
        rows |= {"final_info": final_info, "_final_info": ended.reshape(-1)}
        return rows

    # Forwarded to the vector env; these are about envs, not rows.

    def _below(self, name: str) -> Any:
        """Return an attribute of the vector env, also where its wrappers do not forward it."""
        return getattr(self.env if hasattr(self.env, name) else self.env.unwrapped, name)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of every env; one result per env."""
        return tuple(self._below("call")(name, *args, **kwargs))

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Return an attribute of every env; one per env."""
        return tuple(self._below("get_attr")(name))

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of every env; a list or tuple has one value per env."""
        self._below("set_attr")(name, values)

    def render(self) -> tuple[Any, ...] | None:
        """Render every env."""
        return self.env.render()

    def close_extras(self, **kwargs: Any) -> None:
        """Close the vector env."""
        self.env.close(**kwargs)


def shows_agents(env: GymVectorEnv) -> bool:
    """Return whether the envs of a vector env are each a ``ParallelAsEnv``."""
    space = env.single_observation_space
    return isinstance(space, Dict) and set(space.spaces) == set(AGENT_PARTS)


def parts_of_step(observations: Observation, infos: Info) -> tuple[Flags, Floats, Flags, Flags]:
    """Return which agents took part in a step, their rewards and both flags, env by env."""
    alive, terminated, truncated = (
        observations[part].astype(np.bool_) for part in ("alive", "terminated", "truncated")
    )
    rewards = observations["rewards"].copy()
    # An env that was reset in this step shows its new episode; what ended is in final_obs.
    for index in np.flatnonzero(infos.get("_final_obs", ())):
        final = infos["final_obs"][index]
        alive[index], rewards[index] = final["alive"], final["rewards"]
        terminated[index], truncated[index] = final["terminated"], final["truncated"]
    # Of an env that was lost there is only its last observation: its remaining agents are cut off.
    for index in np.flatnonzero(infos.get("final_info", infos).get(f"_{LOST_KEY}", ())):
        alive[index] &= ~(terminated[index] | truncated[index])
        truncated[index] = alive[index]
        rewards[index], terminated[index] = 0.0, False
    return alive, rewards, terminated, truncated


# Infos, in Gymnasium's format: under each key an array with one entry per env, and under the key
# with an underscore before it a mask of the envs that have an entry.


def add_alive(infos: Info, alive: Flags) -> Info:
    """Add which rows took part, if some did not."""
    if not alive.all():
        infos |= {"alive": alive.reshape(-1), "_alive": np.ones(alive.size, dtype=np.bool_)}
    return infos


def spread_infos(
    infos: Info,
    columns: dict[str, int],
    wanted: Flags,
    into: Info | None = None,
    *,
    without: Flags | None = None,
) -> Info:
    """Return the infos of envs as infos of rows.

    Args:
        infos: Of envs. What is under the name of an agent is that agent's.
        columns: The index of each agent, by name.
        wanted: Rows to return infos of, of shape ``(num_envs, num_agents)``.
        into: Infos of rows to add to, in place.
        without: Rows whose agents' infos are left out, but not those of their envs.
    """
    rows = {} if into is None else into
    for_agents = wanted if without is None else wanted & ~without
    entries = list(entries_of(infos, len(wanted)))
    for key, values, given in entries:
        if key not in columns:
            place(rows, key, values, wanted & given[:, np.newaxis])
    for name, agent_infos, given in entries:
        if name in columns:
            column = np.zeros_like(wanted)
            column[:, columns[name]] = given
            for key, values, inner in entries_of(agent_infos, len(wanted)):
                place(rows, key, values, for_agents & column & inner[:, np.newaxis])
    return rows


def with_masks(keys: Iterable[str]) -> set[str]:
    """Return keys of infos together with the names of their masks."""
    return {name for key in keys for name in (key, f"_{key}")}


def entries_of(infos: Info, num_envs: int) -> Iterator[tuple[str, Any, Flags]]:
    """Yield each key with its values and its mask; a key without a mask is about all envs."""
    masks = {f"_{key}" for key in infos}
    for key, values in infos.items():
        if key not in masks:
            yield key, values, infos.get(f"_{key}", np.ones(num_envs, dtype=np.bool_))


def place(rows: Info, key: str, values: Any, where: Flags) -> None:
    """Write the value of each env to its rows in the mask."""
    if not where.any():
        return
    if isinstance(values, dict):
        inner = rows.setdefault(key, {})
        for name, each, given in entries_of(values, len(where)):
            place(inner, name, each, where & given[:, np.newaxis])
    else:
        spread = np.repeat(values, where.shape[1], axis=0)
        chosen = where.reshape(-1)
        blank = None if spread.dtype == object else 0
        old = rows.get(key, np.full_like(spread, blank))
        # Agents may give different types of number; none is converted to a smaller one.
        rows[key] = old.astype(np.promote_types(old.dtype, spread.dtype), copy=False)
        rows[key][chosen] = spread[chosen]
    mask = rows.setdefault(f"_{key}", np.zeros(where.size, dtype=np.bool_))
    mask |= where.reshape(-1)
