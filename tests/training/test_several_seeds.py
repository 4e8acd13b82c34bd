"""Several seeds at once: stopped and resumed together, each as if it had been trained alone."""

import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from stepladder.errors import ConfigError, RunError
from stepladder.runs import RunReader
from stepladder.training.config import CheckpointConfig
from stepladder.training.results import Progress
from stepladder.training.seeds import SeedsOptions, resume_seeds, train_seeds
from stepladder.training.starting import train
from training.training_scenes import LEDGE_PPO, differences, left_behind

CONFIG = replace(LEDGE_PPO, total_steps=1_280, checkpoints=CheckpointConfig())


@pytest.mark.processes
@pytest.mark.timeout(100)
def test_stopped_seeds_go_on_bit_for_bit(tmp_path: Path) -> None:
    ended: list[tuple[int, str]] = []
    is_stopped = threading.Event()

    def stop(seed: int, progress: Progress) -> None:
        # Ctrl-C, once; a second one would not wait.
        if seed == 0 and not is_stopped.is_set():
            is_stopped.set()
            os.kill(os.getpid(), signal.SIGINT)

    parent = tmp_path / "several"
    options = SeedsOptions(jobs=2, on_epoch=stop, on_end=lambda s, end: ended.append((s, end.how)))
    stopped = train_seeds(CONFIG, seeds=2, run_folder=parent, options=options)
    assert stopped.was_stopped
    assert stopped.failures == {}
    assert (0, "stopped") in ended
    assert RunReader(parent / "seed-0").status == "interrupted"
    assert stopped.summary.seeds[0].status == "interrupted"
    result = resume_seeds(parent)
    assert not result.was_stopped
    assert [one.status for one in result.summary.seeds] == ["finished", "finished"]
    assert {row.name for row in result.summary.rows} >= {"simplest", "return", "steps/s"}
    assert resume_seeds(parent).had_ended
    for seed in (0, 1):
        alone = tmp_path / f"alone-{seed}"
        train(replace(CONFIG, seed=seed), run_folder=alone)
        assert differences(left_behind(alone), left_behind(parent / f"seed-{seed}")) == []


@pytest.mark.parametrize("seeds", [0, -1, (), (1, 1), True])
def test_wrong_seeds_start_nothing(tmp_path: Path, seeds: int) -> None:
    with pytest.raises(ConfigError, match="seeds must be"):
        train_seeds(CONFIG, seeds=seeds, run_folder=tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_something_else_in_the_folder_stays(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(RunError, match="is not empty and does not hold several seeds"):
        train_seeds(CONFIG, seeds=2, run_folder=tmp_path, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
