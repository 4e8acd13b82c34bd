"""Teach Stable-Baselines3's PPO to park a cart, from closer to farther, with every core busy.

A cart on a rail starts some way off its place and must come to rest there; it is only rewarded when
it does. From far off chance does that once in twenty-five tries, so the tasks are in stages: PPO
learns to brake next to the place first, and is moved farther off when it succeeds.

`make_vec` steps the envs in this process and in workers at the same time, and the curriculum gives
every one of them its tasks. `as_vec_env` makes an SB3 vector env of that; PPO, its `VecMonitor`, a
callback and `evaluate_policy` need to know nothing about it.

Run it with ``python examples/ppo_over_workers.py``; ``--steps 4000`` is a quick look. It needs the
extra ``sb3``.
"""

import argparse
import time
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecMonitor

from stepladder import Stage, Staged, Task, Uniform, make_vec
from stepladder.envs.sb3 import as_vec_env

NUM_ENVS = 8
STAGES = (
    Stage(name="at the place", threshold=0.8, min_episodes=100),
    Stage(name="in sight", threshold=0.8, min_episodes=150),
    Stage(name="far off", threshold=0.8, min_episodes=200),
)
DISTANCES = {"at the place": (1, 2), "in sight": (3, 4, 5), "far off": (6, 8, 10)}


class ParkTheCart(gym.Env[npt.NDArray[np.float32], np.int64]):
    """A cart that is pushed left, not at all, or right; the task says how far off it starts."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gym.spaces.Discrete(3)

    def set_task(self, task: Task) -> None:
        """Play this task from the next reset on."""
        self.distance = float(task.params["distance"])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Stand still, left or right of the place."""
        super().reset(seed=seed)
        self.offset = self.distance * float(self.np_random.choice((-1.0, 1.0)))
        self.offset += float(self.np_random.uniform(-0.4, 0.4))
        self.speed = 0.0
        self.steps_left = int(20 + 6 * self.distance)
        return self._observe(), {}

    def _observe(self) -> npt.NDArray[np.float32]:
        return np.array([self.offset / 2.0, self.speed * 5.0], dtype=np.float32)

    def step(
        self, action: np.int64
    ) -> tuple[npt.NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Push; the episode ends when the cart rests at its place, or when time is up."""
        self.speed += 0.1 * (int(action) - 1)
        self.offset += self.speed
        self.steps_left -= 1
        parked = abs(self.offset) < 0.4 and abs(self.speed) < 0.15
        late = self.steps_left <= 0 and not parked
        info = {"is_success": parked} if parked or late else {}
        return self._observe(), float(parked) - 0.02, parked, late, info


class Watch(BaseCallback):
    """Says when the curriculum moves, and ends training when nothing is left to learn."""

    def __init__(self, curriculum: Staged) -> None:
        super().__init__()
        self.curriculum = curriculum
        self.num_told = 0

    def _on_step(self) -> bool:
        for change in self.curriculum.history[self.num_told :]:
            print(f"  step {self.num_timesteps:>6}: {change}")
        self.num_told = len(self.curriculum.history)
        return bool(self.curriculum.stage_report(STAGES[-1].name).missing())


def make_tasks() -> list[Task]:
    """Make one task per distance, labelled with its stage."""
    return [
        Task(f"{distance} off", stage, {"distance": distance})
        for stage, distances in DISTANCES.items()
        for distance in distances
    ]


def examine(model: PPO) -> tuple[float, float]:
    """Return mean return and length on the last stage's tasks, in envs without the curriculum."""
    tasks = [task for task in make_tasks() if task.label == STAGES[-1].name]
    exam = VecMonitor(
        as_vec_env(make_vec(ParkTheCart, 4, curriculum=Uniform(tasks), num_workers=0))
    )
    returns, lengths = evaluate_policy(model, exam, 40, return_episode_rewards=True)
    exam.close()
    return float(np.mean(returns)), float(np.mean(lengths))


def main() -> None:
    """Train, then say what became of every episode."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=60_000, help="stop after so many steps")
    parser.add_argument("--num-workers", default="auto", help="processes beside this one, or auto")
    parser.add_argument("--seed", type=int, default=0, help="seed of tasks, envs and policy")
    arguments = parser.parse_args()
    chosen = arguments.num_workers
    num_workers = chosen if chosen == "auto" else int(chosen)

    curriculum = Staged(make_tasks(), stages=STAGES, early=None, seed=arguments.seed)
    vec = make_vec(ParkTheCart, NUM_ENVS, curriculum=curriculum, num_workers=num_workers)
    envs: Any = as_vec_env(vec)
    model = PPO(
        "MlpPolicy",
        VecMonitor(envs),
        n_steps=128,
        batch_size=256,
        n_epochs=6,
        learning_rate=1e-3,
        gamma=0.97,
        ent_coef=0.003,
        seed=arguments.seed,
        device="cpu",
    )
    print(f"{NUM_ENVS} envs, stepped by this process and {envs.num_workers} workers")
    began = time.monotonic()
    model.learn(arguments.steps, callback=Watch(curriculum))
    seconds = time.monotonic() - began
    print(f"{model.num_timesteps} steps in {seconds:.1f} s. {curriculum.explain()}")

    counts = envs.counts
    print(
        f"Started {counts.started} episodes: {counts.finished} finished and each observed once, "
        f"{counts.aborted} aborted, {counts.in_flight} being played. All envs agree on plan "
        f"version {envs.check_agreement()}."
    )
    envs.close()
    mean_return, mean_length = examine(model)
    print(f"Exam, far off only: return {mean_return:.2f}, {mean_length:.1f} steps an episode.")


if __name__ == "__main__":
    main()
