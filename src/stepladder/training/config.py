"""All settings of a training.

Start of `training`: a config comes from Python, a file or a preset; the loop, evaluations,
opponents and checkpoints each read their part. Nothing here needs torch.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from stepladder.agents.config import AgentConfig, PPOConfig
from stepladder.configs.checks import (
    MAX_ENVS,
    plain,
    require_kind,
    require_positive,
    require_whole,
)
from stepladder.configs.documents import MAX_INTEGER
from stepladder.curricula.config import CurriculumConfig
from stepladder.curricula.uniform import UniformConfig
from stepladder.envs.ids import known_game, name_of
from stepladder.errors import ConfigError, TaskError, shown
from stepladder.games.registry import DEFAULT_ENV
from stepladder.tasks import ListSource, Source, Task
from stepladder.tasks.plain import to_plain
from stepladder.tasks.task import MAX_SEED
from stepladder.training.contradictions import ContradictionError, contradictions
from stepladder.training.problems import Problems
from stepladder.training.reading import UNREAD, load_document, read_object

UNCHOSEN = UniformConfig()
"""Stands for the default curriculum of whatever is practised, as long as none is chosen."""

_defaults: list[CurriculumConfig] = [UNCHOSEN]
"""Default curricula of games. A config that holds one of these very objects has chosen none, so
that the curriculum follows when env or source are changed."""

MAX_SEATS = 1_000
"""Past selves: each has a network of its own."""

MAX_THREADS = 4_096

MAX_EPISODE_STEPS = 2**31 - 1
"""Games count their steps in 32 bits."""

_DEVICE = re.compile(r"auto|cpu|cuda(:\d+)?")


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """How often, and on what, the agent is evaluated."""

    every_steps: int | None = 100_000
    """Env steps of training between two evaluations; None is only at the end."""

    num_games: int = 200
    """Games per label of tasks, or per opponent."""

    opponents: tuple[str, ...] = ()
    """Whom the agent plays in a game for two: scripted players, or "caller:" and a file or an
    archive's id; none named is the game's own choice."""

    seed: int = 10_000
    """Seed of all evaluations, so that each has the same games."""

    labels: tuple[str, ...] = ()
    """Which labels of tasks are played, such as stages; none named is all that are practised."""

    def __post_init__(self) -> None:
        if self.every_steps is not None:
            require_whole("every_steps", self.every_steps, 1)
        require_whole("num_games", self.num_games, 1, MAX_ENVS)
        for name in ("opponents", "labels"):
            given = getattr(self, name)
            require_kind(name, given, (list, tuple), fix="Give several names.")
            for entry in given:
                require_kind(name, entry, str, fix="Give names.")
            if len(set(given)) < len(given):
                raise ConfigError(f"{name} must differ; got {shown(list(given))}. Name each once.")
            object.__setattr__(self, name, tuple(given))
        _require_seed(self.seed)


@dataclass(frozen=True, kw_only=True)
class OpponentsConfig:
    """Where neural opponents come from, and how they play."""

    snapshot_every_steps: int = 250_000
    """Env steps between two past selves that are kept for "caller:pool"."""

    pool_size: int = 8
    """Past selves that are kept; when all seats are taken, a well-known one from whom least can be
    learnt makes room, else the oldest."""

    archive: str | None = None
    """Folder of the archive, for "caller:archive" and to which this agent is added."""

    deterministic: bool = False
    """Whether they play their best action rather than a sample."""

    def __post_init__(self) -> None:
        require_whole("snapshot_every_steps", self.snapshot_every_steps, 1)
        require_whole("pool_size", self.pool_size, 1, MAX_SEATS)
        if self.archive is not None and not (isinstance(self.archive, str) and self.archive):
            raise ConfigError(
                f"archive must be a folder's path or None; got {shown(self.archive)}."
            )
        require_kind("deterministic", self.deterministic, bool, fix="Give True or False.")


@dataclass(frozen=True, kw_only=True)
class CheckpointConfig:
    """How often the training is saved."""

    every_steps: int | None = None
    """Env steps between two checkpoints; None goes by time alone."""

    every_s: float = 60.0
    """Seconds between two checkpoints, whatever the steps."""

    keep: int = 2
    """Checkpoints that are kept; the oldest make room."""

    def __post_init__(self) -> None:
        if self.every_steps is not None:
            require_whole("every_steps", self.every_steps, 1)
        require_positive("every_s", self.every_s)
        require_whole("keep", self.keep, 1)


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """One training: what is practised, by which agent, for how long."""

    env: str = DEFAULT_ENV
    """Gymnasium's id of the env; as module:id, importing the module registers it. Or a class or
    function that makes an env, as module:name; in Python, the class or function itself."""

    env_kwargs: dict[str, Any] = field(default_factory=dict[str, Any])
    """Arguments for the env."""

    num_envs: int = 128
    """Envs that are stepped together."""

    num_workers: int | None = None
    """Processes beside this one that step envs; None chooses the faster of none and one per core.
    Built-in games use threads instead unless a number above 0 is given."""

    total_steps: int = 2_000_000
    """Env steps of all envs together, after which training ends; those of evaluations count, unless
    there are `total_episodes`."""

    total_episodes: int | None = None
    """Episodes after which training ends, if `total_steps` have not ended it; None is no limit."""

    seed: int = 0
    """Seed of everything: weights, exploration, draws, envs."""

    device: str = "cpu"
    """Where the networks are: cpu, cuda, cuda:1, or auto (a GPU if there is one)."""

    num_threads: int | None = 1
    """Threads of torch on the CPU; None leaves torch's own. More of them help large networks on an
    idle machine; where one has to share its core, all wait for it."""

    tasks: tuple[Task, ...] = ()
    """What is practised. Without any: what the game offers (`source`), else the env as it is."""

    source: dict[str, Any] = field(default_factory=dict[str, Any])
    """Which tasks of its own a game offers, where there are no `tasks`; the game says what can be
    set, such as stages, per_stage and seed."""

    curriculum: CurriculumConfig = UNCHOSEN
    """Which task next. By default the game's own curriculum over its own tasks; over `tasks`, or
    where the game has none, every task alike."""

    agent: AgentConfig = field(default_factory=PPOConfig)
    """The agent that learns."""

    reward_scale: float = 1.0
    """Factor on rewards before they are learnt from; what is reported is not scaled."""

    max_episode_steps: int | None = None
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

    epoch_steps: int = 16_384
    """Env steps between two lines of metrics; as many as between two evaluations at the most."""

    def __post_init__(self) -> None:
        self._check_numbers()
        self._check_kinds()
        self._check_tasks()
        game = known_game(self.env)
        labels = self._labels()
        if any(self.curriculum is default for default in _defaults):
            own = UNCHOSEN if self.tasks or game is None else game.curriculum(labels)
            if own not in _defaults:
                _defaults.append(own)
            object.__setattr__(self, "curriculum", _defaults[_defaults.index(own)])
        found = contradictions(self, game, labels)
        if found:
            raise ContradictionError(found)

    def _labels(self) -> tuple[str, ...]:
        """Return the labels of what is practised; none if only the env's module knows them."""
        if known_game(self.env) is None and not self.tasks:
            return ()
        try:
            return tuple(self.task_source().labels())
        except (ConfigError, TaskError) as error:
            raise ConfigError(f"source {error}") from error

    def task_source(self) -> Source:
        """Return what is practised: the tasks, what the game offers, or the env as it is."""
        if self.tasks:
            return ListSource(self.tasks)
        return self.own_source() or ListSource([Task(self.env)])

    def own_source(self) -> Source | None:
        """Return the tasks that the game offers, unless others are named; None has none."""
        game = known_game(self.env)
        return None if self.tasks or game is None else game.source(self.source)

    def _check_numbers(self) -> None:
        require_whole("num_envs", self.num_envs, 1, MAX_ENVS)
        if self.num_workers is not None:
            require_whole("num_workers", self.num_workers, 0, MAX_ENVS)
        for name in ("total_steps", "epoch_steps"):
            require_whole(name, getattr(self, name), 1)
        most = {"max_episode_steps": MAX_EPISODE_STEPS, "num_threads": MAX_THREADS}
        for name in ("total_episodes", "max_episode_steps", "num_threads"):
            if getattr(self, name) is not None:
                require_whole(name, getattr(self, name), 1, most.get(name, MAX_INTEGER))
        _require_seed(self.seed)
        require_positive("reward_scale", self.reward_scale)
        if not isinstance(self.device, str) or not _DEVICE.fullmatch(self.device):
            raise ConfigError(
                f"device must be cpu, cuda, cuda: with a number, or auto; got {shown(self.device)}."
            )

    def _check_kinds(self) -> None:
        for name, kind, fix in (
            ("curriculum", CurriculumConfig, "Give its config, such as StagedConfig(…)."),
            ("agent", AgentConfig, "Give its config, such as PPOConfig(…)."),
            ("evaluation", EvaluationConfig, "Give EvaluationConfig(…)."),
            ("opponents", OpponentsConfig, "Give OpponentsConfig(…)."),
            ("checkpoints", CheckpointConfig, "Give CheckpointConfig(…)."),
            ("clear_buffer", bool, "Give True or False."),
            ("clear_buffer_on", dict, "Give True or False by the name of a phase."),
            ("env_kwargs", dict, "Give arguments by name."),
            ("source", dict, "Give settings by name."),
            ("tasks", (list, tuple), "Give several Task(…)."),
        ):
            require_kind(name, getattr(self, name), kind, fix=fix)
        for phase, choice in self.clear_buffer_on.items():
            require_kind(f"clear_buffer_on[{phase!r}]", choice, bool, fix="Give True or False.")
        object.__setattr__(self, "env", name_of(self.env))
        if not self.env:
            raise ConfigError(f"env must be an env's id; got {shown(self.env)}.")
        try:
            for name in ("env_kwargs", "source"):
                # As it would come back from a file.
                object.__setattr__(self, name, to_plain(getattr(self, name), name))
        except TaskError as error:
            raise ConfigError(str(error)) from error

    def _check_tasks(self) -> None:
        object.__setattr__(self, "tasks", tuple(self.tasks))
        names: set[str] = set()
        for task in self.tasks:
            require_kind("tasks", task, Task, fix="Give Task(…), or leave tasks out.")
            if task.name in names:
                raise ConfigError(f"tasks has {task.name!r} twice; names must differ. Rename one.")
            names.add(task.name)

    def clears_buffer(self, phase: str) -> bool:
        """Return whether the memory is cleared at the beginning of a phase."""
        return self.clear_buffer_on.get(phase, self.clear_buffer)

    def to_json(self) -> dict[str, Any]:
        """Return the config as plain JSON, from which `from_json` makes an equal one."""
        return {entry.name: _as_json(getattr(self, entry.name)) for entry in fields(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], document: str = "the config") -> "TrainingConfig":
        """Return the config that `to_json` gave, or a user wrote; what is left out has defaults.

        Args:
            data: The settings, by the names of the fields.
            document: What to call it in messages.

        Raises:
            ConfigError: Something is wrong; all of it is listed.
        """
        problems = Problems()
        problems.add_unreadable(data)
        problems.raise_if_any(document)
        config = read_object(data, cls, "", problems)
        problems.raise_if_any(document)
        assert config is not UNREAD
        return config


def load_config(source: str | PathLike[str] | Mapping[str, Any]) -> TrainingConfig:
    """Return the config that a preset's name, a file or what `json` made of one stands for.

    Args:
        source: A preset of `presets.PRESETS`; the path of a JSON file with the fields of
            `TrainingConfig`, or in the schema that `ancestor_config` describes; or its content.

    Raises:
        ConfigError: There is no such preset or file, or something in it is wrong; all of it is
            listed, with its path.
    """
    # Loaded here: both are made of what this module defines.
    from stepladder.training.ancestor_config import ancestor_from_json, is_ancestor
    from stepladder.training.presets import PRESETS, no_such_preset

    if isinstance(source, str) and source in PRESETS:
        return PRESETS[source]
    if isinstance(source, Mapping):
        data, document = source, "the config"
    elif isinstance(source, str) and not _is_there(source):
        raise no_such_preset(source)
    else:
        require_kind("source", source, (str, PathLike), fix="Name a preset or a file.")
        data, document = load_document(source), str(source)
    if is_ancestor(data):
        return ancestor_from_json(data, document)
    return TrainingConfig.from_json(data, document)


def _is_there(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        # Too long a name, or one that no file can have.
        return False


def _as_json(value: Any) -> Any:
    if isinstance(value, CurriculumConfig | AgentConfig | Task):
        return value.to_json()
    if isinstance(value, tuple):
        return [_as_json(entry) for entry in value]
    return plain(asdict(value)) if is_dataclass(value) and not isinstance(value, type) else value


def _require_seed(seed: Any) -> None:
    require_whole("seed", seed, 0)
    if seed > MAX_SEED:
        raise ConfigError(
            f"seed must be at most {MAX_SEED}; got {shown(seed)}. Choose a smaller one."
        )
