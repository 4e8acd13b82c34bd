"""Shapes of graphs by hand, files that are wrong in every way, and an order that always holds."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepladder.errors import ConfigError
from stepladder.simulator import TaskGraph

# Shapes.


def test_in_a_chain_each_task_unlocks_the_next():
    graph = TaskGraph.chain(4)
    assert graph.parents == ((), (0,), (1,), (2,))
    assert graph.children() == ((1,), (2,), (3,), ())
    assert graph.order == (0, 1, 2, 3)
    assert graph.depths() == [0, 1, 2, 3]
    assert graph.features == {"position": (0.0, 1.0, 2.0, 3.0)}


def test_a_tree_is_filled_level_by_level():
    graph = TaskGraph.tree(7)
    #       0
    #    1     2
    #   3 4   5 6
    assert graph.parents == ((), (0,), (0,), (1,), (1,), (2,), (2,))
    assert graph.depths() == [0, 1, 1, 2, 2, 2, 2]
    assert graph.features["difficulty"] == (0.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0)
    # Each child has half the width of its parent: 1, then two halves, then four quarters.
    assert graph.features["position"] == (0.5, 0.25, 0.75, 0.125, 0.375, 0.625, 0.875)


def test_a_tree_may_branch_more_widely():
    graph = TaskGraph.tree(5, branching=3)
    assert graph.parents == ((), (0,), (0,), (0,), (1,))
    assert graph.features["position"][1:4] == pytest.approx((1 / 6, 1 / 2, 5 / 6))


def test_in_a_grid_the_neighbours_to_the_left_and_above_unlock():
    graph = TaskGraph.grid(3, 2)
    # 0 1 2
    # 3 4 5
    assert [set(parents) for parents in graph.parents] == [
        set(),
        {0},
        {1},
        {0},
        {1, 3},
        {2, 4},
    ]
    assert graph.depths() == [0, 1, 2, 1, 2, 3]
    assert graph.features == {"x": (0, 1, 2, 0, 1, 2), "y": (0, 0, 0, 1, 1, 1)}


def test_a_random_dag_depends_on_its_seed_alone():
    graph = TaskGraph.random_dag(40, seed=3)
    assert graph == TaskGraph.random_dag(40, seed=3)
    assert graph != TaskGraph.random_dag(40, seed=4)
    assert graph.parents[0] == ()
    for node, parents in enumerate(graph.parents[1:], start=1):
        assert 1 <= len(parents) <= 2
        assert all(node - 10 <= parent < node for parent in parents)


def test_a_random_dag_reads_and_writes_no_global_generator():
    before = np.random.get_state()[1].tolist()  # noqa: NPY002, the generator nobody may touch
    np.testing.assert_equal(TaskGraph.random_dag(30).parents, TaskGraph.random_dag(30).parents)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_independent_tasks_have_no_parents():
    graph = TaskGraph.independent(3)
    assert graph.parents == ((), (), ())
    assert graph.depths() == [0, 0, 0]


def test_two_graphs_lie_beside_each_other():
    graph = TaskGraph.chain(2).beside(TaskGraph.grid(2, 1))
    assert graph.parents == ((), (0,), (), (2,))
    # A feature that one of them does not have is 0 there.
    assert graph.features == {
        "position": (0.0, 1.0, 0.0, 0.0),
        "x": (0.0, 0.0, 0.0, 1.0),
        "y": (0.0, 0.0, 0.0, 0.0),
    }


def test_depth_is_the_longest_way():
    # 0 → 1 → 2 → 3 and 0 → 3.
    assert TaskGraph(((), (0,), (1,), (0, 2))).depths() == [0, 1, 2, 3]


def test_nodes_need_not_come_after_their_parents():
    graph = TaskGraph(((2,), (0,), ()))
    assert graph.order == (2, 0, 1)
    assert graph.depths() == [1, 2, 0]


def test_lists_do_as_well_as_tuples():
    graph = TaskGraph([[], [0]], {"x": [1.0, 2.0]})  # type: ignore[arg-type]
    assert graph == TaskGraph(((), (0,)), {"x": (1.0, 2.0)})
    assert graph.beside(graph).parents == ((), (0,), (), (2,))


@pytest.mark.slow
@settings(derandomize=True, max_examples=80, deadline=None)
@given(data=st.data(), num_tasks=st.integers(1, 25))
def test_the_order_is_topological_and_complete(data: st.DataObject, num_tasks: int):
    # A graph without circles: parents come earlier in some order, which is then hidden.
    names = data.draw(st.permutations(range(num_tasks)))
    parents: list[tuple[int, ...]] = [()] * num_tasks
    for place, node in enumerate(names):
        earlier = st.lists(st.sampled_from(names[:place]), unique=True, max_size=4)
        parents[node] = tuple(data.draw(earlier)) if place else ()
    graph = TaskGraph(tuple(parents))
    assert sorted(graph.order) == list(range(num_tasks))
    place_of = {node: place for place, node in enumerate(graph.order)}
    for node in range(num_tasks):
        assert all(place_of[parent] < place_of[node] for parent in graph.parents[node])
        depth = [graph.depths()[parent] + 1 for parent in graph.parents[node]]
        assert graph.depths()[node] == max(depth, default=0)
    assert TaskGraph.from_json(json.loads(json.dumps(graph.to_json()))) == graph


# Tasks.


def test_a_task_carries_its_label_its_node_and_its_features():
    graph = TaskGraph.grid(2, 2)
    task = graph.task(3)
    assert (task.name, task.label) == ("taskclass3", "taskclass3")
    assert task.params == {"node": 3, "x": 1.0, "y": 1.0}


def test_the_id_of_a_task_is_its_node():
    source = TaskGraph.tree(5).source()
    assert source.num_tasks == 5
    assert [source.get(node).params["node"] for node in range(5)] == [0, 1, 2, 3, 4]
    assert source.labels() == [f"taskclass{node}" for node in range(5)]


# What is refused, each in one line.


@pytest.mark.parametrize(
    ("parents", "features", "message"),
    [
        ((), {}, "parents must not be empty"),
        (((), (2,)), {}, "parents[1] must be from 0 to 1; got 2"),
        (((-1,),), {}, "parents[0][0] must be an integer of at least 0; got -1"),
        (((), (0, 0)), {}, "names a parent twice: [0, 0]"),
        (((), (0.0,)), {}, "parents[1][0] must be an integer of at least 0; got 0.0"),
        (((), (True,)), {}, "got True"),
        (((), ("0",)), {}, "got '0'"),
        (((0,),), {}, "node 0 is its own ancestor"),
        (((1,), (0,)), {}, "circle. Remove one of the edges"),
        (((), (0, 3), (1,), (2,)), {}, "node 1 is its own ancestor"),
        (((), ()), {"x": (1.0,)}, "features.x must hold 2 numbers, one per node; got 1"),
        (((), ()), {"x": (1.0, float("nan"))}, "features.x[1] must be a finite number; got nan"),
        (((), ()), {"node": (1.0, 2.0)}, "cannot be called 'node'"),
    ],
)
def test_impossible_graphs_are_refused(parents, features, message):
    with pytest.raises(ConfigError, match=re.escape(message)) as error:
        TaskGraph(parents, features)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TaskGraph.chain(0), "num_tasks must be an integer of at least 1; got 0"),
        (lambda: TaskGraph.chain(2.0), "got 2.0"),
        (lambda: TaskGraph.chain(True), "got True"),
        (lambda: TaskGraph.tree(3, 0), "branching"),
        (lambda: TaskGraph.grid(0, 3), "columns"),
        (lambda: TaskGraph.grid(3, -1), "rows"),
        (lambda: TaskGraph.random_dag(5, max_parents=0), "max_parents"),
        (lambda: TaskGraph.independent(0), "num_tasks"),
    ],
)
def test_impossible_sizes_are_refused(make, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        make()


# Files.


def test_a_graph_comes_back_from_its_file(tmp_path: Path):
    graph = TaskGraph.random_dag(12, seed=5)
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(graph.to_json()), encoding="utf-8")
    assert TaskGraph.from_file(path) == graph


def test_parents_alone_make_a_graph():
    assert TaskGraph.from_json({"parents": [[], [0], [0, 1]]}).parents == ((), (0,), (0, 1))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "must be of type TaskGraph; got []"),
        ({}, "parents: is missing"),
        ({"parents": 3}, "parents: must be a list; got 3"),
        (None, "must be of type TaskGraph; got None"),
        ({"parents": [0]}, "parents[0]: must be a list; got 0"),
        ({"parents": [[], None]}, "parents[1]: must be a list; got None"),
        ({"parents": [[], ["0"]]}, "parents[1][0]: must be an integer of at least 0; got '0'"),
        ({"parents": [[], [0.0]]}, "parents[1][0]: must be an integer of at least 0; got 0.0"),
        ({"parents": "ab"}, "parents: must be a list; got 'ab'"),
        ({"parents": []}, "parents: must not be empty"),
        ({"parents": [[1], [0]]}, "must not form a circle"),
        (
            {"parents": [[]], "features": {"x": [[]]}},
            "features.x[0]: must be a finite number; got []",
        ),
        (
            {"parents": [[]], "features": {"x": ["a"]}},
            "features.x[0]: must be a finite number; got 'a'",
        ),
        ({"parents": [[]], "features": 5}, "features: must be an object; got 5"),
        ({"parents": [[]], "features": {"x": [1, 2]}}, "must hold 1 numbers"),
        ({"parents": [[]], "schema": 2}, "schema: is 2; this version reads 1"),
    ],
)
def test_json_that_is_no_graph_is_refused(data, message):
    with pytest.raises(ConfigError, match=re.escape(message)) as error:
        TaskGraph.from_json(data)
    assert "\n" not in str(error.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"missing\.json cannot be read"):
        TaskGraph.from_file(tmp_path / "missing.json")
    broken = tmp_path / "broken.json"
    broken.write_text("{", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"broken\.json is not JSON"):
        TaskGraph.from_file(broken)
    broken.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"broken\.json is not JSON"):
        TaskGraph.from_file(broken)
