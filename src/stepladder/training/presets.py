"""Trainings with a name, ready to start.

A preset is an instance of `TrainingConfig`; change a field with `dataclasses.replace`. Found by
`config.load_config` and listed by the command line.
"""

from typing import Any

from stepladder.agents.ppo.config import PPOConfig
from stepladder.agents.sac.config import SACConfig
from stepladder.curricula.phased.config import Phase, PhasedConfig
from stepladder.curricula.phased.settings import Mixed, Ramp
from stepladder.curricula.uniform import UniformConfig
from stepladder.errors import ConfigError, nearest, shown
from stepladder.tasks import Task
from stepladder.training.config import (
    EvaluationConfig,
    OpponentsConfig,
    TrainingConfig,
)

DEFAULT_PRESET = "ledge"
"""What is trained if nothing is named."""

HOCKEY, LEDGE = "stepladder/Hockey-v0", "stepladder/Ledge-v0"

TARGET_STAGES = ("medium", "complex")
"""What an agent on Ledge is meant to master in the end."""

LEDGE_STEPS = 5_000_000
LEDGE_AGENT = PPOConfig(
    learning_rate=1e-3, num_epochs=2, share_layers=True, activation="relu", entropy_coef=0.01
)
LEDGE_EVALUATION = EvaluationConfig(every_steps=500_000)

HOCKEY_AGENT = SACConfig(
    hidden_sizes=(256, 256, 256),
    gamma=0.98,
    normalise_observations=True,
    batch_size=1_024,
    updates_per_step=1 / 16,
    warmup_steps=20_000,
    num_step_returns=3,
    mirror=True,
)
"""Short horizon and returns over several steps: a goal is worth most soon, and found sooner. With
batches of 256 it takes several times as many steps."""

HOCKEY_TASK = Task("hockey", params={"mode": "NORMAL", "direction_weight": 1.0})
"""The whole game; a puck that flies towards the other's goal is worth a little."""

SHOWN_THE_WAY = Ramp(start=1.0, end=0.0, hold_episodes=500, ramp_episodes=500)
"""Catching the puck is worth something at first."""

HOCKEY_PHASES = (
    Phase(
        name="shooting",
        episodes=1_000,
        settings={"mode": "TRAIN_SHOOTING", "opponent": "none", "touch_weight": SHOWN_THE_WAY},
    ),
    Phase(
        name="defence",
        episodes=1_000,
        settings={"mode": "TRAIN_DEFENSE", "opponent": "weak", "touch_weight": SHOWN_THE_WAY},
    ),
    Phase(
        name="both opponents",
        episodes=10_000,
        settings={"opponent": Mixed(("weak", "strong"), (0.4, 0.6))},
    ),
)
"""As the published trainer has them: two drills, then the whole game."""

SELF_PLAY = Phase(
    name="self-play",
    settings={
        "opponent": Mixed(("weak", "strong", "caller:newest", "caller:pool"), (0.1, 0.3, 0.2, 0.4))
    },
)

HOCKEY_EVALUATION = EvaluationConfig(every_steps=500_000, num_games=200)

PRESETS: dict[str, TrainingConfig] = {
    "ledge": TrainingConfig(
        env=LEDGE, agent=LEDGE_AGENT, total_steps=LEDGE_STEPS, evaluation=LEDGE_EVALUATION
    ),
    "ledge-uniform": TrainingConfig(
        env=LEDGE,
        agent=LEDGE_AGENT,
        total_steps=LEDGE_STEPS,
        curriculum=UniformConfig(),
        evaluation=LEDGE_EVALUATION,
    ),
    "ledge-target": TrainingConfig(
        env=LEDGE,
        agent=LEDGE_AGENT,
        total_steps=LEDGE_STEPS,
        evaluation=LEDGE_EVALUATION,
        source={"stages": TARGET_STAGES},
        curriculum=UniformConfig(),
    ),
    "hockey-sac": TrainingConfig(
        env=HOCKEY,
        num_envs=256,
        total_steps=4_000_000,
        tasks=(HOCKEY_TASK,),
        curriculum=PhasedConfig(
            phases=(
                Phase(
                    name="both opponents",
                    settings={"opponent": Mixed(("weak", "strong"), (0.4, 0.6))},
                ),
            )
        ),
        agent=HOCKEY_AGENT,
        reward_scale=0.1,
        evaluation=HOCKEY_EVALUATION,
    ),
    "hockey-phases": TrainingConfig(
        env=HOCKEY,
        total_steps=3_000_000,
        tasks=(HOCKEY_TASK,),
        curriculum=PhasedConfig(phases=HOCKEY_PHASES),
        agent=HOCKEY_AGENT,
        reward_scale=0.1,
        clear_buffer=False,
        evaluation=HOCKEY_EVALUATION,
    ),
    "hockey-self-play": TrainingConfig(
        env=HOCKEY,
        env_kwargs={"players": "both"},
        total_steps=5_000_000,
        tasks=(HOCKEY_TASK,),
        curriculum=PhasedConfig(phases=(*HOCKEY_PHASES, SELF_PLAY)),
        agent=HOCKEY_AGENT,
        reward_scale=0.1,
        clear_buffer=False,
        evaluation=HOCKEY_EVALUATION,
        opponents=OpponentsConfig(snapshot_every_steps=250_000, pool_size=8),
    ),
    "cartpole": TrainingConfig(
        env="CartPole-v1",
        num_envs=8,
        total_steps=100_000,
        curriculum=UniformConfig(),
        agent=PPOConfig(
            learning_rate=1e-3, hidden_sizes=(64, 64), rollout_steps=1_024, minibatch_size=256
        ),
        evaluation=EvaluationConfig(every_steps=25_000, num_games=20),
        epoch_steps=2_048,
    ),
}
"""Every preset by its name."""


ANY_ENV: dict[str, Any] = {
    "num_envs": 8,
    "total_steps": 200_000,
    "agent": PPOConfig(hidden_sizes=(64, 64), rollout_steps=2_048, minibatch_size=256),
    "evaluation": EvaluationConfig(every_steps=50_000, num_games=20),
    "epoch_steps": 2_048,
}
"""Settings to begin with in an env of which nothing is known."""


def no_such_preset(name: str) -> ConfigError:
    """Return the error that says what a user may have meant."""
    return ConfigError(
        f"{shown(name)} is neither a preset nor a file; the presets are {', '.join(PRESETS)}."
        f"{nearest(name, PRESETS)}"
    )
