"""Stable-Baselines3: one callback for all that a curriculum and its run need of a training.

It writes what the curriculum does into SB3's log; gives it the advantages of every rollout, if it
wants them (`score_reporter`); and tells a run of all steps, losses and rollouts, if there is one
(`stepladder.run`). Needs the extra ``sb3``; `sb3` offers it, and nothing else imports this module.
"""

from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

try:
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"stepladder.envs.sb3_callback needs Stable-Baselines3 ({error}). Install the extra: "
        "pip install 'stepladder[sb3]'.",
        name=error.name,
    ) from error

from stepladder.curricula.base import Curriculum
from stepladder.envs.tracking.score_reporter import ScoreReporter, tracked_envs, wanted_scores
from stepladder.errors import ConfigError, shown

if TYPE_CHECKING:
    from stepladder.training.loop_run import LoopRun

__all__ = ["CurriculumCallback", "saved_model"]

MODEL = "model.zip"
"""The file of the model in the folder of a checkpoint."""

TRAIN, LOSS = "train/", "loss"
"""What the names of losses in SB3's log begin with, and what is in them."""

OWN_PREFIXES = ("curriculum/", "rollout/", "time/")
"""How the names in SB3's log begin that a run has itself."""


class CurriculumCallback(BaseCallback):
    """Connects a curriculum, and the run that is kept of it, with a training.

    Pass it to ``model.learn(..., callback=CurriculumCallback(run))``; alone, or in a list with
    others. The model's vector env must have a curriculum: what `as_vec_env` makes, or
    `CurriculumVecEnvWrapper`, also inside wrappers of SB3.

    - SB3's log gets the curriculum's figures, as ``curriculum/...``.
    - A curriculum that learns from advantages gets one score per episode after every rollout.
    - The run gets everything else: see `stepladder.run`. Its checkpoints hold the model, which
      `saved_model` finds again after a resume.

    Args:
        run: What `stepladder.run` has returned; None keeps no run.
        saves_model: Whether the checkpoints of the run hold the model.
        verbose: As in every callback of SB3.
    """

    scores: ScoreReporter | None = None
    """Counts what was scored, if the curriculum wants scores, once the training has begun."""

    def __init__(self, run: "LoopRun | None" = None, *, saves_model: bool = True, verbose: int = 0):
        super().__init__(verbose)
        if run is not None and not hasattr(run, "note"):
            raise ConfigError(
                f"run must be what stepladder.run returns; got {shown(run)}. Open one: "
                "with stepladder.run(folder, envs) as run: ..."
            )
        self.run = run
        self._saves_model = saves_model

    def _init_callback(self) -> None:
        tracked = tracked_envs(self.training_env, "a CurriculumCallback needs")
        self._curriculum: Curriculum = tracked.curriculum
        if self.run is not None and self.run.curriculum is not self._curriculum:
            raise ConfigError(
                "the run was opened for another vector env than that of the model. Give both the "
                "same."
            )
        wanted = wanted_scores(self._curriculum)
        model = cast("object", self.model)
        if wanted and not isinstance(model, OnPolicyAlgorithm):
            raise ConfigError(
                f"{type(self._curriculum).__name__} wants {wanted[0]!r} of every episode, which "
                "only agents with rollouts have, such as PPO or A2C; got a "
                f"{type(model).__name__}. Let the curriculum have scored_by='deviation'."
            )
        if wanted:
            # A second call of `learn` goes on with the reporter of the first.
            self.scores = tracked.tracker.reporter or ScoreReporter(self.training_env)
        if self.run is not None and self._saves_model:
            self.run.also_save(self._save_model)

    def _save_model(self, folder: Path) -> None:
        cast("BaseAlgorithm", self.model).save(folder / MODEL)

    def _on_rollout_start(self) -> None:
        if self.scores is not None:
            # Steps of a rollout that was interrupted: SB3 has dropped them too.
            self.scores.drop_steps()

    def _on_step(self) -> bool:
        if self.run is not None:
            self.run.note(self.locals["infos"], self.training_env.num_envs)
        return True

    def _on_rollout_end(self) -> None:
        if self.scores is not None:
            buffer = cast("OnPolicyAlgorithm", self.model).rollout_buffer
            self.scores.report(buffer.advantages)
        # Losses are those of the update before: the one after this rollout is still to come.
        if self.run is not None:
            self.run.report(*self._logged())
        self.logger.record("curriculum/episodes", self._curriculum.num_observed)
        for name, value in self._curriculum.state_metrics().items():
            self.logger.record(f"curriculum/{name}", value)

    def _on_training_end(self) -> None:
        if self.run is not None:
            self.run.report(*self._logged())

    def _logged(self) -> tuple[dict[str, float], dict[str, float]]:
        """Return what SB3 has logged since its last line: losses, and what others recorded."""
        losses: dict[str, float] = {}
        metrics: dict[str, float] = {}
        for name, value in self.logger.name_to_value.items():
            if not isinstance(value, int | float | np.number) or name.startswith(OWN_PREFIXES):
                continue
            if name.startswith(TRAIN) and LOSS in name:
                losses[name.removeprefix(TRAIN)] = float(value)
            else:
                metrics[name] = float(value)
        return losses, metrics


def saved_model(run: "LoopRun") -> Path | None:
    """Return the model that a resumed run goes on from; None if it begins.

    Load it with the class that it was made with: ``PPO.load(saved_model(run), env=envs)``.
    """
    path = None if run.saved is None else run.saved / MODEL
    return path if path is not None and path.is_file() else None
