"""Arguments of ``stepladder train``: from a command line to the config of a training.

The preset or config that is named first decides which flags there are and what their defaults are:
the settings of its agent and of its curriculum have their own flags.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from stepladder.agents.config import AgentConfig, agent_named
from stepladder.agents.network_config import NetworkConfig
from stepladder.agents.ppo.config import PPOConfig
from stepladder.cli.inputs.finding import look_for
from stepladder.cli.inputs.flag_problems import raise_for_flags
from stepladder.cli.inputs.parsing import given, parse, read_settings
from stepladder.cli.inputs.run_flags import RunFlags
from stepladder.configs.checks import PositiveInteger, require_integer
from stepladder.configs.documents import load_document
from stepladder.curricula.config import CurriculumConfig, TaskKnowledge
from stepladder.curricula.registry import curriculum_variants
from stepladder.envs.ids import game_of, module_of
from stepladder.errors import ConfigError, nearest
from stepladder.games.registry import DEFAULT_ENV
from stepladder.runs.trust import names_of_code
from stepladder.training.config import UNCHOSEN, TrainingConfig, load_config
from stepladder.training.presets import ANY_ENV, DEFAULT_PRESET, PRESETS

WITH_RESUME = {
    *("--resume", "--total-steps", "--total-episodes", "--device", "--env", "--trust", "--json"),
    *("--jobs", "--engine", "--dashboard", "--tensorboard", "--wandb", "--wandb-mode"),
}
"""Flags that can be given beside ``--resume``; all others are fixed when a training starts."""

CHANGED_BY_RESUME = ("total_steps", "total_episodes", "device", "env")
"""Settings that can be given to a resumed training."""

_FLAG = re.compile(r"--[a-z][\w.-]*")


@dataclass(frozen=True, kw_only=True)
class TrainArguments(RunFlags, TrainingConfig):
    """Train an agent and watch it learn.

    Ctrl-C saves everything, stops, and prints the command that resumes. The flags depend on the
    preset or config that is named first: see for example stepladder train cartpole --help.
    """

    preset_or_config: tyro.conf.Positional[str | None] = None
    """Name of a preset, or a JSON or YAML file with settings; the first preset by default. Flags
    change single settings of it."""

    list_presets: bool = False
    """List all presets and exit."""

    resume: Path | None = None
    """Folder of a run to resume. Beside it can be given: a later end in steps or episodes, the
    device, another name of its env, trust, json and loggers. By default a new training starts."""

    trust: bool = False
    """Allow imports of modules that the resumed run or the config file names, which runs their
    code. Use it only if you trust where the run or file came from."""

    initial_weights: Path | None = None
    """A run, checkpoint or file of weights that the agent starts from; random weights by
    default."""

    seeds: PositiveInteger | None = None
    """Train with so many seeds, from --seed on, each in a process of its own; their runs are kept
    in one folder. By default one training, in this process."""

    jobs: PositiveInteger | None = None
    """Trainings at once, of several seeds; each gets its share of the cores. By default as many as
    there are cores, on a GPU one."""

    engine: Literal["local", "ray"] = "local"
    """Where several seeds are trained: on this machine, or on those of a Ray cluster, one per CPU.
    All of them must see the folder of the runs."""

    json: bool = False
    """Write one line of JSON at the end, and nothing else to standard output."""

    env_arguments: Annotated[
        tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(name="env-kwargs")
    ] = ()
    """An argument for the env as KEY=VALUE; may be given several times."""

    source_settings: Annotated[
        tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(name="source")
    ] = ()
    """Which of its own tasks a game offers, as KEY=VALUE; may be given several times. The page of
    a game lists its settings."""

    tasks_named: Annotated[str | None, tyro.conf.arg(name="tasks", metavar="FILE|MODULE:NAME")] = (
        None
    )
    """What is practised: a JSON or YAML file with tasks; or module:name, a list of tasks, a source,
    or a function that returns one. By default what the game offers, else the env as it is."""

    encoder_arguments: Annotated[
        tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(name="encoder-kwargs")
    ] = ()
    """An argument for the network of --agent.encoder as KEY=VALUE; may be given several times."""

    agent_kind: Annotated[str | None, tyro.conf.arg(name="agent", metavar="NAME")] = None
    """The agent: ppo, sac, dddqn, or an agent of an installed package; the preset's by default.
    Another agent starts with its own default settings."""

    curriculum_kind: Annotated[str | None, tyro.conf.arg(name="curriculum", metavar="NAME")] = None
    """The curriculum: the name of a subcommand of stepladder simulate, or a JSON or YAML file such
    as {"type": "frontier"}; the preset's by default."""

    # Redeclared for the help alone, which has a group of flags for each.
    curriculum: CurriculumConfig = UNCHOSEN
    """Settings of the curriculum."""

    agent: AgentConfig = field(default_factory=PPOConfig)
    """Settings of the agent."""

    def __post_init__(self) -> None:
        """Leave all checks to the config that is made of these."""

    @property
    def run_name(self) -> str:
        """Default name of the run, or of the folder of several seeds."""
        if self.seeds is None:
            return f"{self._subject}-{self.seed}"
        return f"{self._subject}-seeds-{self.seed}-{self.seed + self.seeds - 1}"

    @property
    def _subject(self) -> str:
        if self.preset_or_config is not None:
            name = Path(self.preset_or_config).stem
        else:
            module, _, name = self.env.rpartition(":")
            if module and name.isidentifier() and name.islower():
                # A function is mostly called make or parallel_env, and its module says more.
                name = module.rpartition(".")[2]
            name = re.sub(r"-v\d+$", "", name.rpartition("/")[2]).lower()
        return name


def read_arguments(argv: Sequence[str]) -> tuple[TrainArguments, TrainingConfig]:
    """Return the flags, and the config that results from them.

    Raises:
        ConfigError: A flag is unknown, contradicts another or has a wrong value.
        SystemExit: The help was printed.
    """
    first = argv[0] if argv and not argv[0].startswith("-") else None
    arguments, base, before = _parsed(argv, first)
    named, flags = arguments.preset_or_config, given_flags(argv)
    if named != first:
        # It stands behind some flags, and could not be distinguished from their values at first.
        arguments, base, before = _parsed(argv, named)
    if arguments.resume is not None:
        beside = [*filter(None, [named]), *sorted(flags - WITH_RESUME)]
        if beside:
            raise ConfigError(
                f"{beside[0]} cannot be given beside --resume: a resumed training keeps its "
                "settings, except --total-steps, --total-episodes, --device and --env. Leave it "
                "out, or start a new one."
            )
        return arguments, base
    if arguments.trust and (named is None or named in PRESETS):
        raise ConfigError(
            "--trust is for --resume and config files: what you name on the command line is "
            "imported in any case. Leave it out."
        )
    for name in ("seeds", "jobs"):
        if (number := getattr(arguments, name)) is not None:
            require_integer(f"--{name}", number, 1)
    if arguments.jobs is not None and arguments.seeds is None:
        raise ConfigError("--jobs is for several trainings at once. Add --seeds, or leave it out.")
    if arguments.engine == "ray" and arguments.seeds is None:
        raise ConfigError(
            "--engine ray is for several trainings at once: one training runs on one machine. Add "
            "--seeds, or leave it out."
        )
    if arguments.seeds is not None and arguments.no_keep:
        raise ConfigError("--seeds needs the runs that it compares; leave out --no-keep.")
    return arguments, _config(arguments, base, before)


def require_trusted_file(name: str, base: TrainingConfig, flags: frozenset[str]) -> None:
    """Raise if a config file names a module and the user has not said that it is trusted."""
    if name in PRESETS or "--trust" in flags:
        return
    # A flag replaces what the file names.
    settings = {key: value for key, value in base.to_json().items() if f"--{key}" not in flags}
    if "--agent.encoder" in flags:
        settings.pop("agent", None)
    names = names_of_code(settings)
    if names:
        raise ConfigError(
            f"{name} names {' and '.join(map(repr, names))}: training it would import that "
            "module and run its code. If you trust where this file came from, add --trust."
        )


def _with_encoder_kwargs(agent: AgentConfig, texts: Sequence[str]) -> AgentConfig:
    given = read_settings(texts, "--encoder-kwargs")
    if not isinstance(agent, NetworkConfig) or agent.encoder is None:
        raise ConfigError(
            "--encoder-kwargs are for a network of your own, and none is named. Add "
            "--agent.encoder module:Class."
        )
    return replace(agent, encoder_kwargs={**agent.encoder_kwargs, **given})


def given_flags(argv: Sequence[str]) -> frozenset[str]:
    """Return the names of the flags on a command line, with hyphens."""
    words = (word.partition("=")[0].replace("_", "-") for word in argv)
    return frozenset(word for word in words if _FLAG.fullmatch(word))


def _parsed(
    argv: Sequence[str], named: str | None
) -> tuple[TrainArguments, TrainingConfig, TrainArguments]:
    """Return the flags, the config that was named, and the defaults of the flags."""
    env = given(argv, "--env")
    if env is not None and module_of(env) is not None:
        # What an env says about itself decides the defaults.
        look_for(env)
        game_of(env)
    if named or env in (None, DEFAULT_ENV):
        base = load_config(named or DEFAULT_PRESET)
        # Before anything that it names is looked at, such as the tasks for their labels.
        require_trusted_file(named or DEFAULT_PRESET, base, given_flags(argv))
        look_for(*names_of_code(base.to_json()))
    else:
        base = TrainingConfig(**{**ANY_ENV, "env": env})
    tasks, agent, curriculum = (
        given(argv, f"--{flag}") for flag in ("tasks", "agent", "curriculum")
    )
    if tasks is not None:
        look_for(tasks)
        if curriculum not in (None, base.curriculum.kind):
            # The one that is replaced need not fit these tasks.
            base = replace(base, curriculum=UNCHOSEN)
        base = base.with_tasks(tasks)
    settings: dict[str, Any] = {entry.name: getattr(base, entry.name) for entry in fields(base)}
    if agent is not None and agent.lower() != base.agent.kind.lower():
        settings["agent"] = agent_named(agent, "--agent")()
    if curriculum is not None:
        settings["curriculum"] = _curriculum(curriculum, base, env or base.env)
    before = TrainArguments(**settings)
    return parse(TrainArguments, argv, "train", before, dotted=True), base, before


def _curriculum(name: str, base: TrainingConfig, env: str) -> CurriculumConfig:
    if name == base.curriculum.kind:
        return base.curriculum
    labels = tuple(base.task_source().labels())
    own = game_of(env).curriculum(labels)
    if name == own.kind and not base.tasks:
        return own
    variants = curriculum_variants()
    if name in variants:
        return variants[name].make(TaskKnowledge(order=labels))
    if not Path(name).is_file():
        raise ConfigError(
            f"--curriculum must be one of {', '.join(variants)}, or a JSON or YAML file; got "
            f"{name!r}.{nearest(name, variants)}"
        )
    return CurriculumConfig.from_json(load_document(name), name)


def _config(
    arguments: TrainArguments, base: TrainingConfig, before: TrainArguments
) -> TrainingConfig:
    """Return the config that was named, with the changes by flags."""
    changes: dict[str, Any] = {}
    for entry in fields(base):
        then, now = getattr(before, entry.name), getattr(arguments, entry.name)
        # The same object if nothing was changed: a default curriculum depends on the source.
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
        if arguments.encoder_arguments:
            agent = changes.get("agent", base.agent)
            changes["agent"] = _with_encoder_kwargs(agent, arguments.encoder_arguments)
        return replace(base, **changes)
    except ConfigError as error:
        raise_for_flags(error.problems)
        raise
