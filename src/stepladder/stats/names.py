"""The names under which a run logs: a bounded number, whatever envs put into their infos.

Used by `rollout` for every name. A plot per label is readable and a plot per task is not, so
names are limited; values of single tasks belong in the run's database
(`curricula.meter.task_table`).
"""

import logging
from collections.abc import Mapping
from typing import Any, cast

from stepladder.errors import SnapshotError
from stepladder.stats.metrics import FAMILY, find

logger = logging.getLogger("stepladder.stats")

MAX_PER_FAMILY = 100
"""Most names below one prefix; further ones become the prefix and ``/other``."""

MAX_UNDECLARED = 1000
"""Most undeclared names altogether; further ones become `UNDECLARED_OTHER`."""

OTHER_NAMES = "other"
"""Last part of the name under which the names of a full family are reduced together."""

UNDECLARED_OTHER = f"env_undeclared/{OTHER_NAMES}"
"""Where undeclared values go when there are too many names."""


class MetricNames:
    """The names of one run. First come, first served; a name once given out stays.

    Declared single names are always given out. The others are limited per family (per label,
    say), and the undeclared ones also altogether.
    """

    def __init__(self) -> None:
        self._members: dict[str, set[str]] = {}
        self._undeclared: dict[str, None] = {}
        self._full: set[str] = set()

    @property
    def undeclared(self) -> tuple[str, ...]:
        """Every undeclared name given out so far, in the order of their first use."""
        return tuple(self._undeclared)

    def state(self) -> dict[str, Any]:
        """Return all names so far, as plain JSON."""
        return {
            "members": {family: sorted(names) for family, names in self._members.items()},
            "undeclared": list(self._undeclared),
            "full": sorted(self._full),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a `state`.

        Raises:
            SnapshotError: It is damaged. Then nothing has changed.
        """
        try:
            members = {family: set(_texts(names)) for family, names in state["members"].items()}
            undeclared, full = _texts(state["undeclared"]), _texts(state["full"])
        except (AttributeError, KeyError, TypeError) as error:
            raise SnapshotError(
                f"the names of metrics in the checkpoint are damaged ({error!r}). Use an older one."
            ) from error
        self._members, self._undeclared, self._full = members, dict.fromkeys(undeclared), set(full)

    def admit(self, name: str) -> str:
        """Return the name to log a value under: the name itself, or that of the leftovers."""
        metric = find(name)
        if metric is not None and not metric.is_family:
            return name
        family = name.rpartition("/")[0] if metric is None else metric.name.removesuffix(FAMILY)
        leftover = f"{family}/{OTHER_NAMES}"
        members = self._members.get(family, set[str]())
        # The name of what is left over is free, but only below a prefix that counts already.
        is_leftover = name == leftover and (metric is not None or family in self._members)
        if is_leftover or name in members:
            return name
        if len(members) >= MAX_PER_FAMILY:
            self._say_full(family, MAX_PER_FAMILY, leftover)
            return leftover
        if metric is None:
            if len(self._undeclared) >= MAX_UNDECLARED:
                self._say_full("env_undeclared", MAX_UNDECLARED, UNDECLARED_OTHER)
                return UNDECLARED_OTHER
            self._undeclared[name] = None
        self._members.setdefault(family, members).add(name)
        return name

    def _say_full(self, family: str, limit: int, leftover: str) -> None:
        if family not in self._full:
            self._full.add(family)
            logger.warning(
                "More than %d names below %r; the others are reduced together as %r. Values per "
                "task belong in the run's database.",
                limit,
                family,
                leftover,
            )


def _texts(values: Any) -> list[str]:
    """Return a list of texts, or raise TypeError."""
    if not isinstance(values, list) or not all(
        isinstance(value, str) for value in cast("list[Any]", values)
    ):
        raise TypeError(f"expected a list of names; got {repr(cast('object', values))[:80]}")
    return cast("list[str]", values)
