"""A pretend learner that all tests of `curricula` play with, and ways to look inside a curriculum.

It has no state: whether an episode succeeds depends only on the task and on the number of the
episode, so two curricula with the same future get the same results, and a test can stop and go on
anywhere.
"""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from stepladder.curricula import Curriculum, Draw, Record, Snapshot


@cache
def chance(task_id: int, episode: int) -> float:
    """Return a number in [0, 1) that depends on nothing but the arguments."""
    return float(np.random.default_rng((task_id, episode)).random())


def success_of(task_id: int, episode: int) -> bool:
    """Say whether the learner succeeds: more often later, and sooner on tasks with a low id."""
    skill = min(0.95, 0.15 + episode / (60.0 + 15.0 * (task_id % 12)))
    return chance(task_id, episode) < skill


def play(draw: Draw, **changes: Any) -> Record:
    """Play a draw as the learner would."""
    success = float(success_of(draw.task_id, draw.episode_index))
    record = Record.of(
        draw,
        success=success,
        episode_return=2.0 * success - 0.5,
        length=1 + draw.episode_index % 7,
        truncated=not success and draw.episode_index % 3 == 0,
    )
    return record._replace(**changes)


@dataclass
class Life:
    """What was seen of a curriculum while it was played with."""

    draws: list[Draw] = field(default_factory=list)
    probs: list[list[float]] = field(default_factory=list)


def live(curriculum: Curriculum, num_episodes: int, batch: int = 1) -> Life:
    """Draw, play and observe so many episodes; keep every draw and the probs after every batch."""
    life = Life()
    for _ in range(num_episodes // batch):
        draws = curriculum.draw(batch)
        curriculum.observe([play(draw) for draw in draws])
        life.draws += draws
        life.probs.append(curriculum.probs().tolist())
    return life


def record_for(curriculum: Curriculum, slot: int, success: float, **changes: Any) -> Record:
    """Make the record of an episode of whatever is in a slot, drawn just now by the host."""
    record = Record(
        slot=slot,
        generation=int(curriculum.pool.generations[slot]),
        plan_version=curriculum.plan.version,
        tick=curriculum.plan.tick,
        env_index=-1,
        episode_index=0,
        episode_return=0.0,
        length=1,
        success=float(success),
        outcome=0,
    )
    return record._replace(**changes)


RESULTS = {"w": 1.0, "h": 0.5, "f": 0.0}


def play_results(curriculum: Curriculum, slot: int, results: str) -> None:
    """Observe a batch of episodes of a slot: w is a win, h half a success, f a failure."""
    curriculum.observe([record_for(curriculum, slot, RESULTS[result]) for result in results])


def differences(left: Snapshot, right: Snapshot) -> list[str]:
    """Name everything in which two snapshots differ, to the last bit."""
    found = [f"state {name}" for name in _state_differences(left.state, right.state, "")]
    for name in sorted(left.arrays.keys() | right.arrays.keys()):
        one, other = left.arrays.get(name), right.arrays.get(name)
        if one is None or other is None:
            found.append(f"array {name} is in one only")
        elif (one.dtype, one.shape, one.tobytes()) != (other.dtype, other.shape, other.tobytes()):
            found.append(f"array {name}")
    return found


def _state_differences(left: Any, right: Any, path: str) -> list[str]:
    if isinstance(left, dict) and isinstance(right, dict):
        return [
            name
            for key in sorted(left.keys() | right.keys())
            for name in _state_differences(left.get(key), right.get(key), f"{path}/{key}")
        ]
    return [] if left == right else [f"{path}: {left!r} != {right!r}"]
