"""Every metric that is emitted: its name, what it means, and how several values become one.

`rollout` looks up here how to reduce what the envs of an epoch reported, `names` which names are
known. A reduction is declared, never guessed from a name. The table is in ``metrics.csv`` beside
this module, in the order of docs/metrics.md. In its formulas, x are the values meant, n is their
number, and i counts from 1.
"""

import csv
from dataclasses import dataclass, replace
from enum import Enum
from importlib.resources import files

from stepladder.errors import ConfigError

EMITTED_PREFIXES = (
    "metric/", "overview/", "losses/", "experience/", "evaluation/", "throughput/", "env_"
)  # fmt: skip
"""Names that begin like this are what is logged already; others are still to be prefixed."""

FAMILY = "/*"
"""Ending of a name that has one value per label, loss or the like."""


class Reduction(Enum):
    """How the values of one epoch become one."""

    SUM = "sum"
    MEAN = "mean"
    LAST = "last"
    MAX = "max"


@dataclass(frozen=True, kw_only=True)
class Metric:
    """What a name means."""

    name: str
    """As it is logged; ends in ``/*`` when it stands for a whole family of names."""

    reduction: Reduction
    """How the values of one epoch become one."""

    meaning: str
    """One line of what it says, its unit included."""

    formula: str = ""
    """How it is computed, where the meaning does not say it."""

    def __post_init__(self) -> None:
        stem = self.name.removesuffix(FAMILY)
        if not stem.strip("/") or "*" in stem or "|" in self.name or "\n" in self.name:
            raise ConfigError(
                f"{self.name!r} cannot be the name of a metric. Use words and slashes, such as "
                "'env_maze/coins', with '/*' at most at the end."
            )

    @property
    def is_family(self) -> bool:
        """Whether it stands for all names that begin like it."""
        return self.name.endswith(FAMILY)

    def row(self) -> str:
        """Return the metric's line in docs/metrics.md."""
        formula = f"`{self.formula}`" if self.formula else ""
        return f"| `{self.name}` | {self.reduction.value} | {self.meaning} | {formula} |"


def emitted_name(key: str) -> str:
    """Return the name under which a key of an info is logged.

    ``maze/coins`` becomes ``env_maze/coins`` and ``score``, which has no group of its own,
    ``env_info/score``. A name that is one already stays as it is: nothing is prefixed twice.
    """
    if "/" not in key:
        return f"env_info/{key}"
    return key if key.startswith(EMITTED_PREFIXES) else f"env_{key}"


def _built_in() -> tuple[Metric, ...]:
    table = files("stepladder.stats").joinpath("metrics.csv").read_text(encoding="utf-8")
    _, *rows = csv.reader(table.splitlines())
    return tuple(
        Metric(name=name, reduction=Reduction(reduction), meaning=meaning, formula=formula)
        for name, reduction, meaning, formula in rows
    )


METRICS = _built_in()
"""The metrics that Stepladder itself emits; docs/metrics.md has the same rows."""

_declared: dict[str, Metric] = {metric.name: metric for metric in METRICS}


def declare(metric: Metric) -> Metric:
    """Add a metric for the whole process, such as one of your own env; return it as it is kept.

    The name may be that in the info (``maze/coins``) or the one that is logged
    (``env_maze/coins``). Saying the same again changes nothing.

    Raises:
        ConfigError: The name is declared already, with another reduction or meaning.
    """
    kept = replace(metric, name=emitted_name(metric.name))
    known = _declared.setdefault(kept.name, kept)
    if known != kept:
        raise ConfigError(
            f"{kept.name!r} is declared already, as {known.reduction.value} of "
            f"{known.meaning!r}; got {kept.reduction.value} of {kept.meaning!r}. Use another name."
        )
    return kept


def find(name: str) -> Metric | None:
    """Return what was declared for a logged name: itself, or else its closest family."""
    exact = _declared.get(name)
    if exact is not None:
        return exact
    stem = name
    while "/" in stem:
        stem = stem.rpartition("/")[0]
        family = _declared.get(stem + FAMILY)
        if family is not None:
            return family
    return None


def reduction_of(name: str) -> Reduction:
    """Return the reduction of a logged name; the mean, if nothing was declared for it."""
    metric = find(name)
    return Reduction.MEAN if metric is None else metric.reduction
