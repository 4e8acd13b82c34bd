"""The peer of `training`: Stable-Baselines3's DQN, SAC and PPO on our game, through our adapter.

The settings are translated from ours, so that no number is written twice: same networks, batches,
memories and updates per env step. DQN is neither dueling nor double, which makes its update
cheaper than ours; the rest of each algorithm is the same.
"""

from itertools import cycle
from typing import Any

import numpy as np
import torch
from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.utils import obs_as_tensor
from training_contests import NUM_ACTIONS, fresh_envs

from stepladder.agents.config import AgentConfig
from stepladder.agents.dddqn.config import DDDQNConfig
from stepladder.agents.ppo.config import PPOConfig
from stepladder.agents.replay.config import ReplayConfig
from stepladder.agents.sac.config import SACConfig
from stepladder.envs.sb3 import as_vec_env
from stepladder.training.config import TrainingConfig


class Peer:
    """The same as `Ours`, done by Stable-Baselines3."""

    def __init__(self, config: TrainingConfig):
        self._agent, self.num_envs = config.agent, config.num_envs
        self._model = make_model(config)
        if isinstance(self._agent, ReplayConfig):
            self.train(self._agent.warmup_steps)
        # Envs beside those of the training, which go on where they are.
        self._envs = as_vec_env(fresh_envs(config))
        self._seen: Any = self._envs.reset()
        space = self._envs.action_space
        space.seed(0)
        self._actions = cycle(
            [np.stack([space.sample() for _ in range(self.num_envs)]) for _ in range(NUM_ACTIONS)]
        )

    def step(self) -> None:
        """Step the envs with fixed actions."""
        self._envs.step(next(self._actions))

    def act(self) -> None:
        """Choose actions, as in training, and step the envs."""
        self._seen = self._envs.step(self._chosen())[0]

    def _chosen(self) -> Any:
        if not isinstance(self._agent, PPOConfig):
            return self._model.predict(self._seen, deterministic=False)[0]
        with torch.no_grad():
            actions = self._model.policy(obs_as_tensor(self._seen, self._model.device))[0]
        space: Any = self._envs.action_space
        return actions.numpy().clip(space.low, space.high)

    def train(self, num_steps: int) -> None:
        """Train for so many env steps."""
        self._model.learn(num_steps, reset_num_timesteps=False, log_interval=None)

    def counts(self) -> tuple[int, int]:
        """Return env steps and updates so far."""
        steps, updates = self._model.num_timesteps, self._model._n_updates
        if isinstance(self._agent, PPOConfig):
            # It counts epochs.
            updates *= self._agent.rollout_steps // self._agent.minibatch_size
        return steps, updates

    def close(self) -> None:
        """Close all envs."""
        self._model.get_env().close()
        self._envs.close()


def make_model(config: TrainingConfig) -> Any:
    """Make the peer's algorithm for a training of ours."""
    agent = config.agent
    algorithm, settings = translated(agent, config.num_envs)
    return algorithm(
        "MlpPolicy",
        as_vec_env(fresh_envs(config)),
        learning_rate=agent.learning_rate,
        gamma=agent.gamma,
        policy_kwargs={"net_arch": list(agent.hidden_sizes)},
        seed=config.seed,
        device="cpu",
        **settings,
    )


def translated(agent: AgentConfig, num_envs: int) -> tuple[type[Any], dict[str, Any]]:
    """Return the peer's algorithm and the settings that only it has."""
    if isinstance(agent, SACConfig):
        return SAC, {"tau": agent.tau, **replay_settings(agent, num_envs)}
    if isinstance(agent, DDDQNConfig):
        return DQN, {
            "target_update_interval": round(agent.target_every_updates / agent.updates_per_step),
            "exploration_initial_eps": agent.epsilon_start,
            "exploration_final_eps": agent.epsilon_final,
            "max_grad_norm": agent.max_grad_norm,
            **replay_settings(agent, num_envs),
        }
    assert isinstance(agent, PPOConfig)
    return PPO, {
        "n_steps": agent.rollout_steps // num_envs,
        "batch_size": agent.minibatch_size,
        "n_epochs": agent.num_epochs,
        "gae_lambda": agent.gae_lambda,
        "clip_range": agent.clip,
        "ent_coef": agent.entropy_coef,
        "vf_coef": agent.value_coef,
        "max_grad_norm": agent.max_grad_norm,
    }


def replay_settings(agent: ReplayConfig, num_envs: int) -> dict[str, Any]:
    """Return what holds the updates per env step, whatever the number of envs.

    The peer counts steps of all envs together between two rounds of updates, and updates per round.
    """
    vector_steps = max(1, round(1 / (agent.updates_per_step * num_envs)))
    return {
        "train_freq": vector_steps,
        "gradient_steps": round(agent.updates_per_step * num_envs * vector_steps),
        "batch_size": agent.batch_size,
        "buffer_size": agent.buffer_size,
        "learning_starts": agent.warmup_steps,
    }
