"""Ledge as a `Game`: generated levels, stages in order, and levels that no generator makes.

Found through `games.registry` by trainings, evaluations and commands.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from stepladder.configs.checks import require_whole
from stepladder.curricula.config import CurriculumConfig
from stepladder.curricula.staged.config import Stage, StagedConfig
from stepladder.errors import ConfigError
from stepladder.games.game import Game
from stepladder.games.ledge.source import LedgeLevels, held_out_source
from stepladder.games.ledge.stages import STAGES
from stepladder.games.programme import Programme, task_programme
from stepladder.tasks import Source, Task
from stepladder.tasks.task import MAX_SEED

if TYPE_CHECKING:
    from stepladder.training.config import TrainingConfig
    from stepladder.training.evaluation import EvaluationRequest

ENV = "stepladder/Ledge-v0"

CLIMB = STAGES[:5]
"""The stages over which difficulty rises."""

DEFAULTS: dict[str, Any] = {"stages": CLIMB, "per_stage": 200, "seed": 0}
"""Settings of the generated levels: stages, how many of each (None has no end), and a seed."""

MAX_LEVELS = 10_000_000
"""Levels of one stage; for more, use None, which has no end."""


class Ledge(Game):
    """A platform game; its stages are the labels of its levels."""

    is_finite = True
    time_limit_argument = "time_limit"
    level_arguments = ("level", "stage", "level_seed")

    def source(self, settings: Mapping[str, Any]) -> Source:
        """Return generated levels.

        Args:
            settings: Some of `DEFAULTS`; stages may also be one text with commas.

        Raises:
            ConfigError: A setting is unknown or wrong.
        """
        for name in settings:
            if name not in DEFAULTS:
                raise ConfigError(f"has {name!r}; known here are {', '.join(DEFAULTS)}.")
        stages, per_stage, seed = {**DEFAULTS, **settings}.values()
        if isinstance(stages, str):
            stages = [stage for stage in stages.split(",") if stage]
        _require_stages(stages)
        if per_stage is not None:
            require_whole("per_stage", per_stage, 1, MAX_LEVELS)
        require_whole("seed", seed, 0, MAX_SEED)
        return LedgeLevels(stages, per_stage, seed)

    def curriculum(self, labels: Sequence[str]) -> CurriculumConfig:
        """Return one stage after the other."""
        return _in_order(tuple(labels))

    def training_arguments(self, gamma: float) -> dict[str, Any]:
        """Return arguments with shaping by the agent's own discount.

        Shaping does not change what is best, and without it no way is found by chance.
        """
        return {"shaping": True, "gamma": gamma, "task_infos": False}

    def check(self, training: "TrainingConfig") -> Iterator[tuple[str, str]]:
        """Yield that an agent cannot choose among discrete actions."""
        if training.agent.action_kind == "continuous":
            yield (
                "agent",
                f"{training.agent.kind} needs continuous actions and {ENV} has discrete ones; use "
                "DDDQN or PPO.",
            )

    def programme(
        self, request: "EvaluationRequest", env_kwargs: Mapping[str, Any], rivals: Collection[str]
    ) -> Programme:
        """Return the held-out levels of some stages, without shaping.

        Deterministic policies play each level once, because a second game would be the same;
        others play at least `num_games` per stage, each level equally often.
        """
        practised = tuple(stage for stage in STAGES if stage in request.practised)
        kept = {name: value for name, value in env_kwargs.items() if name not in ("level", "stage")}
        levels = held_out_source(request.labels or practised or STAGES)
        return task_programme(
            {**kept, "shaping": False},
            [levels.get(number) for number in range(levels.num_tasks)],
            1 if request.is_deterministic else request.num_games,
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


def _require_stages(stages: Any) -> None:
    if not isinstance(stages, list | tuple) or not stages:
        raise ConfigError(
            f"stages must name some of {', '.join(STAGES)}; got {stages!r}. Give a list of names."
        )
    for stage in stages:
        if stage not in STAGES:
            raise ConfigError(f"stages has {stage!r}; expected some of {', '.join(STAGES)}.")
        if stages.count(stage) > 1:
            raise ConfigError(f"stages has {stage!r} twice. Name each once.")
