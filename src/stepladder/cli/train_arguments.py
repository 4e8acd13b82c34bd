"""The flags of ``stepladder train``, made of a preset or a config, and the config made of them.

Between the command line and `train`. What is named first decides what the flags begin with: the
settings of its agent and of its curriculum each have flags of their own.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from stepladder.agents.config import AgentConfig, agent_named
from stepladder.agents.ppo.config import PPOConfig
from stepladder.cli.finding import look_for
from stepladder.cli.keeping import Keeping
from stepladder.cli.parsing import given, parse
from stepladder.cli.playable import read_settings
from stepladder.configs.documents import load_document
from stepladder.configs.problems import Problems
from stepladder.curricula.config import CurriculumConfig, TaskKnowledge
from stepladder.curricula.registry import curriculum_variants
from stepladder.envs.ids import game_of, module_of
from stepladder.errors import ConfigError
from stepladder.games.registry import DEFAULT_ENV
from stepladder.runs.trust import names_of_code
from stepladder.training.config import UNCHOSEN, TrainingConfig, load_config
from stepladder.training.presets import ANY_ENV, DEFAULT_PRESET, PRESETS

WITH_RESUME = frozenset(
    {
        "--resume",
        "--total-steps",
        "--device",
        "--trust",
        "--json",
        "--tensorboard",
        "--wandb",
        "--wandb-mode",
    }
)
"""Flags that make sense for a training that goes on; all else was settled when it began."""

_FLAG = re.compile(r"--[a-z][\w.-]*")


@dataclass(frozen=True, kw_only=True)
class TrainArguments(Keeping, TrainingConfig):
    """Train an agent, in front of your eyes.

    Ctrl-C stops it with everything saved, and it says how to go on. The flags are those of the
    preset or config that is named first: try stepladder train cartpole --help.
    """

    preset_or_config: tyro.conf.Positional[str | None] = None
    """A preset, or a JSON file with settings; the first preset unless one is named. Flags change
    single settings of it."""

    list_presets: bool = False
    """Whether to show all presets, and nothing else."""

    resume: Path | None = None
    """Folder of a run to go on with, as it began: only its end, its device and who is told of it
    can be given beside it."""

    trust: bool = False
    """Whether modules that the run to go on with, or the config file, names may be imported, which
    runs their code. Only if you trust where it came from."""

    initial_weights: Path | None = None
    """A run, checkpoint or file of weights whose policy the agent begins with."""

    json: bool = False
    """Whether to write one line of JSON at the end, and nothing else to standard output."""

    env_arguments: Annotated[
        tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(name="env-kwargs")
    ] = ()
    """An argument for the env as KEY=VALUE; may be given several times."""

    source_settings: Annotated[
        tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(name="source")
    ] = ()
    """Which tasks of its own a game offers, as KEY=VALUE, such as per_stage=50; may be given
    several times."""

    agent_kind: Annotated[str | None, tyro.conf.arg(name="agent", metavar="NAME")] = None
    """Who learns: ppo, sac, dddqn, or an agent of an installed package. With another than the
    preset's, its own flags begin with defaults."""

    curriculum_kind: Annotated[str | None, tyro.conf.arg(name="curriculum", metavar="NAME")] = None
    """What chooses the tasks: a curriculum by name, one of the subcommands of stepladder simulate,
    or a JSON file such as {"type": "frontier"}."""

    # Redeclared for the help alone, which has a group of flags for each.
    curriculum: CurriculumConfig = UNCHOSEN
    """Settings of the curriculum."""

    agent: AgentConfig = field(default_factory=PPOConfig)
    """Settings of the agent."""

    def __post_init__(self) -> None:
        """Leave all checks to the config that is made of these."""

    @property
    def run_name(self) -> str:
        """Name of the run by default."""
        if self.preset_or_config is not None:
            name = Path(self.preset_or_config).stem
        else:
            name = re.sub(r"-v\d+$", "", re.split("[/:]", self.env)[-1]).lower()
        return f"{name}-{self.seed}"


def read_arguments(argv: Sequence[str]) -> tuple[TrainArguments, TrainingConfig]:
    """Return the flags, and the config that they make of the preset or config they begin with.

    Raises:
        ConfigError: The command line makes no sense, or what it says cannot work.
        SystemExit: The help was asked for.
    """
    first = argv[0] if argv and not argv[0].startswith("-") else None
    arguments, base, before = _parsed(argv, first)
    if arguments.preset_or_config != first:
        # It stands behind some flags, whose values could not be told from it at first.
        arguments, base, before = _parsed(argv, arguments.preset_or_config)
    if arguments.resume is not None:
        _refuse_beside_resume(argv, arguments)
        return arguments, base
    named = arguments.preset_or_config
    is_file = named is not None and named not in PRESETS
    if arguments.trust and not is_file:
        raise ConfigError(
            "--trust is for a run that goes on (--resume) or a config file: what you name yourself "
            "is imported in any case. Leave it out."
        )
    if is_file and not arguments.trust:
        _require_trust(str(named), base, given_flags(argv))
    return arguments, _config(arguments, base, before)


def _require_trust(file: str, config: TrainingConfig, flags: frozenset[str]) -> None:
    """Raise if a config file names code that would be imported, and no flag names other."""
    settings = {name: value for name, value in config.to_json().items() if f"--{name}" not in flags}
    names = names_of_code(settings)
    if names:
        raise ConfigError(
            f"{file} names {' and '.join(map(repr, names))}: training it would import that module "
            "and run its code. If you trust where this file came from, add --trust."
        )


def given_flags(argv: Sequence[str]) -> frozenset[str]:
    """Return the names of all flags on a command line."""
    words = (word.partition("=")[0].replace("_", "-") for word in argv)
    return frozenset(word for word in words if _FLAG.fullmatch(word))


def _parsed(
    argv: Sequence[str], named: str | None
) -> tuple[TrainArguments, TrainingConfig, TrainArguments]:
    """Return the flags, the config that was named, and the flags as they stand for it."""
    env = given(argv, "--env")
    if env is not None and module_of(env) is not None:
        # The user has named it; what it says about itself decides what the flags begin with.
        look_for(env)
        game_of(env)
    if named or env in (None, DEFAULT_ENV):
        base = load_config(named or DEFAULT_PRESET)
    else:
        base = TrainingConfig(**{**ANY_ENV, "env": env})
    settings: dict[str, Any] = {entry.name: getattr(base, entry.name) for entry in fields(base)}
    agent, curriculum = given(argv, "--agent"), given(argv, "--curriculum")
    if agent is not None and agent.lower() != base.agent.kind.lower():
        settings["agent"] = agent_named(agent, "--agent")()
    if curriculum is not None:
        settings["curriculum"] = _curriculum(curriculum, base)
    before = TrainArguments(**settings)
    return parse(TrainArguments, argv, "train", before, dotted=True), base, before


def _curriculum(name: str, base: TrainingConfig) -> CurriculumConfig:
    if name == base.curriculum.kind:
        return base.curriculum
    labels = tuple(base.task_source().labels())
    own = game_of(base.env).curriculum(labels)
    if name == own.kind and not base.tasks:
        return own
    variants = curriculum_variants()
    if name in variants:
        return variants[name].make(TaskKnowledge(order=labels))
    if not Path(name).is_file():
        raise ConfigError(
            f"--curriculum must be one of {', '.join(variants)}, or a JSON file; got {name!r}."
        )
    return CurriculumConfig.from_json(load_document(name), name)


def _config(
    arguments: TrainArguments, base: TrainingConfig, before: TrainArguments
) -> TrainingConfig:
    """Return the config that was named, with what the flags change."""
    changes: dict[str, Any] = {}
    for entry in fields(base):
        then, now = getattr(before, entry.name), getattr(arguments, entry.name)
        # The very object where nothing was changed: a default curriculum follows the source.
        chosen = then if now == then else now
        if chosen is not getattr(base, entry.name):
            changes[entry.name] = chosen
    for name, texts, flag in (
        ("env_kwargs", arguments.env_arguments, "--env-kwargs"),
        ("source", arguments.source_settings, "--source"),
    ):
        if texts:
            changes[name] = {**getattr(base, name), **read_settings(texts, flag)}
    try:
        return replace(base, **changes)
    except ConfigError as error:
        if len(error.problems) > 1:
            Problems(error.problems).raise_if_any("the options")
        raise


def _refuse_beside_resume(argv: Sequence[str], arguments: TrainArguments) -> None:
    beside = sorted(given_flags(argv) - WITH_RESUME)
    if arguments.preset_or_config is not None:
        beside.insert(0, arguments.preset_or_config)
    if beside:
        raise ConfigError(
            f"{beside[0]} cannot be given beside --resume: a training goes on as it began, with "
            "--total-steps and --device at most. Leave it out, or begin another one."
        )
