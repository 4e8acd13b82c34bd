"""All settings of a training.

Start of `training`: a config comes from Python, a file or a preset; the loop, evaluations,
opponents and checkpoints each read their part. Nothing here needs torch.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Annotated, Any, ClassVar

from stepladder.agents.config import AgentConfig
from stepladder.agents.ppo.config import PPOConfig
from stepladder.configs.checks import (
    MAX_ENVS,
    Integer,
    Name,
    Positive,
    PositiveInteger,
    each_once,
    require_kind,
)
from stepladder.configs.codec import Config
from stepladder.configs.documents import PARAMS, Bounds, load_document
from stepladder.configs.problems import Problems
from stepladder.curricula.auto.config import AutoConfig
from stepladder.curricula.config import CurriculumConfig
from stepladder.envs.env_settings import EnvSettings, is_delivery
from stepladder.envs.ids import game_of, known_game
from stepladder.envs.success import SuccessReader
from stepladder.errors import ConfigError, StepladderError, shown
from stepladder.files import is_there
from stepladder.games.registry import DEFAULT_ENV
from stepladder.named import is_named
from stepladder.tasks import ListSource, Source, Task
from stepladder.tasks.loading import find_tasks, known_tasks, load_tasks, repeated_names
from stepladder.tasks.task import MAX_SEED
from stepladder.training.contradictions import contradictions
from stepladder.training.naming import is_file, names_in_place_of_code

EPOCH_STEPS_IN_ALL, EPOCH_STEPS_PER_ENV = 16_384, 64
"""Least env steps between two lines of metrics, if nothing else is said."""

UNCHOSEN = AutoConfig()
"""Stands for the default curriculum of whatever is practised, as long as none is chosen."""

_defaults: list[CurriculumConfig] = [UNCHOSEN]
"""Default curricula of games. A config that holds one of these very objects has chosen none, so
that the curriculum follows when env or source are changed."""


def _is_device(value: Any) -> str | None:
    if isinstance(value, str) and re.fullmatch(r"auto|cpu|cuda(:\d+)?", value):
        return None
    return f"must be cpu, cuda, cuda: with a number, or auto; got {shown(value)}."


SeedSetting = Annotated[int, Integer(0, MAX_SEED)]


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig(Config):
    """How often, and on what, the agent is evaluated."""

    every_steps: PositiveInteger | None = 100_000
    """Env steps of training between two evaluations; None is only at the end."""

    num_games: Annotated[int, Integer(1, MAX_ENVS)] = 200
    """Games per label of tasks, or per opponent; on the way, a game may play fixed levels once."""

    opponents: Annotated[tuple[str, ...], each_once] = ()
    """Whom the agent plays in a game for two: scripted players, or "caller:" and a file or an
    archive's id; none named is the game's own choice."""

    seed: SeedSetting = 10_000
    """Seed of all evaluations, so that each has the same games."""

    labels: Annotated[tuple[str, ...], each_once] = ()
    """Which labels of tasks are played, such as stages; none named is all that are practised."""


@dataclass(frozen=True, kw_only=True)
class OpponentsConfig(Config):
    """Where neural opponents come from, and how they play."""

    snapshot_every_steps: PositiveInteger = 250_000
    """Env steps between two past selves that are kept for "caller:pool"."""

    pool_size: Annotated[int, Integer(1, 1_000)] = 8
    """Past selves that are kept, each with a network of its own; when all seats are taken, a
    well-known one from whom least can be learnt makes room, else the oldest."""

    archive: Name | None = None
    """Folder of the archive, for "caller:archive" and to which this agent is added."""

    deterministic: bool = False
    """Whether they play their best action rather than a sample."""


@dataclass(frozen=True, kw_only=True)
class CheckpointConfig(Config):
    """How often the training is saved."""

    every_steps: PositiveInteger | None = None
    """Env steps between two checkpoints; None goes by time alone."""

    every_s: Positive = 60.0
    """Seconds between two checkpoints, whatever the steps."""

    keep: PositiveInteger = 2
    """Checkpoints that are kept; the oldest make room."""


@dataclass(frozen=True, kw_only=True)
class TrainingConfig(Config):
    """One training: what is practised, by which agent, for how long."""

    large: ClassVar[Mapping[str, Bounds]] = {"tasks": PARAMS}

    env: Name = DEFAULT_ENV
    """Gymnasium's id of the env; as module:id, importing the module registers it. Or a class or
    function that makes an env, as module:name; in Python, the class or function itself."""

    env_kwargs: dict[str, Any] = field(default_factory=dict[str, Any])
    """Arguments for the env."""

    num_envs: Annotated[int, Integer(1, MAX_ENVS)] = 128
    """Envs that are stepped together."""

    num_workers: Annotated[int, Integer(0, MAX_ENVS)] | None = None
    """Processes beside this one that step envs; None chooses the faster of none and one per core.
    Built-in games use threads instead unless a number above 0 is given."""

    total_steps: PositiveInteger = 2_000_000
    """Env steps of all envs together, after which training ends; those of evaluations do not
    count."""

    total_episodes: PositiveInteger | None = None
    """Episodes after which training ends, if `total_steps` have not ended it; None is no limit."""

    seed: SeedSetting = 0
    """Seed of everything: weights, exploration, draws, envs."""

    device: Annotated[str, _is_device] = "cpu"
    """Where the networks are: cpu, cuda, cuda:1, or auto (a GPU if there is one)."""

    num_threads: Annotated[int, Integer(1, 4_096)] | None = 1
    """Threads of torch on the CPU; None leaves torch's own. More of them help large networks on an
    idle machine; where one has to share its core, all wait for it."""

    tasks: tuple[Task, ...] | Name = ()
    """What is practised; a list of tasks, a file with one (`tasks.loading`), or module:name, which
    is a list, a source or a function that returns one. Without any: what the game offers
    (`source`), else the env as it is."""

    capacity: PositiveInteger | None = None
    """Tasks that are active at once; needed for a source without end. None is all."""

    source: dict[str, Any] = field(default_factory=dict[str, Any])
    """Which tasks of its own a game offers, where there are no `tasks`; the game says what can be
    set, such as stages, per_stage and seed."""

    curriculum: CurriculumConfig = UNCHOSEN
    """Which task next. By default the game's own curriculum over its own tasks; over `tasks`, or
    where the game has none, auto: the method that fits the tasks."""

    agent: AgentConfig = field(default_factory=PPOConfig)
    """The agent that learns."""

    reward_scale: Positive = 1.0
    """Factor on rewards before they are learnt from; what is reported is not scaled."""

    wrappers: tuple[Annotated[str, is_named], ...] = ()
    """Put around each env, in this order: classes or functions that take an env and return one, as
    module:name; in Python, the classes and functions themselves."""

    deliver: Annotated[str, is_delivery] = "auto"
    """How a task reaches the env: auto finds out, method is set_task(task), options is
    reset(options={"task": task}); or a function of env and task, as module:name."""

    success_key: Name | None = None
    """Info key that holds success, and that the last info of every episode must have. By default
    is_success, then success."""

    return_threshold: float | None = None
    """Return from which an episode without such a key is a success. None by default."""

    missing_success_is_failure: bool = False
    """Whether an episode without any sign of success is a failure rather than an error."""

    max_episode_steps: Annotated[int, Integer(1, 2**31 - 1)] | None = None
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

    epoch_steps: PositiveInteger | None = None
    """Env steps between two lines of metrics; as many as between two evaluations at the most. By
    default 16,384, and at least 64 of every env: with thousands of envs a line costs as much as
    some steps."""

    def __post_init__(self) -> None:
        for name, value in names_in_place_of_code(vars(self)).items():
            object.__setattr__(self, name, value)
        super().__post_init__()

    def derive(self) -> None:
        """Let the default curriculum follow from what is practised."""
        if any(self.curriculum is default for default in _defaults):
            game, labels = known_game(self.env), self._labels()
            own = UNCHOSEN if self.tasks or game is None or not labels else game.curriculum(labels)
            if own not in _defaults:
                _defaults.append(own)
            object.__setattr__(self, "curriculum", _defaults[_defaults.index(own)])

    def task_source(self) -> Source:
        """Return what is practised: the tasks, what the game offers, or the env as it is."""
        if isinstance(self.tasks, str):
            return find_tasks(self.tasks)
        if self.tasks:
            return ListSource(self.tasks)
        return self.own_source() or ListSource([Task(self.env)])

    @property
    def steps_per_epoch(self) -> int:
        """Env steps of an epoch, at whose end evaluations are made: none is longer than one's."""
        steps = self.epoch_steps or max(EPOCH_STEPS_IN_ALL, EPOCH_STEPS_PER_ENV * self.num_envs)
        return min(steps, self.evaluation.every_steps or steps)

    @property
    def listed_tasks(self) -> tuple[Task, ...]:
        """The tasks that the config itself holds."""
        return () if isinstance(self.tasks, str) else self.tasks

    def env_settings(self) -> EnvSettings:
        """Return how single envs are played; the modules that it names are imported."""
        success = SuccessReader(
            key=self.success_key,
            return_threshold=self.return_threshold,
            missing_is_failure=self.missing_success_is_failure,
        )
        return EnvSettings.of_names(self.wrappers, self.deliver, success)

    def imported(self) -> "TrainingConfig":
        """Import what the config names; return it with its tasks and the checks of the env's game.

        Raises:
            ConfigError: Something that it names does not exist, or does not fit.
        """
        game_of(self.env)
        self.env_settings()
        return replace(self, tasks=self._kept_tasks())

    def with_tasks(self, tasks: str) -> "TrainingConfig":
        """Return the config with the tasks of a file or a module, which is imported."""
        named = replace(self, tasks=tasks)
        return replace(named, tasks=named._kept_tasks())

    def _kept_tasks(self) -> Any:
        """Return what a run keeps of the tasks: a list of them; of another source, the name."""
        source = self.task_source() if isinstance(self.tasks, str) else None
        if isinstance(source, ListSource):
            return tuple(map(source.get, range(source.num_tasks)))
        return self.tasks

    def own_source(self) -> Source | None:
        """Return the tasks that the game offers, unless others are named; None has none."""
        game = known_game(self.env)
        return None if self.tasks or game is None else game.source(self.source)

    def _labels(self) -> tuple[str, ...]:
        """Return the labels of what is practised; none if they are not known."""
        if isinstance(self.tasks, str):
            known = known_tasks(self.tasks)
            return () if known is None else tuple(known.labels())
        if self.tasks:
            return tuple(dict.fromkeys(task.label for task in self.tasks))
        is_known = known_game(self.env) is not None
        if not is_known or _source_problems(self.env, self.tasks, self.source):
            return ()
        return tuple(self.task_source().labels())

    @classmethod
    def expand(cls, value: Any, problems: Problems) -> Any:
        """Check what only the game knows, so that it is listed with the problems of all fields."""
        if isinstance(value, Mapping):
            value = _with_tasks_of_file(value, problems.at("tasks"))
            env, source = value.get("env", DEFAULT_ENV), value.get("source", {})
            if isinstance(env, str) and isinstance(source, Mapping):
                for path, text in _source_problems(env, value.get("tasks"), source):
                    problems.at(path).add(text)
        return value

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield tasks of the same name, a wrong source, and settings that do not go together."""
        for index, text in repeated_names(self.listed_tasks):
            yield f"tasks[{index}].name", text
        yield from _source_problems(self.env, self.tasks, self.source)
        yield from contradictions(self, known_game(self.env), self._labels())

    def clears_buffer(self, phase: str) -> bool:
        """Return whether the memory is cleared at the beginning of a phase."""
        return self.clear_buffer_on.get(phase, self.clear_buffer)


def _with_tasks_of_file(value: Mapping[str, Any], problems: Problems) -> Mapping[str, Any]:
    """Return settings with the tasks themselves, where they name a file."""
    path: Any = value.get("tasks")
    if not is_file(path):
        return value
    try:
        if not is_there(path):
            raise ConfigError(f"there is no file {shown(path)}. Correct the path.")
        return {**value, "tasks": load_tasks(path)}
    except ConfigError as error:
        found = [f"{path}: {place}: {text}" for place, text in error.problems]
        for text in found or [str(error)]:
            problems.add(text)
        return {name: setting for name, setting in value.items() if name != "tasks"}


def _source_problems(env: str, tasks: Any, source: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """Return what a game refuses in the settings of its own tasks, with the paths."""
    problems = Problems(key="source")
    try:
        game = known_game(env)
        if game is not None and not tasks:
            game.source(source)
    except StepladderError as error:
        problems.add_error(error)
    return problems.found


def load_config(source: str | PathLike[str] | Mapping[str, Any]) -> TrainingConfig:
    """Return the config that a preset's name, a file or what `json` made of one stands for.

    Args:
        source: A preset of `presets.PRESETS`; the path of a JSON or YAML file with the fields of
            `TrainingConfig`, or in the schema of `published.config`; or its content.

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
    elif isinstance(source, str) and not is_there(source):
        raise no_such_preset(source)
    else:
        require_kind("source", source, (str, PathLike), fix="Name a preset or a file.")
        data, document = load_document(source), str(source)
    if is_published(data):
        return published_from_json(data, document)
    return TrainingConfig.from_json(data, document)
