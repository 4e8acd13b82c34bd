"""What a run has left, read once and read-only; nothing that it names is imported.

Evidence of the checks of a run.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stepladder.errors import ConfigError
from stepladder.runs import RunReader
from stepladder.runs.reader import Event
from stepladder.training.config import TrainingConfig

PER_LABEL = "env_curriculum_stats/per_label_"
HELD_OUT = "evaluation/success"

StepsAndValues = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]
"""Of a metric."""


@dataclass(frozen=True, kw_only=True)
class LabelCurve:
    """Success of one label over the run."""

    label: str
    steps: np.ndarray
    success: np.ndarray
    counts: np.ndarray
    """Episodes behind each value, as far as they count for its noise."""


@dataclass(kw_only=True)
class RunEvidence:
    """All that is asked of a run."""

    name: str
    kind: str
    status: str
    config: Mapping[str, Any]
    training: TrainingConfig | None
    """The settings, of a training by `train` that this version can read."""

    metrics: dict[str, StepsAndValues]
    events: list[Event]
    last_logged_s: float
    """Seconds since something was logged last; infinite if nothing was."""

    interval_s: float
    """The usual time between two logs."""

    tasks: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The last table of tasks."""

    @property
    def num_steps(self) -> int:
        """Env steps so far."""
        return max((int(steps[-1]) for steps, _ in self.metrics.values() if len(steps)), default=0)

    @property
    def total_steps(self) -> int | None:
        """Env steps that it shall have; None if that is not known."""
        total = self.config.get("total_steps")
        return total if isinstance(total, int) and total > 0 else None

    def series(self, name: str) -> StepsAndValues:
        """Return a metric; empty if the run has none of this name."""
        return self.metrics.get(name, (np.zeros(0, np.int64), np.zeros(0)))

    def last(self, name: str) -> float:
        """Return the latest value of a metric; NaN if there is none."""
        values = self.series(name)[1]
        values = values[~np.isnan(values)]
        return float(values[-1]) if len(values) else math.nan

    @property
    def num_envs(self) -> int:
        """Envs that were stepped together; 0 if that is not known."""
        count = self.config.get("num_envs")
        return count if isinstance(count, int) and count > 0 else 0

    def practice(self, *, settled: bool = False) -> list[LabelCurve]:
        """Return success by label as it was practised.

        Args:
            settled: Whether to leave out the first two episodes per env of each label: of many
                parallel envs the shortest episodes end first, which are no fair sample.
        """
        left_out = 2.0 * self.num_envs if settled else 0.0
        curves: list[LabelCurve] = []
        for name, (steps, success) in self.metrics.items():
            label = name.removeprefix(f"{PER_LABEL}success/")
            if label == name:
                continue
            at, numbers = self.series(f"{PER_LABEL}samples/{label}")
            played = dict(zip(at.tolist(), numbers.tolist(), strict=True))
            counts = np.array([played.get(step, 0.0) for step in steps.tolist()])
            known = ~np.isnan(success) & (counts > 0) & (np.cumsum(counts) > left_out)
            curves.append(
                LabelCurve(
                    label=label, steps=steps[known], success=success[known], counts=counts[known]
                )
            )
        return curves

    def held_out(self) -> list[LabelCurve]:
        """Return success by label as it was evaluated; the total first, as the label ""."""
        games = self.last("evaluation/num_games")
        names = [name for name in self.metrics if name.startswith(f"{HELD_OUT}/")]
        each = games / max(1, len(names)) if games > 0 else 1.0
        curves: list[LabelCurve] = []
        for name in [HELD_OUT, *names]:
            steps, success = self.series(name)
            known = ~np.isnan(success)
            count = games if name == HELD_OUT and games > 0 else each
            curves.append(
                LabelCurve(
                    label=name.removeprefix(HELD_OUT).removeprefix("/"),
                    steps=steps[known],
                    success=success[known],
                    counts=np.full(int(known.sum()), count),
                )
            )
        return [curve for curve in curves if len(curve.steps)]


def read(folder: str | Path) -> RunEvidence:
    """Read a run.

    Raises:
        RunError: There is none, or it is damaged.
    """
    reader = RunReader(folder)
    training: TrainingConfig | None = None
    if reader.kind == "training":
        try:
            training = TrainingConfig.from_json(reader.config, str(reader.folder))
        except ConfigError:
            # Of another version; the checks that need it are left out.
            training = None
    times = reader.times()[1]
    return RunEvidence(
        name=str(folder),
        kind=reader.kind,
        status=reader.status,
        config=reader.config,
        training=training,
        metrics={name: reader.metric(name) for name in reader.metric_names()},
        events=reader.events(),
        last_logged_s=time.time() - float(times[-1]) if len(times) else math.inf,
        interval_s=float(np.median(np.diff(times))) if len(times) > 2 else math.nan,
        tasks=reader.tasks(),
    )
