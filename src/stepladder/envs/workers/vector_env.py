"""A vector env whose envs are stepped by this process and by workers at the same time.

Gymnasium's interface over a `coordinator`: checks arguments, returns copies, merges infos. Returns
what Gymnasium's `SyncVectorEnv` returns, element for element, with any number of workers.
"""

from collections.abc import Callable, Sequence
from typing import Self, Unpack

import gymnasium as gym
from gymnasium.vector import AutoresetMode

from stepladder.configs.checks import require_integer
from stepladder.envs.types import (
    Action,
    EnvFunction,
    EnvSeed,
    Info,
    ResetOptions,
    ResetResult,
    RowInfo,
    VectorStep,
)
from stepladder.envs.workers.arguments import (
    WorkerArguments,
    WorkerSettings,
    checked_autoreset_mode,
    checked_options,
    checked_seeds,
)
from stepladder.envs.workers.env_calls import EnvCalls
from stepladder.envs.workers.memory.layout import SharedBuffers
from stepladder.envs.workers.memory.row_split import RowSplit
from stepladder.envs.workers.memory.rows import RowView
from stepladder.envs.workers.memory.spaces import build
from stepladder.envs.workers.parent.coordinator import Coordinator
from stepladder.envs.workers.parent.infos import merge_infos
from stepladder.envs.workers.parent.worker_pool import CLOSE_S
from stepladder.errors import ChannelError, ConfigError
from stepladder.sync.process import current_pid

UNFINISHED_STEP = "its last step did not come to an end"


class WorkerVectorEnv(EnvCalls):
    """Steps envs in this process and in workers at the same time, over shared memory.

    Made by `make_vec`, which explains the arguments and chooses the number of workers.
    """

    def __init__(
        self,
        env_functions: Sequence[EnvFunction],
        *,
        num_workers: int = 0,
        **arguments: Unpack[WorkerArguments],
    ):
        # Before anything that may fail: Python also closes an object whose __init__ has raised.
        self.closed = True
        self.num_envs = num_envs = len(env_functions)
        settings = WorkerSettings(**arguments)
        settings.check_counts(num_envs, num_workers)
        most = num_envs - 1 if settings.parent_steps else num_envs
        split = RowSplit(
            num_envs, min(num_workers, most), settings.num_batches, settings.parent_steps
        )
        self._pid = current_pid()
        self.num_workers = split.num_workers
        self.batches = split.batches
        """Rows of each batch, for `send` and `recv`."""
        self.copy = settings.copy
        self.merges_infos = True
        """Whether infos are merged into one dict; adapters that read `last_infos` switch it off."""
        self.last_infos: list[RowInfo] = []
        """Row and info of each env that had one, in the last reset, step or recv."""
        self._must_reset = "the vector env has not been reset yet"
        self._sent: set[int] = set()
        self._pending = ""
        self._coordinator = Coordinator(env_functions, split, settings)
        try:
            self._coordinator.open()
            self._describe()
            self.closed = False
        except BaseException:
            self._coordinator.abandon()
            self._forget_memory()
            raise

    def _describe(self) -> None:
        described, memory = self._coordinator.description, self._coordinator.memory
        self.metadata = {**(described.metadata or {}), "autoreset_mode": self.autoreset_mode}
        self.render_mode = described.render_mode
        self.single_observation_space = seen = described.observation_space
        self.single_action_space = described.action_space
        self.observation_space = self._coordinator.observation_space
        self.action_space = self._coordinator.action_space
        self._batch_indices = range(len(self.batches))
        self._all_rows, *self._rows = (
            RowView(memory, rows, seen) for rows in (slice(0, self.num_envs), *self.batches)
        )
        self._buffers = SharedBuffers(
            observations=build(seen, memory.observations),
            rewards=memory.rewards,
            terminated=memory.terminated,
            truncated=memory.truncated,
            actions=build(self.single_action_space, memory.actions),
        )

    @property
    def buffers(self) -> SharedBuffers:
        """The memory of all rows as it is now; valid until the vector env is closed."""
        self._check_open()
        return self._buffers

    @property
    def autoreset_mode(self) -> AutoresetMode:
        """When an env that has ended is reset."""
        return self._coordinator.mode

    def use_autoreset_mode(self, mode: AutoresetMode | str) -> None:
        """Change the autoreset mode of a vector env that has not been reset yet."""
        checked = checked_autoreset_mode(mode)
        if checked == self._coordinator.mode:
            return
        if "not been reset" not in self._must_reset:
            raise ConfigError(
                f"the vector env already runs in mode {self._coordinator.mode.value!r}; "
                f"make it with autoreset_mode={checked.value!r} instead."
            )
        self._coordinator.use_mode(checked)
        self.metadata["autoreset_mode"] = checked

    def on_restart(self, call: Callable[[list[int]], None]) -> None:
        """Register a function; it gets the indices of restarted envs before they are reset."""
        self._coordinator.restarts.listeners.append(call)

    # Stepping.

    def reset(self, *, seed: EnvSeed = None, options: ResetOptions = None) -> ResetResult:
        """Reset all envs, or those of ``options["reset_mask"]``.

        Args:
            seed: One per env; or a number, to which each env's index is added.
            options: Given to every env that is reset, without the mask; or a list with one per env.
        """
        self._check_open()
        self._check_not_pending("reset")
        return self._begin_reset(seed, options)()

    def _begin_reset(self, seed: EnvSeed, options: ResetOptions) -> Callable[[], ResetResult]:
        seeds = checked_seeds(seed, self.num_envs)
        options, mask = checked_options(options, self.num_envs)
        if not mask.all():
            self._check_idle()
            self._check_playing()
        coordinator = self._coordinator
        coordinator.settle()
        self._sent.clear()
        self._must_reset = "its last reset did not come to an end"
        coordinator.restarts.restart_dead()
        coordinator.begin_reset(0, mask, seeds, options)

        def finish() -> ResetResult:
            infos = coordinator.finish_reset(0)
            for batch in self._batch_indices[1:]:
                coordinator.begin_reset(batch, mask, seeds, options)
                infos += coordinator.finish_reset(batch)
            self._must_reset = ""
            return self._all_rows.observations(self.copy), self._merged(infos, self._all_rows)

        return finish

    def step(self, actions: Action) -> VectorStep:
        """Step all envs with one action each.

        Raises:
            Exception: Whatever an env has raised, with its index and traceback in a note.
            EnvTimeoutError: An env hangs.
            WorkerDiedError: A worker has died, and ``on_worker_death`` is ``"raise"``.
        """
        self._begin_step(actions)
        return self._finish_step()

    def _begin_step(self, actions: Action) -> Callable[[], VectorStep]:
        # The usual case without four calls.
        is_busy = self._must_reset or self._sent or self._pending
        if is_busy or self.closed or current_pid() != self._pid:
            self._check_can_play("step")
            self._check_idle()
        self._all_rows.write_actions(actions)
        self._must_reset = UNFINISHED_STEP
        for batch in self._batch_indices:
            self._coordinator.begin_step(batch)
        return self._finish_step

    def _finish_step(self) -> VectorStep:
        infos: list[RowInfo] = []
        for batch in self._batch_indices:
            infos += self._coordinator.finish_step(batch)
        self._must_reset = ""
        return *self._all_rows.results(self.copy), self._merged(infos, self._all_rows)

    def send(self, actions: Action, batch_index: int = 0) -> None:
        """Have the workers begin to step one batch, while the caller handles another one.

        Args:
            actions: One per env of the batch.
            batch_index: Which batch; its rows are ``batches[batch_index]``.
        """
        self._check_can_play("send")
        rows = self._rows_of(batch_index)
        if batch_index in self._sent:
            raise ChannelError(
                f"batch {batch_index} has been sent actions and not been received since. Call "
                f"recv({batch_index}) first."
            )
        rows.write_actions(actions)
        self._sent.add(batch_index)
        self._must_reset = UNFINISHED_STEP
        self._coordinator.begin_step(batch_index)
        self._must_reset = ""

    def recv(self, batch_index: int = 0) -> VectorStep:
        """Wait for a batch that was sent actions; return what `step` returns, for its envs."""
        self._check_can_play("recv")
        rows = self._rows_of(batch_index)
        if batch_index not in self._sent:
            raise ChannelError(
                f"batch {batch_index} has not been sent actions. Call send(actions, "
                f"{batch_index}) first."
            )
        self._must_reset = UNFINISHED_STEP
        infos = self._coordinator.finish_step(batch_index)
        self._must_reset = ""
        self._sent.discard(batch_index)
        return *rows.results(self.copy), self._merged(infos, rows)

    def _rows_of(self, batch_index: int) -> RowView:
        require_integer("batch_index", batch_index, 0)
        if not 0 <= batch_index < len(self.batches):
            raise ConfigError(
                f"batch {batch_index} does not exist; there are {len(self.batches)}. Ask for more "
                "with make_vec(num_batches=…)."
            )
        return self._rows[batch_index]

    def _merged(self, infos: list[RowInfo], rows: RowView) -> Info:
        self.last_infos = infos
        if not infos or not self.merges_infos:
            return {}
        if rows.start:
            infos = [(row - rows.start, info) for row, info in infos]
        return merge_infos(infos, rows.num_rows)

    # The end.

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(  # type: ignore[override]
        self,
        timeout_s: float = CLOSE_S,
        *,
        timeout: float | None = None,
        terminate: bool = False,
    ) -> None:
        """Close all envs and end all workers.

        Args:
            timeout_s: How long workers may take to end by themselves; then they are killed.
            timeout: The same, as Gymnasium calls it.
            terminate: Whether to kill workers at once.
        """
        if self.closed:
            return
        if current_pid() != self._pid:
            # A copy that a fork has made must not end the workers of another process.
            self.closed = True
            return
        try:
            pending, self._pending = self._pending, ""
            if pending:
                gym.logger.warn(
                    f"Calling `close` while waiting for a pending call to `{pending}` to complete."
                )
            self._coordinator.close(0.0 if terminate else timeout_s if timeout is None else timeout)
            self._forget_memory()
        except BaseException:
            # Ctrl-C: end the workers at once.
            self._coordinator.abandon()
            self._forget_memory()
            raise

    def close_extras(self, timeout: float | None = None, terminate: bool = False) -> None:
        """Close the vector env; Gymnasium's name for it."""
        self.close(timeout=timeout, terminate=terminate)

    def _forget_memory(self) -> None:
        """Drop all views of the memory; arrays that the user has stay valid."""
        for views in ("_all_rows", "_rows", "_buffers", "_finish"):
            self.__dict__.pop(views, None)
        self.closed = True
        self.closed = True
