"""Neighbours: who is close to whom by hand, ties, symmetry, scales, and what is refused."""

from typing import Any

import numpy as np
import pytest

from stepladder.curricula.frontier.neighbors import MAX_TIED, link_neighbors
from stepladder.curricula.pooled.features import feature_table
from stepladder.errors import ConfigError
from stepladder.tasks import ListSource, NumberedSource, Pool, Task


def lists(links: np.ndarray, num_slots: int) -> list[list[int]]:
    """Take the lists of neighbours apart again."""
    return [links[links[slot] : links[slot + 1]].tolist() for slot in range(num_slots)]


def neighbors(points: Any, count: int) -> list[list[int]]:
    """Link points given as numbers or as rows of numbers."""
    table = np.array(points, dtype=float).reshape(len(points), -1)
    return lists(link_neighbors(table, count), len(points))


def pool_of(*params: dict[str, Any]) -> Pool:
    return Pool(ListSource(Task(f"t{i}", params=entry) for i, entry in enumerate(params)))


# Who is close to whom.


def test_on_a_line_of_equal_steps_the_next_on_either_side_are_neighbors():
    # With one nearest wanted, both sides are as near.
    assert neighbors([0, 1, 2, 3], 1) == [[1], [0, 2], [1, 3], [2]]
    # The ends take their second nearest too, two steps away; the others have theirs already.
    assert neighbors([0, 1, 2, 3, 4], 2) == [[1, 2], [0, 2], [0, 1, 3, 4], [2, 4], [2, 3]]


def test_whoever_has_me_for_a_neighbor_is_mine():
    # 10 is nearest to nobody, but 3 is nearest to it.
    assert neighbors([0, 1, 3, 10], 1) == [[1], [0, 2], [1, 3], [2]]


def test_on_a_grid_those_beside_above_and_below_are_neighbors():
    # 3 x 3, four nearest: the corner's third and fourth nearest are the middle (1.41 away) and, as
    # near as each other, those two steps away along its edges.
    grid = [(x, y) for y in range(3) for x in range(3)]
    linked = neighbors(grid, 4)
    assert linked[0] == [1, 2, 3, 4, 6]
    assert linked[4] == [0, 1, 2, 3, 5, 6, 7, 8]


def test_lists_begin_behind_the_starts_and_ascend():
    links = link_neighbors(np.array([[0.0], [1.0], [5.0]]), 1)
    assert links.dtype == np.int64
    # Four starts; then the lists [1], [0, 2], [1].
    assert links.tolist() == [4, 5, 7, 8, 1, 0, 2, 1]


def test_a_single_task_has_no_neighbors():
    assert neighbors([7.0], 4) == [[]]


def test_with_fewer_tasks_than_wanted_neighbors_all_are_neighbors():
    assert neighbors([0, 5, 100], 50) == [[1, 2], [0, 2], [0, 1]]


# Ties.


def test_more_ties_than_fit_do_not_hide_the_one_that_is_nearer():
    # A crowd of 100 at 0; slot 100 at 1 has slot 101 at 1.5 nearest, and the crowd ties behind it.
    linked = neighbors([0.0] * 100 + [1.0, 1.5], 2)
    assert 101 in linked[100]
    assert 100 in linked[101]


def test_in_a_crowd_at_one_place_all_have_equally_many_neighbors():
    linked = neighbors(np.zeros(200), 2)
    # As many as were wanted and those tied with them, on either side in the order of the slots.
    assert {len(entry) for entry in linked} == {2 * (2 + MAX_TIED)}
    assert linked[50] == [*range(50 - 18, 50), *range(51, 51 + 18)]
    assert linked[0] == [*range(1, 19), *range(182, 200)]


def test_distances_that_differ_by_rounding_alone_are_ties():
    # 0.3 - 0.2 is a little less than 0.2 - 0.1, and those beside have somebody closer.
    assert neighbors([0.09, 0.1, 0.2, 0.3, 0.31], 1)[2] == [1, 3]


def test_neighbors_are_symmetric_and_nobody_is_its_own():
    points = np.random.default_rng(3).integers(0, 6, (80, 2))
    linked = neighbors(points, 4)
    for slot, others in enumerate(linked):
        assert slot not in others
        assert len(set(others)) == len(others) >= 4
        assert all(slot in linked[other] for other in others)


# Features.


def test_features_weigh_alike_whatever_their_unit():
    # x is 0 or 1000 metres, y 1 or 5: both become -1 or 1.
    pool = pool_of({"x": 0, "y": 1}, {"x": 1000, "y": 1}, {"x": 0, "y": 5}, {"x": 1000, "y": 5})
    assert feature_table(pool, ["x", "y"]).tolist() == [[-1, -1], [1, -1], [-1, 1], [1, 1]]


@pytest.mark.parametrize("same", [2, 0.1])
def test_a_feature_that_is_the_same_for_all_tells_nothing(same: float):
    # The mean of three times 0.1 is not quite 0.1, so its spread is not quite 0.
    pool = pool_of({"x": same, "y": 0}, {"x": same, "y": 2}, {"x": same, "y": 4})
    table = feature_table(pool, ["x", "y"])
    assert np.ptp(table[:, 0]) == 0.0
    assert np.all(np.isfinite(table))
    assert lists(link_neighbors(table, 1), 3) == [[1], [0, 2], [1]]


def test_features_far_from_zero_keep_their_differences():
    pool = pool_of({"x": 10**15}, {"x": 10**15 + 1}, {"x": 10**15 + 3})
    assert lists(link_neighbors(feature_table(pool, ["x"]), 1), 3) == [[1], [0, 2], [1]]


def test_dotted_paths_reach_into_nested_parameters():
    pool = pool_of({"spot": {"x": 1}}, {"spot": {"x": 3}})
    assert feature_table(pool, ["spot.x"]).tolist() == [[-1], [1]]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({}, r"task 't1' lacks a feature\. There is no parameter 'x'"),
        ({"x": {"y": 1}}, "feature 'x' of task 't1' is {'y': 1}; expected a number"),
        ({"x": "far"}, "feature 'x' of task 't1' is 'far'; expected a number"),
        ({"x": None}, "feature 'x' of task 't1' is None"),
        ({"x": True}, "feature 'x' of task 't1' is True"),
        ({"x": [1]}, r"feature 'x' of task 't1' is \[1\]"),
        ({"x": 1e101}, r"is 1e\+101; expected a number of at most 1e\+100 either way"),
        ({"x": -(10**299)}, "expected a number of at most"),
    ],
)
def test_what_is_no_feature_is_refused_with_the_name_of_the_task(
    params: dict[str, Any], words: str
):
    with pytest.raises(ConfigError, match=words):
        feature_table(pool_of({"x": 1}, params), ["x"])


def test_the_largest_features_allowed_can_be_compared():
    pool = pool_of({"x": -1e100}, {"x": 0}, {"x": 1e100})
    assert lists(link_neighbors(feature_table(pool, ["x"]), 1), 3) == [[1], [0, 2], [1]]


def test_a_pool_that_does_not_hold_all_tasks_is_refused():
    pool = Pool(NumberedSource(10), capacity=4)
    with pytest.raises(ConfigError, match="this one has 4 slots and more tasks outside"):
        feature_table(pool, ["x"])
