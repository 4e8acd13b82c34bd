"""The verdict on a simulation, in one sentence: what was mastered, and what plays were wasted on.

Last step of `simulate`; reads the learner's skills and counts.
"""

from dataclasses import dataclass

import numpy as np

from stepladder.simulator.dynamics import learning_order
from stepladder.simulator.learner import TaskDependencySimulator
from stepladder.simulator.learner_state import NOISE

WORTH_SAYING = 0.2
"""Share of the plays from which a kind of waste is named."""

SPENT = ("num_plays", "on_mastered", "on_locked", "on_hopeless")
"""Counts of plays on the learner's clock."""


@dataclass(frozen=True)
class Verdict:
    """How a simulation ended."""

    done_at: int | None
    """Plays until everything learnable was mastered at once; None if it never was."""

    num_mastered: int
    num_learnable: int
    stalled_at: int | None
    """First task in the order of learning that is not mastered; None if all are."""

    share_mastered: float
    """Share of plays on tasks already mastered, until all were."""

    share_locked: float
    """Share of plays on tasks whose prerequisites were missing."""

    share_hopeless: float
    """Share of plays on tasks that cannot be learned."""

    text: str
    """The verdict in words."""

    def __str__(self) -> str:
        return self.text


def judge(simulator: TaskDependencySimulator) -> Verdict:
    """Return the verdict on a learner."""
    noisy = bool((simulator.state.nodes["kind"] == NOISE).any())
    hopeless = "impossible or noisy tasks" if noisy else "impossible tasks"
    targets = ("tasks already mastered", "tasks still locked", hopeless)
    shares = dict(zip(targets, simulator.shares(), strict=True))
    skills, learnable = simulator.P, simulator.state.nodes["is_learnable"]
    order = learning_order(simulator.graph, simulator.dynamics)
    unmastered = (n for n in order if learnable[n] and skills[n] < simulator.dynamics.mastery)
    stalled = next(unmastered, None)
    if stalled is not None and simulator.done_at is None:
        text = (
            f"stalls at task {stalled} (skill {skills[stalled]:.2f}): "
            f"{simulator.num_mastered} of {simulator.num_learnable} tasks mastered in "
            f"{simulator.num_plays} plays"
        )
    elif simulator.num_learnable:
        text = (
            f"mastered all {simulator.num_learnable} learnable tasks in {simulator.done_at} plays"
        )
        if stalled is not None:
            text += f", but has forgotten task {stalled} since"
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


def share_metrics(simulator: TaskDependencySimulator, before: np.ndarray) -> dict[str, float]:
    """Return the shares of wasted plays since the clock showed `before`, by metric name."""
    clock = simulator.clock
    plays, mastered, locked, hopeless = (int(clock[name]) - int(before[name]) for name in SPENT)
    shares = {"mastered": mastered, "locked": locked, "impossible": hopeless}
    return {
        f"env_task_dependency/share_{name}": count / max(1, plays) for name, count in shares.items()
    }
