"""The interface of the original hockey env, with a rink as simple as it can be.

Stands for ``hockey.hockey_env`` of the package of that name, which needs Box2D: the same names,
spaces, info entries and habits (observations wider than their space says, no truncation, a phase of
the starting side that the reset alternates, opponents that draw from a generator of their own).
"""

from enum import Enum
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

WIDTH, HEIGHT = 10.0, 8.0


class Mode(Enum):
    NORMAL = 0
    TRAIN_SHOOTING = 1
    TRAIN_DEFENSE = 2


class HockeyEnv(gym.Env[Any, Any]):
    """Two players push a puck; actions of both are joined, four numbers each."""

    metadata = {"render_modes": ["human", "rgb_array"], "render_fps": 50}  # noqa: RUF012

    def __init__(self, keep_mode: bool = True, mode: Any = Mode.NORMAL, verbose: bool = False):
        self.keep_mode, self.mode = keep_mode, mode
        num_actions = 4 if keep_mode else 3
        self.action_space = spaces.Box(-1, +1, (num_actions * 2,), dtype=np.float32)
        self.observation_space = spaces.Box(-np.inf, np.inf, (18,), dtype=np.float32)
        self.one_starts = True
        self.reset(self.one_starts)

    def reset(
        self,
        one_starting: bool | None = None,
        mode: Any = None,
        seed: int | None = None,
        options: Any = None,
    ) -> Any:
        super().reset(seed=seed)
        if mode is not None:
            raise TypeError("mode must be set before")
        self.max_timesteps = 250 if self.mode == Mode.NORMAL else 80
        self.time, self.winner = 0, 0
        self.one_starts = one_starting if one_starting is not None else not self.one_starts
        self.one = np.array([-3.0, self.np_random.uniform(-1, 1)])
        self.two = np.array([3.0, self.np_random.uniform(-1, 1)])
        side = -1.0 if self.one_starts else 1.0
        self.puck, self.speed = np.array([side, 0.0]), np.zeros(2)
        return self._get_obs(), self.get_info()

    def _get_obs(self) -> Any:
        return self._view(self.one, self.two, 1.0)

    def obs_agent_two(self) -> Any:
        """Return what player two sees: the point mirror image."""
        return self._view(self.two, self.one, -1.0)

    def _view(self, own: Any, other: Any, sign: float) -> Any:
        rest = np.zeros(4)
        parts = (own, rest, other, rest, self.puck, self.speed)
        # Float64, as in the original, whatever the space says.
        return np.hstack([*(sign * part for part in parts), [0.0, 0.0]])

    def get_info(self) -> dict[str, Any]:
        return {
            "winner": self.winner,
            "reward_closeness_to_puck": -0.01 * float(np.abs(self.one - self.puck).sum()),
            "reward_touch_puck": float(np.abs(self.one - self.puck).max() < 0.5),
            "reward_puck_direction": float(self.speed[0]) / (self.max_timesteps * 25),
        }

    def step(self, action: Any) -> Any:
        action = np.clip(action, -1, 1).astype(np.float32)
        half = len(action) // 2
        for player, push in ((self.one, action[:half]), (self.two, -action[half:])):
            player += 0.3 * push[:2]
            np.clip(player, [-WIDTH / 2, -HEIGHT / 2], [WIDTH / 2, HEIGHT / 2], out=player)
            if np.abs(player - self.puck).max() < 0.5:
                self.speed = 0.6 * push[:2].astype(float)
        self.puck = self.puck + self.speed
        if abs(self.puck[1]) > HEIGHT / 2:
            self.speed[1] *= -1
        self.winner = int(np.sign(self.puck[0])) if abs(self.puck[0]) > WIDTH / 2 else 0
        done = self.winner != 0 or self.time >= self.max_timesteps
        self.time += 1
        info = self.get_info()
        reward = 10.0 * self.winner + info["reward_closeness_to_puck"]
        return self._get_obs(), float(reward), done, False, info

    def render(self, mode: str = "human") -> Any:
        return np.full((8, 10, 3), 255, np.uint8)


class BasicOpponent:
    """Runs after the puck."""

    def __init__(self, weak: bool = True, keep_mode: bool = True):
        self.strength, self.keep_mode = 0.3 if weak else 1.0, keep_mode

    def act(self, obs: Any, verbose: bool = False) -> Any:
        push = np.clip(self.strength * (obs[12:14] - obs[:2]), -1, 1)
        return np.hstack([push, [0.0] * (2 if self.keep_mode else 1)])
