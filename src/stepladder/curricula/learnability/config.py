"""Settings of the learnability curriculum.

Read by `learnability`, which turns them into the numbers its kernels take.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from stepladder.configs.checks import Positive, UnitInterval, Within
from stepladder.configs.checks import PositiveInteger as AtLeastOne
from stepladder.curricula.config import PooledConfig, SignalConfig

Prior = Annotated[float, Within(0.0, 1e6, above=True, fix="With more, results would not count.")]


@dataclass(frozen=True, kw_only=True)
class LearnabilityConfig(PooledConfig, SignalConfig):
    """Tasks that succeed sometimes: p(1 - p).

    Sets how much a task is known before it is played, and how soon results are forgotten.
    """

    kind: ClassVar[str] = "learnability"
    method_module: ClassVar[str] = "stepladder.curricula.learnability.learnability"

    halflife_episodes: Positive = 20.0
    """Half-life of a result, in plays of the same task: how quickly a learner is followed."""

    prior_successes: Prior = 1.0
    """Successes that a task counts as having had before its first play."""

    prior_failures: Prior = 1.0
    """Failures that a task counts as having had before its first play."""

    pooled: bool = True
    """Whether tasks of the same label are judged together: what a task's label has shown is its
    prior, in place of `prior_successes` and `prior_failures`, and what no practice changes fades.
    Without, every task stands for itself, as published."""

    exponent: Annotated[float, Within(0.0, 100.0, fix="1 is the plain p(1 - p).")] = 1.0
    """Power of p(1 - p) that is the weight; above 1 is keener, 0 draws all tasks equally often."""

    label_exponent: Annotated[float, Within(0.0, 100.0)] = 2.0
    """The same for labels, if tasks are pooled: how keenly labels that can be learned now are
    preferred to others. Single tasks of a label are chosen by `exponent`, which should be less:
    an agent memorises what it plays again and again."""

    exploration: UnitInterval = 0.05
    """Share of draws that go to all tasks alike, in [0, 1]: how labels that have become learnable
    are found."""

    eviction_percentile: UnitInterval = 0.3
    """A task whose learnability is among this lowest share of all well-known tasks is replaced,
    if the source has more tasks than the pool, in [0, 1]. 0 never replaces."""

    eviction_plays: AtLeastOne = 30
    """Plays after which a task is well known."""

    @property
    def replaces_tasks(self) -> bool:
        """Whether tasks make room for others if the source has more tasks than the pool."""
        return True
