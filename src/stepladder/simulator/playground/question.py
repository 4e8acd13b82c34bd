"""What is asked of the playground: a scenario, a learner, a curriculum, and how long they play.

Start of this folder's data flow. Settings are named as the configs name them, so that whatever
scenarios and curricula there are can be asked about; all mistakes are reported at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from stepladder.configs.checks import Integer, NotNegativeInteger
from stepladder.configs.codec import Config
from stepladder.configs.problems import Problems
from stepladder.configs.settings import Setting, settings_of, with_settings
from stepladder.configs.yaml_text import YAML_SUFFIXES
from stepladder.curricula.config import CurriculumConfig
from stepladder.errors import ConfigError, StepladderError
from stepladder.simulator.base import Scenario
from stepladder.simulator.scenarios import scenario

NUM_POINTS = 200
"""Points of a curve: epochs of the simulation that it stands for."""

LARGEST_BATCH, MAX_SAMPLES, MAX_TASKS = 4_096, 2_000_000_000, 10_000
"""What one question may ask for."""

MOST_SEEDS = 64
"""Seeds of one question."""

OwnScenarios = Mapping[str, Scenario]
"""Scenarios beside those that have a name of their own, such as copies of trainings."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """A question that can be played."""

    question: "Question"
    place: Scenario
    """With the learner that was asked for."""

    config: CurriculumConfig
    usual: CurriculumConfig
    """What the curriculum's name stands for on this scenario."""

    samples_per_epoch: int
    """Samples of each env between two points."""

    @property
    def budget(self) -> int:
        """Samples at the last point."""
        return self.samples_per_epoch * self.question.num_envs * NUM_POINTS


@dataclass(frozen=True, kw_only=True)
class Question(Config):
    """What is asked of the playground."""

    scenario: str = "chain-10"
    """Name of a scenario."""

    curriculum: str = "frontier"
    """Name of a curriculum."""

    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    """Settings of the curriculum that differ from what its name stands for, by dotted name."""

    learner: dict[str, Any] = field(default_factory=dict[str, Any])
    """Settings of the learner that differ from the scenario's, such as ``dynamics.eta``."""

    num_envs: Annotated[int, Integer(1, LARGEST_BATCH)] = 8
    """Envs that play at the same time."""

    budget: Annotated[int, Integer(1, MAX_SAMPLES)] | None = None
    """Samples that are played; by default about twice what uniform needs."""

    seed: NotNegativeInteger = 0
    """Seed of the learner and of the curriculum."""

    num_seeds: Annotated[int, Integer(1, MOST_SEEDS)] = 8
    """Seeds of the band: this one and those after it."""

    def setup(self, places: OwnScenarios | None = None) -> Setup:
        """Return what can be played.

        Args:
            places: Scenarios beside those that have a name of their own.

        Raises:
            ConfigError: Something is wrong; all of it is listed.
        """
        problems = Problems()
        place = _place(self.scenario, places or {}, problems.at("scenario"))
        problems.raise_if_any()
        assert place is not None
        place = with_learner(place, self.learner, problems.at("learner"))
        try:
            usual = config = place.curriculum_config(self.curriculum)
        except ConfigError as error:
            problems.at("curriculum").add_error(error)
        else:
            config = with_settings(usual, self.settings, problems.at("settings"))
            if not problems:
                _try(place, config, problems.at("settings"))
            if not problems:
                return self._setup(place, config, usual)
        problems.raise_if_any()
        raise AssertionError("a problem is missing")

    def _setup(self, place: Scenario, config: CurriculumConfig, usual: CurriculumConfig) -> Setup:
        budget = usual_budget(place) if self.budget is None else self.budget
        return Setup(
            question=self,
            place=place,
            config=config,
            usual=usual,
            samples_per_epoch=max(1, -(-budget // (NUM_POINTS * self.num_envs))),
        )


def usual_budget(place: Scenario) -> int:
    """Return the samples that are played unless a question says otherwise."""
    return min(MAX_SAMPLES, max(1, int(place.budget * place.playground_share)))


def with_learner(place: Scenario, values: Mapping[str, Any], problems: Problems) -> Scenario:
    """Return a scenario whose learner has other settings, such as ``dynamics.eta``."""
    parts: dict[str, Any] = {}
    for name in values:
        part, dot, _ = name.partition(".")
        if not dot or part not in place.varied:
            problems.add_unknown(name, [setting.name for setting in learner_settings(place)])
    for part in place.varied:
        own = {
            name.removeprefix(f"{part}."): value
            for name, value in values.items()
            if name.startswith(f"{part}.")
        }
        if own:
            parts[part] = with_settings(getattr(place, part), own, problems.at(part))
    if problems or not parts:
        return place
    try:
        return replace(place, **parts)
    except StepladderError as error:
        problems.add_error(error)
        return place


def read_learner(entries: Sequence[str], place: Scenario) -> dict[str, Any]:
    """Return settings of a scenario's learner that are given as ``NAME=VALUE``.

    Raises:
        ConfigError: One of them has another form, or a name that the learner does not have.
    """
    known = {setting.name: setting for setting in learner_settings(place)}
    found: dict[str, Any] = {}
    problems = Problems(key="--learner")
    for entry in entries:
        name, equals, text = entry.partition("=")
        if not equals or not text:
            problems.add(f"must be NAME=VALUE; got {entry!r}. For example: {next(iter(known))}=0.1")
        elif name not in known:
            problems.add_unknown(name, known)
        else:
            found[name] = known[name].read(text)
    problems.raise_if_any()
    return found


def learner_settings(place: Scenario) -> list[Setting]:
    """Return the settings of a scenario's learner that hold single values."""
    return [one for part in place.varied for one in settings_of(getattr(place, part), f"{part}.")]


def _place(name: str, places: OwnScenarios, problems: Problems) -> Scenario | None:
    if name in places:
        return places[name]
    # A name comes from a page: no file is opened because of it.
    if name.endswith((".json", *YAML_SUFFIXES)):
        problems.add("must be the name of a scenario, such as chain-10; files are not read here.")
        return None
    try:
        place = scenario(name)
    except ConfigError as error:
        problems.add(str(error))
        return None
    if place.num_tasks > MAX_TASKS:
        problems.add(
            f"has {place.num_tasks} tasks; the playground takes at most {MAX_TASKS}. Choose a "
            "smaller one, or use stepladder simulate."
        )
        return None
    return place


def _try(place: Scenario, config: CurriculumConfig, problems: Problems) -> None:
    """Make learner and curriculum once, so that what only they can refuse is reported now."""
    try:
        place.simulator()
        place.curriculum(config, 0)
    except StepladderError as error:
        problems.add_error(error)
