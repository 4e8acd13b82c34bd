"""A curriculum and a learner that are being played, epoch after epoch, exactly as `simulate` would.

Below `playing` and `seeds`, which look at the learner between two epochs.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from stepladder.curricula.base import Curriculum
from stepladder.errors import StepladderError
from stepladder.simulator.base import Scenario, Simulator
from stepladder.simulator.compare import UNIFORM
from stepladder.simulator.engines import EngineName, make_engine
from stepladder.simulator.playground.question import NUM_POINTS, Setup

PART_SAMPLES = 200_000
"""Samples that are played between two looks at whether to go on."""

Pause = Callable[[], None]
"""Called between short parts; what it raises ends the course."""


class TimeUp(StepladderError):
    """The time for an answer is over."""


@dataclass(frozen=True, kw_only=True)
class BegunCourse:
    """What is being played."""

    kind: str
    """Of the curriculum's config."""

    place: Scenario
    simulator: Simulator
    curriculum: Curriculum
    engine: EngineName
    epochs: Iterator[int]
    """Plays an epoch each time it is asked for the next one."""


def engine_for(curriculum: Curriculum) -> EngineName:
    """Return the fastest engine that a curriculum has a form for; all give the same results."""
    return "compiled" if curriculum.rule_in_force() else "direct"


@contextmanager
def begin_course(setup: Setup, curve: str, pause: Pause) -> Iterator[BegunCourse]:
    """Make what a course needs; nothing has been played yet.

    Args:
        setup: What is played.
        curve: ``chosen`` for the curriculum of the question, else uniform.
        pause: Called between short parts.
    """
    question, place = setup.question, setup.place
    config = setup.config if curve == "chosen" else place.curriculum_config(UNIFORM)
    if config.target is not None and not place.aim:
        place = place.aimed_at(config.target.weights)
    simulator = place.simulator(question.seed, question.num_envs)
    curriculum = place.curriculum(config, question.seed)
    name = engine_for(curriculum)
    engine = make_engine(name, simulator, curriculum, num_envs=question.num_envs)
    step = setup.samples_per_epoch * question.num_envs

    def epochs() -> Iterator[int]:
        for epoch in range(NUM_POINTS):
            until = (epoch + 1) * step
            while simulator.num_samples < until:
                engine.advance(min(until, simulator.num_samples + PART_SAMPLES))
                pause()
            simulator.end_epoch()
            yield epoch

    try:
        yield BegunCourse(
            kind=config.kind,
            place=place,
            simulator=simulator,
            curriculum=curriculum,
            engine=name,
            epochs=epochs(),
        )
    finally:
        engine.close()
