"""Kinds of tasks: by labels, by bins of features, by both, and what is refused."""

from typing import Any

import numpy as np
import pytest

from stepladder.curricula import Learnability
from stepladder.curricula.pooled.cells import MAX_CELLS, TASKS_PER_CELL, find_cells, one_cell
from stepladder.errors import ConfigError
from stepladder.tasks import ListSource, NumberedSource, Pool, Task


def pool_of(*tasks: tuple[str, dict[str, Any]]) -> Pool:
    return Pool(ListSource(Task(f"t{i}", label, params) for i, (label, params) in enumerate(tasks)))


def line(num_tasks: int, label: str = "task") -> Pool:
    return pool_of(*((label, {"x": x}) for x in range(num_tasks)))


def test_labels_with_several_tasks_are_cells():
    cells = find_cells(pool_of(("a", {}), ("b", {}), ("a", {}), ("b", {})))
    assert cells.of_slot.tolist() == [0, 1, 0, 1]
    assert (cells.num_cells, cells.split) == (2, True)
    # Two lists, at 3 and 5; then the slots of each.
    assert cells.members().tolist() == [3, 5, 7, 0, 2, 1, 3]


def test_without_labels_or_features_all_tasks_are_one_cell():
    cells = find_cells(line(8))
    assert cells.of_slot.tolist() == one_cell(line(8)).of_slot.tolist() == [0] * 8
    assert not cells.split


def test_a_feature_is_cut_into_bins_of_four_tasks():
    cells = find_cells(line(12), ["x"])
    assert cells.of_slot.tolist() == [0] * 4 + [1] * 4 + [2] * 4


def test_equal_values_are_in_the_same_bin():
    pool = pool_of(*(("task", {"x": x}) for x in (0, 0, 0, 0, 0, 0, 7, 9)))
    # Two bins: the cut falls among the zeros, so all of them are on the same side.
    assert find_cells(pool, ["x"]).of_slot.tolist() in ([0] * 8, [0] * 6 + [1] * 2)
    # As many values as bins: one bin each.
    pool = pool_of(*(("task", {"x": x % 2}) for x in range(8)))
    assert find_cells(pool, ["x"]).of_slot.tolist() == [0, 1] * 4


def test_two_features_share_the_bins():
    pool = pool_of(*(("task", {"x": x, "y": y}) for y in range(6) for x in range(6)))
    # 36 tasks, four in each: 3 x 3 bins of 2 x 2 tasks.
    cells = find_cells(pool, ["x", "y"])
    assert cells.num_cells == 9
    assert np.bincount(cells.of_slot).tolist() == [TASKS_PER_CELL] * 9
    assert len({cells.of_slot[slot] for slot in (0, 1, 6, 7)}) == 1


def test_bins_cut_labels_where_there_are_both():
    pool = pool_of(*((label, {"x": x}) for label in "ab" for x in range(8)))
    cells = find_cells(pool, ["x"])
    assert cells.of_slot.tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4


def test_there_are_never_more_cells_than_a_draw_can_look_at():
    assert find_cells(line(5_000), ["x"]).num_cells == MAX_CELLS


def test_tasks_that_are_not_in_the_pool_are_refused_with_features_only():
    source = ListSource(Task(f"t{x}", params={"x": x}) for x in range(10))
    assert not find_cells(Pool(source, 4)).split
    with pytest.raises(ConfigError, match="this one has 4 slots and more tasks outside"):
        find_cells(Pool(source, 4), ["x"])
    with pytest.raises(ConfigError, match="lacks a feature"):
        find_cells(Pool(NumberedSource(8)), ["x"])


def test_learnability_judges_tasks_of_similar_features_together():
    tasks = [Task(f"t{x}", params={"x": x}) for x in range(40)]
    curriculum = Learnability(tasks, features=("x",))
    for slot in (0, 1, 2):
        for success in (1.0, 1.0, 1.0, 0.0) * 5:
            draw = curriculum.draw_one()._replace(
                slot=slot, generation=int(curriculum.pool.generations[slot])
            )
            curriculum.report(draw, success)
    rates = curriculum.success_rates()
    # Never played: in the same bin, and in the last one.
    assert rates[3] == pytest.approx(0.75, abs=0.1)
    assert rates[39] == 0.5
