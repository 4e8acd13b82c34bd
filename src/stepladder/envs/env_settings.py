"""How an env is played: what is around it, how it gets its tasks, where its success is read.

The same settings for the envs of a training, of its evaluations and of a film. `training.config`
holds them by name; here they are the functions themselves.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from stepladder import named
from stepladder.envs.delivery import Deliver, TaskReceiver
from stepladder.envs.parallel import as_gymnasium
from stepladder.envs.success import SuccessReader
from stepladder.envs.types import GymEnv
from stepladder.errors import shown

DELIVERIES = ("auto", "method", "options")
"""Ways to deliver a task that have a name of their own."""


def is_delivery(value: Any) -> str | None:
    """Refuse what names no way to deliver a task; a limit of a config's field."""
    if (isinstance(value, str) and value in DELIVERIES) or named.is_named(value) is None:
        return None
    wanted = "must be auto, method, options, or a function as module:name"
    return f"{wanted}; got {shown(value)}. Correct it."


@dataclass(frozen=True, kw_only=True)
class EnvSettings:
    """Settings of single envs that do not depend on who plays them."""

    wrappers: tuple[Callable[[Any], GymEnv], ...] = ()
    """Put around the env, in this order."""

    deliver: Deliver = "auto"
    """How a task reaches the env, wrappers included."""

    success: SuccessReader = field(default_factory=SuccessReader)
    """Reads success at the end of an episode."""

    @classmethod
    def of_names(
        cls, wrappers: Sequence[str], deliver: str, success: SuccessReader
    ) -> "EnvSettings":
        """Return the settings that names stand for; their modules are imported.

        Raises:
            ConfigError: There is nothing of one of these names.
        """
        found = [named.find_function(name, "a wrapper, which takes an env") for name in wrappers]
        way: Any = deliver
        if deliver not in DELIVERIES:
            way = named.find_function(deliver, "a function that takes an env and a task")
        return cls(wrappers=tuple(found), deliver=way, success=success)

    def curriculum_env(self) -> dict[str, Any]:
        """Return the arguments of `CurriculumEnv` that differ from its defaults."""
        given: dict[str, Any] = {} if self.deliver == "auto" else {"deliver": self.deliver}
        if self.success.key is not None:
            given["success_key"] = self.success.key
        if self.success.return_threshold is not None:
            given["return_threshold"] = self.success.return_threshold
        if self.success.missing_is_failure:
            given["missing_success_is_failure"] = True
        return given

    def receiving(self) -> tuple[Callable[[Any], GymEnv], ...]:
        """Return the wrappers with one around them that has ``set_task`` for every env."""
        return (*self.wrappers, partial(_receiver, deliver=self.deliver))


def _receiver(env: Any, deliver: Deliver) -> TaskReceiver:
    return TaskReceiver(as_gymnasium(env), deliver)
