"""Which metrics share a plot, and in which order plots and labels stand.

Names only; `report` reads the numbers afterwards.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase

from stepladder.errors import ConfigError

_FIRST = ("overview", "evaluation", "env_task_dependency", "env_curriculum_stats", "losses")
_AXIS = "metric/agent_step"
_NUMBER = re.compile(r"[0-9]+")
_NUMBER_KEPT = re.compile(r"([0-9]+)")
# Shares say more than amounts for these: what matters is how a whole is divided among labels.
_DIVIDED = ("sample", "prob", "share", "fraction", "composition")
_FAMILIES = ("per_", "tracked_", "pool_composition")
_MIN_NUMBERED = 3
_WHOLE = "all"


@dataclass(frozen=True, kw_only=True)
class Plot:
    """One plot: a single metric, or a family with one metric per label."""

    title: str
    """Name without the section's prefix."""

    section: str

    metrics: tuple[str, ...]
    """Names of the metrics, in the natural order of their labels."""

    labels: tuple[str, ...] = ()
    """Label of each metric of a family; empty for a single metric."""

    @property
    def is_family(self) -> bool:
        """Whether the plot shows one line per label."""
        return bool(self.labels)

    @property
    def is_divided(self) -> bool:
        """Whether the values of the family are parts of a whole."""
        last = self.title.rsplit("/", 1)[-1]
        return self.is_family and any(word in last for word in _DIVIDED)


@dataclass(frozen=True, kw_only=True)
class Section:
    """The plots whose names begin alike."""

    name: str
    plots: tuple[Plot, ...]


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key under which ``taskclass2`` comes before ``taskclass10``."""
    key: list[tuple[int, int, str]] = []
    for part in _NUMBER_KEPT.split(text):
        if _NUMBER.fullmatch(part):
            digits = part.lstrip("0")
            # By length, then by digits: a label may hold more digits than Python converts.
            key.append((0, len(digits), digits))
        elif part:
            key.append((1, 0, part))
    # The text itself ends the key, so that names such as "a01" and "a1" have a fixed order.
    return (*key, (-1, 0, text))


def select_metrics(names: Iterable[str], patterns: Sequence[str] | None) -> list[str]:
    """Return the names that match at least one pattern, in natural order.

    Args:
        names: All metrics of all runs.
        patterns: Full names or patterns with ``*`` and ``?``; None keeps everything.

    Raises:
        ConfigError: A pattern matches nothing although there are metrics.
    """
    names = sorted(set(names), key=natural_key)
    if patterns is None or not names:
        return names
    kept: set[str] = set()
    for pattern in patterns:
        found = [n for n in names if n == pattern or fnmatchcase(n, pattern)]
        if not found:
            near = get_close_matches(pattern, names, n=3, cutoff=0.3) or names[:3]
            raise ConfigError(
                f"metrics names {pattern!r}, which no run has; "
                f"expected names or patterns such as {', '.join(map(repr, near))}."
            )
        kept.update(found)
    return [n for n in names if n in kept]


def group_metrics(names: Iterable[str]) -> list[Section]:
    """Return the sections of a report with their plots, families joined."""
    by_section: dict[str, list[str]] = {}
    for name in sorted(set(names), key=natural_key):
        if name != _AXIS:
            section = name.split("/", 1)[0] if "/" in name else ""
            by_section.setdefault(section, []).append(name)
    order = sorted(by_section, key=_section_key)
    return [Section(name=s or "other", plots=tuple(_plots(s, by_section[s]))) for s in order]


def family_of(name: str) -> tuple[str, str] | None:
    """Return the family and the label of a metric such as ``a/per_label_samples/b``, or None.

    Everything after the family is the label, which may hold slashes of its own.
    """
    parts = name.split("/")
    for place, part in enumerate(parts[:-1]):
        if part.startswith(_FAMILIES):
            return "/".join(parts[: place + 1]), "/".join(parts[place + 1 :])
    return None


def _section_key(section: str) -> tuple[int, tuple[tuple[int, int, str], ...]]:
    rank = _FIRST.index(section) if section in _FIRST else len(_FIRST)
    return rank, natural_key(section)


def _plots(section: str, names: Sequence[str]) -> list[Plot]:
    families: dict[str, list[tuple[str, str]]] = {}
    singles: list[str] = []
    for name in names:
        found = family_of(name)
        if found:
            families.setdefault(found[0], []).append((found[1], name))
        else:
            singles.append(name)
    apart = _taken_apart(singles)
    taken = {name for members in apart.values() for _, name in members}
    numbered = _numbered([name for name in singles if name not in taken])
    taken |= {name for members in numbered.values() for _, name in members}
    for family, members in (*apart.items(), *numbered.items()):
        families.setdefault(family, []).extend(members)
    plots = [
        Plot(title=_short(n, section), section=section, metrics=(n,))
        for n in singles
        if n not in taken
    ]
    for family in sorted(families, key=natural_key):
        members = sorted(families[family], key=lambda m: natural_key(m[0]))
        labels, metrics = zip(*members, strict=True)
        title = _short(family, section)
        plots.append(Plot(title=title, section=section, metrics=metrics, labels=labels))
    return plots


def _taken_apart(names: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Join a metric with itself by label, such as ``evaluation/success``, ``…/success/medium``."""
    known, found = set(names), dict[str, list[tuple[str, str]]]()
    for name in names:
        words = name.split("/")
        wholes = ("/".join(words[:place]) for place in range(1, len(words)))
        whole = next((whole for whole in wholes if whole in known), None)
        if whole is not None:
            members = found.setdefault(whole, [(_WHOLE, whole)])
            members.append((name.removeprefix(f"{whole}/"), name))
    return found


def _numbered(names: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Join names that differ in one number only, such as ``task_0_samples``, ``task_1_samples``."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name in names:
        head, slash, last = name.rpartition("/")
        numbers = _NUMBER.findall(last)
        if len(numbers) == 1:
            family = head + slash + _NUMBER.sub("*", last)
            found.setdefault(family, []).append((last, name))
    return {f: members for f, members in found.items() if len(members) >= _MIN_NUMBERED}


def _short(name: str, section: str) -> str:
    return name[len(section) + 1 :] if section and name.startswith(f"{section}/") else name
