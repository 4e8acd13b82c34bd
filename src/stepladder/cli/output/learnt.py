"""Trained policies, found by a run, a checkpoint or a file of weights.

Used by `eval` and `watch`, which import this module only when they need it: it needs torch.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Dict

from stepladder.agents.config import OwnWay, own_way_of
from stepladder.agents.player import Player, make_player
from stepladder.agents.spaces import space_from_json, space_to_json
from stepladder.cli.inputs.finding import look_here
from stepladder.cli.inputs.run_curriculum import training_config
from stepladder.envs.agent_rows import AGENT_PARTS
from stepladder.errors import ConfigError
from stepladder.games.game import PLAYERS
from stepladder.runs import RunReader
from stepladder.runs.checkpoint_choice import BEST, LAST, names_by_step
from stepladder.runs.run_folder import RunInfo
from stepladder.runs.seeds import holds_seeds
from stepladder.runs.trust import names_of_code, require_trust_in_policy
from stepladder.training.checkpoints import SavedPolicy, read_policy
from stepladder.training.config import TrainingConfig
from stepladder.training.opponents.member import SPACES, misfit
from stepladder.training.pretrained import Pretrained
from stepladder.training.starting import threads


@dataclass(frozen=True, kw_only=True, eq=False)
class Learnt:
    """A trained policy."""

    name: str
    """Name of its run, with the checkpoint if one was named; or of its file."""

    saved: SavedPolicy
    """What plays, and where it comes from."""

    run: RunReader | None
    """The run that holds it; None for a single file."""

    pretrained: Pretrained | None = None
    """What is known of a policy that comes with the package; None for others."""

    @property
    def description(self) -> Mapping[str, Any]:
        """As `Agent.description` returned it."""
        return self.saved.description

    @property
    def moment(self) -> str:
        """Which policy of its run it is: "step 480,000, the best", say; empty if not known."""
        if self.pretrained is not None:
            return f"step {self.pretrained.step:,}"
        step = self.saved.step
        if step is None or self.run is None:
            return ""
        names = names_by_step(self.run)
        best = self.run.best_checkpoint()
        marks = {LAST: max(names, default=None) == step, BEST: self.saved.checkpoint == best}
        words = " and ".join(f"the {word}" for word, holds in marks.items() if holds)
        return f"step {step:,}" + (f", {words}" if words else "")

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
    def own_way(self) -> OwnWay:
        """How the agent is meant to act.

        Raises:
            ConfigError: Its kind is not known here.
        """
        return own_way_of(self.description)

    @property
    def config(self) -> TrainingConfig | None:
        """The config of its training; None for a single file."""
        if self.pretrained is not None:
            return self.pretrained.config
        return None if self.run is None else training_config(self.run)

    def player(self, num_rows: int, *, device: str = "cpu", seed: int = 0) -> Player:
        """Return a player of so many games at once."""
        saved = self.saved
        return make_player(saved.description, saved.weights, num_rows, device=device, seed=seed)

    def threads(self) -> AbstractContextManager[None]:
        """Let torch compute in as many threads as in its training meanwhile, or in one."""
        config = self.config
        return threads(1 if config is None else config.num_threads)

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


def pretrained_learnt(pretrained: Pretrained) -> Learnt:
    """Return a policy that comes with the package."""
    saved = read_policy(pretrained.path)
    return Learnt(name=pretrained.name, saved=saved, run=None, pretrained=pretrained)


def find_learnt(text: str, checkpoint: str | int = LAST, *, trust: bool = False) -> Learnt:
    """Return the policy in a run, in a checkpoint or in a file of weights.

    Args:
        text: The path.
        checkpoint: Of a run: ``"last"``, ``"best"`` or a step.
        trust: Whether a network that it names may be imported.

    Raises:
        ConfigError: The path does not exist, or is not a run, which a checkpoint could be of.
        RunError: It names a network, and is not trusted.
        SnapshotError: It holds no policy, or a damaged one.
    """
    path = Path(text).absolute()
    if not path.exists():
        raise ConfigError(
            f"there is no {text!r}. Name the folder of a run, a checkpoint in it, or a file of "
            "weights."
        )
    if holds_seeds(path):
        # Says which runs there are.
        RunInfo.read(path)
    saved = read_policy(path, checkpoint)
    require_trust_in_policy(path, saved.description, trust)
    if names_of_code({"agent": saved.description.get("config")}):
        look_here()
    for part in SPACES:
        # `require_fit` relies on them.
        space_from_json(saved.description.get(part))
    run = None if saved.run_folder is None else RunReader(saved.run_folder)
    name = path.name
    if run is not None and run.folder != path:
        name = f"{run.name}/{saved.checkpoint}"
    return Learnt(name=name, saved=saved, run=run)


class SinglePolicy:
    """A trained policy that plays a single env.

    In an env where the caller plays both players, it plays both; of several agents, all.

    Args:
        learnt: The policy.
        env: The env.
        env_name: Name of the env.
        way: How it acts; None is its own way.
        seed: Of what it draws.

    Raises:
        ConfigError: It was trained with other spaces.
    """

    def __init__(
        self,
        learnt: Learnt,
        env: gym.Env[Any, Any],
        env_name: str,
        *,
        way: OwnWay | None = None,
        seed: int = 0,
    ):
        seen, done = env.observation_space, env.action_space
        self._plays_both = isinstance(seen, Dict) and tuple(seen) == PLAYERS
        if isinstance(seen, Dict) and isinstance(done, Dict) and self._plays_both:
            seen, done = seen[PLAYERS[0]], done[PLAYERS[0]]
        self._num_agents = 0
        if isinstance(seen, Dict) and set(seen) == set(AGENT_PARTS):
            self._num_agents = env.get_wrapper_attr("num_agents")
            seen = env.get_wrapper_attr("agent_observation_space")
            done = env.get_wrapper_attr("agent_action_space")
        learnt.require_fit(env_name, seen, done)
        self.name = ", ".join(filter(None, (learnt.name, learnt.moment)))
        """What plays, and of which step it is."""
        self.way: OwnWay = way or learnt.own_way
        self._player = learnt.player(self._num_agents or (2 if self._plays_both else 1), seed=seed)
        self._threads = learnt.threads

    def begin(self) -> None:
        """Begin an episode: forget the last one."""
        self._player.begin()

    def __call__(self, observation: Any) -> Any:
        """Return the action for an observation."""
        with self._threads():
            return self._chosen(observation)

    def _chosen(self, observation: Any) -> Any:
        if self._num_agents:
            return self._player.act_batch(observation["agents"])
        if not self._plays_both:
            return self._act([observation])[0]
        actions = self._act([observation[name] for name in PLAYERS])
        return dict(zip(PLAYERS, actions, strict=True))

    def _act(self, rows: Sequence[Any]) -> npt.NDArray[Any]:
        return self._player.act_batch(stacked(rows), deterministic=self.way == "best")


def stacked(rows: Sequence[Any]) -> Any:
    """Return observations of single envs as a vector env returns them."""
    if isinstance(rows[0], Mapping):
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    return np.stack(rows)
