"""An env examined in this process, which is quick; and what was found, by name."""

from collections.abc import Iterable
from functools import partial
from typing import Any

from diagnosis.patients import HOSTS, Planted
from stepladder import named
from stepladder.diagnosis.child import Examination, ExaminationOrder
from stepladder.diagnosis.evidence import EnvEvidence
from stepladder.diagnosis.examination import settings_of
from stepladder.diagnosis.finding import Finding
from stepladder.diagnosis.registry import examine
from stepladder.training.config import TrainingConfig
from stepladder.training.presets import ANY_ENV


def examined(
    env: Any,
    *,
    episodes: int = 10,
    seconds: float = 1.0,
    with_workers: bool = False,
    **settings: Any,
) -> EnvEvidence:
    """Go through the probes here; not for envs that crash or hang."""
    config = TrainingConfig(**{**ANY_ENV, "env": env, **settings})
    order = ExaminationOrder(
        config=config,
        num_episodes=episodes,
        seconds=seconds,
        limit_s=60.0,
        with_workers=with_workers,
    )
    evidence = EnvEvidence(name=config.env, config=config, num_cores=2)

    def take(part: str, value: Any) -> None:
        if part == "trouble":
            evidence.troubles.append(value)
        elif part not in ("begin", "memory"):
            evidence.give(part, value)

    Examination(order, take).run()
    return evidence


def order_for(
    env: Any, *, limit_s: float = 20.0, **settings: Any
) -> tuple[ExaminationOrder, EnvEvidence]:
    """Return what a process of its own is asked, and what it completes."""
    config = TrainingConfig(**{**ANY_ENV, "env": env, **settings})
    given = {config.env: named.given(config.env)}
    order = ExaminationOrder(
        config=config,
        num_episodes=4,
        seconds=0.3,
        limit_s=limit_s,
        with_workers=False,
        given=given,
    )
    return order, EnvEvidence(name=config.env, config=config, num_cores=2)


def planted(host: str, fault: str, **settings: Any) -> EnvEvidence:
    """Examine a broken copy of an env."""
    make = partial(Planted, host, fault)
    named.give(f"{host}:{fault}", make)
    return examined(make, tasks=HOSTS[host][1], **settings)


def found_in(evidence: EnvEvidence) -> list[Finding]:
    """Return what all checks find in an env and its settings."""
    return list(examine({"env": evidence, "config": settings_of(evidence)}))


def told(findings: Iterable[Finding]) -> dict[str, set[str]]:
    """Return the names of what was found, by severity; notes left out."""
    names: dict[str, set[str]] = {}
    for one in findings:
        if one.severity != "note":
            names.setdefault(one.severity, set()).add(one.check)
    return names
