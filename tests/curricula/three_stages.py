"""A staged curriculum small enough to work out by hand, and ways to play it."""

from typing import Any

from stepladder.curricula import Staged
from stepladder.tasks import ListSource, Task

STAGES = ("a", "b", "c")
TASKS = ListSource(Task(f"{stage}{i}", stage) for stage in STAGES for i in range(2))


def make(**settings: Any) -> Staged:
    """Make three stages of two tasks, with all rules but the standard one switched off."""
    alone: dict[str, Any] = {
        "stages": STAGES,
        "min_episodes": 10,
        "window_episodes": 10,
        "check_interval_episodes": 1,
        "early": None,
        "trend": None,
        "demotion": None,
    }
    return Staged(TASKS, **{**alone, **settings})


def play(curriculum: Staged, results: str, stage: str | None = None) -> None:
    """Observe one episode of a stage per letter: w is a win, anything else a failure."""
    for result in results:
        curriculum.record_episode(stage or curriculum.current_stage, result == "w")


def shares(curriculum: Staged) -> list[float]:
    """Return the probability of each stage."""
    return curriculum.probs().reshape(3, 2).sum(axis=1).tolist()
