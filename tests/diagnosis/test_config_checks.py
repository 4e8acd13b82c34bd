"""Checks of settings: what is refused, never drawn, never reached, or unfit for this machine."""

from dataclasses import replace
from typing import Any

import pytest

from diagnosis.examined import examined, found_in, told
from diagnosis.patients import WALKS, Walk
from stepladder import doctor
from stepladder.curricula import LearningProgressConfig, Phase, PhasedConfig, StagedConfig
from stepladder.curricula.config import CurriculumConfig
from stepladder.diagnosis.checks.curricula import chance_of_window
from stepladder.diagnosis.evidence import ComparedRows, EnvEvidence, RandomPlay
from stepladder.diagnosis.registry import examine
from stepladder.diagnosis.settings import SettingsEvidence, leaving
from stepladder.errors import ConfigError
from stepladder.tasks import Task
from stepladder.training.config import TrainingConfig

STAGES: dict[str, Any] = {"stages": ("short", "long"), "early": None}


def settings_with(**changes: Any) -> SettingsEvidence:
    plain = StagedConfig(**STAGES)
    known: dict[str, Any] = {"curriculum": plain, "training": None, "num_envs": 8}
    return SettingsEvidence(**{**known, "num_episodes": 5_000, "num_cores": 4, **changes})


def found(**changes: Any) -> dict[str, set[str]]:
    return told(examine({"config": settings_with(**changes)}))


def test_a_window_that_noise_rarely_fills_is_computed() -> None:
    # 20 of 20 at 0.95: 0.95 to the 20th. 3 of 3 or 2 of 3 at one half: 1/8 + 3/8.
    assert chance_of_window(0.98, 20, 0.95) == pytest.approx(0.95**20)
    assert chance_of_window(0.6, 3, 0.5) == pytest.approx(0.5)
    assert chance_of_window(0.0, 5, 0.3) == pytest.approx(1.0)


def test_a_threshold_above_what_noise_leaves_is_out_of_reach() -> None:
    hard = StagedConfig(**STAGES, threshold=0.98, window_episodes=400)
    assert found(curriculum=hard) == {"error": {"threshold-out-of-reach"}}
    # In a window of 20 luck is enough, and soon.
    lucky = StagedConfig(**STAGES, threshold=0.98, window_episodes=20)
    assert found(curriculum=lucky) == {"warning": {"threshold-out-of-reach"}}
    assert found(curriculum=StagedConfig(**STAGES, threshold=0.8)) == {}
    # Another rule leaves the stage sooner.
    early = StagedConfig(stages=("short", "long"), threshold=0.98, window_episodes=400)
    assert found(curriculum=early) == {}


def test_a_threshold_inside_a_phase_is_found_too() -> None:
    hard = StagedConfig(**STAGES, threshold=0.98, window_episodes=400)
    phases = PhasedConfig(
        phases=(Phase(name="climb", curriculum=hard, episodes=900), Phase(name="b"))
    )
    assert found(curriculum=phases) == {"error": {"threshold-out-of-reach"}}
    ending = PhasedConfig(
        phases=(Phase(name="a", success=0.99, window_episodes=500), Phase(name="b"))
    )
    assert found(curriculum=ending) == {"error": {"threshold-out-of-reach"}}


def test_a_confidence_bound_asks_for_more_than_the_rate_says() -> None:
    # Wilson's bound at 2 standard deviations over 50 episodes is below 0.9 at 48 of 50.
    bound = StagedConfig(**STAGES, threshold=0.9, confidence_z=2.0)
    assert (
        leaving(bound, 0, 0.9, 8, 3_000).share
        < leaving(replace(bound, confidence_z=None), 0, 0.9, 8, 3_000).share
    )


def test_a_label_without_weight_is_never_drawn() -> None:
    def drawn(config: CurriculumConfig) -> dict[str, set[str]]:
        return told(found_in(examined(Walk, tasks=WALKS, curriculum=config, total_steps=40_000)))

    only = PhasedConfig(phases=(Phase(name="one", mixture={"short": 1.0}),))
    assert drawn(only) == {"error": {"labels-never-drawn"}}
    both = PhasedConfig(phases=(Phase(name="one", mixture={"short": 1.0, "long": 0.1}),))
    assert drawn(both) == {}
    later = PhasedConfig(
        phases=(Phase(name="a", mixture={"short": 1.0}, episodes=50), Phase(name="b"))
    )
    assert drawn(later) == {}


def test_returns_outside_the_range_that_the_curriculum_expects() -> None:
    def played(low: float, high: float) -> dict[str, set[str]]:
        config = LearningProgressConfig(signal="return", return_low=low, return_high=high)
        tasks = tuple(Task(f"pole {k}", params={"length": 0.3 * (k + 1)}) for k in range(2))
        return told(
            found_in(
                examined(
                    "CartPole-v1",
                    tasks=tasks,
                    deliver="diagnosis.test_config_checks:give_length",
                    curriculum=config,
                )
            )
        )

    assert played(-1.0, 1.0) == {"error": {"returns-outside-range"}}
    assert played(0.0, 500.0) == {}


def give_length(env: Any, task: Task) -> None:
    env.unwrapped.length = task.params["length"]


def test_workers_that_do_not_fit() -> None:
    def with_workers(num_workers: int, num_envs: int = 8) -> dict[str, set[str]]:
        training = TrainingConfig(env="CartPole-v1", num_envs=num_envs, num_workers=num_workers)
        return found(training=training)

    assert with_workers(8) == {"error": {"workers-unfit"}}
    assert with_workers(6) == {"warning": {"workers-unfit"}}
    assert with_workers(3) == {}


def test_steps_that_are_too_quick_or_too_slow_for_the_workers_that_are_set() -> None:
    def measured(num_workers: int | None, plain_s: float, worker_s: float) -> dict[str, set[str]]:
        config = TrainingConfig(env="CartPole-v1", num_envs=8, num_workers=num_workers)
        play = RandomPlay(
            episodes=(), step_seconds=plain_s / 8, num_steps=9, not_finite=(), outside=(),
            cast=(), unbuilt=(), num_tried=1,
        )  # fmt: skip
        rows = ComparedRows(
            num_envs=8, num_workers=1, differs_at=None, num_compared=9, plain_seconds=plain_s,
            worker_seconds=worker_s, largest_lag=0,
        )  # fmt: skip
        env = EnvEvidence(name="env", config=config, play=play, rows=rows, num_cores=2)
        return told(examine({"env": env}))

    assert measured(1, 1e-4, 4e-4) == {"warning": {"steps-and-workers"}}
    assert measured(0, 8e-3, 4.2e-3) == {"warning": {"steps-and-workers"}}
    assert measured(None, 1e-4, 4e-4) == measured(1, 8e-3, 4.2e-3) == {}
    # 2,000,000 steps of 0.2 s on two cores are 56 hours.
    assert measured(None, 1.6, 1.0) == {"warning": {"long-training"}}


def test_settings_that_are_refused_are_all_told() -> None:
    ill = doctor({"env": "CartPole-v1", "num_envs": 0, "agent": {"type": "dqn"}})
    assert told(ill.findings) == {"error": {"config-refused"}}
    assert [one.text.partition(":")[0] for one in ill.of("error")] == ["num_envs", "agent.type"]
    assert not ill.is_healthy
    # A curriculum alone, with tasks that it does not know.
    staged = {"type": "staged", "stages": ["short"]}
    assert told(doctor(staged, tasks=list(WALKS)).findings) == {"error": {"config-refused"}}
    whole = {"type": "staged", "stages": ["short", "long"]}
    assert doctor(whole, tasks=list(WALKS)).is_healthy


def test_what_cannot_be_meant_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"no-such\.json cannot be read"):
        doctor("no-such.json")
    with pytest.raises(ConfigError, match="num_envs is a setting of a training"):
        doctor({"type": "uniform"}, num_envs=3)
    with pytest.raises(ConfigError, match="episodes must be an integer"):
        doctor("CartPole-v1", episodes=0)
