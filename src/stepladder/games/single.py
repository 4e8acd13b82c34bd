"""One game as an ordinary Gymnasium env: a batch of one.

What `gymnasium.make` returns, for wrappers, evaluation and libraries that need single envs. It runs
the kernels of the batch, so both play alike step for step.
"""

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from stepladder.errors import EnvError
from stepladder.plans.status import ENDED
from stepladder.tasks import Task


class GameEnv(gym.Env[Any, Any]):
    """A single game; takes the arguments of its vector env, except those about many envs."""

    vector_class: ClassVar[Any]
    """The vector env of the game; tells `make_vec` what steps many of these at once."""

    def __init_subclass__(cls) -> None:
        # A single env is never reset by itself.
        metadata = {**cls.vector_class.metadata, **vars(cls).get("metadata", {})}
        cls.metadata = {key: metadata[key] for key in metadata if key != "autoreset_mode"}

    def __init__(self, **settings: Any):
        self.vec: Any = self.vector_class(
            1, autoreset_mode=AutoresetMode.DISABLED, num_threads=1, **settings
        )
        self.observation_space = self.vec.single_observation_space
        self.action_space = self.vec.single_action_space
        self.render_mode = self.vec.render_mode

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; ``options["task"]`` gives the env a task to play from now on."""
        super().reset(seed=seed)
        observations, _ = self.vec.reset(seed=None if seed is None else [seed], options=options)
        if self.render_mode == "human":
            self.render()
        return _first(observations), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step the game."""
        if self.vec.batch.episodes["state"][0] == ENDED:
            raise EnvError("the episode has ended. Call reset() first.")
        observations, rewards, terminated, truncated, infos = self.vec.step(_one(action))
        info = {key: values[0].item() for key, values in infos.items() if not key.startswith("_")}
        return (
            _first(observations),
            float(rewards[0]),
            bool(terminated[0]),
            bool(truncated[0]),
            info,
        )

    def set_task(self, task: Task) -> None:
        """Play a task from the next reset on."""
        self.vec.set_tasks([task])

    @property
    def task(self) -> Task:
        """The task being played; one given since waits for the next reset."""
        return self.vec.tasks[0]

    def render(self) -> npt.NDArray[np.uint8] | None:
        """Return a picture, or show it in a window."""
        pictures = self.vec.render()
        return None if pictures is None else pictures[0]

    def close(self) -> None:
        """Close the window, if there is one."""
        self.vec.close()


def _first(observations: Any) -> Any:
    if isinstance(observations, dict):
        return {key: part[0] for key, part in observations.items()}
    return observations[0]


def _one(action: Any) -> Any:
    """Return a batch of one action."""
    if isinstance(action, dict):
        return {key: np.asarray(part)[None] for key, part in action.items()}
    return np.asarray(action)[None]
