"""RLLIB: a curriculum in an `AlgorithmConfig` of its new API stack, global over all env runners."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepladder.cluster.rllib.adding import add_curriculum

__all__ = ["add_curriculum"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from stepladder.cluster.requirements import require_rllib

    require_rllib()
    from stepladder.cluster.rllib import adding

    return getattr(adding, name)
