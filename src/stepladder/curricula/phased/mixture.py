"""Fixed shares of labels: so much shooting, so much defending.

Gets records from `sync` and learns nothing from them. A phase of `phased` without a curriculum
of its own is one of these. Inside a label, tasks are drawn equally often.

Use it when the shares are known. Do not use it when they should depend on results.
"""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np

from stepladder.configs.checks import NotNegative
from stepladder.curricula.config import CurriculumConfig, Variant
from stepladder.curricula.uniform import PlayCounter
from stepladder.errors import BuildError, ConfigError, shown
from stepladder.plans.plan import Grouping


def some_weight(weights: dict[str, float]) -> str | None:
    """Refuse weights of which none is above 0."""
    if not 0.0 < sum(weights.values()) < math.inf:
        return f"must have a weight above 0, and a finite sum of weights; got {shown(weights)}."
    return None


LabelWeights = Annotated[dict[str, NotNegative], some_weight]


@dataclass(frozen=True, kw_only=True)
class MixtureConfig(CurriculumConfig):
    """Fixed shares of labels."""

    kind: ClassVar[str] = "mixture"
    limits_shares: ClassVar[bool] = False
    takes_target: ClassVar[bool] = False

    weights: LabelWeights = field(default_factory=dict[str, float])
    """Weight per label; labels left out are never drawn. Need not sum to one."""

    @classmethod
    def variants(cls) -> dict[str, Variant]:
        """Return nothing: the weights have to be given."""
        return {}

    def about_labels(self, labels: Collection[str]) -> Iterator[tuple[str, str]]:
        """Yield labels with a weight that no task has."""
        for label in self.weights.keys() - set(labels):
            yield f"weights.{label}", f"no task has this label; the tasks have {', '.join(labels)}."


class Mixture(PlayCounter):
    """Draws labels in fixed shares."""

    Config = MixtureConfig
    groups_by_label = True
    config: MixtureConfig  # pyright: ignore[reportIncompatibleVariableOverride]

    def _set_up(self) -> None:
        super()._set_up()
        indices = np.unique(self.pool.label_indices)
        present = {self.pool.label_names[int(index)] for index in indices}
        for label in self.config.weights:
            if label not in present:
                raise ConfigError(
                    f"no task has label {label!r}; the labels are {sorted(present)}. "
                    "Correct the mixture or add tasks."
                )

    def _groupings(self) -> list[Grouping]:
        return [Grouping(self._labels, len(self.pool.label_names))]

    def _publish(self) -> None:
        super()._publish()
        assert self._plan is not None
        shares = self._plan.shares(self._table)
        total = sum(self.config.weights.values())
        for index, label in enumerate(self.pool.label_names):
            shares[index] = self.config.weights.get(label, 0.0) / total

    def _slot_lost(self, slot: int, reason: str) -> None:
        shares = self.plan.shares(self._table)
        if not np.any(shares[self._labels[self.plan.active]] > 0):
            drawn = [label for label, weight in self.config.weights.items() if weight > 0]
            raise BuildError(
                f"no task with label {' or '.join(map(repr, drawn))} is left: envs could not build "
                f"any of them (last: {reason}). Fix the tasks, or change the mixture."
            )

    def _reason(self, slot: int) -> tuple[str, dict[str, float]]:
        label = self.label_of(slot)
        share = self.config.weights.get(label, 0.0) / sum(self.config.weights.values())
        return f"label {label!r} has a share of {share:.3g}", {"episodes": float(self.plays[slot])}
