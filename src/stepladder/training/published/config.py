"""Configs as the published hockey trainer writes them, read as they are.

Between a file and `training.config`: phases of hockey with opponents and shaped rewards, an agent,
and how it is trained. Where the published trainer counts episodes and we count env steps, an
episode is taken to be as long as it can be: 81 steps when only shooting or defending is practised,
else 251, or ``training.max_episode_steps`` if that is less.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from stepladder.agents.config import AgentConfig
from stepladder.configs.checks import NotNegativeInteger, Positive, PositiveInteger, not_empty
from stepladder.curricula.phased.config import PhasedConfig
from stepladder.curricula.phased.settings import Mixed
from stepladder.errors import ConfigError
from stepladder.games.game import CALLED
from stepladder.games.hockey.game import HOCKEY_ENV as HOCKEY
from stepladder.tasks import Task
from stepladder.training.config import (
    CheckpointConfig,
    EvaluationConfig,
    OpponentsConfig,
    TrainingConfig,
)
from stepladder.training.published.agent import Common, PublishedAgent
from stepladder.training.published.phases import (
    NEURAL_TYPES,
    SCRIPTED_NAMES,
    PublishedPart,
    PublishedPhase,
)

NUM_ENVS = 8
"""The files do not say how many envs; this is what the authors recommend."""

ARCHIVE_FOLDER = "archive"
"""The published trainer's folder of other agents."""

MAX_RUNNING = 1_024
"""Episodes that may be under way when the last one ends that counts."""


@dataclass(frozen=True, kw_only=True)
class PublishedCurriculum(PublishedPart):
    """All phases."""

    phases: Annotated[tuple[PublishedPhase, ...], not_empty]

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield phases of the same name."""
        names = [phase.name for phase in self.phases]
        for index, name in enumerate(names):
            if name in names[:index]:
                text = f"is {name!r}, as of an earlier phase. Rename one."
                yield f"phases[{index}].name", text


@dataclass(frozen=True, kw_only=True)
class PublishedTraining(PublishedPart):
    """How an agent is trained."""

    max_episode_steps: PositiveInteger = 500
    updates_per_step: Positive = 1.0
    train_freq: PositiveInteger = 1
    warmup_steps: NotNegativeInteger = 400
    reward_scale: Positive = 0.1
    checkpoint_save_freq: PositiveInteger | None = None
    """Episodes between two checkpoints; the older key."""
    checkpoint_frequency: PositiveInteger | None = None
    """Steps between two checkpoints; the newer key."""
    eval_frequency: PositiveInteger = EvaluationConfig.every_steps or 1

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield two keys for one thing."""
        if self.checkpoint_save_freq is not None and self.checkpoint_frequency is not None:
            yield "checkpoint_frequency", "is there beside checkpoint_save_freq. Keep one of them."


@dataclass(frozen=True, kw_only=True)
class PublishedConfig(PublishedPart):
    """A whole file."""

    curriculum: PublishedCurriculum
    hyperparameters: Common = field(default_factory=Common)
    training: PublishedTraining
    agent: PublishedAgent

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield what two places say differently, and an agent that ours refuses."""
        found = [*self._about_common(), *self._about_deterministic()]
        yield from found
        if not found:
            try:
                self.agent_config()
            except ConfigError as error:
                yield "agent.hyperparameters", str(error)

    def _about_common(self) -> Iterator[tuple[str, str]]:
        for name in ("learning_rate", "batch_size"):
            common, own = (
                getattr(place, name) for place in (self.hyperparameters, self.agent.hyperparameters)
            )
            if None not in (common, own) and common != own:
                text = f"is {own:g} and hyperparameters.{name} is {common:g}. Keep one of them."
                yield f"agent.hyperparameters.{name}", text

    @property
    def deterministic(self) -> list[tuple[str, bool]]:
        """Return each setting of how neural opponents play, with its path."""
        return [
            (f"curriculum.phases[{index}].opponent{path}.deterministic", entry.deterministic)
            for index, phase in enumerate(self.curriculum.phases)
            for path, entry in phase.opponent.entries()
            if entry.deterministic is not None and entry.type not in SCRIPTED_NAMES
        ]

    def _about_deterministic(self) -> Iterator[tuple[str, str]]:
        settings = self.deterministic
        for path, choice in settings:
            if choice != settings[0][1]:
                yield (
                    path,
                    f"is {choice} and {settings[0][0]} is {settings[0][1]}; it holds for the whole "
                    "training. Make them agree.",
                )

    @property
    def opponents(self) -> set[str]:
        """Every opponent that is ever drawn."""
        found: set[str] = set()
        for phase in self.curriculum.phases:
            setting = phase.converted().settings["opponent"]
            found.update(setting.values if isinstance(setting, Mixed) else [str(setting)])
        return found

    @property
    def num_episodes(self) -> int:
        """Episodes of all phases together."""
        return sum(phase.episodes for phase in self.curriculum.phases)

    @property
    def longest(self) -> list[int]:
        """Most steps that an episode of each phase can have."""
        limit = self.training.max_episode_steps
        return [min(limit, phase.longest) for phase in self.curriculum.phases]

    def steps_of(self, num_episodes: float) -> int:
        """Return how many steps the first so many episodes have, if each is as long as can be."""
        steps, rest = 0.0, num_episodes
        for phase, longest in zip(self.curriculum.phases, self.longest, strict=True):
            played = min(rest, phase.episodes)
            steps, rest = steps + played * longest, rest - played
        return max(1, round(steps + rest * self.longest[-1]))

    def agent_config(self) -> AgentConfig:
        """Return the agent as ours."""
        own, common, training = self.agent.hyperparameters, self.hyperparameters, self.training
        shared: dict[str, Any] = {
            "buffer_size": own.buffer_size,
            "gamma": own.discount,
            "updates_per_step": training.updates_per_step / training.train_freq,
            "warmup_steps": training.warmup_steps,
            "mirror": "none" in self.opponents,
        }
        for name in ("learning_rate", "batch_size"):
            value = getattr(own, name) or getattr(common, name)
            if value is not None:
                shared[name] = value
        return own.converted(shared, self.steps_of)

    @property
    def every_steps(self) -> int | None:
        """Env steps between two checkpoints; None if neither key is there.

        The older key counts episodes: so many of the training's average length, were each as long
        as it can be.
        """
        episodes = self.training.checkpoint_save_freq
        if episodes is None:
            return self.training.checkpoint_frequency
        return round(episodes * self.steps_of(self.num_episodes) / self.num_episodes)


def is_published(data: Any) -> bool:
    """Whether a document is in the published trainer's schema rather than ours."""
    if not isinstance(data, Mapping):
        return False
    curriculum = data.get("curriculum")
    # Version 0.1.0 of our own schema had "config" instead of "type".
    if isinstance(curriculum, Mapping) and curriculum.keys() & {"type", "config", "phases"}:
        return not curriculum.keys() & {"type", "config"}
    ours = TrainingConfig.__dataclass_fields__.keys() - {"curriculum", "agent"}
    return not ours & data.keys() and bool({"training", "hyperparameters"} & data.keys())


def published_from_json(data: Mapping[str, Any], document: str = "the config") -> TrainingConfig:
    """Return the training that a document in the published schema describes.

    It ends when the episodes of all phases have been played; `total_steps` is a bound that follows
    from their length. Samples are mirrored in every phase if in any there is no opponent: the
    published trainer does so in such phases alone, but the rink is symmetric in all of them.

    Raises:
        ConfigError: Something is wrong; all of it is listed.
    """
    config = PublishedConfig.from_json(data, document)
    phases, opponents, every_steps = config.curriculum.phases, config.opponents, config.every_steps
    is_neural = any(name.startswith(CALLED) for name in opponents)
    deterministic = config.deterministic
    return TrainingConfig(
        env=HOCKEY,
        env_kwargs={
            **config.agent.hyperparameters.env_kwargs,
            **({"players": "both"} if is_neural else {}),
        },
        num_envs=NUM_ENVS,
        total_steps=(config.num_episodes + MAX_RUNNING) * (max(config.longest) + 1),
        total_episodes=config.num_episodes,
        tasks=(Task("hockey"),),
        curriculum=PhasedConfig(phases=tuple(phase.converted() for phase in phases)),
        agent=config.agent_config(),
        reward_scale=config.training.reward_scale,
        max_episode_steps=config.training.max_episode_steps,
        clear_buffer_on={phase.name: False for phase in phases if not phase.clear_buffer},
        evaluation=EvaluationConfig(every_steps=config.training.eval_frequency),
        # Past selves are the published trainer's checkpoints.
        opponents=OpponentsConfig(
            snapshot_every_steps=every_steps or OpponentsConfig.snapshot_every_steps,
            archive=ARCHIVE_FOLDER if NEURAL_TYPES["archive"] in opponents else None,
            deterministic=deterministic[0][1] if deterministic else True,
        ),
        checkpoints=CheckpointConfig(every_steps=every_steps),
    )
