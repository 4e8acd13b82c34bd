"""Arguments of ``stepladder sweep``: from a command line or a file to an objective and dimensions.

A file says in YAML or JSON what flags say: ``train: cartpole``, ``grid: {agent.gamma: [0.9]}``. It
is read as if its flags stood before those of the command line.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import tyro

from stepladder.cli.inputs.finding import look_for, needing_torch
from stepladder.cli.inputs.parsing import parse
from stepladder.cli.inputs.training import given_flags, require_trusted_file
from stepladder.configs.checks import PositiveInteger
from stepladder.configs.codec import Config
from stepladder.configs.documents import load_document
from stepladder.errors import ConfigError, shown
from stepladder.runs.trust import names_of_code
from stepladder.simulator.scenarios import scenario
from stepladder.simulator.swept import SweepConfig
from stepladder.sweeps import Dimension, Objective, parse_choice, parse_range
from stepladder.training.config import TrainingConfig, load_config

FOR_SIMULATIONS = ("--scenario", "--curriculum", "--num-envs", "--budget")
"""Flags of sweeps over simulated learners."""

FOR_TRAININGS = ("--engine", "--objective", "--trust")
"""Flags of sweeps over trainings."""

USUAL_SEEDS = 3
"""Seeds per trial of trainings, which take longer than plays of simulated learners."""

IN_FILES = (
    *("train", "objective", "grid", "range", "optuna_trials", "scenario", "curriculum"),
    *("num_seeds", "seed", "num_envs", "budget", "out", "jobs", "engine", "top"),
)
"""What a file can say, in the words of the flags."""


@dataclass(frozen=True, kw_only=True)
class SweepArguments(Config):
    """Search for good settings, by a grid or by Optuna: of a curriculum, or of a real training.

    Every finished trial is saved at once; the same command resumes a sweep that was stopped.
    Without --train, simulated learners are practised on: fields of the curriculum have their own
    names, fields of the learner names such as dynamics.eta or noise.reward, fields of the
    simulation names such as simulation.num_envs. With --train, every setting of a training can be
    varied by the name of its flag, such as agent.learning_rate, curriculum.threshold or num_envs;
    curriculum stands for its kind.
    """

    file: tyro.conf.Positional[Path | None] = None
    """A YAML or JSON file that says all of this in place of flags; none by default. Flags beside
    it take precedence."""

    train: str | None = None
    """Sweep trainings: a preset of stepladder train, or a JSON or YAML file with its settings. By
    default simulated learners are swept."""

    objective: str | None = None
    """Of trainings: the metric whose last value is maximised, such as evaluation/success/medium.
    By default held-out success, games won, or the return, whichever they have."""

    trust: bool = False
    """Allow imports of modules that a file of settings names, which runs their code."""

    grid: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """A field and its values, such as probing=0.02,0.05,0.1; may be given several times. All
    combinations are played, or those that Optuna proposes. A field with one value is set to it."""

    range: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """A field and its range for Optuna, such as trial_episodes=10..80 or probing=0.01..0.5:log; may
    be given several times."""

    optuna_trials: PositiveInteger | None = None
    """Number of trials that Optuna proposes; by default all combinations are played. A finished
    search can be continued with a larger number."""

    common: Annotated[SweepConfig, tyro.conf.arg(name="")] = field(default_factory=SweepConfig)

    out: Path | None = None
    """Folder for the trials; by default sweeps/SCENARIO-CURRICULUM, or sweeps/TRAINING."""

    jobs: PositiveInteger | None = None
    """Seeds that are played at once; by default as many as there are cores, of trainings on a GPU
    one. The results do not depend on it."""

    engine: Literal["local", "ray"] = "local"
    """Where trainings run: on this machine, or on those of a Ray cluster, one per CPU. All of them
    must see the folder of the sweep."""

    dashboard: bool = False
    """Also show the sweep on a local web page while it is being played; its address is printed."""

    top: PositiveInteger = 10
    """Number of settings to show at the end, the best ones."""

    dashboard: bool = False
    """Also show the sweep on a local web page while it is being played; its address is printed."""

    json: bool = False
    """Write one line of JSON per trial, best first, and nothing else to standard output."""


@dataclass(frozen=True, kw_only=True)
class AskedSweep:
    """What is to be swept."""

    arguments: SweepArguments
    objective: Objective
    dimensions: tuple[Dimension, ...]
    out: Path


def read_sweep(argv: Sequence[str]) -> AskedSweep:
    """Return what a command line, and the file that it names, ask for.

    Raises:
        ConfigError: A flag or an entry of the file is wrong.
        SystemExit: The help was printed.
    """
    arguments, document = parse(SweepArguments, argv, "sweep"), dict[str, Any]()
    if arguments.file is not None:
        document = _checked_document(arguments.file)
        words = [text for name, value in document.items() for text in _words(name, value)]
        argv = [*words, *argv]
        arguments = parse(SweepArguments, argv, "sweep")
    training: Any = arguments.train or document.get("train")
    flags = given_flags(argv)
    wrong = FOR_SIMULATIONS if training is not None else FOR_TRAININGS
    for flag in sorted(flags & set(wrong)):
        if training is None:
            raise ConfigError(f"{flag} is for trainings. Add --train, or leave it out.")
        raise ConfigError(
            f"{flag} is for simulated learners. Of a training, set or vary a field, such as --grid "
            "num_envs=8 or --grid curriculum=uniform,frontier."
        )
    if training is None:
        objective: Objective = arguments.common
        name = f"{scenario(arguments.common.scenario).name}-{arguments.common.curriculum}"
    else:
        objective = _training_sweep(arguments, training, flags)
        name = (
            Path(training).stem if isinstance(training, str) else cast("Path", arguments.file).stem
        )
    fields = objective.fields()
    if arguments.range and arguments.optuna_trials is None:
        raise ConfigError("only a search can try a --range. Give --optuna-trials as well.")
    choices = [parse_choice(text, fields) for text in arguments.grid]
    ranges = [parse_range(text, fields) for text in arguments.range]
    out = arguments.out or Path("sweeps", name)
    return AskedSweep(
        arguments=arguments, objective=objective, dimensions=(*choices, *ranges), out=out
    )


def _training_sweep(
    arguments: SweepArguments, training: str | Mapping[str, Any], flags: frozenset[str]
) -> Objective:
    if isinstance(training, str):
        config = load_config(training)
        require_trusted_file(training, config, flags)
    else:
        config = TrainingConfig.from_json(training, f"train of {arguments.file}")
        require_trusted_file(str(arguments.file), config, flags)
    look_for(*names_of_code(config.to_json()))
    swept = needing_torch("stepladder.training.swept", "trainings")
    needing_torch("stepladder.training.seeds", "trainings").require_engine(arguments.engine)
    common = arguments.common
    return swept.TrainingSweep(
        training=config.imported(),
        objective=arguments.objective,
        num_seeds=common.num_seeds if "--num-seeds" in flags else USUAL_SEEDS,
        seed=common.seed,
        engine=arguments.engine,
    )


def _checked_document(path: Path) -> dict[str, Any]:
    document = load_document(path)
    if not isinstance(document, dict):
        raise ConfigError(f"{path} must hold an object; got {shown(document)}.")
    for name in document:
        if name not in IN_FILES:
            raise ConfigError(
                f"{path} has {name!r}; a sweep has {', '.join(IN_FILES)}. Correct it."
            )
    for name in ("grid", "range"):
        if not isinstance(document.get(name, {}), dict):
            raise ConfigError(f"{name} of {path} must be an object: a field and what it takes.")
    if not isinstance(document.get("train", ""), str | dict):
        raise ConfigError(f"train of {path} must be a preset, a file or settings of a training.")
    return document


def _words(name: str, value: Any) -> list[str]:
    """Return an entry of a file as words of the command line."""
    if name == "train" and isinstance(value, dict):
        return []
    if name in ("grid", "range"):
        entries = cast("dict[str, Any]", value).items()
        return [f"--{name}={field}={_values(name, field, one)}" for field, one in entries]
    return [f"--{name.replace('_', '-')}={_text(name, value)}"]


def _values(name: str, field: str, value: Any) -> str:
    values = value if isinstance(value, list) else [value]
    if name == "range":
        # Either as on the command line, or both ends.
        return "..".join(_text(field, one) for one in values)
    texts = ["+".join(map(str, v)) if isinstance(v, list) else _text(field, v) for v in values]
    if isinstance(value, str):
        return value
    for text in texts:
        if "," in text:
            raise ConfigError(f"{field} cannot take {text!r}: values are separated by commas.")
    return ",".join(texts)


def _text(name: str, value: Any) -> str:
    if isinstance(value, dict | list):
        raise ConfigError(f"{name} must be a number, a text or true or false; got {shown(value)}.")
    return str(value)
