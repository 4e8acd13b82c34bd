"""One game as an ordinary Gymnasium env: a batch of one.

The face that `gymnasium.make` returns, for wrappers, evaluation and libraries that want single
envs. It runs the very kernels of the batch, so that both play alike step for step.
"""

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from stepladder.errors import EnvError
from stepladder.games.batch import GameVectorEnv
from stepladder.games.episodes import ENDED
from stepladder.tasks import Task


class GameEnv(gym.Env[Any, Any]):
    """A single game.

    Args:
        vec: A vector env of one env, with autoreset disabled.
    """

    def __init__(self, vec: GameVectorEnv):
        self.vec = vec
        self.observation_space = vec.single_observation_space
        self.action_space = vec.single_action_space
        self.render_mode = vec.render_mode

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


def single_metadata(vec_class: type[GameVectorEnv]) -> dict[str, Any]:
    """Return what a game says of itself where there is one env, which nobody resets by itself."""
    return {name: value for name, value in vec_class.metadata.items() if name != "autoreset_mode"}


def _first(observations: Any) -> Any:
    if isinstance(observations, dict):
        return {key: part[0] for key, part in observations.items()}
    return observations[0]


def _one(action: Any) -> Any:
    """Return a batch of one action."""
    if isinstance(action, dict):
        return {key: np.asarray(part)[None] for key, part in action.items()}
    return np.asarray(action)[None]
