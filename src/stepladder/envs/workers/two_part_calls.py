"""Calls in two parts, as Gymnasium's `AsyncVectorEnv` has them: one begins, another waits.

Between `env_calls` and `vector_env`. One call is under way at a time; the workers do their share of
it meanwhile, this process does its own when it waits.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from stepladder.envs.types import Action, ResetOptions, Seed
from stepladder.envs.workers.env_calls import EnvCalls
from stepladder.envs.workers.env_functions import call_method
from stepladder.envs.workers.gymnasium_errors import CallTimeoutError, NoPendingCallError


class TwoPartCalls(EnvCalls):
    """A vector env that can be stepped, reset and called in two parts."""

    _finish: Callable[[], Any]

    def step_async(self, actions: Action) -> None:
        """Have the workers begin to step all envs; `step_wait` returns what they gave."""
        self._hold("step", lambda: self._begin_step(actions))

    def step_wait(self, timeout: float | None = None) -> Any:
        """Return what `step` returns for the actions that `step_async` was given.

        Args:
            timeout: Seconds to wait for the workers; None waits as long as there is progress.
                Envs of this process are not interrupted.

        Raises:
            CallTimeoutError: The workers have not finished. All envs must be reset then.
        """
        return self._take("step", timeout)

    def reset_async(self, seed: Seed = None, options: ResetOptions = None) -> None:
        """Have the workers begin to reset; the arguments are those of `reset`."""
        self._hold("reset", lambda: self._begin_reset(seed, options))

    def reset_wait(self, timeout: float | None = None) -> Any:
        """Return what `reset` returns; `step_wait` explains the argument."""
        return self._take("reset", timeout)

    def call_async(self, name: str, /, *args: Any, **kwargs: Any) -> None:
        """Have the workers begin to call a method of their envs, or to read an attribute."""
        rows = range(self.num_envs)
        arguments = [(name, args, kwargs)] * self.num_envs
        self._hold("call", lambda: self._begin_reaching(rows, call_method, arguments))

    def call_wait(self, timeout: float | None = None) -> tuple[Any, ...]:
        """Return what `call` returns; `step_wait` explains the argument."""
        return tuple(self._take("call", timeout))

    @abstractmethod
    def _begin_step(self, actions: Action) -> Callable[[], Any]:
        """Have the workers begin to step; return what does the rest."""

    @abstractmethod
    def _begin_reset(self, seed: Any, options: ResetOptions) -> Callable[[], Any]:
        """Have the workers begin to reset; return what does the rest."""

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
