"""Everything that is said about a training before it begins.

Start of `training`: a config comes from Python, a file or a preset; the loop, evaluations,
opponents and checkpoints each read their part. Nothing here needs torch.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

from stepladder.agents.config import AgentConfig, PPOConfig
from stepladder.configs.checks import (
    MAX_ENVS,
    Count,
    Name,
    OneOf,
    Positive,
    Whole,
    each_once,
    not_empty,
    require_kind,
)
from stepladder.configs.codec import Config
from stepladder.configs.documents import load_document
from stepladder.curricula.config import CurriculumConfig
from stepladder.curricula.staged.config import Stage, StagedConfig
from stepladder.curricula.uniform import UniformConfig
from stepladder.errors import shown
from stepladder.games.hockey.task import CALLED, OPPONENTS
from stepladder.games.ledge.stages import STAGES
from stepladder.tasks import Task
from stepladder.tasks.task import MAX_SEED
from stepladder.training.contradictions import LEDGE, contradictions

CLIMB = STAGES[:5]
"""The stages of Ledge over which difficulty rises."""

SCRIPTED = tuple(name for name in OPPONENTS if name != "caller")
"""Opponents in hockey whom the env plays itself."""

STAGES_IN_ORDER = StagedConfig(
    stages=tuple(Stage(name=stage) for stage in CLIMB), threshold=0.75, window_episodes=200
)
"""The default curriculum, as long as nobody has chosen another."""


def _is_opponent(value: Any) -> str | None:
    if isinstance(value, str) and (value in SCRIPTED or value.startswith(CALLED)):
        return None
    wanted = f"must be one of {', '.join(SCRIPTED)}, or '{CALLED}' and a file"
    return f"{wanted}; got {shown(value)}. Correct the name."


def _is_device(value: Any) -> str | None:
    if isinstance(value, str) and re.fullmatch(r"auto|cpu|cuda(:\d+)?", value):
        return None
    return f"must be cpu, cuda, cuda: with a number, or auto; got {shown(value)}."


Seed = Annotated[int, Whole(0, MAX_SEED)]
Stages = Annotated[tuple[Annotated[str, OneOf(STAGES)], ...], each_once]


@dataclass(frozen=True, kw_only=True)
class LevelsConfig(Config):
    """Which generated levels of Ledge are practised."""

    stages: Annotated[Stages, not_empty] = CLIMB
    """Their stages; each is a label for the curriculum."""

    per_stage: Annotated[int, Whole(1, 10_000_000)] | None = 200
    """Levels of each stage; None is without end, and without a list of them."""

    seed: Seed = 0
    """Another seed gives other levels; the held-out ones stay the same."""


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig(Config):
    """How often, and on what, the agent is examined."""

    every_steps: Count | None = 100_000
    """Env steps of training between two evaluations; None is only at the end."""

    num_games: Annotated[int, Whole(1, MAX_ENVS)] = 200
    """Games per task, or per opponent."""

    opponents: tuple[Annotated[str, _is_opponent], ...] = ("weak", "strong")
    """Whom the agent plays (hockey): scripted ones, or "caller:" and a file or an archive's id."""

    seed: Seed = 10_000
    """Seed of all evaluations, so that each has the same games."""

    stages: Stages = ()
    """Stages of Ledge whose held-out levels are played; none named is all that are practised."""


@dataclass(frozen=True, kw_only=True)
class OpponentsConfig(Config):
    """Where neural opponents come from, and how they play."""

    snapshot_every_steps: Count = 250_000
    """Env steps between two past selves that are kept for "caller:pool"."""

    pool_size: Annotated[int, Whole(1, 1_000)] = 8
    """Past selves that are kept, each with a network of its own; when all seats are taken, a
    well-known one from whom least can be learnt makes room, else the oldest."""

    archive: Name | None = None
    """Folder of the archive, for "caller:archive" and to which this agent is added."""

    deterministic: bool = False
    """Whether they play their best action rather than a sample."""


@dataclass(frozen=True, kw_only=True)
class CheckpointConfig(Config):
    """How often the training is saved."""

    every_steps: Count | None = None
    """Env steps between two checkpoints; None goes by time alone."""

    every_s: Positive = 60.0
    """Seconds between two checkpoints, whatever the steps."""

    keep: Count = 2
    """Checkpoints that are kept; the oldest make room."""


@dataclass(frozen=True, kw_only=True)
class TrainingConfig(Config):
    """One training: what is practised, by whom, for how long. By default, PPO climbs Ledge."""

    env: Name = LEDGE
    """Gymnasium's id of the env; as module:id, importing the module registers it. Or a function
    that makes an env, as module:function."""

    env_kwargs: dict[str, Any] = field(default_factory=dict[str, Any])
    """Arguments for the env."""

    num_envs: Annotated[int, Whole(1, MAX_ENVS)] = 128
    """Envs that are stepped together."""

    total_steps: Count = 2_000_000
    """Env steps of all envs together, after which training ends; those of evaluations count, unless
    there are `total_episodes`."""

    total_episodes: Count | None = None
    """Episodes after which training ends, if `total_steps` have not ended it; None is no limit."""

    seed: Seed = 0
    """Seed of everything: weights, exploration, draws, envs."""

    device: Annotated[str, _is_device] = "cpu"
    """Where the networks are: cpu, cuda, cuda:1, or auto (a GPU if there is one)."""

    num_threads: Annotated[int, Whole(1, 4_096)] | None = 1
    """Threads of torch on the CPU; None leaves torch's own. More of them help large networks on an
    idle machine; where one has to share its core, all wait for it."""

    tasks: tuple[Task, ...] = ()
    """What is practised. Without any: the `levels` of Ledge; in any other env, the env itself."""

    levels: LevelsConfig = field(default_factory=LevelsConfig)
    """Generated levels, where the env is Ledge and there are no `tasks`."""

    curriculum: CurriculumConfig = STAGES_IN_ORDER
    """Which task next. By default one of the `levels`' stages after the other; where there are no
    levels, every task alike."""

    agent: AgentConfig = field(default_factory=PPOConfig)
    """Who learns."""

    reward_scale: Positive = 1.0
    """Factor on rewards before they are learnt from; what is reported is not scaled."""

    max_episode_steps: Annotated[int, Whole(1, 2**31 - 1)] | None = None
    """Steps after which any episode is cut off; None leaves it to the env."""

    clear_buffer: bool = True
    """Whether the memory is cleared at the beginning of each later phase."""

    clear_buffer_on: dict[str, bool] = field(default_factory=dict[str, bool])
    """The same for single phases, by name."""

    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    """Examinations on the way and at the end."""

    opponents: OpponentsConfig = field(default_factory=OpponentsConfig)
    """Neural opponents, where a task or a phase has any."""

    checkpoints: CheckpointConfig = field(default_factory=CheckpointConfig)
    """What is saved so that the training can be resumed."""

    epoch_steps: Count = 16_384
    """Env steps between two lines of metrics; as many as between two evaluations at the most."""

    def derive(self) -> None:
        """Let the default curriculum follow from what is practised."""
        if self.curriculum is not STAGES_IN_ORDER:
            return
        if self.env != LEDGE or self.tasks:
            object.__setattr__(self, "curriculum", UniformConfig())
        elif self.levels.stages != CLIMB:
            stages = tuple(Stage(name=stage) for stage in self.levels.stages)
            object.__setattr__(self, "curriculum", replace(STAGES_IN_ORDER, stages=stages))

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield tasks of the same name, and settings that do not go together."""
        names: set[str] = set()
        for index, task in enumerate(self.tasks):
            if task.name in names:
                text = f"is {task.name!r}, as of an earlier task. Rename one."
                yield f"tasks[{index}].name", text
            names.add(task.name)
        yield from contradictions(self)

    def clears_buffer(self, phase: str) -> bool:
        """Return whether the memory is cleared at the beginning of a phase."""
        return self.clear_buffer_on.get(phase, self.clear_buffer)


def load_config(source: str | PathLike[str] | Mapping[str, Any]) -> TrainingConfig:
    """Return the config that a preset's name, a file or what `json` made of one stands for.

    Args:
        source: A preset of `presets.PRESETS`; the path of a JSON file with the fields of
            `TrainingConfig`, or in the schema of `published.schema`; or its content.

    Raises:
        ConfigError: There is no such preset or file, or something in it is wrong; all of it is
            listed, with its path.
    """
    # Loaded here: both are made of what this module defines.
    from stepladder.training.presets import PRESETS, no_such_preset
    from stepladder.training.published.config import is_published, published_from_json

    if isinstance(source, str) and source in PRESETS:
        return PRESETS[source]
    if isinstance(source, Mapping):
        data, document = source, "the config"
    elif isinstance(source, str) and not _is_there(source):
        raise no_such_preset(source)
    else:
        require_kind("source", source, (str, PathLike), fix="Name a preset or a file.")
        data, document = load_document(source), str(source)
    if is_published(data):
        return published_from_json(data, document)
    return TrainingConfig.from_json(data, document)


def _is_there(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        # Too long a name, or one that no file can have.
        return False
