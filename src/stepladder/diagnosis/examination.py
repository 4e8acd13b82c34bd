"""Examine an env, a config, a run or a vector env in use: gather the evidence, ask the checks.

Top of `diagnosis`: `doctor` is what `stepladder.doctor` and the command call. Nothing of the user's
code runs in this process: an env is played in one of its own (`process`), a run is only read.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gymnasium as gym

from stepladder import named
from stepladder.configs.checks import require_integer, require_positive
from stepladder.configs.documents import load_document
from stepladder.configs.problems import Problems
from stepladder.configs.yaml_text import YAML_SUFFIXES
from stepladder.cores import usable_cores
from stepladder.curricula.config import CurriculumConfig
from stepladder.diagnosis import machine, record_of_run, registry
from stepladder.diagnosis.checks import loops
from stepladder.diagnosis.child import ExaminationOrder
from stepladder.diagnosis.evidence import Drawing, EnvEvidence
from stepladder.diagnosis.finding import SEVERITIES, Finding, LooksAt
from stepladder.diagnosis.probes import drawing
from stepladder.diagnosis.process import examine_env
from stepladder.diagnosis.settings import SettingsEvidence
from stepladder.envs.ids import name_of
from stepladder.envs.tracking.tracked import Tracked
from stepladder.errors import ConfigError
from stepladder.named import module_of
from stepladder.runs.trust import names_of_code
from stepladder.tasks import Source
from stepladder.training.config import TrainingConfig, load_config
from stepladder.training.presets import ANY_ENV, PRESETS

CONFIG_SUFFIXES = (".json", *YAML_SUFFIXES)
WITHOUT_LENGTH = 50_000
"""Episodes of a curriculum whose training is not known."""


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """What was examined, and all that was found."""

    subject: str
    """Name of what was examined."""

    kind: LooksAt
    findings: tuple[Finding, ...]
    """The worst first."""

    num_checks: int
    """Checks that were asked."""

    summary: str
    """What was played or read, in one line."""

    seconds: float
    """How long it took."""

    def of(self, severity: str) -> list[Finding]:
        """Return the findings of one severity."""
        return [one for one in self.findings if one.severity == severity]

    @property
    def is_healthy(self) -> bool:
        """Whether nothing was found that spoils what is learnt."""
        return not self.of("error")

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain JSON."""
        found = [one.to_json() for one in self.findings]
        return {**vars(self), "findings": found, "is_healthy": self.is_healthy}

    def __str__(self) -> str:
        lines = [f"{self.subject}: {self.summary}"]
        for one in self.findings:
            lines += [f"{one.severity}  {one.check}: {one.text}", f"  fix: {one.fix}"]
        return "\n".join(lines)


def doctor(
    subject: Any,
    *,
    episodes: int = 24,
    seconds: float = 4.0,
    limit_s: float = 20.0,
    trust: bool = False,
    **settings: Any,
) -> Diagnosis:
    """Say what is wrong with an env, a config, a run, or a vector env in use.

    Args:
        subject: An env's id, class or function, or its name as ``module:name``; a config (a preset,
            a JSON or YAML file, a mapping, or the config itself), also of a curriculum alone; the
            folder of a run, which is only read; or a vector env with a curriculum.
        episodes: Episodes of random play.
        seconds: For which envs are played at random; all else of an env takes about as long again.
        limit_s: Seconds after which one probe of an env counts as hanging.
        trust: Whether modules that a config file names may be imported.
        **settings: Fields of `TrainingConfig`, such as ``tasks`` or ``success_key``.

    Raises:
        ConfigError: There is no such thing, or a setting is wrong.
        RunError: The run is damaged.
    """
    require_integer("episodes", episodes, 1, 100_000)
    require_positive("seconds", seconds)
    require_positive("limit_s", limit_s)
    began = time.perf_counter()
    evidence: dict[LooksAt, Any] = {"machine": machine.look()}
    if isinstance(subject, Tracked):
        _refuse(settings, "a vector env in use")
        evidence["loop"] = loops.look(subject)
        counts = evidence["loop"].counts
        text = f"{counts.started} episodes begun, {counts.finished} observed"
        return _diagnosis(type(subject).__name__, "loop", evidence, text, began)
    if _is_folder(subject):
        _refuse(settings, "a run")
        run = evidence["run"] = record_of_run.read(subject)
        text = f"{run.kind}, {run.status}, {run.num_steps:,} steps"
        return _diagnosis(str(subject), "run", evidence, text, began)
    budget = (episodes, seconds, limit_s)
    config = _config_of(subject, settings, trust)
    if isinstance(config, SettingsEvidence):
        evidence["config"] = config
        text = f"curriculum {config.curriculum.kind}"
        if config.drawing is not None:
            text += f", {config.drawing.num_episodes:,} episodes drawn"
        return _diagnosis(_name(subject), "config", evidence, text, began)
    env = evidence["env"] = _examined(config, *budget)
    evidence["config"] = settings_of(env)
    kind: LooksAt = "config" if _is_config(subject) else "env"
    return _diagnosis(_name(subject), kind, evidence, _played(env), began)


def _diagnosis(
    subject: str, kind: LooksAt, evidence: Mapping[LooksAt, Any], summary: str, began: float
) -> Diagnosis:
    found = sorted(registry.examine(evidence), key=lambda one: SEVERITIES.index(one.severity))
    return Diagnosis(
        subject=subject,
        kind=kind,
        findings=tuple(found),
        num_checks=len(registry.checks_of(*evidence)),
        summary=summary,
        seconds=round(time.perf_counter() - began, 2),
    )


# What is meant.


def _is_folder(subject: Any) -> bool:
    return isinstance(subject, str | Path) and Path(subject).is_dir()


def _is_config(subject: Any) -> bool:
    if isinstance(subject, TrainingConfig | CurriculumConfig | Mapping | Path):
        return True
    if not isinstance(subject, str):
        return False
    return subject in PRESETS or (
        module_of(subject) is None and Path(subject).suffix.lower() in CONFIG_SUFFIXES
    )


def _name(subject: Any) -> str:
    if isinstance(subject, str | Path):
        return str(subject)
    if isinstance(subject, TrainingConfig):
        return subject.env
    return "the config" if _is_config(subject) else name_of(subject)


def _refuse(settings: Mapping[str, Any], what: str) -> None:
    if settings:
        raise ConfigError(
            f"{', '.join(sorted(settings))} cannot be given beside {what}, which has its own. "
            "Leave it out."
        )


def _config_of(
    subject: Any, settings: dict[str, Any], trust: bool
) -> TrainingConfig | SettingsEvidence:
    """Return the settings of what is to be played; or only evidence, if nothing can be."""
    if not _is_config(subject):
        return TrainingConfig(**{**ANY_ENV, "env": subject, **settings})
    if isinstance(subject, CurriculumConfig):
        return _curriculum_alone(subject, settings)
    if isinstance(subject, TrainingConfig):
        return replace(subject, **settings) if settings else subject
    preset = PRESETS.get(subject) if isinstance(subject, str) else None
    document = subject
    if isinstance(subject, str | Path) and preset is None:
        document = load_document(subject)
    try:
        if isinstance(document, Mapping) and _is_curriculum(document):
            config: Any = CurriculumConfig.from_json(document, _name(subject))
        else:
            config = preset or load_config(document)
    except ConfigError as refused:
        return _refused(refused)
    if isinstance(config, CurriculumConfig):
        return _curriculum_alone(config, settings)
    config = replace(config, **settings) if settings else config
    names = names_of_code(config.to_json())
    given = set(map(str, settings.values()))
    if isinstance(subject, str | Path) and not trust and not set(names) <= given:
        raise ConfigError(
            f"{subject} names {' and '.join(map(repr, names))}: examining it would import that "
            "module and run its code. If you trust where this file came from, add --trust "
            "(trust=True)."
        )
    return config


def _is_curriculum(document: Mapping[str, Any]) -> bool:
    return "type" in document and "env" not in document and "curriculum" not in document


def _refused(refused: ConfigError) -> SettingsEvidence:
    problems = refused.problems or (("", str(refused)),)
    return _without_training(TrainingConfig().curriculum, problems=tuple(problems))


def _without_training(curriculum: CurriculumConfig, **known: Any) -> SettingsEvidence:
    return SettingsEvidence(
        curriculum=curriculum,
        training=None,
        num_envs=ANY_ENV["num_envs"],
        num_episodes=None,
        num_cores=usable_cores(),
        **known,
    )


def _curriculum_alone(
    curriculum: CurriculumConfig, settings: Mapping[str, Any]
) -> SettingsEvidence:
    """Return what is known of a curriculum without an env; its tasks may be given."""
    others = [name for name in settings if name != "tasks"]
    if others:
        raise ConfigError(
            f"{others[0]} is a setting of a training, and this is a curriculum alone. Leave it "
            "out, or write a config with env and curriculum."
        )
    tasks = settings.get("tasks")
    if not tasks:
        return _without_training(curriculum)
    source: Source = TrainingConfig(tasks=tasks).task_source()
    labels = tuple(source.labels())
    problems = Problems()
    for path, text in curriculum.about_labels(labels):
        problems.at(path).add(text)
    if problems:
        return _without_training(curriculum, problems=tuple(problems.found))
    drawn: Drawing | None = None
    if len(labels) > 1 and not curriculum.needs_trainer:
        made = curriculum.make(curriculum.editable(source))
        drawn = drawing.probe(made, labels, WITHOUT_LENGTH, 100, seconds=3.0)
    return _without_training(curriculum, drawing=drawn)


# Evidence.


def _examined(config: TrainingConfig, episodes: int, seconds: float, limit_s: float) -> EnvEvidence:
    """Play an env in processes of its own."""
    given = {name: named.given(name) for name in _names_in(config)}
    bare = config.env.rpartition(":")[2]
    spec = gym.registry.get(bare)
    order = ExaminationOrder(
        config=config,
        num_episodes=episodes,
        seconds=seconds,
        limit_s=limit_s,
        given={name: thing for name, thing in given.items() if thing is not None},
        specs=() if spec is None else (spec,),
    )
    env = EnvEvidence(name=config.env, config=config, num_cores=usable_cores())
    examine_env(order, env, replace(order, only_repeats=True))
    for one in env.troubles:
        if one.kind == "unknown":
            raise ConfigError(
                f"{config.env!r} is neither the folder of a run, nor a preset or the file of a "
                f"config: {one.text}"
            )
    return env


def _names_in(config: TrainingConfig) -> tuple[str, ...]:
    return names_of_code(config.to_json())


def settings_of(env: EnvEvidence) -> SettingsEvidence:
    """Return what the settings ask for, with what play has shown."""
    config, num_episodes = env.config, None
    lengths = [one.length for one in env.play.episodes] if env.play is not None else []
    if lengths:
        num_episodes = max(1, int(config.total_steps * len(lengths) / max(1, sum(lengths))))
        num_episodes = min(num_episodes, config.total_episodes or num_episodes)
    return SettingsEvidence(
        curriculum=config.curriculum,
        training=config,
        num_envs=config.num_envs,
        num_episodes=num_episodes,
        num_cores=env.num_cores,
        drawing=env.drawing,
    )


def _played(env: EnvEvidence) -> str:
    parts: list[str] = []
    if env.made is not None and env.made.has_tasks:
        count = "tasks without end" if env.made.num_tasks is None else f"{env.made.num_tasks} tasks"
        parts.append(f"{count}, {len(env.made.labels)} labels")
    if env.play is not None:
        played, number = env.play, len(env.play.episodes)
        parts.append(
            f"{number} episode{'s'[: number != 1]} of random play, {played.num_steps} steps"
        )
    return ", ".join(parts) or "not played"
