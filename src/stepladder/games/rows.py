"""Access to a batch from outside: its memory, and single envs of it.

Mixed into `batch.GameVectorEnv`: what `SyncVectorEnv` and the worker vector env offer (``call``,
``get_attr``, ``set_attr`` and the same for some envs), for rows instead of env objects.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stepladder.errors import ConfigError, NotConnectedError
from stepladder.games.arguments import check_rows
from stepladder.tasks import Task

if TYPE_CHECKING:
    from stepladder.games.curriculum_link import CurriculumLink


class Buffers(NamedTuple):
    """The memory of a vector env, for adapters that show it as their own."""

    observations: Any
    rewards: npt.NDArray[np.float64]
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    actions: Any


class BatchedEnv:
    """One env of a batch."""

    def __init__(self, vec: Any, env_index: int):
        self.vec = vec
        self.env_index = env_index
        self.observation_space = vec.single_observation_space
        self.action_space = vec.single_action_space
        self.render_mode = vec.render_mode

    @property
    def unwrapped(self) -> "BatchedEnv":
        """The row itself: single envs have no wrappers here."""
        return self

    @property
    def task(self) -> Task:
        """The task being played."""
        return self.vec.task_of(self.env_index)

    def has_wrapper_attr(self, name: str) -> bool:
        """Return whether this env has an attribute."""
        return hasattr(self, name)

    def get_wrapper_attr(self, name: str) -> Any:
        """Return an attribute."""
        return getattr(self, name)

    def set_task(self, task: Task) -> None:
        """Give this env a task, which it plays from its next reset on."""
        self.vec.set_tasks([task], [self.env_index])

    def render(self) -> Any:
        """Return a picture."""
        return self.vec.paint(self.env_index)

    # With a curriculum: what `envs.CurriculumEnv` offers.

    def _link(self) -> "CurriculumLink":
        if self.vec.link is None:
            raise NotConnectedError(
                "these envs have no curriculum. Make them with make_vec(..., curriculum=...)."
            )
        return self.vec.link

    def get_plan_version(self) -> int:
        """Return the version of the plan this env draws from now."""
        return self._link().client(self.env_index).plan_version()

    def get_curriculum_stage(self) -> str | None:
        """Return the stage this env draws from now."""
        return self._link().client(self.env_index).current_stage()

    def get_curriculum_phase(self) -> str | None:
        """Return the phase this env draws from now."""
        return self._link().client(self.env_index).current_phase()

    def get_mixing_ratio(self, stage: str | None = None) -> float:
        """Return the mixing ratio this env draws with now; by default of the current stage."""
        return self._link().client(self.env_index).mixing_ratio(stage)

    def get_curriculum_task(self) -> Task:
        """Return the task being played."""
        return self._link().task_of(self.env_index)


class RowAccess:
    """Reaches single envs."""

    num_envs: int

    num_workers = 0
    """No other process steps these envs."""

    @property
    def batches(self) -> tuple[slice, ...]:
        """Rows of the one batch, for `send` and `recv`."""
        return (slice(0, self.num_envs),)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of every env, or read an attribute."""
        return tuple(self.call_on(range(self.num_envs), name, *args, **kwargs))

    def call_on(
        self, env_indices: Sequence[int], name: str, *args: Any, **kwargs: Any
    ) -> list[Any]:
        """Call a method of some envs, or read an attribute."""

        def answer(row: BatchedEnv) -> Any:
            found = getattr(row, name)
            return found(*args, **kwargs) if callable(found) else found

        return self.apply_on(env_indices, answer)

    def apply_on(self, env_indices: Sequence[int], function: Callable[[Any], Any]) -> list[Any]:
        """Call a function with some envs."""
        return [function(BatchedEnv(self, row)) for row in check_rows(env_indices, self.num_envs)]

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Return an attribute of every env."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Refuse: a row of arrays has no attributes of its own."""
        self.set_attr_on([], name, values)

    def set_attr_on(self, env_indices: Sequence[int], name: str, values: Any) -> None:
        """Refuse: a row of arrays has no attributes of its own."""
        raise ConfigError(
            f"attribute {name!r} cannot be set: the envs of a game are rows of arrays. Give them "
            "another task instead, with set_tasks."
        )
