"""What `agents` compares: envs, algorithms, and the settings of both sides.

The peer's settings are those of the RL Baselines3 Zoo where the list below says nothing else; ours
are translated from them, so that no number is written twice.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stepladder.agents.config import AgentConfig
from stepladder.agents.dddqn.config import DDDQNConfig
from stepladder.agents.ppo.config import PPOConfig
from stepladder.agents.sac.config import SACConfig


@dataclass(frozen=True, kw_only=True)
class Contest:
    """One env, one algorithm, and the settings of both sides."""

    env: str
    algorithm: str
    """By its name in Stable-Baselines3."""

    num_steps: int
    """With DQN such that the end lies between two copies of the target, not right after one."""

    quick_steps: int
    random_return: float
    """Mean return of random play."""

    widths: tuple[int, ...]
    """Of the hidden layers."""

    settings: Mapping[str, Any]
    """Of the peer."""

    num_envs: int = 1
    is_annealed: bool = False
    """Whether the learning rate falls to 0."""

    @property
    def name(self) -> str:
        """What it is called on the command line."""
        return f"{self.env} {self.algorithm}"


CARTPOLE = {"env": "CartPole-v1", "random_return": 22.0}
PENDULUM = {"env": "Pendulum-v1", "random_return": -1_220.0}
LUNAR = {"env": "LunarLander-v3", "random_return": -175.0}

# The longest first, so that none is begun when the others are about to end.
CONTESTS = [
    Contest(
        **LUNAR, algorithm="DQN", num_steps=60_000, quick_steps=400, widths=(256, 256),
        settings={
            "learning_rate": 6.3e-4, "gamma": 0.99, "batch_size": 128, "buffer_size": 50_000,
            "learning_starts": 0, "train_freq": 4, "gradient_steps": 4,
            "target_update_interval": 250, "exploration_fraction": 0.12,
            "exploration_final_eps": 0.1,
        },
    ),
    Contest(
        **PENDULUM, algorithm="SAC", num_steps=8_000, quick_steps=400, widths=(256, 256),
        settings={
            "learning_rate": 1e-3, "gamma": 0.99, "batch_size": 256, "buffer_size": 100_000,
            "learning_starts": 256, "train_freq": 1, "gradient_steps": 1, "tau": 0.005,
        },
    ),
    Contest(
        **LUNAR, algorithm="PPO", num_steps=327_680, quick_steps=16_384, widths=(64, 64),
        num_envs=16,
        settings={
            "learning_rate": 3e-4, "gamma": 0.999, "gae_lambda": 0.98, "n_steps": 1_024,
            "batch_size": 64, "n_epochs": 4, "ent_coef": 0.01, "clip_range": 0.2,
        },
    ),
    Contest(
        **PENDULUM, algorithm="PPO", num_steps=102_400, quick_steps=4_096, widths=(64, 64),
        num_envs=4,
        settings={
            "learning_rate": 1e-3, "gamma": 0.9, "gae_lambda": 0.95, "n_steps": 1_024,
            "batch_size": 64, "n_epochs": 10, "ent_coef": 0.0, "clip_range": 0.2,
        },
    ),
    Contest(
        **CARTPOLE, algorithm="DQN", num_steps=50_176, quick_steps=2_048, widths=(256, 256),
        settings={
            "learning_rate": 2.3e-3, "gamma": 0.99, "batch_size": 64, "buffer_size": 100_000,
            "learning_starts": 1_023, "train_freq": 256, "gradient_steps": 128,
            "target_update_interval": 10, "exploration_fraction": 0.16,
            "exploration_final_eps": 0.04,
        },
    ),
    Contest(
        **CARTPOLE, algorithm="PPO", num_steps=102_400, quick_steps=5_120, widths=(64, 64),
        num_envs=8, is_annealed=True,
        settings={
            "learning_rate": 1e-3, "gamma": 0.98, "gae_lambda": 0.8, "n_steps": 32,
            "batch_size": 256, "n_epochs": 20, "ent_coef": 0.0, "clip_range": 0.2,
        },
    ),
]  # fmt: skip


# From the peer's settings to ours.


def dddqn_config(contest: Contest, num_steps: int) -> DDDQNConfig:
    """Translate the settings of DQN."""
    given = contest.settings
    ratio = given["gradient_steps"] / given["train_freq"]
    # The peer's target is not copied between the updates of a burst, however short the interval.
    # Ours learns after every step, so its first burst counts as part of warming up: then targets
    # are copied at the same updates, and a final policy is as far from the last copy on both sides.
    between = max(given["gradient_steps"], round(given["target_update_interval"] * ratio))
    return DDDQNConfig(
        learning_rate=given["learning_rate"],
        gamma=given["gamma"],
        hidden_sizes=contest.widths,
        batch_size=given["batch_size"],
        updates_per_step=ratio,
        buffer_size=given["buffer_size"],
        warmup_steps=-(-given["learning_starts"] // given["train_freq"]) * given["train_freq"],
        target_every_updates=between,
        epsilon_final=given["exploration_final_eps"],
        epsilon_steps=round(given["exploration_fraction"] * num_steps),
    )


def sac_config(contest: Contest, num_steps: int) -> SACConfig:
    """Translate the settings of SAC."""
    given = contest.settings
    return SACConfig(
        learning_rate=given["learning_rate"],
        gamma=given["gamma"],
        hidden_sizes=contest.widths,
        batch_size=given["batch_size"],
        updates_per_step=given["gradient_steps"] / given["train_freq"],
        buffer_size=given["buffer_size"],
        warmup_steps=given["learning_starts"],
        tau=given["tau"],
    )


def ppo_config(contest: Contest, num_steps: int) -> PPOConfig:
    """Translate the settings of PPO."""
    given = contest.settings
    return PPOConfig(
        learning_rate=given["learning_rate"],
        gamma=given["gamma"],
        hidden_sizes=contest.widths,
        rollout_steps=given["n_steps"] * contest.num_envs,
        minibatch_size=given["batch_size"],
        num_epochs=given["n_epochs"],
        gae_lambda=given["gae_lambda"],
        clip=given["clip_range"],
        entropy_coef=given["ent_coef"],
        anneal_learning_rate=contest.is_annealed,
        anneal_steps=num_steps,
    )


OURS: dict[str, Callable[[Contest, int], AgentConfig]] = {
    "DQN": dddqn_config,
    "SAC": sac_config,
    "PPO": ppo_config,
}
