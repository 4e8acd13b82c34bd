"""Policies that see the hidden skills: what an oracle is made of, and what it has reached.

Below `base`, whose scenarios name their policies. A policy can be played in parts, so that its
course can be drawn and a long one can be given up.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from stepladder.simulator.base import Simulator

PlayUntil = Callable[[int], None]
"""Practises until the learner has had so many samples, or until everything is learned."""

NUM_PARTS = 50
"""Parts in which a policy is played, between which it can be given up."""


class OraclePolicy(NamedTuple):
    """One policy."""

    name: str
    begin: Callable[[], PlayUntil]
    """Returns what practises, in as many calls as one likes, with a learner that was just reset."""


@dataclass(frozen=True)
class OracleRun:
    """The result of one policy that sees the hidden skills."""

    policy: str
    samples: int
    """Samples until everything was learned, or the budget."""

    finished: bool
    area: float
    """Sum of the progress over all samples."""

    progress: float
    """Progress at the end."""

    shares: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Shares of samples on tasks already mastered, still locked, and hopeless."""

    @classmethod
    def of(cls, policy: str, simulator: "Simulator", budget: int) -> "OracleRun":
        """Return the result of the policy that a simulator has just been played with."""
        done = simulator.done_at
        return cls(
            policy,
            budget if done is None else done,
            done is not None,
            simulator.progress_area,
            simulator.progress,
            simulator.shares(),
        )


def policy_runs(
    simulator: "Simulator",
    policies: Sequence[OraclePolicy],
    budget: int,
    pause: Callable[[], None] | None = None,
) -> list[OracleRun]:
    """Run every policy once on a simulator, which is reset before each and afterwards.

    Args:
        simulator: The learner.
        policies: What is tried.
        budget: Most samples of each.
        pause: Called between parts; what it raises ends all of it.
    """
    runs: list[OracleRun] = []
    for policy in policies:
        # A policy that is behind the best one so far is not played to its end.
        limit = min(budget, 1 + min((run.samples for run in runs), default=budget))
        simulator.reset()
        play = policy.begin()
        for part in range(1, NUM_PARTS + 1):
            play(limit * part // NUM_PARTS)
            if pause is not None:
                pause()
        runs.append(OracleRun.of(policy.name, simulator, budget))
    simulator.reset()
    return runs


def best_run(runs: list[OracleRun]) -> OracleRun:
    """Return the best policy: the fewest samples, finished before not, then the largest area."""
    return min(runs, key=lambda run: (run.samples, not run.finished, -run.area))
