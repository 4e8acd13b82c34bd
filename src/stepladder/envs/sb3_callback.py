"""Stable-Baselines3: a callback that gives a curriculum the advantages of every rollout.

For `LevelReplay(scored_by="value_loss")`, `AdvantageBandit` and other methods that learn from what
the agent's values say. `score_reporter` does the work; SB3 has the advantages in its rollout
buffer. Needs the extra ``sb3``; `sb3` offers it, and nothing else imports this module.
"""

from typing import Any, cast

try:
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"stepladder.envs.sb3_callback needs Stable-Baselines3 ({error}). Install the extra: "
        "pip install 'stepladder[sb3]'.",
        name=error.name,
    ) from error

from stepladder.envs.score_reporter import ScoreReporter, tracked_envs
from stepladder.errors import ConfigError

__all__ = ["AdvantageCallback"]


class AdvantageCallback(BaseCallback):
    """Reports the scores of all episodes after every rollout of PPO, A2C and the like.

    Pass it to ``model.learn(..., callback=AdvantageCallback())``; alone, or in a list with others.
    The model's vector env must have a curriculum that wants scores: what `as_vec_env` makes, or
    `CurriculumVecEnvWrapper`, also inside wrappers of SB3.
    """

    reporter: ScoreReporter
    """Counts what was scored, once the training has begun."""

    def _init_callback(self) -> None:
        model = cast("object", self.model)
        if not isinstance(model, OnPolicyAlgorithm):
            raise ConfigError(
                f"advantages need an agent with rollouts, such as PPO or A2C; got a "
                f"{type(model).__name__}. Leave the callback out, and let the curriculum have "
                "scored_by='deviation'."
            )
        tracker: Any = tracked_envs(self.training_env).tracker
        # A second call of `learn` goes on with the reporter of the first.
        self.reporter = tracker.reporter or ScoreReporter(self.training_env)

    def _on_rollout_start(self) -> None:
        # Steps of a rollout that was interrupted: SB3 has dropped them too.
        self.reporter.drop_steps()

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        self.reporter.report(cast("OnPolicyAlgorithm", self.model).rollout_buffer.advantages)
