"""What an evaluation plays: the env, how many games, of which tasks, against which players.

Made from the config of a training, or by ``stepladder eval``; the env's `Game` makes the programme
of it, and `playing` plays that.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from stepladder.configs.checks import Count, Integer
from stepladder.configs.codec import Config
from stepladder.envs.ids import game_of
from stepladder.games.programme import Programme
from stepladder.tasks import Source, Task
from stepladder.tasks.task import MAX_SEED
from stepladder.training.config import TrainingConfig

MAX_TASKS = 1_000
"""Tasks of a game without a programme that are considered, evenly spaced."""

MAX_GAMES = 2**32
"""More seeds than this are not counted on."""


@dataclass(frozen=True, kw_only=True)
class EvaluationRequest(Config):
    """What is played, and how often."""

    env: object
    """An env's id, its spec, or a function that makes an env."""

    env_kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Arguments for the env, as in training."""

    num_games: Count = 200
    """Games per opponent; of an env without tasks, in all; of tasks, at least so many per label,
    each task equally often (of more tasks than that, so many are chosen). A game may play fixed
    levels once if the policy is deterministic."""

    seed: Annotated[int, Integer(0, MAX_SEED - MAX_GAMES)] = 10_000
    """Of the first game; the others count on."""

    labels: tuple[str, ...] = ()
    """Which labels of tasks are played, such as stages; none named is all that are `practised`."""

    practised: tuple[str, ...] = ()
    """Labels of what the training practises; none is unknown."""

    opponents: tuple[str, ...] = ()
    """In a game for two: scripted players, and names of policies that `evaluate` must be given;
    none named is the game's own choice."""

    tasks: tuple[Task, ...] = ()
    """What is played in an env without a programme of its own; none is the env without tasks."""

    is_deterministic: bool = True
    """Whether all players take their best action rather than draw one."""

    max_episode_steps: Count | None = None
    """Steps after which a game is cut off; None leaves it to the env."""

    def __post_init__(self) -> None:
        super().__post_init__()
        # What is wrong with the games is reported now, not after hours of training.
        self.programme(self.opponents)

    @classmethod
    def of(cls, config: TrainingConfig) -> "EvaluationRequest":
        """Return what a training asks for.

        Raises:
            ConfigError: It asks for something that cannot be played.
        """
        asked, game, own = config.evaluation, game_of(config.env), config.own_source()
        return cls(
            env=config.env,
            env_kwargs=config.env_kwargs,
            num_games=asked.num_games,
            seed=asked.seed,
            labels=asked.labels,
            practised=tuple(config.task_source().labels()),
            opponents=asked.opponents,
            tasks=config.tasks if own is None else _spaced(own),
            # A game with a time limit of its own is played to its end.
            max_episode_steps=None if game.time_limit_argument else config.max_episode_steps,
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
            rivals: Names of the policies that can play player two.
        """
        kwargs = {name: value for name, value in self.env_kwargs.items() if name != "render_mode"}
        return game_of(self.env).programme(self, kwargs, rivals)


def _spaced(source: Source) -> tuple[Task, ...]:
    """Return tasks of a source, evenly spaced where it has many; of one without end, the first."""
    num_tasks = source.num_tasks
    if num_tasks is None:
        return tuple(source.get(task_id) for task_id in range(MAX_TASKS))
    count = min(num_tasks, MAX_TASKS)
    return tuple(source.get(number * num_tasks // count) for number in range(count))
