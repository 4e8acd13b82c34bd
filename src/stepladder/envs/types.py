"""Types of values that cross the edge of the library: envs, observations, actions, infos.

Only the user's env knows the type of an observation, an action or an info value, so `Any` stands
here once, under a name. The protocols describe vector envs of `make_vec` to the adapters: those
with workers (`workers.WorkerVectorEnv`) and built-in games, which this package does not import.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol, TypeAlias

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Space
from gymnasium.vector import AutoresetMode, VectorEnv

from stepladder.saving.snapshot import Snapshot
from stepladder.sync import Host

GymEnv: TypeAlias = gym.Env[Any, Any]
GymVectorEnv: TypeAlias = VectorEnv[Any, Any, Any]
GymSpace: TypeAlias = Space[Any]

Observation: TypeAlias = Any
"""A value of an observation space; of a vector env, batched."""

Action: TypeAlias = Any
"""A value of an action space; of a vector env, batched."""

Info: TypeAlias = dict[str, Any]
"""What an env says beside its numbers; of a vector env, merged as Gymnasium does."""

RowInfo: TypeAlias = tuple[int, Info]
"""Row of an env, and the info it returned."""

Array: TypeAlias = npt.NDArray[Any]
Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]
DType: TypeAlias = np.dtype[Any]

EnvFunction: TypeAlias = Callable[[], GymEnv]
"""Makes one env."""

EnvStep: TypeAlias = tuple[Observation, Any, bool, bool, Info]
"""What `step` of one env returns. The reward is a float, or whatever the env returns as one."""

VectorStep: TypeAlias = tuple[Observation, Floats, Flags, Flags, Info]
"""What `step` of a vector env returns: observations, rewards, terminated, truncated, infos."""

ResetResult: TypeAlias = tuple[Observation, Info]
"""What `reset` returns, of one env or of a vector env."""

Seed: TypeAlias = int | Sequence[int | None] | None
"""Of a vector env: a number, to which each env's index is added; or one per env."""

ResetOptions: TypeAlias = dict[str, Any] | list[dict[str, Any] | None] | None
"""Of a reset: the same for every env, or one for each."""


class Buffers(Protocol):
    """The memory of a vector env as it is now, without a copy; changes with every step."""

    @property
    def observations(self) -> Observation:
        """Observations of all rows."""
        ...

    @property
    def actions(self) -> Action:
        """Actions of all rows."""
        ...

    @property
    def rewards(self) -> Floats:
        """Rewards of all rows."""
        ...

    @property
    def terminated(self) -> Flags:
        """Per row whether the last step terminated its episode."""
        ...

    @property
    def truncated(self) -> Flags:
        """Per row whether the last step truncated its episode."""
        ...


class SteppedEnvs(Protocol):
    """Steps envs: what the adapters use of a vector env that `make_vec` has made."""

    num_envs: int
    num_workers: int
    closed: bool
    copy: bool
    merges_infos: bool
    last_infos: list[RowInfo]
    metadata: dict[str, Any]
    single_observation_space: GymSpace
    single_action_space: GymSpace

    @property
    def batches(self) -> tuple[slice, ...]:
        """Rows of each batch, for `send` and `recv`."""
        ...

    @property
    def autoreset_mode(self) -> AutoresetMode:
        """When an env that has ended is reset."""
        ...

    @property
    def buffers(self) -> Buffers:
        """The memory of all rows."""
        ...

    def use_autoreset_mode(self, mode: AutoresetMode) -> None:
        """Change the autoreset mode before the first reset."""
        ...

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of every env, or read an attribute."""
        ...

    def call_on(
        self, env_indices: Sequence[int], name: str, /, *args: Any, **kwargs: Any
    ) -> list[Any]:
        """Call a method of some envs, or read an attribute."""
        ...

    def apply_on(self, env_indices: Sequence[int], function: Callable[[Any], Any]) -> list[Any]:
        """Call a function with some envs, in the process where they are."""
        ...

    def set_attr_on(self, env_indices: Sequence[int], name: str, values: Sequence[Any]) -> None:
        """Set an attribute of some envs, one value for each."""
        ...


class GameArrays(Protocol):
    """Arrays of a built-in game."""

    @property
    def seeds(self) -> Array:
        """Per row the seed of its env."""
        ...


class GameBatch(SteppedEnvs, Protocol):
    """A built-in game: one object steps all envs by itself, and takes a host instead of clients."""

    is_batched: ClassVar[bool]

    @property
    def has_begun(self) -> bool:
        """Whether every env plays an episode, or has ended one."""
        ...

    @property
    def batch(self) -> "GameArrays":
        """The arrays that the games are played in."""
        ...

    def connect_host(self, host: Host) -> None:
        """Draw from this host from now on."""
        ...

    def reporting_rows(self) -> npt.NDArray[np.int64]:
        """Return the envs that may have reported since they were last asked."""
        ...

    def save_games(self) -> Snapshot:
        """Return all games as they are."""
        ...

    def read_games(self, snapshot: Snapshot, heads: Array | None = None) -> Callable[[], None]:
        """Check saved games; return what gives them back."""
        ...
