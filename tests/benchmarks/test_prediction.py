"""How real trainings are stored and judged."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from prediction import rank_correlation, result_of
from prediction_training import DATA, Item, form_of, read_runs, write_runs
from prediction_worlds import WORLDS

RUN = {
    "curriculum": "uniform",
    "seed": 3,
    "form": form_of("uniform"),
    "labels": ["easy", "hard"],
    "evaluations": [
        {"step": step, "levels": [4, 4], "success": [1.0, success]}
        for step, success in ((1, 0.0), (2, 0.2), (3, 0.3), (4, 0.7))
    ],
}


def test_a_result_is_the_mean_of_the_last_three_evaluations_of_what_is_judged():
    assert result_of(RUN, ("hard",)) == pytest.approx(0.4)
    assert result_of(RUN, ("easy", "hard")) == pytest.approx(0.7)


def test_rank_correlation_by_hand():
    """Ranks 0 1 2 3 and 1 0 2 3: squares 2, so 1 - 6 * 2 / (4 * 15)."""
    assert rank_correlation([0.1, 0.2, 0.3, 0.4], [0.2, 0.1, 0.5, 0.9]) == pytest.approx(0.8)


def test_stored_trainings_come_back_and_are_not_made_again(tmp_path: Path):
    write_runs("ledge", [RUN], tmp_path)
    assert read_runs("ledge", tmp_path) == [RUN]
    assert [file.name for file in tmp_path.iterdir()] == ["prediction_ledge.json"]
    assert Item("ledge", "uniform", 3).found_in([RUN])
    assert not Item("ledge", "uniform", 4).found_in([RUN])
    assert not Item("ledge", "uniform", 3).found_in([{**RUN, "form": 1}])


@pytest.mark.parametrize("name", WORLDS)
def test_judged_labels_and_held_out_tasks_are_those_of_the_world(name: str):
    if name == "minigrid":
        pytest.importorskip("minigrid")
    world = WORLDS[name]()
    assert tuple(world.config.task_source().labels()) == world.order
    assert set(world.judged) <= set(world.order)
    held_out = world.held_out()
    practised = {(task.label, task.seed) for task in world.config.tasks}
    assert not practised & {(task.label, task.seed) for task in held_out}
    assert len(world.curricula) >= 8


def test_files_of_trainings_stay_small():
    for file in DATA.glob("prediction_*.json"):
        assert file.stat().st_size < 200_000
        assert isinstance(json.loads(file.read_text()), list)
