"""The verdict on a simulation, in one sentence: what was mastered, and what plays were wasted on.

Last step of `simulate`; each kind of learner judges itself and words it with `with_wastes`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.errors import counted
from stepladder.simulator.dynamics import learning_order
from stepladder.simulator.learner_state import NOISE

if TYPE_CHECKING:
    from stepladder.simulator.base import Scenario, Simulator, Spent
    from stepladder.simulator.learner import TaskDependencySimulator

NOR_ORACLE = "in so many, the oracle, which sees the hidden skills, does not get there either"

WORTH_SAYING = 0.2
"""Share of the samples from which a kind of waste is named."""


@dataclass(frozen=True)
class Verdict:
    """How a simulation ended."""

    done_at: int | None
    """Samples until everything learnable was mastered at once; None if it never was."""

    num_mastered: int
    num_learnable: int
    stalled_at: int | None
    """First task in the order of learning that is not mastered; None if all are."""

    share_mastered: float
    """Share of samples on tasks already mastered, until all were."""

    share_locked: float
    """Share of samples on tasks that were out of reach."""

    share_hopeless: float
    """Share of samples on tasks from which nothing can be learned."""

    text: str
    """The verdict in words."""

    def __str__(self) -> str:
        return self.text


def judge(simulator: "Simulator", place: "Scenario | None" = None, num_envs: int = 1) -> Verdict:
    """Return the verdict on a learner.

    Args:
        simulator: The learner.
        place: Its scenario. If given, the oracle is asked whether the samples could suffice.
        num_envs: Envs that played at the same time.
    """
    if place is None or simulator.done_at is not None:
        return simulator.judge()
    oracle = place.oracle(simulator.seed, num_envs, simulator.num_samples)
    return simulator.judge(could_end=oracle.finished)


def judge_graph(simulator: "TaskDependencySimulator", could_end: bool = True) -> Verdict:
    """Return the verdict on the learner of a graph of tasks; see `Simulator.judge`."""
    noisy = bool((simulator.state.nodes["kind"] == NOISE).any())
    hopeless = "impossible or noisy tasks" if noisy else "impossible tasks"
    targets = ("tasks already mastered", "tasks still locked", hopeless)
    shares: dict[str, float] = dict(zip(targets, simulator.shares(), strict=True))
    skills, counts = simulator.P, simulator.state.nodes["counts"]
    tasks = "learnable tasks of the target" if simulator.target else "learnable tasks"
    order = learning_order(simulator.graph, simulator.dynamics)
    unmastered = (n for n in order if counts[n] and skills[n] < simulator.dynamics.mastery)
    stalled = next(unmastered, None)
    if stalled is not None and simulator.done_at is None:
        text = (
            f"{simulator.num_mastered} of {counted(simulator.num_learnable, 'task')}"
            f"{' of the target' if simulator.target else ''} mastered in "
            f"{counted(simulator.num_plays, 'play')}"
        )
        if could_end:
            text = f"stalls at task {stalled} (skill {skills[stalled]:.2f}): {text}"
        else:
            text += f", next is task {stalled} (skill {skills[stalled]:.2f}); {NOR_ORACLE}"
    elif simulator.num_learnable:
        plays = counted(simulator.done_at or 0, "play")
        text = f"mastered all {simulator.num_learnable} {tasks} in {plays}"
        if simulator.num_learnable == 1:
            text = f"mastered the one {tasks.replace('tasks', 'task')} in {plays}"
        if stalled is not None:
            text += f", but has forgotten task {stalled} since"
    else:
        text = "nothing here can be learned"
    return Verdict(
        simulator.done_at,
        simulator.num_mastered,
        simulator.num_learnable,
        stalled,
        *shares.values(),
        text=with_wastes(text, shares),
    )


def with_wastes(text: str, shares: Mapping[str, float]) -> str:
    """Add to a text what too many samples went to, the largest share first."""
    wastes = [
        f"{share:.0%} of samples went to {what}"
        for what, share in sorted(shares.items(), key=lambda entry: -entry[1])
        if share >= WORTH_SAYING
    ]
    return "; ".join([text, *wastes])


def share_metrics(simulator: "Simulator", before: "Spent") -> dict[str, float]:
    """Return the shares of wasted samples since `before` was spent, by metric name."""
    now = simulator.spent()
    since = type(now)(*(new - old for new, old in zip(now, before, strict=True)))
    names = ("mastered", "locked", "impossible")
    return {
        f"env_task_dependency/share_{name}": share
        for name, share in zip(names, since.shares(), strict=True)
    }
