"""How many cores this process may really use.

Used by the worker vector env and the games, which never let more processes or threads spin than
there are cores, and by trainings that share a machine (`training.seeds`), each of which gets a
share. A container often sees all cores of its machine and may use the time of only two.
"""

import math
import os
from collections.abc import Callable
from pathlib import Path

from stepladder.errors import ConfigError

CORES = "STEPLADDER_CORES"
"""Environment variable that limits the cores of a process and of all that it starts."""

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUPS = Path("/proc/self/cgroup")


def usable_cores() -> int:
    """Return the cores that affinity, the container's quota and `CORES` leave, at least 1.

    Raises:
        ConfigError: `CORES` is set and is no integer of at least 1.
    """
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return max(1, int(min(cores, cpu_quota(), _own_limit())))


def share_of_cores(parts: int) -> dict[str, str]:
    """Return environment variables that give a process its share, where so many run at once.

    Args:
        parts: Processes that share the cores of this one.
    """
    share = str(max(1, usable_cores() // parts))
    # Read by the libraries under NumPy and torch when they are loaded; a user's own value stays.
    return {CORES: share, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", share)}


def _own_limit() -> float:
    text = os.environ.get(CORES, "")
    if not text:
        return math.inf
    if not (text.isascii() and text.isdigit() and int(text)):
        raise ConfigError(f"{CORES} must be an integer of at least 1; got {text!r}. Correct it.")
    return int(text)


def cpu_quota(root: Path = CGROUPS, own: Path = OWN_CGROUPS) -> float:
    """Return how many cores' time the tightest control group above this process allows.

    Infinite where there is no limit, or no control groups at all.
    """
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return math.inf
    quota = math.inf
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0":
            quota = min(quota, _tightest(root, path, _unified))
        elif "cpu" in controllers.split(","):
            quota = min(quota, _tightest(root / controllers, path, _legacy))
    return quota


def _tightest(root: Path, path: str, read: Callable[[Path], float]) -> float:
    """Read the limit of a group and of every group above it."""
    # Inside a container the path may be the outer one, which is not visible; the root then is ours.
    group = root / path.lstrip("/")
    return min(read(folder) for folder in (group, *group.parents) if folder.is_relative_to(root))


def _unified(folder: Path) -> float:
    """Read ``cpu.max`` of version 2: a quota, or ``max``, and a period in microseconds."""
    words = _words(folder / "cpu.max")
    if len(words) != 2 or words[0] == "max":
        return math.inf
    return float(words[0]) / float(words[1])


def _legacy(folder: Path) -> float:
    """Read the two files of version 1; a quota of -1 is none."""
    quota = _words(folder / "cpu.cfs_quota_us")
    period = _words(folder / "cpu.cfs_period_us")
    if not quota or not period or float(quota[0]) <= 0:
        return math.inf
    return float(quota[0]) / float(period[0])


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []
