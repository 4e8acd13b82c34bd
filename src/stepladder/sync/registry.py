"""Every backend by name: how plans and records travel between a curriculum and its envs.

Above the backends, below the vector wrappers, whose setting ``backend`` is a name of this table. A
package adds its own through the entry-point group ``stepladder.backends``.
"""

from typing import Any, cast

from stepladder.errors import ConfigError, shown
from stepladder.registry import Registry
from stepladder.sync.host import Host


def _check(name: str, entry: Any) -> None:
    if not isinstance(entry, type) or not issubclass(entry, Host):
        raise ConfigError(
            f"the backend {name!r} must be a class derived from Host; "
            f"got {shown(cast('object', entry))}."
        )


BACKENDS: Registry[type[Host]] = Registry(
    "backends",
    _check,
    {
        "local": "stepladder.sync.local:LocalHost",
        "shared": "stepladder.sync.shared:SharedHost",
        "pushed": "stepladder.sync.pushed:PushedHost",
    },
)
"""The host class of every backend, by name."""


def host_class(backend: str, in_process: bool) -> type[Host]:
    """Return the host class of a backend.

    Args:
        backend: Its name; ``auto`` is local memory if all envs are in this process, else shared.
        in_process: Whether they are.

    Raises:
        ConfigError: There is none of this name, or it does not reach other processes.
    """
    if backend == "auto":
        backend = "local" if in_process else "shared"
    chosen = BACKENDS[backend]
    if not (in_process or chosen.reaches_processes):
        raise ConfigError(
            f"backend={backend!r} needs all envs in this process; these run in others. "
            "Use 'auto' or 'shared'."
        )
    return chosen
