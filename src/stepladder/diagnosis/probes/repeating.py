"""The same seed and the same actions again: does an episode depend on anything else?

One of the probes. A trace is a digest per step; two traces that differ do so from some step on. The
tasks are compared in the same way: with one seed and the same actions, different tasks must differ.
"""

from collections.abc import Sequence
from itertools import zip_longest

from stepladder.diagnosis.evidence import RepeatedEpisodes
from stepladder.diagnosis.probes.subject import Subject, SubjectEnv
from stepladder.diagnosis.probes.values import digest
from stepladder.tasks import Task

SEEDS = (11, 12)
"""Tasks may be alike with one seed; not with all of them."""

IN_A_ROW = (SEEDS[0], SEEDS[1], SEEDS[0], SEEDS[0], SEEDS[1])
"""Seeds of the episodes of one env: repeated after two and after three, for what takes turns."""

MOST_COMPARED = 300
"""Steps of an episode that are compared."""

LONG_TO_MAKE_S = 0.1
"""From so many seconds on, tasks are compared in one env only, one after the other."""

Trace = tuple[str, ...]


def trace(player: SubjectEnv, task: Task | None, seed: int) -> Trace:
    """Play an episode with actions that only the seed decides; return a digest per step."""
    env = player.env
    seen, _ = player.begin(task, seed)
    found = [digest(seen)]
    env.action_space.seed(seed)
    for _ in range(MOST_COMPARED):
        seen, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        found.append(digest(seen, float(reward), bool(terminated), bool(truncated)))
        if terminated or truncated:
            break
    return tuple(found)


def first_difference(one: Sequence[str], other: Sequence[str]) -> int | None:
    """Return the first place where two traces differ; None if they are equal."""
    for place, (left, right) in enumerate(zip_longest(one, other)):
        if left != right:
            return place
    return None


def probe(subject: Subject, make_seconds: float) -> RepeatedEpisodes:
    """Play the first task again and again, and all tasks with the same seeds."""
    tasks = differing(subject.tasks)
    player, other = subject.make(), subject.make()
    try:
        mine = [trace(player, tasks[0], seed) for seed in IN_A_ROW]
        fresh = [trace(other, tasks[0], seed) for seed in IN_A_ROW]
        in_turn: list[tuple[Trace, ...]] = []
        after = mine[3:]
        if len(tasks) > 1:
            in_turn = [tuple(trace(player, task, seed) for seed in SEEDS) for task in tasks]
            after = [trace(player, tasks[0], seed) for seed in SEEDS]
    finally:
        player.close()
        other.close()
    alone = in_turn
    if make_seconds < LONG_TO_MAKE_S and len(tasks) > 1:
        alone = [tuple(_alone(subject, task, seed) for seed in SEEDS) for task in tasks]
    return RepeatedEpisodes(
        fresh_differs_at=_of_all(mine, fresh),
        again_differs_at=_of_all([mine[0], *mine[:2]], mine[2:]),
        after_others_differs_at=_of_all(mine[3:], after),
        tasks=tuple(task.name for task in tasks if task is not None),
        num_steps=max(len(one) for one in (*mine, *(t for both in alone for t in both))) - 1,
        num_distinct=len(set(alone)),
        num_distinct_in_turn=len(set(in_turn)),
        alike=_alike(tasks, alone),
        digests=mine[0],
    )


def _of_all(ones: Sequence[Trace], others: Sequence[Trace]) -> int | None:
    """Return where the first two traces differ that do; None if all are equal."""
    places = (first_difference(one, other) for one, other in zip(ones, others, strict=True))
    return next((place for place in places if place is not None), None)


def differing(tasks: Sequence[Task | None]) -> list[Task | None]:
    """Return tasks of which no two have the same parameters and seed."""
    found: dict[str, Task | None] = {}
    for task in tasks:
        found.setdefault("" if task is None else repr((task.params, task.seed)), task)
    return list(found.values())


def _alone(subject: Subject, task: Task | None, seed: int) -> Trace:
    player = subject.make()
    try:
        return trace(player, task, seed)
    finally:
        player.close()


def _alike(
    tasks: Sequence[Task | None], traces: Sequence[tuple[Trace, ...]]
) -> tuple[tuple[str, ...], ...]:
    groups: dict[tuple[Trace, ...], list[str]] = {}
    for task, found in zip(tasks, traces, strict=False):
        if task is not None:
            groups.setdefault(found, []).append(task.name)
    return tuple(tuple(names) for names in groups.values() if len(names) > 1)
