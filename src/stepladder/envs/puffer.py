"""Give what `make_vec` returns PufferLib's interface: buffers that are filled in place.

Outermost, for training loops written for PufferLib's vector API; PufferLib itself is not imported.
The arrays are the memory that the workers write to. With `AgentRows`, whose flags are computed
after each step, rewards and flags are copies.
"""

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from stepladder.arrays import Array
from stepladder.envs.agent_rows import AgentRows
from stepladder.envs.types import Action, EnvSeed, GymVectorEnv, Info, Observation, RowInfo
from stepladder.envs.vector import SteppedEnvs, envs_stepped_by
from stepladder.envs.workers.memory.spaces import leaves_of, map_leaves
from stepladder.errors import ChannelError, ConfigError

RESET_CALL, RECV_CALL, SEND_CALL = "async_reset(seed)", "recv()", "send(actions)"
"""What may be called next."""


class PufferView:
    """A vector env with PufferLib's interface: ``async_reset``, then ``recv`` and ``send`` in turn.

    A row is an agent; of an env that is not in `AgentRows`, the env itself is the only one. With
    ``make_vec(num_batches=2)``, each ``recv`` gives the next batch and ``send`` answers it.

    ``observations``, ``actions``, ``rewards``, ``terminals``, ``truncations`` and ``masks`` hold
    all rows; workers write to those of a batch that was sent actions until it is received.
    Observations and actions are nested if their spaces are. The view owns the vector env from then
    on: what its own methods return may change later.

    Args:
        vec: From `make_vec`, or `AgentRows` around that; any autoreset mode but ``"Disabled"``.
        teacher_actions: Whether ``recv`` returns eight things, as ``pufferlib-core`` does, with an
            array of zeros after the truncations.
    """

    emulated = False
    """Observations are not flattened, so there is nothing to undo."""

    def __init__(self, vec: GymVectorEnv, *, teacher_actions: bool = False):
        base = envs_stepped_by(vec.env if isinstance(vec, AgentRows) else vec)
        if base is None:
            raise ConfigError(
                f"PufferView needs what make_vec returns, or AgentRows around it; got a "
                f"{type(vec).__name__}. Put wrappers around each env, with make_vec(wrappers=…)."
            )
        _check_fits(vec, base)
        self._base = base
        self._is_by_agent = isinstance(vec, AgentRows)
        self.vec: Any = vec
        self.single_observation_space = vec.single_observation_space
        self.single_action_space = vec.single_action_space
        self.num_agents = vec.num_envs
        self._batches = vec.batches if isinstance(vec, AgentRows) else base.batches
        self.agents_per_batch = self.num_agents // len(self._batches)
        # What its recv returns is not used.
        base.copy = False
        base.merges_infos = self._is_by_agent
        self.observation_space = batch_space(self.single_observation_space, self.agents_per_batch)
        self.action_space = batch_space(self.single_action_space, self.agents_per_batch)
        self._lay_out(teacher_actions)
        self.infos: list[Info] = []
        """Those that the last `recv` returned."""
        self._next_call = RESET_CALL
        self._turn = 0
        self._unseen: dict[int, list[RowInfo]] = {}

    def _lay_out(self, teacher_actions: bool) -> None:
        buffers, num_rows = self._base.buffers, self.num_agents
        seen, acted = self.single_observation_space, self.single_action_space
        self.observations, self.actions = buffers.observations, buffers.actions
        self.rewards: Array = buffers.rewards
        self.terminals, self.truncations = buffers.terminated, buffers.truncated
        if self._is_by_agent:
            self.observations = map_leaves(seen, self.observations["agents"], _with_row_per_agent)
            self.actions = map_leaves(acted, self.actions, _with_row_per_agent)
            self.rewards = np.zeros(num_rows)
            self.terminals, self.truncations = np.zeros((2, num_rows), dtype=np.bool_)
        self.masks: Array = np.ones(num_rows, dtype=np.bool_)
        self.agent_ids = np.arange(num_rows)
        columns = [
            (seen, self.observations),
            (None, self.rewards),
            (None, self.terminals),
            (None, self.truncations),
        ]
        if teacher_actions:
            self.teacher_actions = map_leaves(acted, self.actions, np.zeros_like)
            columns.append((acted, self.teacher_actions))
        self._views = [
            [
                map_leaves(space, column, lambda leaf, rows=rows: leaf[rows])
                for space, column in columns
            ]
            for rows in self._batches
        ]

    # Playing.

    def async_reset(self, seed: EnvSeed = None) -> None:
        """Reset all envs; each batch is then received once before it is sent anything.

        Args:
            seed: To which each env's index is added; or one per env.
        """
        self._next_call = RESET_CALL
        _, infos = self.vec.reset(seed=seed)
        self.rewards[:] = 0.0
        if self._is_by_agent:
            self.terminals[:], self.truncations[:] = False, False
            self.masks[:] = infos.get("alive", True)
        infos_by_row = self._base.last_infos
        self._unseen = {
            batch_index: [
                (row, info) for row, info in infos_by_row if rows.start <= row < rows.stop
            ]
            for batch_index, rows in enumerate(self._base.batches)
        }
        self._turn, self._next_call = 0, RECV_CALL

    def recv(self) -> tuple[Any, ...]:
        """Wait for the next batch.

        Returns:
            Observations, rewards, terminals, truncations, infos, agent ids and masks of its rows,
            which stay as they are until that batch is sent actions. Infos are those of the envs
            that have one; of an ending with same-step autoreset, first the info of the end.
        """
        self._check(RECV_CALL)
        batch_index = self._turn
        rows = self._batches[batch_index]
        infos_by_row = self._unseen.pop(batch_index, None)
        if infos_by_row is None:
            result = self.vec.recv(batch_index)
            infos_by_row = self._base.last_infos
            if self._is_by_agent:
                self.rewards[rows], self.terminals[rows], self.truncations[rows] = result[1:4]
                self.masks[rows] = result[4].get("alive", True)
        self.infos = _one_by_one(infos_by_row)
        self._next_call = SEND_CALL
        return *self._views[batch_index], self.infos, self.agent_ids[rows], self.masks[rows]

    def send(self, actions: Action) -> None:
        """Have the workers step the batch that was received last.

        Args:
            actions: One per row of the batch.
        """
        self._check(SEND_CALL)
        self.vec.send(actions, self._turn)
        self._turn = (self._turn + 1) % len(self._batches)
        self._next_call = RECV_CALL

    def _check(self, call: str) -> None:
        if self._base.closed:
            raise ChannelError("this vector env is closed. Make a new one.")
        if call != self._next_call:
            raise ChannelError(f"{call} was called out of turn. Call {self._next_call} first.")

    def reset(self, seed: EnvSeed = None) -> tuple[Observation, list[Info]]:
        """Reset all envs; return observations and infos of the first batch."""
        self.async_reset(seed)
        return self.recv()[0], self.infos

    def step(self, actions: Action) -> tuple[Observation, Array, Array, Array, list[Info]]:
        """Send actions for the batch received last, and receive the next."""
        self.send(actions)
        observations, rewards, terminals, truncations, *_ = self.recv()
        return observations, rewards, terminals, truncations, self.infos

    # What else PufferLib's loops call.

    @property
    def num_envs(self) -> int:
        """Rows that a `recv` returns; PufferLib calls them so."""
        return self.agents_per_batch

    @property
    def driver_env(self) -> "PufferView":
        """What policies are made from: the vector env itself, as for PufferLib's native envs."""
        return self

    def render(self) -> Any:
        """Return what the first env renders."""
        return self._base.call_on([0], "render")[0]

    def close(self) -> None:
        """Close all envs and end all workers; the buffers are released with them."""
        self.vec.close()
        self._views = []
        for name in ("observations", "actions", "rewards", "terminals", "truncations"):
            self.__dict__.pop(name, None)


def _check_fits(vec: GymVectorEnv, base: "SteppedEnvs") -> None:
    """Raise unless the view can show this vector env."""
    sizes = [rows.stop - rows.start for rows in base.batches]
    if len(set(sizes)) > 1:
        raise ConfigError(
            f"all batches must have the same size; got {sizes} envs. Make the vector env with a "
            f"num_envs that {len(sizes)} divides."
        )
    if base.autoreset_mode == AutoresetMode.DISABLED:
        raise ConfigError(
            "PufferLib's loops reset no single envs, and autoreset_mode is 'Disabled'. Make the "
            "vector env with 'NextStep' or 'SameStep'."
        )
    for name in ("single_observation_space", "single_action_space"):
        space = getattr(vec, name)
        if not all(leaf.is_array for leaf in leaves_of(space)):
            raise ConfigError(
                f"{name} has parts without a fixed size, which no buffer can hold: {space}. Leave "
                "them out, in a wrapper."
            )


def _with_row_per_agent(leaf: Array) -> Array:
    """Return an array of envs and agents with one row per agent, over the same memory."""
    return leaf.reshape(-1, *leaf.shape[2:])


def _one_by_one(infos: list[RowInfo]) -> list[Info]:
    """Return all infos; one that holds an ending and a new beginning becomes two."""
    parts: list[Info] = []
    for _, info in infos:
        if "final_info" in info:
            began = {key: info[key] for key in info if key not in ("final_obs", "final_info")}
            parts += [part for part in (info["final_info"], began) if part]
        else:
            parts.append(info)
    return parts
