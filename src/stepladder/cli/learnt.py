"""Trained policies, found by a run, a checkpoint or a file of weights.

Used by `eval` and `watch`, which import this module only when they need it: it needs torch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.spaces import Dict

from stepladder.agents.player import Player, make_player
from stepladder.agents.spaces import space_from_json, space_to_json
from stepladder.cli.run_curriculum import training_config
from stepladder.errors import ConfigError
from stepladder.games.game import PLAYERS
from stepladder.runs import RunReader
from stepladder.runs.run_folder import CHECKPOINTS, CONFIG
from stepladder.training.checkpoints import load_policy
from stepladder.training.config import TrainingConfig
from stepladder.training.opponents.member import SPACES, misfit


@dataclass(frozen=True, kw_only=True, eq=False)
class Learnt:
    """A trained policy."""

    name: str
    """Name of its run, with the checkpoint if one was named; or of its file."""

    description: Mapping[str, Any]
    """As `Agent.description` returned it."""

    weights: Mapping[str, torch.Tensor]

    run: RunReader | None
    """The run that holds it; None for a single file."""

    @property
    def kind(self) -> str:
        """Kind of the agent, such as SAC."""
        return str(self.description.get("type"))

    @property
    def num_choices(self) -> int | None:
        """Number of discrete actions; None for other actions."""
        space = self.description.get("action_space")
        return space.get("n") if isinstance(space, Mapping) else None

    @property
    def config(self) -> TrainingConfig | None:
        """The config of its training; None for a single file."""
        return None if self.run is None else training_config(self.run)

    def player(self, num_rows: int, *, device: str = "cpu", seed: int = 0) -> Player:
        """Return a player of so many games at once."""
        return make_player(self.description, self.weights, num_rows, device=device, seed=seed)

    def require_fit(self, env: str, seen: gym.Space[Any], done: gym.Space[Any] | None) -> None:
        """Raise unless its spaces are those of an env.

        Args:
            env: Name of the env.
            seen: Observation space of the env.
            done: Action space of the env; None accepts any.

        Raises:
            ConfigError: It was trained with other spaces.
        """
        wanted = {"observation_space": space_to_json(seen)}
        if done is not None:
            wanted["action_space"] = space_to_json(done)
        found = misfit(self.description, {**self.description, **wanted})
        if found is not None:
            raise ConfigError(
                f"{self.name} cannot play {env}: {found}. Give the env the same arguments as in "
                "training."
            )


def find_learnt(text: str) -> Learnt:
    """Return the policy in a run, in a checkpoint or in a file of weights.

    Raises:
        ConfigError: The path does not exist.
        SnapshotError: It holds no policy, or a damaged one.
    """
    path = Path(text).absolute()
    if not path.exists():
        raise ConfigError(
            f"there is no {text!r}. Name the folder of a run, a checkpoint in it, or a file of "
            "weights."
        )
    description, weights = load_policy(path)
    for part in SPACES:
        # `require_fit` relies on them.
        space_from_json(description.get(part))
    # The path is a run, or lies among the checkpoints of one.
    owners = [folder.parent for folder in (path, *path.parents) if folder.name == CHECKPOINTS]
    runs = [folder for folder in (path, *owners) if (folder / CONFIG).is_file()]
    run, name = RunReader(runs[0]) if runs else None, path.name
    if run is not None and run.folder != path:
        name = f"{run.name}/{path.relative_to(run.folder / CHECKPOINTS).parts[0]}"
    return Learnt(name=name, description=description, weights=weights, run=run)


class SinglePolicy:
    """A trained policy that plays a single env with its best actions.

    In an env where the caller plays both players, it plays both.

    Args:
        learnt: The policy.
        env: The env.
        env_name: Name of the env.

    Raises:
        ConfigError: It was trained with other spaces.
    """

    def __init__(self, learnt: Learnt, env: gym.Env[Any, Any], env_name: str):
        seen, done = env.observation_space, env.action_space
        self._plays_both = isinstance(seen, Dict) and tuple(seen) == PLAYERS
        if isinstance(seen, Dict) and isinstance(done, Dict) and self._plays_both:
            seen, done = seen[PLAYERS[0]], done[PLAYERS[0]]
        learnt.require_fit(env_name, seen, done)
        self._player = learnt.player(2 if self._plays_both else 1)

    def begin(self) -> None:
        """Begin an episode: forget the last one."""
        self._player.begin()

    def __call__(self, observation: Any) -> Any:
        """Return the action for an observation."""
        if not self._plays_both:
            return self._player.act_batch(stacked([observation]))[0]
        actions = self._player.act_batch(stacked([observation[name] for name in PLAYERS]))
        return dict(zip(PLAYERS, actions, strict=True))


def stacked(rows: Sequence[Any]) -> Any:
    """Return observations of single envs as a vector env returns them."""
    if isinstance(rows[0], Mapping):
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    return np.stack(rows)
