"""What Stepladder needs of an env beyond Gymnasium: one `Game` per kind of env.

Below `envs` and `training`, which take tasks, default curriculum, evaluation programme, symmetry
and settings from a game, and so name no game themselves. Every method has a default, so a game
overrides only what it has; an env without a game gets a plain `Game()`.

A game is found by its env: registered under the env's id (`games.registry`), or as the attribute
``game`` of the env's class.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from gymnasium.spaces import Space

from stepladder.curricula.auto.config import AutoConfig
from stepladder.curricula.config import CurriculumConfig
from stepladder.errors import ConfigError
from stepladder.games.programme import Fixture, Programme, task_programme
from stepladder.tasks import Source, Task

if TYPE_CHECKING:
    from stepladder.training.config import TrainingConfig
    from stepladder.training.evaluation import EvaluationRequest

PLAYERS = ("player_one", "player_two")
"""Keys of observations and actions where the caller plays both players; the first one learns."""

CALLED = "caller:"
"""Prefix of opponents that the caller plays: ``caller:newest``, ``caller:pool``."""


@dataclass(frozen=True)
class Symmetry:
    """A mirror image of an env that is played alike."""

    number_signs: tuple[float, ...]
    """1 or -1 for every number of an observation."""

    action_signs: tuple[float, ...] | None = None
    """1 or -1 for every number of a continuous action; None for discrete actions."""

    action_swaps: tuple[int, ...] | None = None
    """What each discrete action becomes; None for continuous actions."""


class Game:
    """Describes one kind of env. Subclass it and override what the env has.

    Args:
        env: What makes one env, for a game that is registered by name: a class, a function or
            ``"module:name"``. Not needed if Gymnasium knows the id already.
        vector_env: What makes a vector env of a batched game (`GameVectorEnv`); likewise.
    """

    opponents: tuple[str, ...] = ()
    """Scripted players of a game for two; empty if the env has one player."""

    usual_opponents: tuple[str, ...] = ()
    """Those of them that an evaluation plays unless others are named."""

    held_out_sets: tuple[str, ...] = ()
    """Sets of tasks that are never practised, if the game has its own; evaluations play the first
    unless another is asked for, trainings never another."""

    is_finite: bool = False
    """Whether all observations and rewards are known to be finite and need no check."""

    time_limit_argument: str | None = None
    """Argument of the env that limits an episode's steps; None has training wrap the env."""

    keys: Mapping[str, str] = MappingProxyType({})
    """What each key does, for those who play by hand; empty if the game has no keys."""

    level_arguments: tuple[str, ...] = ()
    """Arguments of the env that choose a level, which contradict a level from a file."""

    def __init__(
        self,
        env: str | Callable[..., Any] | None = None,
        vector_env: str | Callable[..., Any] | None = None,
    ):
        self.env, self.vector_env = env, vector_env

    # What is practised.

    def source(self, settings: Mapping[str, Any]) -> Source | None:
        """Return the tasks that are practised if a training names none; None has none.

        Args:
            settings: `TrainingConfig.source`: whatever the game lets a user choose.

        Raises:
            ConfigError: A setting is unknown or wrong.
        """
        if settings:
            raise ConfigError(
                f"has {', '.join(map(repr, settings))}, and this env has no tasks of its own to "
                "choose from. Leave source out, or give tasks."
            )
        return None

    def curriculum(self, labels: Sequence[str]) -> CurriculumConfig:
        """Return the curriculum over the game's own tasks if a training names none."""
        return AutoConfig()

    def training_arguments(self, gamma: float) -> dict[str, Any]:
        """Return arguments of the envs of a training; those that the user gives come first.

        Args:
            gamma: The agent's discount.
        """
        return {}

    def check(self, training: "TrainingConfig") -> Iterator[tuple[str, str]]:
        """Yield the path of every setting that this game cannot work with, and what is wrong."""
        yield from ()

    def symmetry(self, env_kwargs: Mapping[str, Any]) -> Symmetry | None:
        """Return the mirror image of envs with these arguments, if they have one."""
        return None

    # What is evaluated and watched.

    def programme(
        self, request: "EvaluationRequest", env_kwargs: Mapping[str, Any], rivals: Collection[str]
    ) -> Programme:
        """Return the games of an evaluation; by default the training's tasks, all alike.

        Args:
            request: How many games, of which labels, of which of the `held_out_sets` or against
                which opponents.
            env_kwargs: Arguments of the envs.
            rivals: Names of the policies that can play player two.

        Raises:
            ConfigError: The request cannot be played.
        """
        if request.tasks:
            return task_programme(
                env_kwargs, request.tasks, request.num_games, request.seed, labels=request.labels
            )
        if request.labels:
            raise ConfigError(
                f"labels are {list(request.labels)}, and {request.name} is played without tasks. "
                "Leave them out."
            )
        fixture = Fixture(
            group=request.name,
            part=request.name,
            num_games=request.num_games,
            first_seed=request.seed,
        )
        return Programme(fixtures=(fixture,), env_kwargs=dict(env_kwargs))

    def level_task(self, name: str, text: str) -> Task | None:
        """Return the task that plays the level in a text file; None if the game has no level files.

        Raises:
            TaskError: The text is not a level of this game.
        """
        return None

    def action_of_keys(self, held: Collection[str]) -> Any:
        """Return the action of somebody who plays by hand; None if this game has no keys.

        Args:
            held: Names of the keys that are held down, such as ``"left"`` and ``"space"``.
        """
        return None

    # Two players whose actions differ.

    def shared_arguments(
        self, env_kwargs: Mapping[str, Any], num_choices: Collection[int | None]
    ) -> dict[str, Any]:
        """Return arguments with which all players of an evaluation can play.

        Args:
            env_kwargs: Arguments of the envs.
            num_choices: Discrete actions of each player; None for continuous ones.
        """
        return dict(env_kwargs)

    def translator(
        self, num_choices: int | None, action_space: Space[Any]
    ) -> Callable[[Any], Any] | None:
        """Return what makes a player of discrete actions fit another action space; None if nothing.

        Args:
            num_choices: Discrete actions of the player; None for continuous ones.
            action_space: Of the env.
        """
        return None
