"""What a channel over a cluster needs: Ray, of a version that was tried, and a cluster that is up.

Asked before anything is started. The only modules that import ray are below this one.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from stepladder.errors import ConfigError

OLDEST = (2, 60)
"""The oldest version of Ray that was tried."""

INSTALL = "Install it with: pip install 'stepladder[ray]'"


def require_ray() -> Any:
    """Return the module ray.

    Raises:
        ConfigError: It is not installed, or too old.
    """
    try:
        found = version("ray")
        ray = import_module("ray")
    except (ImportError, PackageNotFoundError) as error:
        raise ConfigError(
            f"a cluster needs the package ray, which cannot be imported ({error}). {INSTALL}"
        ) from error
    numbers = tuple(int(part) for part in found.split(".")[:2])
    if numbers < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise ConfigError(f"ray {found} is installed; expected {oldest} or newer. {INSTALL}")
    return ray


def require_rllib() -> None:
    """Raise unless RLlib can be imported.

    Raises:
        ConfigError: Ray is missing or too old, or a package that RLlib needs is missing.
    """
    require_ray()
    try:
        import_module("ray.rllib.algorithms.algorithm_config")
    except ImportError as error:
        raise ConfigError(
            f"RLlib cannot be imported ({error}). Install what it needs with: "
            "pip install 'stepladder[rllib]'"
        ) from error


def require_cluster() -> Any:
    """Return the module ray, connected to a cluster that is up.

    Raises:
        ConfigError: There is none.
    """
    ray = require_ray()
    if not ray.is_initialized():
        raise ConfigError(
            "this process is not connected to a Ray cluster. Call ray.init() for one on this "
            "machine, or ray.init(address='auto') to join one that runs."
        )
    try:
        nodes = ray.nodes()
    except Exception as error:  # Ray has no type of its own for this
        raise ConfigError(
            f"the Ray cluster does not answer ({type(error).__name__}). Call ray.shutdown(), start "
            "the cluster again and connect to it."
        ) from error
    if not any(node["Alive"] for node in nodes):
        raise ConfigError("the Ray cluster has no node that is alive. Start it again.")
    return ray


def require_cpus(needed: float, what: str) -> None:
    """Raise unless the cluster has so many CPUs in all.

    Raises:
        ConfigError: It has fewer, so that Ray would wait for ever.
    """
    ray = require_cluster()
    present = float(ray.cluster_resources().get("CPU", 0.0))
    if needed > present:
        raise ConfigError(
            f"{what} needs {needed:g} CPUs and the Ray cluster has {present:g}, so it would wait "
            "for ever. Ask for fewer env runners, or add nodes."
        )
