"""One question over several seeds: the mean course, the best and the worst, and when each was done.

Beside `playing`, whose courses are those of the first seed. Nothing but the progress is kept, so
that many seeds are answered in the time of a few courses.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stepladder.arrays import Floats
from stepladder.configs.codec import to_json
from stepladder.simulator.playground.epochs import Pause, TimeUp, begin_course
from stepladder.simulator.playground.question import Setup


@dataclass(frozen=True, kw_only=True)
class Spread:
    """How one player fares with several seeds."""

    num_seeds: int
    """Seeds that were played to their end."""

    samples: list[int]
    mean: list[float]
    """Mean progress at each point."""

    low: list[float]
    high: list[float]
    """Lowest and highest progress at each point."""

    done_at: list[int | None]
    """Samples of each seed until all that counts was learned; None if it never was."""

    is_cut: bool = False
    """Whether the time for an answer was over before the last seed."""

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {name: to_json(value) for name, value in vars(self).items()}


def spread(setup: Setup, curve: str, pause: Pause = lambda: None) -> Spread:
    """Play a question with each of its seeds.

    Args:
        setup: What is played.
        curve: ``chosen`` or ``uniform``.
        pause: Called between short parts; `TimeUp` ends it with the seeds that are done.
    """
    first = setup.question.seed
    rows: list[Floats] = []
    done: list[int | None] = []
    samples: list[int] = []
    is_cut = False
    for seed in range(first, first + setup.question.num_seeds):
        question = replace(setup.question, seed=seed)
        try:
            at, progress, done_at = _progress(replace(setup, question=question), curve, pause)
        except TimeUp:
            is_cut = True
            break
        # Learners whose plays have many steps may go a little beyond a point.
        samples = samples or at
        rows.append(np.interp(samples, at, progress))
        done.append(done_at)
    if not rows:
        return Spread(num_seeds=0, samples=[], mean=[], low=[], high=[], done_at=[], is_cut=True)
    table = np.round(np.array(rows), 6)
    return Spread(
        num_seeds=len(rows),
        samples=samples,
        mean=table.mean(axis=0).tolist(),
        low=table.min(axis=0).tolist(),
        high=table.max(axis=0).tolist(),
        done_at=done,
        is_cut=is_cut,
    )


def _progress(setup: Setup, curve: str, pause: Pause) -> tuple[list[int], Floats, int | None]:
    """Return the samples and the progress at each point, and when all was learned."""
    with begin_course(setup, curve, pause) as course:
        learner = course.simulator
        samples, progress = [learner.num_samples], [learner.progress]
        for _ in course.epochs:
            samples.append(learner.num_samples)
            progress.append(learner.progress)
        return samples, np.array(progress, dtype=np.float64), learner.done_at


def in_words(name: str, unit: str, own: Spread, uniform: Spread) -> str:
    """Return one sentence on how often and when a curriculum and uniform were done."""
    if not own.num_seeds or not uniform.num_seeds:
        return "the time was over before all of one seed was played"
    told = _told(name, unit, own), _told("uniform", unit, uniform)
    return f"over {min(own.num_seeds, uniform.num_seeds)} seeds: {'; '.join(told)}"


def _told(name: str, unit: str, found: Spread) -> str:
    done = [one for one in found.done_at if one is not None]
    if not done:
        return f"{name} is never done"
    ends = f"{min(done):,} to {max(done):,}" if min(done) < max(done) else f"{done[0]:,}"
    if len(done) < len(found.done_at):
        return f"{name} is done with {len(done)} of them (after {ends} {unit})"
    return f"{name} is done after {sum(done) / len(done):,.0f} {unit} in the mean ({ends})"
