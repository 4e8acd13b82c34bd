"""How real trainings are stored and judged."""

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = str(Path(__file__).parents[2] / "benchmarks")


def benchmark(name: str) -> Any:
    """Import a benchmark; its folder does not stay, because one is named as a folder of tests."""
    sys.path.append(BENCHMARKS)
    try:
        return import_module(name)
    finally:
        sys.path.remove(BENCHMARKS)
        # The fuzzers have a module of the same name.
        sys.modules.pop("harness", None)


prediction, training = benchmark("prediction"), benchmark("prediction_training")
worlds = benchmark("prediction_worlds")
Item, read_runs, write_runs = training.Item, training.read_runs, training.write_runs

RUN = {
    "curriculum": "uniform",
    "seed": 3,
    "form": training.form_of("uniform"),
    "labels": ["easy", "hard"],
    "evaluations": [
        {"step": step, "levels": [4, 4], "success": [1.0, success]}
        for step, success in ((1, 0.0), (2, 0.2), (3, 0.3), (4, 0.7))
    ],
}


def test_a_result_is_the_mean_of_the_last_three_evaluations_of_what_is_judged():
    assert prediction.result_of(RUN, ("hard",)) == pytest.approx(0.4)
    assert prediction.result_of(RUN, ("easy", "hard")) == pytest.approx(0.7)


def test_rank_correlation_by_hand():
    """Ranks 0 1 2 3 and 1 0 2 3: squares 2, so 1 - 6 * 2 / (4 * 15)."""
    assert prediction.rank_correlation([0.1, 0.2, 0.3, 0.4], [0.2, 0.1, 0.5, 0.9]) == pytest.approx(
        0.8
    )


def test_stored_trainings_come_back_and_are_not_made_again(tmp_path: Path):
    write_runs("ledge", [RUN], tmp_path)
    assert read_runs("ledge", tmp_path) == [RUN]
    assert [file.name for file in tmp_path.iterdir()] == ["prediction_ledge.json"]
    assert Item("ledge", "uniform", 3).found_in([RUN])
    assert not Item("ledge", "uniform", 4).found_in([RUN])
    assert not Item("ledge", "uniform", 3).found_in([{**RUN, "form": 1}])


@pytest.mark.parametrize("name", worlds.WORLDS)
def test_judged_labels_and_held_out_tasks_are_those_of_the_world(name: str):
    world = worlds.WORLDS[name]
    assert tuple(world.config.task_source().labels()) == world.order
    assert set(world.judged) <= set(world.order)
    held_out = world.held_out()
    practised = {(task.label, task.seed) for task in world.config.tasks}
    assert not practised & {(task.label, task.seed) for task in held_out}
    assert len(world.curricula) >= 8


def test_files_of_trainings_stay_small():
    for file in training.DATA.glob("prediction_*.json"):
        assert file.stat().st_size < 200_000
        assert isinstance(json.loads(file.read_text()), list)
