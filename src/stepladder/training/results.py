"""Progress and results of a training.

Made by `session`, shown by the command line, returned by `train`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepladder.errors import RunError
from stepladder.runs import RunReader
from stepladder.training.evaluation import Evaluation
from stepladder.training.loop import Clockwork
from stepladder.training.policies import TrainedPolicy


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How a training stands at the end of an epoch."""

    num_steps: int
    total_steps: int
    evaluation_steps: int
    """Env steps of evaluations so far; they do not count in the budget."""

    num_episodes: int
    num_updates: int
    steps_per_second: float
    """In this epoch, evaluations left out."""

    seconds: Clockwork
    """Of this epoch: where they went."""

    elapsed_s: float
    """Of the whole training, earlier sessions included."""

    left_s: float
    """Until its end, at the speed of this epoch."""

    stage: str | None
    phase: str | None
    success: float | None
    """Mean over the episodes of this epoch; None if none ended or none says."""

    mean_return: float | None
    evaluation: Evaluation | None
    """If there was one at the end of this epoch."""

    baseline: Evaluation | None = None
    """Random play of the same games, once it is measured."""

    news: tuple[str, ...]
    """What the curriculum has decided in this epoch, and other events, in words."""

    logged: dict[str, float]
    """Everything that was logged."""


OnEpoch = Callable[[Progress], bool | None]
"""Called after every epoch; if it returns True, training is saved and ends."""


@dataclass
class TrainingResult:
    """What a training left behind."""

    run_folder: Path | None
    run_name: str
    final_reward: float
    """Return of the episode that ended last; NaN if none did."""

    mean_reward: float
    """Mean over the last 100 episodes; NaN if none ended."""

    total_episodes: int
    total_steps: int
    """Env steps of training."""

    total_gradient_steps: int
    evaluation_steps: int
    """Env steps of evaluations, which do not count in the budget."""

    evaluation_results: list[dict[str, Any]]
    """Every evaluation with the step at which it was made, oldest first; in the policy's own way,
    the last one with its other way and random play under "beside"."""

    seconds: float
    was_stopped: bool
    """Whether it was ended early."""

    best_step: int | None
    """Env steps of training at the best evaluation so far, whose checkpoint is kept; None if there
    was no evaluation."""

    policy: TrainedPolicy = field(repr=False)
    """What was learnt, as it is at the end."""

    had_ended: bool = False
    """Whether nothing was left to do when it was resumed; another end (``total_steps``) continues
    it."""

    refused_checkpoints: list[str] = field(default_factory=list[str])
    """Checkpoints that could not be used when it was resumed, and why."""

    @property
    def run(self) -> RunReader:
        """The run, to read what was logged.

        Raises:
            RunError: No run was kept.
        """
        if self.run_folder is None:
            raise RunError("no run was kept. Give run_folder to train.")
        return RunReader(self.run_folder)

    def to_json(self) -> dict[str, Any]:
        """Return all of it but the policy, as plain JSON."""
        folder = None if self.run_folder is None else str(self.run_folder)
        plain = {name: value for name, value in vars(self).items() if name != "policy"}
        return {**plain, "run_folder": folder}
