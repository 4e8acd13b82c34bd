"""Ledge as a `Game`: generated levels, stages in order, and levels that no generator makes.

Found through `games.registry` by trainings, evaluations and commands.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

from stepladder.configs.checks import Integer, OneOf, each_once, not_empty
from stepladder.configs.codec import Config
from stepladder.configs.problems import Problems
from stepladder.curricula.config import CurriculumConfig
from stepladder.curricula.staged.config import Stage, StagedConfig
from stepladder.games.game import Game
from stepladder.games.ledge.held_out import SETS
from stepladder.games.ledge.level import STAGES
from stepladder.games.ledge.physics import JUMP
from stepladder.games.ledge.source import LedgeLevels, held_out_source
from stepladder.games.programme import Programme, task_programme
from stepladder.tasks import Source, Task
from stepladder.tasks.task import MAX_SEED

if TYPE_CHECKING:
    from stepladder.training.config import TrainingConfig
    from stepladder.training.evaluation import EvaluationRequest

LEDGE_ENV = "stepladder/Ledge-v0"

CLIMB = STAGES[:5]
"""The stages over which difficulty rises."""


@dataclass(frozen=True, kw_only=True)
class LevelsConfig(Config):
    """Which generated levels are practised."""

    stages: Annotated[tuple[Annotated[str, OneOf(STAGES)], ...], each_once, not_empty] = CLIMB
    """Their stages; each is a label for the curriculum. In JSON also one text with commas."""

    per_stage: Annotated[int, Integer(1, 10_000_000)] | None = 200
    """Levels of each stage; None is without end, and without a list of them."""

    seed: Annotated[int, Integer(0, MAX_SEED)] = 0
    """Another seed gives other levels; the held-out ones stay the same."""

    @classmethod
    def expand(cls, value: Any, problems: Problems) -> Any:
        """Split stages that are one text."""
        if not isinstance(value, Mapping) or not isinstance(value.get("stages"), str):
            return value
        return {**value, "stages": [stage for stage in value["stages"].split(",") if stage]}


class Ledge(Game):
    """A platform game; its stages are the labels of its levels."""

    held_out_sets = SETS
    is_finite = True
    time_limit_argument = "time_limit"
    level_arguments = ("level", "stage", "level_seed")
    keys = MappingProxyType({"left and right": "run", "up or space": "jump; longer is higher"})

    def source(self, settings: Mapping[str, Any]) -> Source:
        """Return generated levels.

        Args:
            settings: Fields of `LevelsConfig`.

        Raises:
            ConfigError: A setting is unknown or wrong.
        """
        levels = LevelsConfig.from_json(settings, "source")
        return LedgeLevels(levels.stages, levels.per_stage, levels.seed)

    def curriculum(self, labels: Sequence[str]) -> CurriculumConfig:
        """Return one stage after the other."""
        return _in_order(tuple(labels))

    def training_arguments(self, gamma: float) -> dict[str, Any]:
        """Return arguments with shaping by the agent's own discount.

        Shaping does not change what is best, and without it no way is found by chance.
        """
        return {"shaping": True, "gamma": gamma, "task_infos": False}

    def action_of_keys(self, held: Collection[str]) -> Any:
        """Return one of the six actions: idle, left or right, on the ground or with a jump."""
        way = ("right" in held) - ("left" in held)
        return (0, 2, 1)[way] + (JUMP if "up" in held or "space" in held else 0)

    def check(self, training: "TrainingConfig") -> Iterator[tuple[str, str]]:
        """Yield that an agent cannot choose among discrete actions."""
        if training.agent.action_kind == "continuous":
            yield (
                "agent",
                f"{training.agent.kind} needs continuous actions and {LEDGE_ENV} has discrete "
                "ones; use DDDQN or PPO.",
            )

    def programme(
        self, request: "EvaluationRequest", env_kwargs: Mapping[str, Any], rivals: Collection[str]
    ) -> Programme:
        """Return the held-out levels of some stages, without shaping.

        Deterministic policies play each level once, because a second game would be the same; so
        do others on the way of a training. Else they play at least `num_games` per stage, each
        level equally often.
        """
        practised = tuple(stage for stage in STAGES if stage in request.practised)
        kept = {name: value for name, value in env_kwargs.items() if name not in ("level", "stage")}
        is_once = request.is_deterministic or request.is_brief
        stages = request.labels or practised or STAGES
        levels = held_out_source(stages, request.held_out_set or SETS[0])
        return task_programme(
            {**kept, "shaping": False},
            [levels.get(number) for number in range(levels.num_tasks)],
            1 if is_once else request.num_games,
            request.seed,
            is_fixed=True,
        )

    def level_task(self, name: str, text: str) -> Task:
        """Return the task that plays a level."""
        return Task(name, "level", {"level": text})


LEDGE = Ledge()


@cache
def _in_order(stages: tuple[str, ...]) -> StagedConfig:
    return StagedConfig(
        stages=tuple(Stage(name=stage) for stage in stages), threshold=0.75, window_episodes=200
    )
