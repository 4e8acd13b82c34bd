"""Scenarios of the learner that generalises: by name, in files, and their oracle."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from simulator.generalising.small_learner import small
from stepladder.curricula.registry import curriculum_variants
from stepladder.errors import ConfigError
from stepladder.simulator import (
    GENERAL_SUITE,
    DirectEngine,
    GeneralScenario,
    compare,
    scenario,
    simulate,
)
from stepladder.simulator.base import PlayResult
from stepladder.simulator.generalising.oracle import oracle_runs
from stepladder.simulator.swept import SweepConfig

SMALL = GeneralScenario(name="small", dynamics=small(goal=0.7))


@pytest.mark.slow
@pytest.mark.parametrize("name", GENERAL_SUITE)
def test_the_oracle_reaches_the_goal_of_every_scenario(name: str):
    place = scenario(name)
    assert place.name == name
    assert isinstance(place, GeneralScenario)
    found = place.oracle(0, 8, place.budget)
    assert found.finished
    assert 0 < found.samples < place.budget / 5


@pytest.mark.parametrize("name", [*GENERAL_SUITE, "params-1x4", "levels-1x1", "hinder-1"])
@pytest.mark.parametrize("curriculum", [*curriculum_variants(can_edit=False)])
def test_every_curriculum_plays_every_scenario(name: str, curriculum: str):
    place = scenario(name)
    simulator = place.simulator(1, 4)
    DirectEngine(simulator, place.curriculum(curriculum, 1), 4).advance(4000)
    assert simulator.num_samples == 4000


def test_levels_have_groups_as_labels_and_an_order():
    place = scenario("levels-3x7")
    assert place.num_tasks == 21
    assert place.knowledge.order == ("group-0", "group-1", "group-2")
    assert place.knowledge.features == ("position",)
    assert place.source().labels() == ["group-0", "group-1", "group-2"]
    assert "env steps" in place.measure


def test_parameters_are_put_into_bins():
    place = scenario("params-40x10")
    assert isinstance(place, GeneralScenario)
    assert place.num_tasks == 400
    assert len(place.dynamics.groups) == 15 * 10
    assert place.knowledge.features == ("x", "y")


@pytest.mark.slow
def test_a_large_grid_can_be_built_and_played():
    place = scenario("params-300x300")
    simulator = place.simulator(0, 128)
    DirectEngine(simulator, place.curriculum("learnability", 0), 128).advance(128)
    assert simulator.num_tasks == 90_000


def test_useless_groups_are_counted_as_such():
    place = scenario("useless-3")
    assert place.simulator(0).state.groups["is_hopeless"].tolist() == [0, 0, 0, 1]


def test_labels_can_be_wrong():
    place = scenario("mislabelled-4")
    assert isinstance(place, GeneralScenario)
    assert (place.dynamics.label_groups != place.dynamics.task_groups).mean() > 0.1


@pytest.mark.slow
def test_a_slow_learner_needs_so_many_times_more():
    quick, slow = scenario("levels-3x50"), scenario("levels-3x50-slow10")
    assert slow.name == "levels-3x50-slow10"
    assert slow.budget == pytest.approx(10 * quick.budget, rel=1e-6)
    found = [place.oracle(0, 8, place.budget).samples for place in (quick, slow)]
    assert found[1] / found[0] == pytest.approx(10, rel=0.2)


def test_a_graph_can_be_slow_too():
    quick, slow = scenario("chain-10"), scenario("chain-10-slow10")
    assert slow.budget == 10 * quick.budget
    found = [place.oracle(0, 1, place.budget).samples for place in (quick, slow)]
    assert found[1] / found[0] == pytest.approx(10, rel=0.1)


def test_the_best_policy_counts():
    runs = oracle_runs(SMALL.simulator(0, 2), SMALL.budget)
    best = SMALL.oracle(0, 2, SMALL.budget)
    assert best.samples == min(run.samples for run in runs if run.finished)
    assert {run.policy.split(",")[0] for run in runs} == {
        "largest gain per step",
        "largest gain per play",
        "largest need per step",
        "groups in order",
    }


def test_compare_counts_env_steps_and_shows_uniform():
    table = compare([SMALL], ["learnability"], num_seeds=3, num_envs=2)
    oracle, uniform, other = (
        table.cell("small", name) for name in ("oracle", "uniform", "learnability")
    )
    assert oracle.mean_samples <= min(uniform.mean_samples, other.mean_samples)
    for cell in (oracle, uniform, other):
        # Updates come every 10 env steps.
        assert cell.mean_samples * cell.num_seeds % 10 == pytest.approx(0.0, abs=1e-6)
        assert 0.0 < cell.area <= 1.0
    assert uniform.ratio_to_oracle == pytest.approx(uniform.mean_samples / oracle.mean_samples)


def test_simulate_reports_held_out_success():
    result = simulate(place=SMALL, curriculum="uniform", num_epochs=50, num_envs=2, engine="direct")
    found = result.metric("overview/held_out_success")
    assert len(found) == 50
    assert found[-1] > found[0]
    assert result.metric("metric/agent_step")[-1] == result.simulator.num_samples
    assert "held-out" in result.verdict.text


def test_a_sweep_varies_the_rates():
    config = SweepConfig(scenario="levels-2x3", curriculum="uniform")
    assert {"dynamics.eta", "dynamics.eta_memory", "dynamics.transfer"} <= config.fields().keys()
    setup = config.setup({"dynamics.eta": 0.5})
    assert isinstance(setup.place, GeneralScenario)
    assert setup.place.dynamics.eta == 0.5


# Files.


@pytest.mark.parametrize("name", ["levels-3x4", "params-20x2", "hinder-3", "useless-2"])
def test_a_file_holds_all_numbers(name: str, tmp_path: Path):
    place = scenario(name)
    assert isinstance(place, GeneralScenario)
    place.save(tmp_path / "mine.json")
    assert scenario(str(tmp_path / "mine.json")) == place


def test_a_file_written_by_hand_needs_only_the_learner(tmp_path: Path):
    path = tmp_path / "own.json"
    path.write_text(json.dumps({"dynamics": small().to_json()}))
    place = scenario(str(path))
    assert place == GeneralScenario(name="own", dynamics=small())


def broken(**changes: Any) -> dict[str, Any]:
    made = SMALL.to_json()
    made["dynamics"].update(changes)
    return made


@pytest.mark.parametrize(
    ("document", "texts"),
    [
        (broken(eta=0, goal=2), ["dynamics.eta", "dynamics.goal"]),
        (broken(num_tasks=[1]), ["dynamics.num_tasks: must have an entry per group (2); got 1"]),
        (broken(speed=1), ["dynamics.speed"]),
        ({"dynamics": {}}, ["dynamics.groups", "dynamics.failure_steps"]),
        ({"dynamics": 3}, ["dynamics"]),
        ({**SMALL.to_json(), "schema": 9}, ["schema: is 9; this version reads 1"]),
    ],
)
def test_a_bad_file_is_refused_with_all_its_problems(
    document: Any, texts: list[str], tmp_path: Path
):
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ConfigError) as caught:
        scenario(str(path))
    assert "bad.json" in str(caught.value)
    for text in texts:
        assert text in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("levels-5", "there is no scenario 'levels-5'"),
        ("params-9", "there is no scenario 'params-9'"),
        ("levels-5x200-slow0", "there is no scenario 'levels-5x200-slow0'"),
        ("params-400x400", "has 160000 tasks; expected 1 to 100000"),
        ("levels-0x3", "has 0 tasks; expected 1 to 100000"),
    ],
)
def test_wrong_names_get_one_line(name: str, text: str):
    with pytest.raises(ConfigError) as caught:
        scenario(name)
    assert text in str(caught.value)


@pytest.mark.slow
def test_concentrating_on_few_tasks_memorises_them():
    place = scenario("levels-5x200")
    assert isinstance(place, GeneralScenario)
    own = place.simulator(0, 8)
    few = replace(place, dynamics=replace(place.dynamics, num_tasks=(200, 3, 200, 200, 200)))
    narrow = few.simulator(0, 8)
    for one in (own, narrow):
        groups = one.state.nodes["group"]
        nodes = [node for node in range(one.num_tasks) if groups[node] == 1]
        for turn in range(3000):
            node = nodes[turn % len(nodes)]
            one.learn_play(node, PlayResult(float(one.P[node]), 1.0, 1.0, 99))
    assert narrow.practised()[1] > 0.9
    assert narrow.held_out()[1] < own.held_out()[1] - 0.1


def test_what_a_user_knows_goes_by_success_before_training_not_by_the_mean_difficulty():
    dynamics = small(difficulty=(5.0, 4.0), spread=(5.0, 0.5))
    # Some tasks of the first group are easier than all of the second.
    assert dynamics.untrained_success[0] > dynamics.untrained_success[1]
    knowledge = GeneralScenario(name="mixed", dynamics=dynamics).knowledge
    assert knowledge.order == ("easy", "hard")


def test_a_low_goal_is_no_reason_to_leave_a_stage_early():
    for goal, mastery in ((0.1, 0.75), (0.9, 0.9)):
        place = GeneralScenario(name="low", dynamics=small(goal=goal))
        assert place.knowledge.mastery == mastery
