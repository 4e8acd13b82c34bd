"""A small vector env, stepped in this process and with workers: the same rows, and how fast.

One of the probes, and the last one: nothing else of the examination runs meanwhile. It uses the
vector env, the curriculum and the settings that a training would use.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

from stepladder.cores import usable_cores
from stepladder.diagnosis.evidence import ComparedRows
from stepladder.diagnosis.probes.repeating import first_difference
from stepladder.diagnosis.probes.subject import Subject
from stepladder.diagnosis.probes.values import digest

MOST_ENVS = 8
NUM_COMPARED = 60
TURNS = 5
TIMEOUT_S = 40.0

SLICE_S = 0.04
"""For which each vector env is stepped in a turn; one step is enough if it takes longer."""


def probe(subject: Subject) -> ComparedRows:
    """Step the same envs in one process and in two, in turns."""
    num_envs = max(2, min(subject.config.num_envs, MOST_ENVS))
    asked = subject.config.num_workers
    num_workers = max(1, min(asked or usable_cores() - 1, num_envs - 1))
    plain = subject.make_vec(num_envs, 0, TIMEOUT_S)
    try:
        shared = subject.make_vec(num_envs, num_workers, TIMEOUT_S)
        try:
            deadline = time.perf_counter() + subject.seconds / 2.0
            traces = [_trace(vec, subject.config.seed, deadline) for vec in (plain, shared)]
            num_compared = min(map(len, traces))
            seconds = _time_in_turns(plain, shared)
            lag = max(plain.staleness.largest, shared.staleness.largest)
        finally:
            shared.close()
    finally:
        plain.close()
    return ComparedRows(
        num_envs=num_envs,
        num_workers=num_workers,
        differs_at=first_difference(traces[0][:num_compared], traces[1][:num_compared]),
        num_compared=num_compared - 1,
        plain_seconds=seconds[0],
        worker_seconds=seconds[1],
        largest_lag=int(lag),
    )


def _trace(vec: Any, seed: int, deadline: float) -> list[str]:
    """Return a digest of all rows per vector step."""
    seen, _ = vec.reset(seed=seed)
    found = [digest(seen)]
    vec.action_space.seed(seed)
    for _ in range(NUM_COMPARED):
        seen, rewards, terminated, truncated, _ = vec.step(vec.action_space.sample())
        found.append(digest(seen, rewards, terminated, truncated))
        if time.perf_counter() > deadline and len(found) > 2:
            break
    return found


def _time_in_turns(*vecs: Any) -> list[float]:
    """Return the seconds of a vector step of each, measured in turns."""
    actions = [[vec.action_space.sample() for _ in range(16)] for vec in vecs]
    times: list[list[float]] = [[] for _ in vecs]
    for _ in range(TURNS + 1):
        for vec, some, result in zip(vecs, actions, times, strict=True):
            result.append(_slice(vec.step, some))
    return [statistics.median(result[1:]) for result in times]


def _slice(step: Callable[[Any], object], actions: list[Any]) -> float:
    began = now = time.perf_counter()
    count = 0
    while now - began < SLICE_S:
        step(actions[count % len(actions)])
        count += 1
        now = time.perf_counter()
    return (now - began) / count
