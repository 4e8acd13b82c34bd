"""What an evaluation plays: the env, how many games, of which tasks, against which players.

Made from the config of a training, or by ``stepladder eval``; the env's `Game` makes the programme
of it, and `playing` plays that.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from stepladder.configs.checks import Integer, PositiveInteger
from stepladder.configs.codec import Config
from stepladder.envs.env_settings import EnvSettings
from stepladder.envs.ids import game_of
from stepladder.errors import ConfigError
from stepladder.games.programme import Programme
from stepladder.tasks import Source, Task
from stepladder.tasks.task import MAX_SEED
from stepladder.training.config import TrainingConfig

MAX_EVALUATED_TASKS = 1_000
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

    num_games: PositiveInteger = 200
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

    settings: EnvSettings = field(default_factory=EnvSettings)
    """How single envs are played, as in training."""

    levels: str | None = None
    """Which of the game's own held-out sets is played, such as test; None is the first."""

    is_deterministic: bool = True
    """Whether the policy takes its best actions rather than draw them."""

    is_brief: bool = False
    """Whether a game may play fixed levels once also if actions are drawn, to save time."""

    max_episode_steps: PositiveInteger | None = None
    """Steps after which a game is cut off; None leaves it to the env."""

    def __post_init__(self) -> None:
        super().__post_init__()
        # What is wrong with the games is reported now, not after hours of training.
        self.programme(self.opponents)

    @classmethod
    def of(cls, config: TrainingConfig, env: str | None = None) -> "EvaluationRequest":
        """Return what a training asks for.

        Args:
            config: Of the training.
            env: The name of another env that is played instead, with the training's own tasks.

        Raises:
            ConfigError: It asks for something that cannot be played.
        """
        asked = config.evaluation
        env = config.env if env is None else env
        game = game_of(env)
        return cls(
            env=env,
            env_kwargs=config.env_kwargs,
            num_games=asked.num_games,
            seed=asked.seed,
            labels=asked.labels,
            practised=tuple(config.task_source().labels()),
            opponents=asked.opponents,
            tasks=_tasks(config, env),
            settings=config.env_settings(),
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

    @property
    def held_out_set(self) -> str | None:
        """Which of the game's own held-out sets is played; None if it has none."""
        return self.levels or next(iter(game_of(self.env).held_out_sets), None)

    def programme(self, rivals: Collection[str]) -> Programme:
        """Return the games that this means.

        Args:
            rivals: Names of the policies that can play player two.

        Raises:
            ConfigError: They cannot be played.
        """
        kwargs = {name: value for name, value in self.env_kwargs.items() if name != "render_mode"}
        game = game_of(self.env)
        if self.levels is not None and self.levels not in game.held_out_sets:
            known = f"must be {' or '.join(game.held_out_sets)}"
            fix = f"{self.name} has no held-out sets of its own. Leave it out"
            raise ConfigError(
                f"levels {known if game.held_out_sets else 'cannot be chosen'}; got "
                f"{self.levels!r}. {'Correct it' if game.held_out_sets else fix}."
            )
        return game.programme(self, kwargs, rivals)


def _tasks(config: TrainingConfig, env: str) -> tuple[Task, ...]:
    """Return what a training practises, for the same env or for another; none is the env as it is.

    Another env gets the tasks that the training names, else those that it has itself.
    """
    if not isinstance(config.tasks, str):
        if config.tasks:
            return config.tasks
        is_same = env.rpartition(":")[2] == config.env.rpartition(":")[2]
        own = game_of(env).source(config.source if is_same else {})
        return () if own is None else _spaced(own)
    return _spaced(config.task_source())


def _spaced(source: Source) -> tuple[Task, ...]:
    """Return tasks of a source, evenly spaced where it has many; of one without end, the first."""
    num_tasks = source.num_tasks
    if num_tasks is None:
        return tuple(source.get(task_id) for task_id in range(MAX_EVALUATED_TASKS))
    count = min(num_tasks, MAX_EVALUATED_TASKS)
    return tuple(source.get(number * num_tasks // count) for number in range(count))
