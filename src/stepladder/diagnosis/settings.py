"""What settings ask for, as far as it is known before anything is played.

Evidence of the checks of a config. Of a stage, the real rules are asked whether an agent of a given
success ever leaves it: a curriculum over that stage and the next gets the agent's results.
"""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from stepladder.curricula.config import CurriculumConfig
from stepladder.curricula.staged.config import Stage, StagedConfig
from stepladder.diagnosis.evidence import Drawing
from stepladder.diagnosis.probes.drawing import records_of
from stepladder.tasks import Task
from stepladder.training.config import TrainingConfig

PLAUSIBLE = 0.95
"""Success of an agent that has learned a task; some noise is always left."""

MOST_TRIED = 20_000
"""Episodes after which a stage counts as never left."""

LEAVING_TRIALS = 24


@dataclass(frozen=True, kw_only=True)
class SettingsEvidence:
    """A curriculum and what is around it."""

    curriculum: CurriculumConfig
    training: TrainingConfig | None
    """None of a curriculum alone."""

    num_envs: int
    num_episodes: int | None
    """About as many as the training has; None if that is not known."""

    num_cores: int
    problems: tuple[tuple[str, str], ...] = ()
    """Path and text of everything that was refused; then nothing else is known."""

    drawing: Drawing | None = None


@dataclass(frozen=True, kw_only=True)
class Leaving:
    """How an agent of constant success gets out of a stage."""

    stage: str
    threshold: float
    """The lowest success at which any rule advances a constant agent."""

    share: float
    """Of the trials, those that left it in time."""

    median_episodes: float
    """Until it was left; infinite if mostly never."""

    num_tried: int
    """Episodes after which it counts as never."""


def staged_parts(
    config: CurriculumConfig, path: str = "curriculum"
) -> Iterator[tuple[str, StagedConfig]]:
    """Yield all staged curricula in a config, each with its path."""
    if isinstance(config, StagedConfig):
        yield path, config
    for index, phase in enumerate(config.all_phases()):
        yield from staged_parts(phase.inner(), f"{path}.phases[{index}].curriculum")


def leaving(
    config: StagedConfig, index: int, success: float, num_envs: int, most: int | None
) -> Leaving:
    """Let an agent of constant success play a stage, again and again.

    Args:
        config: The staged curriculum.
        index: Of a stage that is not the last one.
        success: The agent's.
        num_envs: No rule decides on fewer episodes.
        most: Episodes that the training has; None if that is not known.
    """
    tried = min(most or MOST_TRIED, MOST_TRIED)
    pair = _pair(config, index)
    lengths = [
        _episodes_until_left(pair, success, num_envs, tried, k) for k in range(LEAVING_TRIALS)
    ]
    in_time = [length for length in lengths if length is not None]
    needs = pair.needs_of(0, num_envs, 0.0)
    return Leaving(
        stage=config.stages[index].name,
        threshold=min(needs[rule][0] for rule in needs if _is_for_constant(pair, rule)),
        share=len(in_time) / LEAVING_TRIALS,
        median_episodes=statistics.median(
            [float("inf") if length is None else length for length in lengths]
        ),
        num_tried=tried,
    )


def _is_for_constant(config: StagedConfig, rule: str) -> bool:
    """Whether a rule can advance an agent whose success does not rise."""
    return rule == "early" or (rule == "standard" and config.standard)


def _pair(config: StagedConfig, index: int) -> StagedConfig:
    """Return the curriculum of a stage and the next alone, with the rules that it has there."""
    stage, after = config.stages[index], config.stages[index + 1]
    return replace(
        config,
        stages=(
            replace(stage, labels=(stage.name,), demotion_threshold=None),
            Stage(name=after.name),
        ),
        starting_stage=None,
        mixing=None,
        demotion=None,
        balance_by=None,
        exploration=0.0,
    )


def _episodes_until_left(
    config: StagedConfig, success: float, num_envs: int, most: int, seed: int
) -> int | None:
    curriculum = config.make([Task(stage.name, stage.name) for stage in config.stages])
    rng = np.random.default_rng([seed, 77])
    batch = max(1, min(num_envs, config.check_interval_episodes))
    least = min(need[1] for need in config.needs_of(0, num_envs, 0.0).values())
    played = 0
    while played < most:
        # Nothing can happen before the minimum, so that part is one batch.
        count = least if played == 0 else batch
        draws = curriculum.draw_batch(count)
        curriculum.observe(records_of(draws, rng.random(count) < success, 1))
        played += count
        if curriculum.state_metrics()["stage"] > 0:
            return played
    return None
