"""Several trainings on the machines of a cluster: the same as here, stopped and continued."""

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster.ray_cluster import RayCluster
from stepladder.curricula import UniformConfig
from stepladder.errors import ConfigError
from stepladder.runs import RunReader
from stepladder.sweeps import SweepChoice, sweep
from stepladder.tasks import Task
from stepladder.training.config import EvaluationConfig, TrainingConfig
from stepladder.training.results import Progress
from stepladder.training.seeds import SeedsOptions, require_engine, resume_seeds, train_seeds
from stepladder.training.swept import TrainingSweep

pytestmark = [pytest.mark.ray, pytest.mark.timeout(150), pytest.mark.filterwarnings("ignore")]

TASKS = tuple(Task(f"length {length}", "short", {"length": length}) for length in (2, 3))
SETTINGS: dict[str, Any] = {
    "env": "cluster.rllib_envs:Corridor",
    "tasks": TASKS,
    "curriculum": UniformConfig(),
    "num_envs": 4,
    "total_steps": 600,
    "evaluation": EvaluationConfig(every_steps=None, num_games=4),
}


def final(folder: Path, seed: int) -> Any:
    run = RunReader(folder / f"seed-{seed}")
    return [run.metric(name)[1].tolist() for name in ("metric/agent_step", "env_episode/r")]


def test_seeds_learn_on_a_cluster_what_they_learn_here_and_can_be_stopped(
    ray_cluster: RayCluster, tmp_path: Path
) -> None:
    told: list[int] = []

    def stop(seed: int, progress: Progress) -> None:
        if not told:
            # Ctrl-C, which reaches the main thread.
            os.kill(os.getpid(), signal.SIGINT)
        told.append(seed)

    there, here = tmp_path / "there", tmp_path / "here"
    on_ray = SeedsOptions(engine="ray", jobs=2)
    result = train_seeds(seeds=2, run_folder=there, options=on_ray, **SETTINGS)
    assert (result.failures, result.was_stopped) == ({}, False)
    train_seeds(seeds=[1], run_folder=here, **SETTINGS)
    np.testing.assert_array_equal(final(there, 1), final(here, 1))

    # Resumed with a later end, and stopped long before it.
    stopping = SeedsOptions(engine="ray", jobs=2, on_epoch=stop)
    result = resume_seeds(there, options=stopping, trust=True, total_steps=10**8)
    assert result.was_stopped
    for seed in (0, 1):
        reader = RunReader(there / f"seed-{seed}")
        assert 600 < reader.metric("metric/agent_step")[1][-1] < 10**8
        assert reader.checkpoints()


def test_a_sweep_over_trainings_runs_on_a_cluster(ray_cluster: RayCluster, tmp_path: Path) -> None:
    objective = TrainingSweep(training=TrainingConfig(**SETTINGS), num_seeds=1, engine="ray")
    dimension = SweepChoice("num_envs", (2, 4))
    result = sweep(objective, [dimension], folder=tmp_path / "sweep", jobs=2)
    assert [trial.error for trial in result.trials] == [None, None]
    assert all(trial.cell is not None for trial in result.trials)


def test_an_engine_that_is_not_there_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="engine must be 'local' or 'ray'; got 'spark'"):
        require_engine("spark")

    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr("stepladder.cluster.requirements.import_module", missing)
    options = SeedsOptions(engine="ray")
    with pytest.raises(ConfigError, match=r"pip install 'stepladder\[ray\]'"):
        train_seeds(seeds=2, run_folder=tmp_path / "runs", options=options, **SETTINGS)
    assert not (tmp_path / "runs").exists()
