"""Scenarios by name: each builds what its name says, and wrong names get one line."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from stepladder.errors import ConfigError
from stepladder.simulator import (
    SUITE,
    GraphScenario,
    Prerequisite,
    TaskGraph,
    best_oracle,
    scenario,
)
from stepladder.simulator.scenarios import FAMILIES


@pytest.mark.parametrize("name", SUITE)
def test_every_scenario_of_the_suite_builds_and_can_be_learned(name: str):
    place = scenario(name)
    assert place.name == name
    assert place.about
    simulator = place.simulator(seed=3)
    assert simulator.seed == 3
    assert 0 < simulator.num_learnable <= place.graph.num_tasks
    assert simulator.done_at is None
    oracle = best_oracle(simulator, place.budget)
    assert oracle.finished
    # Whoever needs ten times what is needed has still not run out of plays.
    assert place.budget > 10 * oracle.samples
    assert place.features
    assert all(feature in place.graph.task(0).params for feature in place.features)


def test_the_suite_has_what_the_design_asks_for():
    families = {name.split("-")[0] for name in SUITE}
    assert families >= {
        "chain",
        "tree",
        "grid",
        "dag",
        "noisy",
        "impossible",
        "forgetting",
        "mastered",
        "pool",
    }
    assert {"chain-10", "chain-30", "chain-100", "tree-31", "grid-6x6"} <= set(SUITE)
    assert len(set(SUITE)) == len(SUITE)


def test_shapes_by_name():
    assert scenario("chain-7").graph == TaskGraph.chain(7)
    assert scenario("tree-31").graph == TaskGraph.tree(31)
    assert scenario("grid-6x4").graph == TaskGraph.grid(6, 4)
    assert scenario("independent-5").graph == TaskGraph.independent(5)
    plateau = scenario("plateau-5")
    assert plateau.graph.parents == ((), (0,), (), (2,), ())
    assert plateau.start == ((1, 0.3), (3, 0.3))
    assert scenario("dag-12").graph.num_tasks == 12


def test_noisy_tasks_lie_beside_the_chain():
    place = scenario("noisy-10")
    assert place.graph.num_tasks == 15
    assert place.noisy == (10, 11, 12, 13, 14)
    simulator = place.simulator()
    assert simulator.num_learnable == 10
    assert simulator.P[10:].tolist() == [0.5] * 5


def test_impossible_tasks_lie_beside_the_chain():
    simulator = scenario("impossible-4").simulator()
    assert simulator.num_tasks == 8
    assert simulator.P.tolist() == [0.01] * 4 + [0.0] * 4
    assert simulator.num_learnable == 4


def test_forgetting_is_ten_times_the_usual():
    assert scenario("forgetting-10").dynamics == Prerequisite(lambda_forget=2e-4)


def test_the_first_half_is_mastered_from_the_start():
    simulator = scenario("mastered-20").simulator()
    assert simulator.num_mastered == 10
    assert simulator.P.tolist() == [0.95] * 10 + [0.01] * 10


def test_a_pool_holds_a_third_of_its_tasks():
    place = scenario("pool-300")
    assert place.graph.num_tasks == 300
    assert place.capacity == 100
    assert place.graph.depths().count(0) == 30


def test_the_budget_grows_with_the_tasks_and_their_depth():
    # 2,000 per task, and 400 per task and level.
    assert scenario("chain-10").budget == 20_000 + 400 * 10 * 10
    assert scenario("independent-10").budget == 20_000 + 400 * 10
    assert scenario("tree-31").budget == 62_000 + 400 * 31 * 5


def test_two_learners_of_a_scenario_share_nothing():
    place = scenario("chain-3")
    first, second = place.simulator(), place.simulator()
    first.learn([0] * 50)
    assert second.P.tolist() == [0.01] * 3


@pytest.mark.parametrize("family", sorted(FAMILIES.keys() - {"grid"}))
def test_a_scenario_may_have_a_single_task(family: str):
    simulator = scenario(f"{family}-1").simulator()
    assert simulator.num_tasks >= 1
    assert simulator.num_learnable >= 1


def test_a_graph_in_a_file_is_a_scenario(tmp_path: Path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"parents": [[], [0], [0]]}), encoding="utf-8")
    place = scenario(str(path))
    assert place.name == "mine"
    assert place.graph.parents == ((), (0,), (0,))
    assert place.features == ()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "there is no scenario ''"),
        ("chain", "there is no scenario 'chain'; expected one of chain-N, tree-N"),
        ("chain-", "there is no scenario 'chain-'"),
        ("chain-ten", "there is no scenario 'chain-ten'"),
        ("chain-10 ", "there is no scenario 'chain-10 '"),
        ("Chain-10", "times slower. Did you mean 'chain-10'?"),
        ("chain--3", "there is no scenario 'chain--3'"),
        ("rope-10", "there is no scenario 'rope-10'"),
        ("grid-6", "there is no scenario 'grid-6'"),
        ("grid-6x", "there is no scenario 'grid-6x'"),
        ("chain-0", "has 0 tasks; expected 1 to 20000"),
        ("grid-0x4", "has 0 tasks"),
        ("chain-20001", "has 20001 tasks"),
        ("grid-1000x1000", "has 1000000 tasks"),
        ("missing.json", "missing.json cannot be read"),
    ],
)
def test_wrong_names_are_refused_in_one_line(name: str, message: str):
    with pytest.raises(ConfigError, match=re.escape(message)) as error:
        scenario(name)
    assert "\n" not in str(error.value)


def test_a_scenario_of_ones_own():
    place = GraphScenario(
        name="mine", graph=TaskGraph.chain(3), start=((0, 0.95),), impossible=(2,), noisy=(1,)
    )
    simulator = place.simulator(seed=1, num_envs=4)
    assert np.array_equal(simulator.P, [0.95, 0.5, 0.0])
    assert simulator.num_envs == 4


def test_a_file_may_say_which_tasks_are_impossible_noisy_or_known(tmp_path):
    path = tmp_path / "mine.json"
    data = {"parents": [[], [0], [0], []], "impossible": [2], "noisy": [3], "start": {"0": 0.95}}
    path.write_text(json.dumps(data))
    learner = scenario(str(path)).simulator()
    assert learner.P.tolist() == [0.95, 0.01, 0.0, 0.5]
    assert learner.num_learnable == 2


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"parents": [[]], "impossible": [4]}, "impossible"),
        ({"parents": [[]], "start": [1]}, "start an object"),
        ({"parents": [[]], "impossibles": [0]}, "unknown key 'impossibles'; there are parents,"),
        ({"parents": [[]], "impossibles": [0]}, "Did you mean 'impossible'?"),
        ({"name": "mine"}, "must have 'parents', the prerequisites of every task, or 'dynamics'"),
        ([[]], "must be of type TaskGraph; got [[]]"),
    ],
)
def test_a_file_with_something_else_in_it_is_refused(tmp_path, data, message):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(data))
    with pytest.raises(ConfigError, match=re.escape(message)):
        scenario(str(path))
