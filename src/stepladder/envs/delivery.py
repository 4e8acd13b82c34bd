"""How a task reaches an env: by a method, by the options of reset, or by a function.

Used by `CurriculumEnv`, and by `TaskReceiver` where no curriculum draws. Decided once, at
construction: an env that would silently play something else is an error there, not a mystery later.
"""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from stepladder.envs.types import GymEnv, GymWrapper, ResetResult
from stepladder.errors import DeliveryError
from stepladder.tasks import Task

Deliver: TypeAlias = Literal["auto", "method", "options"] | Callable[[GymEnv, Task], None]
"""How to deliver: found out, by ``set_task``, by reset options, or by a function."""

METADATA_KEY = "task_option"
"""An env whose metadata has this key set to True reads ``options["task"]`` in reset."""


class Delivery:
    """Hands tasks to one env."""

    def __init__(self, env: GymEnv, deliver: Deliver):
        self._env = env
        self._function: Callable[[Task], Any] | None = None
        if callable(deliver):
            self._function = lambda task: deliver(env, task)
        elif deliver in ("auto", "method") and env.has_wrapper_attr("set_task"):
            self._function = env.get_wrapper_attr("set_task")
        elif deliver == "method":
            raise DeliveryError(
                f"{env} has no method set_task, on itself or under any wrapper. Add one that takes "
                "a Task, or choose another way to deliver."
            )
        elif deliver not in ("auto", "options"):
            raise DeliveryError(
                f"deliver must be 'auto', 'method', 'options' or a function; got {deliver!r}."
            )
        elif deliver == "auto" and not (env.metadata or {}).get(METADATA_KEY, False):
            raise DeliveryError(
                f"{env} offers no way to receive a task: it has no method set_task(task), and its "
                f"metadata has no {METADATA_KEY!r}. Add the method; or, if its reset reads "
                "options['task'], pass deliver='options'; or pass deliver=function(env, task)."
            )

    def reset(self, task: Task, seed: int | None, options: dict[str, Any] | None) -> ResetResult:
        """Make the env play a task from its beginning."""
        if self._function is None:
            return self._env.reset(seed=seed, options={**(options or {}), "task": task})
        self._function(task)
        return self._env.reset(seed=seed, options=options)


class TaskReceiver(GymWrapper):
    """Plays the task that it was given last; for evaluations and films, where no curriculum draws.

    Args:
        env: The env to play in.
        deliver: As of `CurriculumEnv`.
    """

    def __init__(self, env: GymEnv, deliver: Deliver = "auto"):
        super().__init__(env)
        self._delivery = Delivery(env, deliver)
        self._task: Task | None = None

    def set_task(self, task: Task) -> None:
        """Play this task from the next reset on."""
        self._task = task

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> ResetResult:
        """Begin an episode of the task; before there is one, of the env as it is."""
        if self._task is None:
            return self.env.reset(seed=seed, options=options)
        return self._delivery.reset(self._task, seed, options)
