"""Checks of a vector env with a curriculum that is in use: does every env play the present plan?"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from gymnasium.vector import AutoresetMode

from stepladder.diagnosis.finding import Told, check, error, warning
from stepladder.envs.tracking.tracked import Tracked
from stepladder.errors import AgreementError
from stepladder.sync.counts import EpisodeCounts, Staleness

OFTEN = 0.2
"""Share of late draws from which it is no exception, such as a reset by hand."""

SOME, MANY = 0.05, 0.5
"""Shares of episodes given up from which it is a warning, and an error."""


@dataclass(frozen=True)
class LoopEvidence:
    """What a tracked vector env says of itself."""

    counts: EpisodeCounts
    staleness: Staleness
    disagreement: str
    """Why its envs do not have the present plan; empty if they do."""

    num_envs: int

    lag_allowed: int
    """Collections by which a plan may lag: none, unless an env resets inside the step."""


def look(envs: Tracked) -> LoopEvidence:
    """Ask a vector env that is in use; its envs are asked for their plan, and not stepped."""
    disagreement = ""
    try:
        envs.check_agreement()
    except AgreementError as refused:
        disagreement = str(refused)
    # Stable-Baselines3 has no mode: it resets inside the step.
    mode = (getattr(envs, "metadata", None) or {}).get("autoreset_mode")
    resets_later = mode in (AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED)
    num_envs = int(cast("Any", envs).num_envs)
    lag_allowed = 0 if resets_later else 1
    return LoopEvidence(envs.counts, envs.staleness, disagreement, num_envs, lag_allowed)


@check("stale-plans", "loop")
def stale(loop: LoopEvidence) -> Iterator[Told]:
    """Envs draw from plans that miss results which were there already."""
    by_lag, allowed = loop.staleness.draws_by_lag, loop.lag_allowed
    draws, late = sum(by_lag), sum(by_lag[allowed + 1 :])
    if late > OFTEN * draws:
        yield error(
            f"{late} of {draws} draws came from a plan that was up to {loop.staleness.largest} "
            f"collections old; expected at most {allowed}",
            "Step the vector env that has the curriculum, not what is inside it, and step all of "
            "it.",
        )


@check("plans-disagree", "loop")
def disagree(loop: LoopEvidence) -> Iterator[Told]:
    """Envs have another plan than the curriculum has published."""
    if loop.disagreement:
        yield error(
            loop.disagreement,
            "Do not replace an env's client, and do not use a copy of the vector env.",
        )


@check("episodes-given-up", "loop")
def given_up(loop: LoopEvidence) -> Iterator[Told]:
    """Episodes are reset before they end, so nothing is learned from them."""
    ended = loop.counts.finished + loop.counts.aborted
    share = loop.counts.aborted / max(1, ended)
    if ended < 20 or share < SOME:
        return
    yield (error if share >= MANY else warning)(
        f"{loop.counts.aborted} of {ended} episodes were reset before they ended and teach the "
        f"curriculum nothing; expected less than {SOME:.0%}",
        "Put time limits and wrappers that end episodes inside CurriculumEnv, and reset only what "
        "has ended.",
    )


@check("results-not-collected", "loop")
def not_collected(loop: LoopEvidence) -> Iterator[Told]:
    """Envs play, and the curriculum is not given the results."""
    in_flight = loop.counts.in_flight
    if in_flight > 2 * loop.num_envs:
        yield error(
            f"{in_flight} episodes were begun and not collected; expected at most {loop.num_envs}, "
            "one per env",
            "Step the vector env that has the curriculum, not what is inside it.",
        )


CHECKS = (stale, disagree, given_up, not_collected)
