"""Practise one curriculum twice, on a simulated learner and on a real one, and overlay the runs.

The real learner is a Q-table that learns to walk to a goal. A task is a distance; how to walk the
last steps is learned on the near goals, so the tasks form a chain, as the simulated ones do. Both
runs report through the same code and have the same metric names: `report.html` shows them in the
same plots. Takes a few seconds:

    python examples/simulated_beside_real.py
"""

import argparse
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import SyncVectorEnv

import stepladder
from stepladder import CurriculumEnv, CurriculumVectorEnv, Task, simulate
from stepladder.curricula import FrontierConfig
from stepladder.dashboard import write_report

NUM_TASKS = 10
LEFT, RIGHT = 0, 1


class Corridor(gym.Env[np.int64, np.int64]):
    """A goal some steps to the right; one observes how far away it is."""

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Discrete(2 * NUM_TASKS + 1)
        self.action_space = gym.spaces.Discrete(2)
        self.start = 1

    def set_task(self, task: Task) -> None:
        """Take the distance from the task."""
        self.start = int(task.params["distance"])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Go back to the start."""
        super().reset(seed=seed)
        self.distance, self.left = self.start, 2 * self.start
        return np.int64(self.distance), {}

    def step(self, action: Any):
        """Walk one step; the floor is slippery."""
        slips = self.np_random.random() < 0.02
        goes_right = (action == RIGHT) != slips
        self.distance += -1 if goes_right else int(self.distance < 2 * NUM_TASKS)
        self.left -= 1
        there = self.distance == 0
        over = self.left == 0 and not there
        info = {"is_success": there} if there or over else {}
        return np.int64(self.distance), float(there), there, over, info


def make_env() -> gym.Env[Any, Any]:
    """Make one env; Gymnasium's wrapper puts the return of each episode into its info."""
    return CurriculumEnv(gym.wrappers.RecordEpisodeStatistics(Corridor()), seed_episodes=True)


class QTable:
    """Acts and learns for all envs at once."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.values = np.zeros((2 * NUM_TASKS + 1, 2))

    def act(self, states: Any) -> Any:
        """Choose the better action, now and then another; a coin where both are equal."""
        values = self.values[states] + self.rng.random((len(states), 2)) * 1e-9
        chance = self.rng.random(len(states)) < 0.05
        return np.where(chance, self.rng.integers(2, size=len(states)), values.argmax(axis=1))

    def learn(self, states: Any, actions: Any, rewards: Any, ended: Any, following: Any) -> None:
        """Move the values towards what followed."""
        targets = rewards + 0.95 * np.where(ended, 0.0, self.values[following].max(axis=1))
        errors = targets - self.values[states, actions]
        np.add.at(self.values, (states, actions), 0.02 * errors)


def train(folder: Path, seed: int, num_epochs: int, num_envs: int = 8) -> None:
    """Train the Q-table and keep the run."""
    tasks = [
        Task(f"taskclass{node}", f"taskclass{node}", {"distance": node + 1})
        for node in range(NUM_TASKS)
    ]
    config = FrontierConfig()
    curriculum = config.make(tasks, seed=seed)
    envs = CurriculumVectorEnv(
        SyncVectorEnv([make_env] * num_envs),
        curriculum,
    )
    agent = QTable(seed)
    about = {"config": {"agent": "Q-table"}, "overwrite": True, "epoch_steps": 1}
    with stepladder.run(folder, envs, **about) as run:
        states, _ = run.reset()
        resetting = np.zeros(num_envs, dtype=bool)
        for _ in range(num_epochs):
            for _ in range(50):
                actions = agent.act(states)
                following, rewards, terminated, truncated, _ = run.step(actions)
                # The step after an ending only resets its env: there is nothing to learn from it.
                playing = ~resetting
                agent.learn(
                    states[playing],
                    actions[playing],
                    rewards[playing],
                    terminated[playing],
                    following[playing],
                )
                states, resetting = following, terminated | truncated
            run.report()
    envs.close()


def main() -> None:
    """Simulate, train, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs"), help="where the runs go")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=80, help="epochs of the real training")
    options = parser.parse_args()
    simulated, real = options.out / "simulated", options.out / "real"
    result = simulate(
        curriculum=FrontierConfig(),
        seed=options.seed,
        num_epochs=40,
        engine="direct",
        run_folder=simulated,
        overwrite=True,
    )
    print(f"simulated: {result.verdict}")
    train(real, options.seed, options.epochs)
    page = write_report([simulated, real], options.out / "report.html")
    print(f"both runs are in {page}")


if __name__ == "__main__":
    main()
