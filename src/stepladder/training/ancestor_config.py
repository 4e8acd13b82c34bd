"""Configs as the ancestor writes them, read as they are.

Between a file and `config`: phases of hockey with opponents and shaped rewards, an agent, and how
it is trained. Where the ancestor counts episodes and we count env steps, an episode is taken to be
as long as it can be: 81 steps when only shooting or defending is practised, else 251, or
``training.max_episode_steps`` if that is less.
"""

from collections.abc import Mapping
from typing import Any

from stepladder.curricula.phased.config import PhasedConfig
from stepladder.games.game import CALLED
from stepladder.games.hockey.game import ENV as HOCKEY
from stepladder.tasks import Task
from stepladder.training.ancestor_agent import Surroundings, read_agent
from stepladder.training.ancestor_phases import NEURAL_TYPES, Course, read_course
from stepladder.training.config import (
    CheckpointConfig,
    EvaluationConfig,
    OpponentsConfig,
    TrainingConfig,
)
from stepladder.training.problems import Problems
from stepladder.training.sections import Section

NUM_ENVS = 8
"""The ancestor's files do not say how many envs; this is what its authors recommend."""

ARCHIVE = "archive"
"""Its folder of other agents."""

MAX_RUNNING = 1_024
"""Episodes that may be under way when the last one ends that counts."""


def is_ancestor(data: Any) -> bool:
    """Whether a document is in the ancestor's schema rather than ours."""
    if not isinstance(data, Mapping):
        return False
    curriculum = data.get("curriculum")
    if isinstance(curriculum, Mapping) and ("config" in curriculum or "phases" in curriculum):
        return "config" not in curriculum
    ours = TrainingConfig.__dataclass_fields__.keys() - {"curriculum", "agent"}
    return not ours & data.keys() and bool({"training", "hyperparameters"} & data.keys())


def ancestor_from_json(data: Mapping[str, Any], document: str = "the config") -> TrainingConfig:
    """Return the training that a document in the ancestor's schema describes.

    It ends when the episodes of all phases have been played; `total_steps` is a bound that follows
    from their length. Samples are mirrored in every phase if in any there is no opponent: the
    ancestor does so in such phases alone, but the rink is symmetric in all of them.

    Raises:
        ConfigError: Something is wrong; all of it is listed.
    """
    problems = Problems()
    problems.add_unreadable(data)
    problems.raise_if_any(document)
    whole = Section(data, "", problems)
    whole.require("training")
    training = whole.section("training")
    max_episode_steps = training.whole("max_episode_steps", 500)
    whole.require("curriculum")
    curriculum = whole.section("curriculum")
    entries = curriculum.entries("phases") if whole.has("curriculum") else []
    curriculum.close()
    course = read_course(entries, max_episode_steps, problems)
    around = Surroundings(
        updates_per_step=training.positive("updates_per_step", 1.0)
        / training.whole("train_freq", 1),
        warmup_steps=training.whole("warmup_steps", 400, 0),
        mirror="none" in course.opponents,
        steps_of=course.steps_of,
    )
    agent, env_kwargs = read_agent(whole, around)
    every_steps = _checkpoint_steps(training, course)
    reward_scale = training.positive("reward_scale", 0.1)
    evaluation = _evaluation(training)
    training.close()
    whole.close()
    problems.raise_if_any(document)
    assert agent is not None
    if any(name.startswith(CALLED) for name in course.opponents):
        env_kwargs = {**env_kwargs, "players": "both"}
    return TrainingConfig(
        env=HOCKEY,
        env_kwargs=env_kwargs,
        num_envs=NUM_ENVS,
        total_steps=(course.num_episodes + MAX_RUNNING) * (max(course.longest) + 1),
        total_episodes=course.num_episodes,
        tasks=(Task("hockey"),),
        curriculum=PhasedConfig(phases=tuple(course.phases)),
        agent=agent,
        reward_scale=reward_scale,
        max_episode_steps=max_episode_steps,
        clear_buffer_on=dict.fromkeys(course.keeps_buffer, False),
        evaluation=evaluation,
        opponents=_opponents(course, every_steps),
        checkpoints=CheckpointConfig(every_steps=every_steps),
    )


def _checkpoint_steps(training: Section, course: Course) -> int | None:
    """Return env steps between two checkpoints; None if nothing is said.

    The older key counts episodes: so many of the training's average length, were each as long as
    it can be. The newer one counts steps.
    """
    episodes, steps = "checkpoint_save_freq", "checkpoint_frequency"
    if training.has(episodes) and training.has(steps):
        training.refuse(steps, f"is there beside {episodes}. Keep one of them.")
    if training.has(steps):
        return training.whole(steps, 1)
    num_episodes = training.whole(episodes, 100)
    if not training.has(episodes) or not course.phases:
        return None
    return round(num_episodes * course.steps_of(course.num_episodes) / course.num_episodes)


def _evaluation(training: Section) -> EvaluationConfig:
    default = EvaluationConfig()
    return EvaluationConfig(every_steps=training.whole("eval_frequency", default.every_steps or 1))


def _opponents(course: Course, every_steps: int | None) -> OpponentsConfig:
    """Return where neural opponents come from; past selves are the ancestor's checkpoints."""
    default = OpponentsConfig()
    return OpponentsConfig(
        snapshot_every_steps=every_steps or default.snapshot_every_steps,
        archive=ARCHIVE if NEURAL_TYPES["archive"] in course.opponents else None,
        deterministic=next(iter(course.deterministic.values()), True),
    )
