"""Checks of runs: made-up runs that have just one illness, and healthy ones."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diagnosis.examined import told
from stepladder import doctor
from stepladder.curricula import StagedConfig
from stepladder.diagnosis.checks.learning import Block, dropped
from stepladder.runs import Run
from stepladder.training.config import TrainingConfig

TOTAL = 200_000
NUM_EPOCHS = 40

Curve = Callable[[float], float]
"""Success by the share of the run that is over."""


def learned(done: float) -> float:
    """Return success of an agent that learns."""
    return min(0.92, 0.1 + 1.6 * done)


def make_run(
    folder: Path,
    held_out: dict[str, Curve] | None = None,
    practice: dict[str, Curve] | None = None,
    *,
    metrics: Callable[[float], dict[str, float]] = lambda done: {},
    status: str = "finished",
    num_epochs: int = NUM_EPOCHS,
    **config: Any,
) -> Path:
    """Write a training whose success follows curves, with the noise of its episodes."""
    rng = np.random.default_rng(3)
    settings = TrainingConfig(**{"env": "CartPole-v1", "total_steps": TOTAL, **config}).to_json()
    with Run.create(folder, kind="training", config=settings, seed=0) as run:
        for epoch in range(1, num_epochs + 1):
            done, step = epoch / NUM_EPOCHS, TOTAL * epoch // NUM_EPOCHS
            logged = {"metric/agent_step": float(step), "losses/policy": 0.1, **metrics(done)}
            for label, curve in (practice or {"a": learned, "b": learned}).items():
                prefix = "env_curriculum_stats/per_label"
                logged[f"{prefix}_samples/{label}"] = 80.0
                logged[f"{prefix}_probs/{label}"] = 0.5
                logged[f"{prefix}_success/{label}"] = rng.binomial(80, curve(done)) / 80
            if held_out and epoch % 2 == 0:
                shares = {
                    name: rng.binomial(100, each(done)) / 100 for name, each in held_out.items()
                }
                logged |= {f"evaluation/success/{name}": share for name, share in shares.items()}
                logged["evaluation/success"] = sum(shares.values()) / len(shares)
                logged["evaluation/num_games"] = 100.0 * len(shares)
                logged["evaluation/random/success"] = 0.1
            run.log(step, logged)
        if status != "finished":
            run.close(status=status)
    return folder


def found(folder: Path) -> dict[str, set[str]]:
    return told(doctor(folder).findings)


def falls_to(level: float, at: float = 0.6) -> Curve:
    return lambda done: learned(done) if done < at else level


def test_nothing_is_found_in_runs_that_learn(tmp_path: Path) -> None:
    both = {"a": learned, "b": learned}
    assert found(make_run(tmp_path / "held-out", both)) == {}
    assert found(make_run(tmp_path / "practice")) == {}
    slow = {"a": learned, "b": lambda done: 0.05 + 0.4 * done}
    assert found(make_run(tmp_path / "slow", slow, slow)) == {}
    short = make_run(tmp_path / "short", both, num_epochs=3)
    assert found(short) == {}


@pytest.mark.parametrize("is_held_out", [True, False])
def test_a_collapse_is_found(tmp_path: Path, is_held_out: bool) -> None:
    curves = {name: falls_to(0.3, at=0.5) for name in ("a", "b", "c")}
    held_out = curves if is_held_out else None
    assert found(make_run(tmp_path / "run", held_out, curves)) == {"error": {"collapsed"}}


@pytest.mark.parametrize("is_held_out", [True, False])
def test_a_label_that_was_forgotten_is_found(tmp_path: Path, is_held_out: bool) -> None:
    curves = {"a": falls_to(0.3), "b": learned, "c": learned}
    held_out = curves if is_held_out else None
    assert found(make_run(tmp_path / "run", held_out, curves)) == {"error": {"forgot"}}


def test_a_run_that_no_longer_learns_is_found(tmp_path: Path) -> None:
    level = {"a": lambda done: min(0.5, 0.1 + 2.0 * done)}
    assert found(make_run(tmp_path / "run", level, level)) == {"warning": {"stopped-learning"}}


def test_a_run_that_has_learned_nothing_is_found(tmp_path: Path) -> None:
    chance = {"a": lambda done: 0.1}
    assert found(make_run(tmp_path / "run", chance, chance)) == {"error": {"never-learned"}}


@pytest.mark.parametrize(
    ("level", "check"), [(0.0, "success-never-in-run"), (1.0, "success-always-in-run")]
)
def test_success_that_never_changes_is_found(tmp_path: Path, level: float, check: str) -> None:
    same = {"a": lambda done: level, "b": lambda done: level}
    assert found(make_run(tmp_path / "run", None, same)) == {"error": {check}}


def test_a_stage_whose_threshold_is_above_what_there_is(tmp_path: Path) -> None:
    staged = StagedConfig(stages=("a", "b"), threshold=0.9, early=None)
    tasks = ({"name": "a", "label": "a"}, {"name": "b", "label": "b"})
    config = TrainingConfig.from_json(
        {"env": "CartPole-v1", "tasks": list(tasks), "curriculum": staged.to_json()}
    )
    in_first = {"env_curriculum_stats/stage": 0.0}
    level = {"a": lambda done: min(0.6, 0.2 + 3.0 * done), "b": learned}
    settings: dict[str, Any] = {"curriculum": config.curriculum, "tasks": config.tasks}
    stuck = make_run(tmp_path / "stuck", None, level, metrics=lambda done: in_first, **settings)
    assert found(stuck) == {"error": {"stage-out-of-reach"}}
    # One that is nearly there will be left; one in the last stage has nowhere to go.
    near = {"a": lambda done: min(0.9, 0.2 + 3.0 * done), "b": learned}
    healthy = make_run(tmp_path / "near", None, near, metrics=lambda done: in_first, **settings)
    assert found(healthy) == {}
    last = make_run(
        tmp_path / "last",
        None,
        level,
        metrics=lambda done: {"env_curriculum_stats/stage": 1.0},
        **settings,
    )
    assert found(last) == {}


def test_a_label_that_was_never_drawn(tmp_path: Path) -> None:
    unused = {f"env_curriculum_stats/per_label_{what}/c": 0.0 for what in ("samples", "probs")}
    run = make_run(tmp_path / "run", metrics=lambda done: unused)
    assert found(run) == {"error": {"labels-never-drawn-in-run"}}
    # A later stage may come.
    staged = {**unused, "env_curriculum_stats/stage": 1.0}
    assert found(make_run(tmp_path / "staged", metrics=lambda done: staged)) == {}


def test_how_it_ended(tmp_path: Path) -> None:
    failed = make_run(tmp_path / "failed", status="failed: EnvError: the reward is nan")
    assert found(failed) == {"error": {"run-failed"}}
    assert "EnvError: the reward is nan" in doctor(failed).findings[0].text
    assert found(make_run(tmp_path / "stopped", status="stopped")) == {"warning": {"run-failed"}}


def test_numbers_that_are_not_finite(tmp_path: Path) -> None:
    def late(done: float) -> dict[str, float]:
        return {"losses/value": float("inf") if done > 0.9 else 0.5}

    assert found(make_run(tmp_path / "run", metrics=late)) == {"error": {"metrics-not-finite"}}


def test_tasks_out_of_play_and_late_results(tmp_path: Path) -> None:
    prefix = "env_curriculum_stats/"
    broken = {f"{prefix}num_quarantined": 3.0, f"{prefix}num_active_tasks": 7.0}
    run = make_run(tmp_path / "broken", metrics=lambda done: broken)
    assert found(run) == {"error": {"tasks-quarantined"}}
    late = {f"{prefix}num_orphaned": 400.0, f"{prefix}total_completions": 1_000.0}
    assert found(make_run(tmp_path / "late", metrics=lambda done: late)) == {
        "warning": {"results-orphaned"}
    }


def test_a_run_that_goes_on_and_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Run.create(tmp_path / "run", kind="training", config={}, seed=0) as run:
        for step in range(1, 6):
            run.log(step, {"overview/reward": 1.0})
        run.flush()
        assert found(tmp_path / "run") == {}
        now = time.time()
        monkeypatch.setattr("time.time", lambda: now + 3_600.0)
        assert found(tmp_path / "run") == {"error": {"run-silent"}}


def test_a_run_is_only_read(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", env="no_such_module:Env")
    files = [folder / name for name in ("config.json", "run.sqlite", "run.lock")]
    before = [path.read_bytes() for path in files]
    assert doctor(folder).kind == "run"
    assert [path.read_bytes() for path in files] == before


def test_the_best_of_many_parts_is_not_taken_for_a_fall() -> None:
    rng = np.random.default_rng(0)
    num_told = 0
    for _ in range(1_000):
        rates = rng.binomial(60, 0.5, 20) / 60
        parts = [Block(float(step), float(rate), 60.0) for step, rate in enumerate(rates)]
        num_told += dropped(parts) is not None
    # Three standard deviations would tell of thirty.
    assert num_told <= 2
    assert dropped([*(Block(0.0, 0.9, 60.0) for _ in range(19)), Block(20.0, 0.5, 60.0)])


def test_a_label_that_keeps_most_of_its_success_is_a_warning(tmp_path: Path) -> None:
    curves = {"a": falls_to(0.55), "b": learned, "c": learned}
    assert found(make_run(tmp_path / "run", None, curves)) == {"warning": {"forgot"}}
