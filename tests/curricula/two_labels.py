"""A phased curriculum over two labels with two tasks each, and ways to play it."""

from typing import Any

from curricula.fake_learner import record_for
from stepladder.curricula import Phase, Phased
from stepladder.tasks import ListSource, Task

TASKS = ListSource(Task(f"{label}{i}", label) for label in "ab" for i in range(2))
REST = Phase(name="rest", mixture={"b": 1.0})


def make(*phases: Phase, **settings: Any) -> Phased:
    return Phased(TASKS, phases=phases, **settings)


def play(curriculum: Phased, *successes: float, slot: int = 0, **changes: Any) -> None:
    """Observe one batch of episodes drawn just now."""
    curriculum.observe([record_for(curriculum, slot, success, **changes) for success in successes])


def settings_of(curriculum: Phased, env_index: int = 0, episode: int = 0) -> dict[str, Any]:
    """Return what the client of an env would be told."""
    legend, dials = curriculum.legend(), curriculum.plan.dials.copy()
    return legend.settings(dials, curriculum.seed, env_index, episode)
