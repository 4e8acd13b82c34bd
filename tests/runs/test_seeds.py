"""A folder of several seeds: what it says, what it refuses, and the table over its runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from stepladder.errors import RunError
from stepladder.runs import Run, RunReader
from stepladder.runs.run_folder import RunInfo
from stepladder.runs.seeds import SeedsInfo, seed_folder, summarize, with_runs_of_seeds
from stepladder.runs.seeds.folder import refuse_unless_free_for, remove_runs


def score(name: str, rate: float, mean_return: float, parts: Any = ()) -> dict[str, Any]:
    def ends(value: float) -> dict[str, float]:
        return {"value": value, "low": 0.0, "high": 9.0}

    own = {"rate": ends(rate), "mean_return": ends(mean_return), "parts": list(parts)}
    return {"name": name, "num_draws": None, **own}


def evaluation(way: str, easy: float, hard: float) -> dict[str, Any]:
    parts = [score("easy", easy, 1.0), score("hard", hard, 2.0)]
    return {"way": way, "total": score("all", (easy + hard) / 2.0, 10.0 * hard, parts)}


def make_seed(parent: Path, seed: int, hard: float, status: str = "finished") -> None:
    with Run.create(seed_folder(parent, seed), kind="training", seed=seed) as run:
        for epoch, speed in enumerate((5.0, 100.0, 110.0)):
            run.log(epoch * 10, {"overview/steps_per_second": speed})
        run.event(5, "evaluation", "an older one", evaluation("drawn", 0.0, 0.0))
        beside = {"beside": [evaluation("random", 0.2, 0.1)]}
        run.event(20, "evaluation", "the last one", evaluation("drawn", 1.0, hard) | beside)
        run.close(status)


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    folder = tmp_path / "several"
    folder.mkdir()
    SeedsInfo.of((3, 4, 5, 6, 7), {"env": "CartPole-v1"}).write(folder)
    for seed, hard in ((3, 0.5), (4, 0.7), (5, 0.9)):
        make_seed(folder, seed, hard)
    make_seed(folder, 6, 0.0, status="interrupted")
    return folder


def test_figures_are_means_over_finished_seeds_with_students_interval(parent: Path) -> None:
    summary = summarize(parent)
    assert [(one.seed, one.status, one.step) for one in summary.seeds] == [
        *((3, "finished", 20), (4, "finished", 20), (5, "finished", 20)),
        *((6, "interrupted", 20), (7, "not begun", 0)),
    ]
    rows = {row.name: row for row in summary.rows}
    assert list(rows) == ["easy", "hard", "all", "return", "steps/s"]
    hard = rows["hard"]
    assert hard.values == {3: 0.5, 4: 0.7, 5: 0.9}
    # Standard deviation 0.2, quantile of two degrees 4.3027: 0.7 plus or minus 0.4968, a share.
    assert hard.mean == pytest.approx(0.7)
    assert hard.low == pytest.approx(0.7 - 4.3027 * 0.2 / 3**0.5, abs=1e-4)
    assert (hard.high, hard.at_random) == (1.0, pytest.approx(0.1))
    # No spread was seen, which is no certainty.
    assert (rows["easy"].mean, rows["easy"].low, rows["easy"].high) == (1.0, None, None)
    assert rows["return"].high == pytest.approx(7.0 + 4.3027 * 2.0 / 3**0.5, abs=1e-3)
    assert set(rows["steps/s"].values.values()) == {100.0}
    told = json.loads(json.dumps(summary.to_json()))
    assert told["rows"][1]["values"][0] == {"seed": 3, "value": 0.5}
    assert (told["way"], told["measures"]) == ("drawn", "share of held-out episodes solved")


def test_one_seed_has_no_interval_and_none_has_no_table(tmp_path: Path) -> None:
    SeedsInfo.of((0, 1), {}).write(tmp_path)
    assert summarize(tmp_path).rows == ()
    with pytest.raises(RunError, match=r"none of the seeds in .* has begun"):
        with_runs_of_seeds([tmp_path])
    make_seed(tmp_path, 1, 0.5)
    assert {(row.low, row.high) for row in summarize(tmp_path).rows} == {(None, None)}
    assert with_runs_of_seeds([tmp_path]) == [tmp_path / "seed-1"]


def test_only_its_own_runs_are_replaced(parent: Path) -> None:
    (parent / "seed-3" / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match="holds seeds of a training already"):
        refuse_unless_free_for(parent, (3,), overwrite=False)
    with pytest.raises(RunError, match="also holds seed 4, which would be left"):
        refuse_unless_free_for(parent, (3,), overwrite=True)
    refuse_unless_free_for(parent, (3, 4, 5, 6, 7, 8), overwrite=True)
    remove_runs(parent)
    assert {one.status for one in summarize(parent).seeds} == {"not begun"}
    assert (parent / "seed-3" / "notes.txt").read_text() == "mine"
    with pytest.raises(RunError, match=r"does not hold several seeds: it has 'checkpoints'"):
        refuse_unless_free_for(parent / "seed-3", (3,), overwrite=True)


def test_who_wants_one_run_is_told_which_there_are(parent: Path) -> None:
    with pytest.raises(RunError, match=r"holds the runs of several seeds.*such as .*seed-3"):
        RunInfo.read(parent)
    with pytest.raises(RunError, match=r"has no seeds\.json"):
        SeedsInfo.read(parent / "seed-3")
    assert RunReader(parent / "seed-3").seed == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": 9}, "has schema 9; this version reads 1"),
        ({"package": "other"}, "it was not written by Stepladder"),
        ({"seeds": [1, 1]}, "seeds must be different integers"),
        ({"seeds": []}, "seeds must be different integers"),
        ({"seeds": ["../../x"]}, "seeds must be different integers"),
        ({"config": []}, "config must be an object"),
    ],
)
def test_a_damaged_description_is_refused(parent: Path, change: dict[str, Any], said: str) -> None:
    path = parent / "seeds.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(RunError, match=said):
        summarize(parent)
