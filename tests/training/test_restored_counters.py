"""The counters of a checkpoint are checked before a training takes them back."""

import math
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepladder.errors import SnapshotError
from stepladder.saving.snapshot import Snapshot
from stepladder.training import checkpoints, train
from stepladder.training.checkpoints import TrainingCheckpoint
from stepladder.training.loop import Trainer
from stepladder.training.session import Session
from training.training_scenes import FOREIGN

CONFIG = replace(FOREIGN, total_steps=96)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> TrainingCheckpoint:
    """The last checkpoint of a short training."""
    folder: Path = tmp_path_factory.mktemp("runs") / "run"
    train(CONFIG, run_folder=folder)
    return checkpoints.load_newest(folder)[0]


@pytest.fixture(scope="module")
def session():
    """A session that has not begun; a refusal changes nothing in it."""
    trainer = Trainer(CONFIG)
    yield Session(CONFIG, trainer)
    trainer.close()


def changed(saved: TrainingCheckpoint, path: tuple[str, ...], value: Any) -> TrainingCheckpoint:
    """Return a checkpoint with one counter changed."""
    state = deepcopy(saved.trainer.state)
    inside: Any = state
    for name in path[:-1]:
        inside = inside[name]
    assert path[-1] in inside
    inside[path[-1]] = value
    return replace(saved, trainer=Snapshot(state, saved.trainer.arrays))


@pytest.mark.parametrize(
    "path",
    [
        ("trainer", "own", "num_steps"),
        ("trainer", "own", "num_updates"),
        ("trainer", "own", "num_ended"),
        ("trainer", "own", "latest"),
        ("trainer", "own", "seconds"),
        ("trainer", "own", "seconds", "env"),
        ("session", "evaluation_steps"),
        ("session", "evaluated_at"),
        ("session", "reported_at"),
        ("session", "num_epochs"),
        ("session", "elapsed_s"),
        ("session", "evaluations"),
        ("session", "cursor"),
    ],
)
def test_no_counter_can_be_what_it_cannot_be(
    saved: TrainingCheckpoint, session: Session, path: tuple[str, ...]
):
    wrong: tuple[Any, ...] = (-1, 10**400, "7", None, math.nan, [None], True)
    for value in wrong:
        with pytest.raises(SnapshotError, match=r"damaged|expected .* Use an older one") as caught:
            session.restore(changed(saved, path, value))
        assert "\n" not in str(caught.value)


def test_random_play_is_taken_back_whole_or_refused(saved: TrainingCheckpoint, session: Session):
    total = ("session", "baseline", "total")
    wrong = [(("session", "baseline"), value) for value in (-1, "7", math.nan, [None], True, {})]
    wrong += [((*total, "num_games"), 0), ((*total, "name"), 3), ((*total, "parts"), [{}])]
    for path, value in [*wrong, (("session", "baseline", "way"), "by luck")]:
        with pytest.raises(SnapshotError, match=r"baseline is damaged.*Use an older checkpoint"):
            session.restore(changed(saved, path, value))
    # Older checkpoints have none.
    state = deepcopy(saved.trainer.state)
    del state["session"]["baseline"]
    trainer = Trainer(CONFIG)
    Session(CONFIG, trainer).restore(replace(saved, trainer=Snapshot(state, saved.trainer.arrays)))
    trainer.close()


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("returns", np.zeros((2, 2))),
        ("returns", np.array([math.nan])),
        ("returns", np.zeros(2, dtype=np.int64)),
        ("lengths", np.array([-1])),
        ("successes", np.array(["a"])),
    ],
)
def test_no_column_can_be_what_it_cannot_be(
    saved: TrainingCheckpoint, session: Session, name: str, column: Any
):
    arrays = {**saved.trainer.arrays, f"trainer/own/{name}": column}
    with pytest.raises(SnapshotError, match=f"array '{name}' of part 'own' of part 'trainer'"):
        session.restore(replace(saved, trainer=Snapshot(saved.trainer.state, arrays)))


def test_what_is_right_is_taken_back(saved: TrainingCheckpoint):
    trainer = Trainer(CONFIG)
    try:
        Session(CONFIG, trainer).restore(saved)
        assert trainer.num_steps == saved.step
    finally:
        trainer.close()
