"""The simulated tasks as a PufferLib env.

Beside `env`, which does the work. Needs the package ``pufferlib-core``, which is loaded when this
module is imported.
"""

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from stepladder.errors import ConfigError
from stepladder.simulator.env import SkillView, TaskDependencyEnv
from stepladder.simulator.learner import TaskDependencySimulator

try:
    import pufferlib  # pyright: ignore[reportMissingImports]
except ImportError as error:  # pragma: no cover, the test environment has it
    raise ConfigError(
        "a PufferLib env needs the package pufferlib-core, which is not installed. "
        "Run pip install --no-deps pufferlib-core (it pins a torch of its own otherwise)."
    ) from error


class PufferTaskDependencyEnv(pufferlib.PufferEnv):  # pyright: ignore[reportGeneralTypeIssues]
    """Plays simulated tasks through PufferLib's buffers, one agent, one step per episode.

    As in PufferLib's native envs, the step after an ending begins the next play; it plays the task
    that `set_mg_config` has set in between.

    Args:
        simulator: The learner, or a view of one in another process.
        task: The task of the first episode: a task, a config with a label, or a label.
        learns: Whether a play teaches the learner.
        buf: PufferLib's buffers.
        seed: Seed of the outcomes.
    """

    def __init__(
        self,
        simulator: TaskDependencySimulator | SkillView,
        task: Any = "taskclass0",
        *,
        learns: bool = True,
        buf: Any = None,
        seed: int = 0,
    ):
        self.single_observation_space = gym.spaces.Box(0.0, 1.0, (1,), np.float32)
        self.single_action_space = gym.spaces.Discrete(1)
        self.num_agents = 1
        super().__init__(buf)
        self.env = TaskDependencyEnv(simulator, learns=learns, task=task)
        self._seed: int | None = seed

    def reset(self, seed: int | None = None) -> tuple[Any, list[dict[str, Any]]]:
        """Begin a play; return the observations and one info per agent."""
        self.env.reset(seed=seed if seed is not None else self._seed)
        # Only the first episode is seeded; later ones continue the same generator.
        self._seed = None
        self.observations[:] = 0.0
        return self.observations, [{}]

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, list[dict[str, Any]]]:
        """Play; begin a new play first if the last one has ended."""
        if not self.env.is_playing:
            self.env.reset()
        _, reward, terminated, truncated, info = self.env.step(0)
        self.rewards[:], self.terminals[:], self.truncations[:] = reward, terminated, truncated
        return self.observations, self.rewards, self.terminals, self.truncations, [info]

    def set_mg_config(self, config: Any) -> None:
        """Play the task that a config's label names, from the next play on."""
        self.env.set_mg_config(config)

    def get_episode_rewards(self) -> npt.NDArray[np.float32]:
        """Return the reward of the last play, shape ``(1,)``."""
        return self.env.get_episode_rewards()

    def close(self) -> None:
        """Nothing to free."""
