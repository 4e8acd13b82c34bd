"""A vector env whose envs are stepped by this process and by workers at the same time.

Gymnasium's interface over an `ensemble`: checks what it is given, hands out copies, merges infos.
Gives what Gymnasium's `SyncVectorEnv` gives, element for element, whatever the number of workers.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import gymnasium as gym
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv

from stepladder.curricula.config import require_whole
from stepladder.envs.workers.arguments import (
    check_indices,
    check_settings,
    checked_autoreset_mode,
    checked_options,
    checked_seeds,
)
from stepladder.envs.workers.calls import call_method, check_callable, died_over, set_attribute
from stepladder.envs.workers.crew import CLOSE_S
from stepladder.envs.workers.ensemble import Ensemble
from stepladder.envs.workers.group import Options
from stepladder.envs.workers.hand import WorkerGoneError
from stepladder.envs.workers.infos import NumberedInfo, merge_infos
from stepladder.envs.workers.memory import Buffers
from stepladder.envs.workers.revival import OnDeath
from stepladder.envs.workers.rows import Rows
from stepladder.envs.workers.shares import Shares
from stepladder.errors import ChannelError, ConfigError
from stepladder.sync.process import current_pid

StartMethod = Literal["fork", "forkserver", "spawn"]

Batch = tuple[Any, Any, Any, Any, dict[str, Any]]
"""Observations, rewards, terminated, truncated, infos."""


class WorkerVectorEnv(VectorEnv[Any, Any, Any]):
    """Steps envs in this process and in workers at the same time, over shared memory.

    Made by `make_vec`, which explains the arguments and chooses the number of workers.
    """

    def __init__(
        self,
        env_functions: Sequence[Callable[[], gym.Env[Any, Any]]],
        *,
        workers: int = 0,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        num_batches: int = 1,
        parent_steps: bool = True,
        start_method: StartMethod | None = None,
        on_worker_death: OnDeath = "restart",
        timeout_s: float | None = 300.0,
        copy: bool = True,
        observation_mode: Literal["same", "different"] = "same",
    ):
        # Before anything that may fail: Python closes what it has begun to make.
        self.closed = True
        mode = checked_autoreset_mode(autoreset_mode)
        self.num_envs = num_envs = len(env_functions)
        check_settings(
            num_envs,
            workers=workers,
            autoreset_mode=autoreset_mode,
            num_batches=num_batches,
            parent_steps=parent_steps,
            start_method=start_method,
            on_worker_death=on_worker_death,
            timeout_s=timeout_s,
            copy=copy,
            observation_mode=observation_mode,
        )
        most = num_envs - 1 if parent_steps else num_envs
        shares = Shares(num_envs, min(workers, most), num_batches, parent_steps)
        self._pid = current_pid()
        self.num_workers = shares.num_workers
        self.batches = shares.batches
        """Rows of each batch, for `send` and `recv`."""
        self.copy = copy
        self.merges_infos = True
        """Whether infos are merged into one dict; an adapter that reads `last_infos` says no."""
        self.last_infos: list[NumberedInfo] = []
        """Row and info of each env that had one, in the last reset, step or recv."""
        self._must_reset = "the vector env has not been reset yet"
        self._sent: set[int] = set()
        self._ensemble = Ensemble(
            env_functions,
            shares,
            mode=mode,
            start_method=start_method,
            timeout_s=timeout_s,
            on_death=on_worker_death,
        )
        try:
            self._ensemble.open(observation_mode)
            self._describe(mode)
            self.closed = False
        except BaseException:
            self._ensemble.abandon()
            self._forget_memory()
            raise

    def _describe(self, mode: AutoresetMode) -> None:
        described, memory = self._ensemble.description, self._ensemble.memory
        self.metadata = {**(described["metadata"] or {}), "autoreset_mode": mode}
        self.render_mode = described["render_mode"]
        self.single_observation_space = described["observation_space"]
        self.single_action_space = described["action_space"]
        self.observation_space = self._ensemble.observation_space
        self.action_space = self._ensemble.action_space
        self._batch_indices = range(len(self.batches))
        self._all_rows, *self._rows = (
            Rows(memory, rows, self.single_observation_space)
            for rows in (slice(0, self.num_envs), *self.batches)
        )
        self._buffers = Buffers.of(memory, self.single_observation_space, self.single_action_space)

    @property
    def buffers(self) -> Buffers:
        """The memory of all rows as it is now; valid until the vector env is closed."""
        self._check_open()
        return self._buffers

    @property
    def autoreset_mode(self) -> AutoresetMode:
        """When an env that has ended is reset."""
        return self._ensemble.mode

    def use_autoreset_mode(self, mode: AutoresetMode | str) -> None:
        """Change the autoreset mode of a vector env that has not been reset yet."""
        checked = checked_autoreset_mode(mode)
        if checked == self._ensemble.mode:
            return
        if "not been reset" not in self._must_reset:
            raise ConfigError(
                f"the vector env already runs with autoreset mode {self._ensemble.mode.value!r}; "
                f"make it with autoreset_mode={checked.value!r} instead."
            )
        self._ensemble.use_mode(checked)
        self.metadata["autoreset_mode"] = checked

    def on_restart(self, call: Callable[[list[int]], None]) -> None:
        """Have a function called with the indices of envs that are made anew, before a reset."""
        self._ensemble.on_restart(call)

    # Stepping.

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Options = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Reset all envs, or those of ``options["reset_mask"]``.

        Args:
            seed: One per env; or a number, to which each env's index is added.
            options: Given to every env that is reset, without the mask; or a list with one per env.
        """
        self._check_open()
        seeds = checked_seeds(seed, self.num_envs)
        options, mask = checked_options(options, self.num_envs)
        if not mask.all():
            self._check_idle()
            self._check_playing()
        ensemble = self._ensemble
        ensemble.settle()
        self._sent.clear()
        self._must_reset = "its last reset did not come to an end"
        ensemble.ensure_alive()
        infos: list[NumberedInfo] = []
        for batch in self._batch_indices:
            infos += ensemble.reset(batch, mask, seeds, options)
        self._must_reset = ""
        return self._all_rows.observations(self.copy), self._merged(infos, self._all_rows)

    def step(self, actions: Any) -> Batch:
        """Step all envs with one action each.

        Raises:
            Exception: Whatever an env has raised, with its index and traceback in a note.
            EnvTimeoutError: An env hangs.
            WorkerDiedError: A worker has died, and ``on_worker_death`` is ``"raise"``.
        """
        self._check_ready()
        ensemble = self._ensemble
        self._all_rows.write_actions(actions)
        self._must_reset = "its last step did not come to an end"
        infos: list[NumberedInfo] = []
        for batch in self._batch_indices:
            ensemble.begin_step(batch)
        for batch in self._batch_indices:
            infos += ensemble.finish_step(batch)
        self._must_reset = ""
        return *self._all_rows.results(self.copy), self._merged(infos, self._all_rows)

    def send(self, actions: Any, batch_index: int = 0) -> None:
        """Have the workers begin to step one batch; think about another one meanwhile.

        Args:
            actions: One per env of the batch.
            batch_index: Which batch; its rows are ``batches[batch_index]``.
        """
        self._check_open()
        self._check_playing()
        rows = self._rows_of(batch_index)
        if batch_index in self._sent:
            raise ChannelError(
                f"batch {batch_index} has been sent actions and not been received since. Call "
                f"recv({batch_index}) first."
            )
        rows.write_actions(actions)
        self._sent.add(batch_index)
        self._must_reset = "its last step did not come to an end"
        self._ensemble.begin_step(batch_index)
        self._must_reset = ""

    def recv(self, batch_index: int = 0) -> Batch:
        """Wait for a batch that was sent actions; return what its envs gave, as `step` does."""
        self._check_open()
        self._check_playing()
        rows = self._rows_of(batch_index)
        if batch_index not in self._sent:
            raise ChannelError(
                f"batch {batch_index} has not been sent actions. Call send(actions, "
                f"{batch_index}) first."
            )
        self._must_reset = "its last step did not come to an end"
        infos = self._ensemble.finish_step(batch_index)
        self._must_reset = ""
        self._sent.discard(batch_index)
        return *rows.results(self.copy), self._merged(infos, rows)

    def _rows_of(self, batch_index: int) -> Rows:
        require_whole("batch_index", batch_index, 0)
        if not 0 <= batch_index < len(self.batches):
            raise ConfigError(
                f"batch {batch_index} does not exist; there are {len(self.batches)}. Ask for more "
                "with make_vec(num_batches=…)."
            )
        return self._rows[batch_index]

    def _merged(self, infos: list[NumberedInfo], rows: Rows) -> dict[str, Any]:
        self.last_infos = infos
        if not infos or not self.merges_infos:
            return {}
        if rows.start:
            infos = [(row - rows.start, info) for row, info in infos]
        return merge_infos(infos, rows.num_rows)

    # What must hold.

    def _check_open(self) -> None:
        if self.closed:
            raise ChannelError("this vector env is closed. Make a new one.")
        if current_pid() != self._pid:
            raise ChannelError(
                "this vector env belongs to another process; a fork has copied it. Make one here."
            )

    def _check_playing(self) -> None:
        if self._must_reset:
            raise ResetNeeded(f"{self._must_reset}. Call reset() first, for all envs.")

    def _check_idle(self) -> None:
        if self._sent:
            raise ChannelError(
                f"batch {min(self._sent)} has been sent actions and not been received. Call "
                f"recv({min(self._sent)}) first."
            )

    def _check_ready(self) -> None:
        if self._must_reset or self._sent or self.closed or current_pid() != self._pid:
            self._check_open()
            self._check_playing()
            self._check_idle()

    # Reaching single envs.

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of every env, found through its wrappers, or read an attribute."""
        return tuple(self.call_on(range(self.num_envs), name, *args, **kwargs))

    def call_on(
        self, env_indices: Sequence[int], name: str, /, *args: Any, **kwargs: Any
    ) -> list[Any]:
        """Call a method of some envs; return one result for each."""
        check_callable(name)
        return self.apply_on(env_indices, call_method, name, args, kwargs)

    def apply_on(
        self, env_indices: Sequence[int], function: Callable[..., Any], *arguments: Any
    ) -> list[Any]:
        """Call a function of some envs where they live; return one result for each.

        Args:
            env_indices: Of which envs.
            function: Called with the env, wrappers included, and the arguments.
            arguments: For all of them.
        """
        return self._reach(env_indices, function, [arguments] * len(env_indices))

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Return an attribute of every env."""
        return self.call(name)

    def set_attr(self, name: str, values: list[Any] | tuple[Any, ...] | Any) -> None:
        """Set an attribute of every env; a list or tuple has one value per env."""
        if not isinstance(values, list | tuple):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise ConfigError(
                f"got {len(values)} values for {self.num_envs} envs. Give one per env, or one that "
                "is neither a list nor a tuple, for all."
            )
        self.set_attr_on(range(self.num_envs), name, values)

    def set_attr_on(self, env_indices: Sequence[int], name: str, values: Sequence[Any]) -> None:
        """Set an attribute of some envs, one value for each."""
        if len(values) != len(env_indices):
            raise ConfigError(
                f"got {len(values)} values for {len(env_indices)} envs. Give one value for each."
            )
        self._reach(env_indices, set_attribute, [(name, value) for value in values])

    def _reach(
        self,
        env_indices: Sequence[int],
        function: Callable[..., Any],
        arguments: Sequence[Sequence[Any]],
    ) -> list[Any]:
        self._check_open()
        check_indices(env_indices, self.num_envs)
        if self._ensemble.is_reviving:
            # Called by whoever is told of the restart; a new death is for the revival to handle.
            return self._ensemble.envs.apply(list(env_indices), function, arguments)
        if self._must_reset:
            self._ensemble.settle()
            self._sent.clear()
        self._check_idle()
        self._ensemble.ensure_alive()
        try:
            return self._ensemble.envs.apply(list(env_indices), function, arguments)
        except WorkerGoneError as gone:
            self._ensemble.revive(gone.worker_index)
            raise died_over(gone.worker_index, function, arguments) from gone

    def render(self) -> tuple[Any, ...]:
        """Return what every env renders."""
        return self.call("render")

    @property
    def np_random_seed(self) -> Any:
        """Seeds of the envs' own generators."""
        return self.get_attr("np_random_seed")

    @property
    def np_random(self) -> Any:  # type: ignore[override]
        """Copies of the envs' own generators; not to be set from outside."""
        return self.get_attr("np_random")

    # The end.

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self, timeout_s: float = CLOSE_S, **kwargs: Any) -> None:
        """Close all envs and end all workers.

        Args:
            timeout_s: How long workers may take to end by themselves; then they are killed.
            kwargs: Taken for Gymnasium's sake, and ignored.
        """
        if self.closed:
            return
        if current_pid() != self._pid:
            # A copy that a fork has made must not end somebody else's workers.
            self.closed = True
            return
        try:
            self._ensemble.close(timeout_s)
            self._forget_memory()
        except BaseException:
            # Ctrl-C: at once then.
            self._ensemble.abandon()
            self._forget_memory()
            raise

    def _forget_memory(self) -> None:
        """Let go of the memory; arrays that the user has been given keep theirs."""
        for views in ("_all_rows", "_rows", "_buffers"):
            self.__dict__.pop(views, None)
        self.closed = True
