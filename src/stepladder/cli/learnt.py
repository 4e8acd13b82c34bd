"""Policies that a training has learnt, found by a run, a checkpoint or a file of weights.

For the verbs that let them play, which load this module when somebody is to play: it needs torch.
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
from stepladder.errors import ConfigError
from stepladder.games.game import PLAYERS
from stepladder.runs import RunReader
from stepladder.runs.run_folder import CHECKPOINTS, CONFIG
from stepladder.training.checkpoints import load_policy
from stepladder.training.config import TrainingConfig
from stepladder.training.opponents.member import SPACES, misfit


@dataclass(frozen=True, kw_only=True, eq=False)
class Learnt:
    """Somebody who has learnt to play."""

    name: str
    """What it is called: its run, with the checkpoint if one was named; or its file."""

    description: Mapping[str, Any]
    """What `Agent.description` said."""

    weights: Mapping[str, torch.Tensor]

    run: RunReader | None
    """The run that it lies in."""

    @property
    def kind(self) -> str:
        """What kind of agent it is, such as SAC."""
        return str(self.description.get("type"))

    @property
    def num_choices(self) -> int | None:
        """How many numbered actions it chooses among; None if its actions are something else."""
        space = self.description.get("action_space")
        return space.get("n") if isinstance(space, Mapping) else None

    @property
    def config(self) -> TrainingConfig | None:
        """The config of its training, where it lies in its run."""
        if self.run is None:
            return None
        return TrainingConfig.from_json(self.run.config, str(self.run.folder / CONFIG))

    def player(self, num_rows: int, *, device: str = "cpu", seed: int = 0) -> Player:
        """Let it play so many games at once."""
        return make_player(self.description, self.weights, num_rows, device=device, seed=seed)

    def require_fit(self, env: str, seen: gym.Space[Any], done: gym.Space[Any] | None) -> None:
        """Raise unless it sees and does what an env has.

        Args:
            env: What the env is called.
            seen: Its observation space.
            done: Its action space; None if any will do.

        Raises:
            ConfigError: It was trained on something else.
        """
        wanted = {"observation_space": space_to_json(seen)}
        if done is not None:
            wanted["action_space"] = space_to_json(done)
        found = misfit(self.description, {**self.description, **wanted})
        if found is not None:
            raise ConfigError(
                f"{self.name} cannot play {env}: {found}. Give the env the arguments that it had "
                "in training."
            )


def find_learnt(text: str) -> Learnt:
    """Return the policy in a run, in a checkpoint or in a file of weights.

    Raises:
        ConfigError: There is nothing of this name.
        SnapshotError: There is no policy in it, or a broken one.
    """
    path = Path(text).absolute()
    if not path.exists():
        raise ConfigError(
            f"there is no {text!r}. Name the folder of a run, a checkpoint in it, or a file of "
            "weights."
        )
    description, weights = load_policy(path)
    for part in SPACES:
        # Whoever fits it to an env relies on what it says.
        space_from_json(description.get(part))
    run, name = _run_around(path), path.name
    if run is not None and run.folder != path:
        name = f"{run.name}/{path.relative_to(run.folder / CHECKPOINTS).parts[0]}"
    return Learnt(name=name, description=description, weights=weights, run=run)


def _run_around(path: Path) -> RunReader | None:
    """Return the run that a path is, or among whose checkpoints it lies."""
    owners = [folder.parent for folder in (path, *path.parents) if folder.name == CHECKPOINTS]
    for folder in (path, *owners):
        if (folder / CONFIG).is_file():
            return RunReader(folder)
    return None


class SinglePolicy:
    """A learnt policy in front of a single env; does what it thinks best.

    Where the caller plays both players, it plays both.

    Args:
        learnt: Who plays.
        env: What is played.
        env_name: What it is called.

    Raises:
        ConfigError: It was trained on something else.
    """

    def __init__(self, learnt: Learnt, env: gym.Env[Any, Any], env_name: str):
        seen, done = env.observation_space, env.action_space
        self._plays_both = isinstance(seen, Dict) and tuple(seen) == PLAYERS
        if isinstance(seen, Dict) and isinstance(done, Dict) and self._plays_both:
            seen, done = seen[PLAYERS[0]], done[PLAYERS[0]]
        learnt.require_fit(env_name, seen, done)
        self._player = learnt.player(2 if self._plays_both else 1)

    def begin(self) -> None:
        """Forget the last episode."""
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
