"""What a simulation showed, in a sentence a person can act on.

Last step of `simulate`: looks at the skills, the plays and the gates, and says where the learner
stands and what the plays were spent on.
"""

from dataclasses import dataclass

import numpy as np

from stepladder.simulator.dynamics import learning_order
from stepladder.simulator.learner import TaskDependencySimulator
from stepladder.simulator.world import NOISE

WORTH_SAYING = 0.2
"""Share of the plays from which a waste is named."""


SPENT = ("num_plays", "on_mastered", "on_locked", "on_hopeless")
"""What the clock counts of plays."""


@dataclass(frozen=True)
class Verdict:
    """How a simulation ended."""

    done_at: int | None
    """Plays until everything learnable was mastered at once; None if it never was."""

    num_mastered: int
    num_learnable: int
    stalled_at: int | None
    """First task, in the order of learning, that is not mastered; None if all are."""

    share_mastered: float
    """Share of plays spent on tasks already mastered, up to the moment when all were."""

    share_locked: float
    """Share of all plays spent on tasks whose prerequisites were not there."""

    share_hopeless: float
    """Share of all plays spent on tasks that cannot be learned."""

    text: str
    """All of it in words."""

    def __str__(self) -> str:
        return self.text


def judge(simulator: TaskDependencySimulator) -> Verdict:
    """Say where the learner stands, and what its plays were spent on."""
    noisy = bool((simulator.world.nodes["kind"] == NOISE).any())
    hopeless = "impossible or noisy tasks" if noisy else "impossible tasks"
    targets = ("tasks already mastered", "tasks still locked", hopeless)
    shares = dict(zip(targets, simulator.shares(), strict=True))
    stalled = _first_unmastered(simulator)
    if stalled is not None and simulator.done_at is None:
        text = (
            f"stalls at task {stalled} (skill {simulator.P[stalled]:.2f}): "
            f"{simulator.num_mastered} of {simulator.num_learnable} tasks mastered in "
            f"{simulator.num_plays} plays"
        )
    elif simulator.num_learnable:
        text = (
            f"mastered all {simulator.num_learnable} learnable tasks in {simulator.done_at} plays"
        )
        if stalled is not None:
            text += f", and then let task {stalled} slip"
    else:
        text = "nothing here can be learned"
    wastes = [
        f"{share:.0%} of samples went to {what}"
        for what, share in sorted(shares.items(), key=lambda entry: -entry[1])
        if share >= WORTH_SAYING
    ]
    return Verdict(
        simulator.done_at,
        simulator.num_mastered,
        simulator.num_learnable,
        stalled,
        *shares.values(),
        text="; ".join([text, *wastes]),
    )


def _first_unmastered(simulator: TaskDependencySimulator) -> int | None:
    skills, learnable = simulator.P, simulator.world.nodes["is_learnable"]
    for node in learning_order(simulator.graph, simulator.dynamics):
        if learnable[node] and skills[node] < simulator.dynamics.mastery:
            return int(node)
    return None


def share_metrics(simulator: TaskDependencySimulator, before: np.ndarray) -> dict[str, float]:
    """Return the shares of the plays since the clock stood at `before`, by metric name."""
    clock = simulator.clock
    spent = {name: int(clock[name]) - int(before[name]) for name in SPENT}
    plays = max(1, spent["num_plays"])
    return {
        "env_task_dependency/share_mastered": spent["on_mastered"] / plays,
        "env_task_dependency/share_locked": spent["on_locked"] / plays,
        "env_task_dependency/share_impossible": spent["on_hopeless"] / plays,
    }
