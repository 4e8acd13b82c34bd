"""Call single envs through a vector env, and make calls in two parts.

The lower half of `vector_env`: methods, attributes and functions of some envs or all, in whichever
process they are; and Gymnasium's calls in two parts, where one method begins and another waits. One
such call runs at a time: the workers do theirs meanwhile, this process when it waits.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from gymnasium.error import ResetNeeded

from stepladder.envs.types import (
    Action,
    EnvSeed,
    GymEnv,
    GymVectorEnv,
    ResetOptions,
    ResetResult,
    VectorStep,
)
from stepladder.envs.workers.arguments import check_indices
from stepladder.envs.workers.env_functions import call_method, name_of, set_attribute
from stepladder.envs.workers.gymnasium_errors import (
    CallTimeoutError,
    ClosedError,
    NoPendingCallError,
    PendingCallError,
)
from stepladder.envs.workers.parent.coordinator import Coordinator
from stepladder.envs.workers.parent.worker_handle import WorkerGoneError
from stepladder.errors import ChannelError, ConfigError, WorkerDiedError
from stepladder.sync.process import current_pid

NOT_CALLABLE = ("close", "reset", "step")
"""Methods of an env that only the vector env itself may call."""


class EnvCalls(GymVectorEnv):
    """A vector env whose single envs can be called, and which has calls in two parts."""

    _coordinator: Coordinator
    _pid: int
    _must_reset: str
    """Why all envs must be reset before they can be stepped; empty if they need not."""

    _sent: set[int]
    """Batches that were sent actions and not received since."""

    _pending: str
    """The call in two parts that has begun and was not waited for: step, reset, call or none."""

    _finish: Callable[[], Any]
    """Does the rest of that call."""

    # What must hold.

    def _check_open(self) -> None:
        if self.closed:
            raise ClosedError("this vector env is closed. Make a new one.")
        if current_pid() != self._pid:
            raise ChannelError(
                "this vector env belongs to another process; a fork has copied it. Make one here."
            )

    def _check_not_pending(self, method: str) -> None:
        if self._pending:
            raise PendingCallError(
                f"Calling `{method}` while waiting for a pending call to `{self._pending}` to "
                f"complete. Call {self._pending}_wait() first.",
                self._pending,
            )

    def _check_can_play(self, method: str) -> None:
        self._check_open()
        self._check_not_pending(method)
        self._check_playing()

    def _check_playing(self) -> None:
        if self._must_reset:
            raise ResetNeeded(f"{self._must_reset}. Call reset() first, for all envs.")

    def _check_idle(self) -> None:
        if self._sent:
            raise ChannelError(
                f"batch {min(self._sent)} has been sent actions and not been received. Call "
                f"recv({min(self._sent)}) first."
            )

    # Calls of single envs.

    @property
    def envs(self) -> list[GymEnv]:
        """The envs themselves, if all of them are in this process.

        Raises:
            AttributeError: Some of them are in workers.
        """
        if self._coordinator.split.num_workers:
            raise AttributeError(
                "the envs of this vector env are in worker processes and cannot be returned. "
                "Reach them with call, get_attr, set_attr or apply_on, or use num_workers=0."
            )
        return self._coordinator.own_envs()

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of every env, found through its wrappers, or read an attribute."""
        return tuple(self.call_on(range(self.num_envs), name, *args, **kwargs))

    def call_on(
        self, env_indices: Sequence[int], name: str, /, *args: Any, **kwargs: Any
    ) -> list[Any]:
        """Call a method of some envs; return one result for each."""
        if name in NOT_CALLABLE:
            raise ConfigError(
                f"{name!r} of single envs cannot be called from outside; call it on the vector env."
            )
        return self.apply_on(env_indices, call_method, name, args, kwargs)

    def apply_on(
        self, env_indices: Sequence[int], function: Callable[..., Any], *arguments: Any
    ) -> list[Any]:
        """Call a function of some envs, in their processes; return one result for each.

        Args:
            env_indices: Of which envs.
            function: Called with the env, wrappers included, and the arguments.
            arguments: For all of them.
        """
        return self._begin_calls(env_indices, function, [arguments] * len(env_indices))()

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
        self._begin_calls(env_indices, set_attribute, [(name, value) for value in values])()

    def _begin_calls(
        self,
        env_indices: Sequence[int],
        function: Callable[..., Any],
        arguments: Sequence[Sequence[Any]],
    ) -> Callable[[], list[Any]]:
        """Have workers begin to call a function of some envs; return what waits for the results."""
        self._check_open()
        check_indices(env_indices, self.num_envs)
        rows, coordinator = list(env_indices), self._coordinator
        if coordinator.restarts.is_going_on:
            # Called by a listener of the restart, which handles another death itself.
            return coordinator.envs.begin(rows, function, arguments)
        self._check_not_pending(name_of(function, arguments).strip("'"))
        if self._must_reset:
            coordinator.settle()
            self._sent.clear()
        self._check_idle()
        coordinator.restarts.restart_dead()
        finish = coordinator.envs.begin(rows, function, arguments)

        def get_results() -> list[Any]:
            try:
                return finish()
            except WorkerGoneError as gone:
                coordinator.restarts.restart(gone.worker_index)
                died = WorkerDiedError(
                    f"worker {gone.worker_index} died during a call of "
                    f"{name_of(function, arguments)}. Its error output shows the cause. It has "
                    "been restarted, and its unfinished episodes end as truncated."
                )
                died.was_restarted = True
                raise died from gone

        return get_results

    def render(self) -> tuple[Any, ...]:
        """Return what every env renders."""
        return self.call("render")

    @property
    def np_random_seed(self) -> Any:
        """Seeds of the envs' own generators."""
        return self.get_attr("np_random_seed")

    @property
    def np_random(self) -> Any:  # type: ignore[override]
        """Copies of the envs' own generators; they cannot be set from outside."""
        return self.get_attr("np_random")

    # Calls in two parts, as in Gymnasium's `AsyncVectorEnv`.

    def step_async(self, actions: Action) -> None:
        """Have the workers begin to step all envs; `step_wait` returns the results."""
        self._hold("step", lambda: self._begin_step(actions))

    def step_wait(self, timeout: float | None = None) -> VectorStep:
        """Return what `step` returns for the actions that `step_async` was given.

        Args:
            timeout: Seconds to wait for the workers; None waits as long as there is progress.
                Envs of this process are not interrupted.

        Raises:
            CallTimeoutError: The workers have not finished. All envs must be reset then.
        """
        return self._take("step", timeout)

    def reset_async(self, seed: EnvSeed = None, options: ResetOptions = None) -> None:
        """Have the workers begin to reset; the arguments are those of `reset`."""
        self._hold("reset", lambda: self._begin_reset(seed, options))

    def reset_wait(self, timeout: float | None = None) -> ResetResult:
        """Return what `reset` returns; `step_wait` explains the argument."""
        return self._take("reset", timeout)

    def call_async(self, name: str, /, *args: Any, **kwargs: Any) -> None:
        """Have the workers begin to call a method of their envs, or to read an attribute."""
        rows = range(self.num_envs)
        arguments = [(name, args, kwargs)] * self.num_envs
        self._hold("call", lambda: self._begin_calls(rows, call_method, arguments))

    def call_wait(self, timeout: float | None = None) -> tuple[Any, ...]:
        """Return what `call` returns; `step_wait` explains the argument."""
        return tuple(self._take("call", timeout))

    @abstractmethod
    def _begin_step(self, actions: Action) -> Callable[[], VectorStep]:
        """Have the workers begin to step; return a function that does the rest."""

    @abstractmethod
    def _begin_reset(self, seed: EnvSeed, options: ResetOptions) -> Callable[[], ResetResult]:
        """Have the workers begin to reset; return a function that does the rest."""

    def _hold(self, name: str, begin: Callable[[], Callable[[], Any]]) -> None:
        self._check_open()
        self._check_not_pending(f"{name}_async")
        self._finish = begin()
        self._pending = name

    def _take(self, name: str, timeout: float | None) -> Any:
        self._check_open()
        if self._pending != name:
            raise NoPendingCallError(
                f"Calling `{name}_wait` without any prior call to `{name}_async`. Call "
                f"{name}_async() first.",
                name,
            )
        self._pending = ""
        if timeout is not None and not self._coordinator.is_done_within(timeout):
            self._must_reset = f"its last {name} did not come to an end"
            raise CallTimeoutError(
                f"The call to `{name}_wait` has timed out after {timeout} second(s). Call reset() "
                "to go on, or allow more time."
            )
        return self._finish()
