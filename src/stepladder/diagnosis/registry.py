"""All checks, by name, in the order in which they are told.

A new check is a function in the module of its family, in that module's `CHECKS`; and its line in
docs/doctor.md.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from stepladder.diagnosis.checks import (
    curricula,
    failing,
    learning,
    loops,
    machines,
    repeating,
    runs,
    spaces,
    speed,
    success,
)
from stepladder.diagnosis.finding import Check, Finding, LooksAt

FAMILIES = (
    *(failing, spaces, repeating, success, curricula),
    *(speed, runs, learning, loops, machines),
)

ALL_CHECKS: Mapping[str, Check] = {one.name: one for family in FAMILIES for one in family.CHECKS}


def checks_of(*kinds: LooksAt) -> list[Check]:
    """Return the checks that look at these kinds of evidence."""
    return [one for one in ALL_CHECKS.values() if one.looks_at in kinds]


def examine(evidence: Mapping[LooksAt, Any]) -> Iterator[Finding]:
    """Yield what all checks find in the evidence that there is."""
    for one in ALL_CHECKS.values():
        if one.looks_at in evidence:
            yield from one.findings(evidence[one.looks_at])
