"""What the frontier tells: where it runs, and why a task stands where it does.

Made by `frontier` from the numbers its kernels keep.
"""

from dataclasses import dataclass
from typing import Any

from stepladder.curricula.explanation import Explanation
from stepladder.curricula.frontier.config import FrontierConfig
from stepladder.curricula.frontier.kernels import LEAST_SUCCESSES
from stepladder.curricula.frontier.rounds import IN_ZONE, MASTERED

STANDINGS = ("probed", "zone", "mastered")
"""Names of where a task can stand, by number."""


@dataclass(frozen=True, kw_only=True)
class FrontierExplanation(Explanation):
    """Where the frontier runs."""

    num_probed: int
    """Tasks not seen to be learnable."""

    num_in_zone: int
    """Tasks that are learnable now."""

    num_mastered: int
    """Tasks that nearly always succeed."""

    num_evicted: int
    """Tasks that made room for others so far."""

    num_barren_rounds: int
    """Rounds of probing since the last time anything new was mastered."""

    zone: tuple[tuple[str, float, float], ...]
    """Some of the tasks in the zone, likeliest first: name, success rate, probability."""

    def lines(self) -> list[str]:
        """Return the text, line by line."""
        return [
            *super().lines(),
            f"{self.num_in_zone} tasks are learnable now, {self.num_mastered} are mastered, "
            f"{self.num_probed} are being probed, {self.num_evicted} have been replaced.",
            f"{self.num_barren_rounds} rounds of probing have passed since anything new was "
            "mastered.",
            *(f"  {name:<24} success {p:.2f}, probability {q:.4f}" for name, p, q in self.zone),
        ]


def reason_for(
    task: Any, rate: float, is_near: bool, config: FrontierConfig
) -> tuple[str, dict[str, float]]:
    """Say in a clause why a slot stands where it does, and what was measured for it.

    Args:
        task: The slot's `TaskStanding`.
        rate: Its success rate.
        is_near: Whether a neighbour is mastered.
        config: The settings.
    """
    level = float(task["level"])
    numbers = {
        "success": rate,
        "level": level,
        "plays_in_trial": float(task["trial_plays"]),
        "weighed_plays": float(task["successes"] + task["failures"]),
    }
    if task["standing"] == IN_ZONE:
        left = config.trial_episodes - int(task["trial_plays"])
        return (
            f"it is learnable now: success {rate:.2f}, and within {left} plays it must get beyond "
            f"its level of {level:.2f}"
        ), numbers
    if task["standing"] == MASTERED:
        return (
            f"it is mastered (success {rate:.2f}) and rehearsed in turn; below "
            f"{config.mastery - config.lapse:.2f} it would be practised again"
        ), numbers
    turn = ", among the first because a neighbour is mastered" if is_near else ""
    return f"{_why_probed(task, level, config)}{turn}", numbers


def _why_probed(task: Any, level: float, config: FrontierConfig) -> str:
    successes, count = task["successes"], task["successes"] + task["failures"]
    if count == 0.0:
        return "it has never been played and waits for its turn to be probed"
    if successes < LEAST_SUCCESSES:
        return "it has not succeeded of late; it is probed in turn"
    if successes >= config.mastery * count:
        return "it nearly always succeeded so far; it is probed in turn until that is sure"
    return f"it has not risen above its level of {level:.2f}; it is probed in turn"
