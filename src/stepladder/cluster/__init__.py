"""MANY MACHINES: one curriculum for all envs of a Ray cluster.

Nothing below this folder imports ray; importing this package does not either.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepladder.cluster.channel import RayChannel, Reach

__all__ = ["RayChannel", "Reach"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from stepladder.cluster.requirements import require_ray

    require_ray()
    from stepladder.cluster import channel

    return getattr(channel, name)
