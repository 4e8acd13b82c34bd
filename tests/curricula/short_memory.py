"""Frontiers whose results count half after one more play, and ways to play them."""

from typing import Any

from curricula.fake_learner import play_results
from stepladder.curricula import Curriculum, Frontier, FrontierExplanation, TaskExplanation
from stepladder.tasks import NumberedSource, Task

BARE: dict[str, Any] = {
    "halflife_episodes": 1.0,
    "mastery": 0.8,
    "lapse": 0.2,
    "trial_episodes": 4,
    "probing": 0.5,
    "rehearsal": 0.25,
}
"""Results count half after one more play, and a trial is four plays: easy to work out by hand.

Discounted plays add up to 2 at most, so 1.8 of them are enough to call a task mastered.
"""


def make(num_tasks: int = 3, **settings: Any) -> Frontier:
    return Frontier(NumberedSource(num_tasks), **{**BARE, **settings})


def on_a_line(num_tasks: int, **settings: Any) -> Frontier:
    """Make a curriculum over tasks at 0, 1, 2, … whose neighbours are those beside them."""
    tasks = [Task(f"task{x}", params={"x": x}) for x in range(num_tasks)]
    return Frontier(tasks, **{**BARE, "features": ("x",), "num_neighbors": 1, **settings})


def play(curriculum: Curriculum, slot: int, results: str) -> None:
    """Observe one episode of a slot per letter, one at a time."""
    for result in results:
        play_results(curriculum, slot, result)


def after(curriculum: Curriculum, results: str) -> str:
    """Observe episodes of slot 0; say where it stands then."""
    play(curriculum, 0, results)
    return curriculum.states()[0]


def told(curriculum: Curriculum, slot: int) -> TaskExplanation:
    explanation = curriculum.explain(slot)
    assert isinstance(explanation, TaskExplanation)
    return explanation


def overview(curriculum: Curriculum) -> FrontierExplanation:
    explanation = curriculum.explain()
    assert isinstance(explanation, FrontierExplanation)
    return explanation


def draw_and_fail(curriculum: Curriculum, num_episodes: int) -> list[int]:
    """Draw and fail, one episode at a time; return the slots drawn."""
    slots: list[int] = []
    for _ in range(num_episodes):
        draw = curriculum.draw_one()
        curriculum.report(draw, 0.0)
        slots.append(draw.slot)
    return slots
