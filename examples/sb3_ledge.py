"""Teach Stable-Baselines3's PPO a platform game, stage by stage, in SB3's own vector env.

Every env is an ordinary Gymnasium env in a `CurriculumEnv`, all of them are in SB3's `DummyVecEnv`,
and `CurriculumVecEnvWrapper` around that gives each episode its level and moves all envs to the
next stage together. PPO and its policy need to know nothing about it. `stepladder.run` and one
callback keep a run: `stepladder explain runs/sb3-ledge` says why each stage stands where it does,
also while it trains, and ``--resume`` goes on with it after a kill. In the end the policy is
examined on held-out levels.

(`as_vec_env` over `make_vec` steps Ledge many times as fast; this is how it is done with envs and
vector envs that you already have.)

Run it with ``python examples/sb3_ledge.py --seconds 90``. It needs the extra ``sb3``.
"""

import argparse
import time
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import DummyVecEnv
from torch import nn

import stepladder
import stepladder.games  # gymnasium.make knows the games from then on
from stepladder import CurriculumEnv, Staged
from stepladder.envs.sb3 import CurriculumCallback, CurriculumVecEnvWrapper, saved_model
from stepladder.games import LedgeVectorEnv
from stepladder.games.ledge.source import LedgeLevels, held_out_source
from stepladder.games.ledge.tiles import MINE, PLATFORM, WALL
from stepladder.runs import ConsoleLogger

NUM_ENVS = 32
GAMMA = 0.99
STAGES = ("simplest", "simpler", "simple", "medium")
GAMES_PER_LEVEL = 4


class LedgeFeatures(BaseFeaturesExtractor):
    """Walls, platforms and mines around the runner as ones and zeros, beside the vector."""

    def __init__(self, observation_space: gym.spaces.Dict, features_dim: int = 128):
        super().__init__(observation_space, features_dim)
        num_tiles = int(np.prod(observation_space["tiles"].shape or ()))
        num_numbers = int(np.prod(observation_space["vector"].shape or ()))
        self.layer = nn.Sequential(nn.Linear(3 * num_tiles + num_numbers, features_dim), nn.ReLU())

    def forward(self, observations: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return the features, shape ``(num_envs, features_dim)``."""
        tiles = observations["tiles"].flatten(1)
        planes = [(tiles == code).float() for code in (WALL, PLATFORM, MINE)]
        return self.layer(torch.cat([observations["vector"], *planes], dim=1))


class StopAfter(BaseCallback):
    """Ends training when the time is up."""

    def __init__(self, seconds: float):
        super().__init__()
        self.ends = time.monotonic() + seconds

    def _on_step(self) -> bool:
        return time.monotonic() < self.ends


def make_env() -> gym.Env[Any, Any]:
    """Make one env, which asks the wrapper's curriculum what to play."""
    env = gym.make("stepladder/Ledge-v0", shaping=True, gamma=GAMMA)
    return CurriculumEnv(env, enable_local_tracking=False)


def make_model(envs: CurriculumVecEnvWrapper, seed: int) -> PPO:
    """Make SB3's PPO; nothing in here is about the curriculum."""
    return PPO(
        "MultiInputPolicy",
        envs,
        n_steps=128,
        batch_size=512,
        n_epochs=4,
        learning_rate=1e-3,
        gamma=GAMMA,
        ent_coef=0.01,
        policy_kwargs={
            "features_extractor_class": LedgeFeatures,
            "net_arch": [64],
            "activation_fn": nn.ReLU,
        },
        seed=seed,
        device="cpu",
    )


def examine(model: PPO) -> dict[str, float]:
    """Return the share of games on held-out levels of each stage that the policy wins."""
    source = held_out_source(STAGES)
    tasks = [source.get(index) for index in range(source.num_tasks)] * GAMES_PER_LEVEL
    envs = LedgeVectorEnv(len(tasks))
    envs.set_tasks(tasks)
    seen, _ = envs.reset(seed=0)
    is_playing, succeeded = np.ones(len(tasks), dtype=bool), np.zeros(len(tasks), dtype=bool)
    while is_playing.any():
        actions, _ = model.predict(seen)
        seen, _, terminated, truncated, infos = envs.step(actions)
        if "is_success" in infos:
            succeeded |= infos["is_success"] & is_playing
        is_playing &= ~(terminated | truncated)
    envs.close()
    labels = np.array([task.label for task in tasks])
    return {stage: float(succeeded[labels == stage].mean()) for stage in STAGES}


def main() -> None:
    """Train, then say what became of every episode."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=90.0, help="stop after so many seconds")
    parser.add_argument("--steps", type=int, default=1_000_000, help="or after so many env steps")
    parser.add_argument("--seed", type=int, default=0, help="seed of levels, envs and policy")
    parser.add_argument("--run", default="runs/sb3-ledge", help="folder of the run")
    parser.add_argument("--resume", action="store_true", help="go on with the run in that folder")
    arguments = parser.parse_args()

    # A network this small gains nothing from more, and loses much where the cores are busy.
    torch.set_num_threads(1)
    curriculum = Staged(
        LedgeLevels(STAGES, per_stage=200),
        stages=STAGES,
        threshold=0.75,
        min_episodes=200,
        window_episodes=100,
        seed=arguments.seed,
    )
    envs = CurriculumVecEnvWrapper(DummyVecEnv([make_env] * NUM_ENVS), curriculum)
    shown = ConsoleLogger(["overview/reward", "losses/value_loss", "overview/steps_per_second"])
    with stepladder.run(
        arguments.run,
        envs,
        overwrite=not arguments.resume,
        resume=arguments.resume,
        loggers=[shown],
    ) as run:
        path = saved_model(run)
        model = make_model(envs, arguments.seed) if path is None else PPO.load(path, env=envs)
        callbacks = [CurriculumCallback(run), StopAfter(arguments.seconds)]
        model.learn(arguments.steps, callback=callbacks)

    counts = envs.counts
    print(curriculum.explain())
    print(
        f"Started {counts.started} episodes: {counts.finished} finished and each observed once, "
        f"{counts.aborted} aborted, {counts.in_flight} being played. All envs agree on plan "
        f"version {envs.check_agreement()}."
    )
    envs.close()
    exam = ", ".join(f"{stage} {share:.2f}" for stage, share in examine(model).items())
    print(f"Held-out levels solved: {exam}")


if __name__ == "__main__":
    main()
