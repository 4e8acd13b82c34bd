"""What a check says: a finding; and what a check is.

Lowest module of `diagnosis`. A check is a function of one kind of evidence (`evidence`) that yields
what it found; the decorator gives it its name, under which `docs/doctor.md` explains it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Severity = Literal["error", "warning", "note"]
"""An error spoils what is learnt, or stops it; a warning costs time or may mislead; a note may be
as it is wanted."""

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""The worst first."""

LooksAt = Literal["env", "config", "run", "loop", "machine"]
"""Kinds of evidence: how an env behaves; what settings ask for; what a run has left; a vector env
with a curriculum that is in use; this machine."""

PAGE = "docs/doctor.md"


class Told(NamedTuple):
    """What a check found, before it has the name of the check."""

    severity: Severity
    text: str
    fix: str


def error(text: str, fix: str) -> Told:
    """Return a finding about something that spoils what is learnt."""
    return Told("error", text, fix)


def warning(text: str, fix: str) -> Told:
    """Return a finding about something that costs time or may mislead."""
    return Told("warning", text, fix)


def note(text: str, fix: str) -> Told:
    """Return a finding about something that may be as it is wanted."""
    return Told("note", text, fix)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was found."""

    check: str
    """Name of the check."""

    severity: Severity

    text: str
    """What is wrong, in one line: the value, and what was expected."""

    fix: str
    """What to do, in one line."""

    @property
    def link(self) -> str:
        """Where the finding is explained."""
        return f"{PAGE}#{self.check}"

    def to_json(self) -> dict[str, Any]:
        """Return the finding as plain JSON."""
        return {**vars(self), "link": self.link}


@dataclass(frozen=True)
class Check:
    """One question about one kind of evidence."""

    name: str
    looks_at: LooksAt
    examine: Callable[[Any], Iterable[Told]]

    @property
    def about(self) -> str:
        """What is looked for, in one line."""
        return (self.examine.__doc__ or "").strip().partition("\n")[0]

    def findings(self, evidence: Any) -> Iterator[Finding]:
        """Yield what is found in the evidence."""
        for severity, text, fix in self.examine(evidence):
            yield Finding(
                check=self.name,
                severity=severity,
                text=" ".join(text.split()),
                fix=" ".join(fix.split()),
            )


def check(name: str, looks_at: LooksAt) -> Callable[[Callable[[Any], Iterable[Told]]], Check]:
    """Make a check of a function whose docstring says in one line what it looks for."""
    return lambda examine: Check(name, looks_at, examine)
