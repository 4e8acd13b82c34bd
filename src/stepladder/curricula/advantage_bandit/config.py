"""Settings of the bandit over advantages.

Read by `advantage_bandit`; made for few labels with many episodes each.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from stepladder.configs.checks import NotNegative, UnitInterval, Window, Within
from stepladder.curricula.config import SignalConfig


@dataclass(frozen=True, kw_only=True)
class AdvantageBanditConfig(SignalConfig):
    """Labels with the largest mean absolute advantage.

    Sets what an episode's surprise is, how long it is remembered, and how keenly it is followed.
    """

    kind: ClassVar[str] = "advantage-bandit"
    method_module: ClassVar[str] = "stepladder.curricula.advantage_bandit.advantage_bandit"

    exploration: UnitInterval = 0.1
    """Share of draws spread evenly over all tasks, in [0, 1]."""

    scored_by: Literal["advantage", "deviation"] = "advantage"
    """What an episode scores: its mean absolute `advantage`, from a trainer, and until the first
    one comes the deviation; or always the `deviation` of its success or return from the task's
    running mean."""

    window_episodes: Window = 300
    """Latest episodes of a label whose scores are averaged."""

    temperature: Annotated[float, Within(0.001, 1e6)] = 0.1
    """The lower, the more goes to the best label: shares are exp(value / temperature), values
    being 1 for the label with the largest mean, plus the bonus."""

    bonus: NotNegative = 1.0
    """Factor on what a label gets for being little tried: the root of 2 ln(scores of all) over
    (its own scores). 0 leaves the softmax alone."""

    @property
    def trainer_score(self) -> str:
        """The score of an episode that a trainer gives; empty if deviations are the scores."""
        return "value_loss" if self.scored_by == "advantage" else ""

    @property
    def needs_trainer(self) -> bool:
        """Never: deviations take the place of advantages until there are any."""
        return False
