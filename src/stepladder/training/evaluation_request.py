"""What an evaluation is asked for: which env, how many games, against whom.

Made from the config of a training, or by ``stepladder eval``; `evaluation` plays it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from stepladder.configs.checks import require_whole
from stepladder.errors import ConfigError
from stepladder.games.ledge.stages import STAGES
from stepladder.tasks import Task
from stepladder.tasks.task import MAX_SEED
from stepladder.training.config import TrainingConfig
from stepladder.training.contradictions import HOCKEY, LEDGE
from stepladder.training.held_out import (
    Programme,
    hockey_programme,
    ledge_programme,
    plain_programme,
    task_programme,
)

MAX_GAMES = 2**32
"""More seeds than this are not counted on."""


@dataclass(frozen=True, kw_only=True)
class EvaluationRequest:
    """What is played, and how often."""

    env: Any
    """An env's id, its spec, or a function that makes an env."""

    env_kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Arguments for the env, as in training."""

    num_games: int = 200
    """Games per opponent; of an env as it comes, in all; of tasks, at least so many per label, each
    equally often (of more tasks than that, so many are chosen). Held-out levels of Ledge are played
    once by whom nothing surprises."""

    seed: int = 10_000
    """Of the first game; the others count on."""

    stages: tuple[str, ...] = STAGES
    """Of Ledge: whose held-out levels are played."""

    opponents: tuple[str, ...] = ("weak", "strong")
    """In hockey: scripted ones, and names of others, whom `evaluate` must be given."""

    tasks: tuple[Task, ...] = ()
    """In any other env: what is played; none is the env as it comes."""

    is_deterministic: bool = True
    """Whether everybody plays what seems best, rather than to draw actions."""

    max_episode_steps: int | None = None
    """Steps after which a game is cut off; None leaves it to the env."""

    def __post_init__(self) -> None:
        require_whole("num_games", self.num_games, 1)
        require_whole("seed", self.seed, 0)
        if self.seed > MAX_SEED - MAX_GAMES:
            raise ConfigError(f"seed must be at most {MAX_SEED - MAX_GAMES}; got {self.seed}.")
        if self.max_episode_steps is not None:
            require_whole("max_episode_steps", self.max_episode_steps, 1)
        # What is wrong with the games is said now, not after hours of training.
        self.programme(self.opponents)

    @classmethod
    def of(cls, config: TrainingConfig) -> "EvaluationRequest":
        """Return what a training asks for.

        Raises:
            ConfigError: It asks for something that cannot be played.
        """
        asked = config.evaluation
        labels = [task.label for task in config.tasks] or config.levels.stages
        practised = tuple(stage for stage in STAGES if stage in labels)
        return cls(
            env=config.env,
            env_kwargs=config.env_kwargs,
            num_games=asked.num_games,
            seed=asked.seed,
            stages=asked.stages or practised or STAGES,
            opponents=asked.opponents,
            tasks=config.tasks,
            # The games themselves are played to their end.
            max_episode_steps=None if config.env in (HOCKEY, LEDGE) else config.max_episode_steps,
        )

    @property
    def name(self) -> str:
        """What the env is called."""
        name = getattr(self.env, "id", self.env)
        if isinstance(name, str):
            # Without the module that registers it.
            return name.rpartition(":")[2]
        return getattr(self.env, "__name__", type(self.env).__name__)

    def programme(self, rivals: Collection[str]) -> Programme:
        """Return the games that this means.

        Args:
            rivals: Names of those who can be called to play player two of hockey.
        """
        kwargs = {name: value for name, value in self.env_kwargs.items() if name != "render_mode"}
        if self.name == HOCKEY:
            return hockey_programme(kwargs, self.opponents, rivals, self.num_games, self.seed)
        if self.name == LEDGE:
            once = self.is_deterministic
            return ledge_programme(
                kwargs, self.stages, self.num_games, self.seed, is_deterministic=once
            )
        if self.tasks:
            return task_programme(kwargs, self.tasks, self.num_games, self.seed)
        return plain_programme(kwargs, self.name, self.num_games, self.seed)
