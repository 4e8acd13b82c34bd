"""The best checkpoint so far: by what an evaluation is judged, and how long it is kept."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepladder import load_policy
from stepladder.errors import SnapshotError
from stepladder.runs import RunReader
from stepladder.training import checkpoints, session
from stepladder.training.best import Best, better
from stepladder.training.config import CheckpointConfig, EvaluationConfig
from stepladder.training.evaluation.scores import Evaluation, GameResults, score
from stepladder.training.examiner import Examiner
from stepladder.training.starting import resume, train
from training.training_scenes import FOREIGN

CONFIG = replace(
    FOREIGN,
    total_steps=100_000,
    evaluation=EvaluationConfig(every_steps=48, num_games=2),
    checkpoints=CheckpointConfig(every_steps=48, keep=1),
)


def evaluation(rate: float, mean_return: float = 0.0, *, is_told: bool = True) -> Evaluation:
    """Return an evaluation of a hundred games."""
    successes = np.full(100, np.nan)
    if is_told:
        successes[:] = np.arange(100) < 100 * rate
    returns, lengths = np.full(100, mean_return), np.ones(100, dtype=np.int64)
    games = GameResults(returns, lengths, successes, None, np.arange(100))
    return Evaluation(env="a", seed=0, way="best", total=score("all", games))


def test_more_success_is_better_then_a_higher_return_and_of_equals_the_earlier() -> None:
    best: Best | None = None
    judged = [
        evaluation(0.0, -20.0, is_told=False).judged,
        evaluation(0.0, -30.0, is_told=False).judged,
        evaluation(0.25, -90.0).judged,
        evaluation(0.5, -90.0).judged,
        evaluation(0.5, -90.0).judged,
        evaluation(0.25, 900.0).judged,
        evaluation(0.5, -80.0).judged,
        evaluation(0.5, float("nan")).judged,
    ]
    steps: list[int] = []
    for step, one in enumerate(judged):
        best = better(best, step, one)
        steps.append(best.step)
    assert steps == [0, 0, 2, 3, 3, 3, 6, 6]
    assert best is not None
    assert Best.from_json(best.to_json()) == best == Best(6, (0.5, -80.0))


@pytest.fixture
def rated(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets evaluations have given results, one after the other; the training ends with the last."""

    def rate(*rates: float) -> Any:
        given: Iterator[float] = iter(rates)
        left = [len(rates)]

        def examine(*_: Any, **__: Any) -> Evaluation:
            left[0] -= 1
            return evaluation(next(given))

        monkeypatch.setattr(Examiner, "examine", examine)
        return lambda progress: left[0] == 0

    return rate


def kept(folder: Path) -> tuple[int | None, list[int]]:
    """Return the steps of the best checkpoint and of all."""
    reader = RunReader(folder)
    best = reader.best_checkpoint()
    steps = sorted({checkpoints.load(path).step for path in checkpoints.find(folder)})
    return None if best is None else reader.checkpoint_step(best), steps


def test_the_best_stays_while_newer_ones_come_and_survives_a_resume(
    tmp_path: Path, rated: Any
) -> None:
    folder = tmp_path / "run"
    result = train(CONFIG, run_folder=folder, on_epoch=rated(0.25, 0.75, 0.75, 0.5))
    steps = [one["step"] for one in result.evaluation_results]
    assert result.best_step == steps[1]
    assert kept(folder) == (steps[1], [steps[1], steps[3]])
    assert load_policy(folder, which="best").step == steps[1]
    assert load_policy(folder).step == load_policy(folder, step=steps[3]).step == steps[3]
    # Worse ones after a resume leave it where it is; a better one takes its place.
    result = resume(folder, on_epoch=rated(0.5, 0.75))
    last = result.evaluation_results[-1]["step"]
    assert (result.best_step, kept(folder)) == (steps[1], (steps[1], [steps[1], last]))
    result = resume(folder, on_epoch=rated(0.8))
    assert kept(folder) == (result.best_step, [result.total_steps])
    assert result.best_step == result.evaluation_results[-1]["step"] == result.total_steps > last


def test_without_an_evaluation_none_is_best(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    result = train(CONFIG, run_folder=folder, on_epoch=lambda progress: True, epoch_steps=6)
    assert result.best_step is None
    assert kept(folder)[0] is None
    with pytest.raises(SnapshotError, match="has no best checkpoint"):
        load_policy(folder, which="best")


def test_a_best_that_is_gone_is_forgotten_and_the_next_evaluation_is_the_best(
    tmp_path: Path, rated: Any
) -> None:
    folder = tmp_path / "run"
    config = replace(CONFIG, checkpoints=CheckpointConfig(every_steps=48, keep=3))
    result = train(config, run_folder=folder, on_epoch=rated(0.5, 0.25, 0.75, 0.25))
    steps = [one["step"] for one in result.evaluation_results]
    assert kept(folder) == (steps[2], steps[1:])
    # The run goes back to its second evaluation; the best of then has made room for the third.
    for path in checkpoints.find(folder)[:-1]:
        (path / "envs.npz").write_bytes(b"")
    result = resume(folder, on_epoch=rated(0.125))
    assert len(result.refused_checkpoints) >= 2
    again = [one["step"] for one in result.evaluation_results]
    assert (again[:2], len(again)) == (steps[:2], 3)
    assert (result.best_step, kept(folder)) == (again[2], (again[2], again[1:]))


def test_a_damaged_account_of_the_best_is_refused(tmp_path: Path, rated: Any) -> None:
    folder = tmp_path / "run"
    train(CONFIG, run_folder=folder, on_epoch=rated(0.5))
    checkpoint, _ = checkpoints.load_newest(folder)
    own = checkpoint.trainer.part("session").state
    assert own["best"] == {"step": own["evaluated_at"], "rate": 0.5, "mean_return": 0.0}
    for wrong, said in (
        ({"step": -1, "rate": 0.5, "mean_return": 0.0}, "step is -1; expected an integer from 0"),
        ({"step": 1, "rate": 2.0, "mean_return": 0.0}, "rate is 2.0; expected a number from 0"),
        ({"step": 1, "rate": 0.5}, "mean_return is missing"),
        (7, "must have values by name; got 7"),
    ):
        with pytest.raises(SnapshotError, match=said):
            session.checked_account({**own, "best": wrong})
