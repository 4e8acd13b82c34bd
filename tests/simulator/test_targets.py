"""Scenarios with a target: when they are done, who gets it, and that all engines agree."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curricula.fake_learner import differences
from stepladder.errors import ConfigError
from stepladder.simulator import compare, scenario, simulate
from stepladder.simulator.engines import make_engine
from stepladder.simulator.oracle import oracle_runs, run_in_order

CHAIN = scenario("chain-6").aimed_at({"taskclass2": 1.0})
LEVELS = scenario("levels-3x20").aimed_at({"group-0": 1.0})


@pytest.mark.parametrize("place", [CHAIN, LEVELS])
@pytest.mark.parametrize("name", ["uniform", "learnability", "frontier", "learning-progress"])
def test_compiled_loops_follow_a_target_as_python_does(place: Any, name: str):
    snapshots: list[Any] = []
    for engine_name in ("compiled", "direct"):
        simulator, config = place.simulator(3, 4), place.curriculum_config(name)
        aimed = place.curriculum(type(config)(target=dict(place.aim)), 3)
        make_engine(engine_name, simulator, aimed, num_envs=4).advance(2000)
        assert aimed.num_observed > 0
        snapshots.append((aimed.snapshot(), simulator.snapshot(), aimed.target_success))
    assert snapshots[0][2] == snapshots[1][2]
    assert differences(snapshots[0][1], snapshots[1][1]) == []
    found = differences(snapshots[0][0], snapshots[1][0])
    # A compiled loop writes the plan once a round.
    assert found in ([], [next(iter(found), "")])
    assert all("version" in one for one in found)


def test_a_chain_is_done_when_its_target_is_mastered():
    simulator: Any = CHAIN.simulator()
    run_in_order(simulator.state, np.array([0, 1]), 0.95, np.zeros(1, np.int64), 200)
    assert simulator.done_at is None
    run_in_order(simulator.state, np.array([0, 1, 2]), 0.95, np.zeros(1, np.int64), 2000)
    assert simulator.done_at is not None
    assert simulator.P[3:].max() < 0.1
    verdict = simulator.judge()
    assert verdict.text.startswith("mastered the one learnable task of the target in")
    assert (verdict.num_mastered, verdict.num_learnable) == (1, 1)
    assert CHAIN.measure == "plays until every learnable task of the target was mastered at once"


def test_the_oracle_practises_only_what_the_target_needs():
    simulator: Any = CHAIN.simulator()
    best = min(run.samples for run in oracle_runs(simulator, 10_000))
    whole: Any = scenario("chain-3").simulator()
    assert best == min(run.samples for run in oracle_runs(whole, 10_000))


def test_a_label_that_a_scenario_lacks_is_refused():
    with pytest.raises(ConfigError, match="chain-6 has no label 'x'; it has taskclass0, "):
        scenario("chain-6").aimed_at({"x": 1.0})
    with pytest.raises(ConfigError, match="levels-3x20 has no label 'x'; it has group-0, "):
        LEVELS.aimed_at({"x": 1.0})


def test_what_counts_by_default():
    assert (scenario("chain-6").aim, scenario("levels-3x20").aim) == ({}, {})
    assert scenario("useless-2").aim == {"group-0": 1.0, "group-1": 1.0}
    assert (CHAIN.aim, LEVELS.aim) == ({"taskclass2": 1.0}, {"group-0": 1.0})


def test_a_file_of_a_graph_may_name_nodes_that_count(tmp_path: Path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"parents": [[], [0], [1]], "target": [1]}))
    assert scenario(str(path)).aim == {"taskclass1": 1.0}


def test_compare_tells_the_target_only_if_asked():
    place = scenario("chain-4")
    aimed = compare(
        [place],
        ["learnability", "staged"],
        num_seeds=2,
        target={"taskclass1": 1.0},
        with_target=True,
    )
    assert [cell.curriculum for cell in aimed.cells] == [
        *("oracle", "uniform", "uniform+target", "learnability", "learnability+target", "staged"),
    ]
    alone = compare([place], ["learnability"], num_seeds=2, target={"taskclass1": 1.0})
    assert alone.cell("chain-4", "learnability") == aimed.cell("chain-4", "learnability")
    whole = compare([place], ["learnability"], num_seeds=2)
    assert (
        whole.cell("chain-4", "uniform").mean_samples
        > alone.cell("chain-4", "uniform").mean_samples
    )
    with pytest.raises(ConfigError, match="all tasks of chain-4 count alike"):
        compare([place], ["learnability"], num_seeds=2, with_target=True)


def test_a_simulation_is_judged_by_the_target_of_its_curriculum():
    config = scenario("chain-4").curriculum_config("learnability")
    result = simulate(
        curriculum=type(config)(target={"taskclass0": 1.0}),
        scenario="chain-4",
        engine="compiled",
        num_epochs=20,
        stop_when_mastered=True,
    )
    assert result.verdict.num_learnable == 1
    assert result.verdict.done_at is not None
    assert result.metric("env_curriculum_stats/target_success")[-1] > 0.5
    assert not np.isnan(result.metric("env_curriculum_stats/target_share")).any()
