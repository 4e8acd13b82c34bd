"""Comparisons: repeatable, honest about what was not finished, and the bars of the curricula."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from stepladder.curricula import FrontierConfig
from stepladder.curricula.registry import curriculum_variants
from stepladder.errors import ConfigError
from stepladder.simulator import (
    SUITE,
    ComparisonCell,
    DirectEngine,
    GraphScenario,
    Prerequisite,
    TaskGraph,
    best_oracle,
    compare,
    recipe,
    scenario,
)
from stepladder.simulator.compare import HORIZON, _with_winner
from stepladder.stats.interval import mean_interval


def as_text(comparison) -> str:
    return json.dumps([cell.to_json() for cell in comparison.cells], allow_nan=False)


# What is compared.


def test_the_oracle_comes_first_and_uniform_is_always_there():
    # Defect 3 of the ancestor: no baseline, no oracle, no ratio, no interval.
    found = compare(["chain-3", "tree-3"], ["frontier"], num_seeds=3)
    assert [(cell.scenario, cell.curriculum) for cell in found.cells] == [
        ("chain-3", "oracle"),
        ("chain-3", "uniform"),
        ("chain-3", "frontier"),
        ("tree-3", "oracle"),
        ("tree-3", "uniform"),
        ("tree-3", "frontier"),
    ]
    assert found.scenarios() == ["chain-3", "tree-3"]


def test_uniform_is_not_shown_twice():
    found = compare(["chain-3"], ["uniform", "uniform", "frontier"], num_seeds=2)
    names = [cell.curriculum for cell in found.cells]
    assert names == ["oracle", "uniform", "frontier"]


def test_a_cell_is_what_its_seeds_say():
    place, samples = scenario("chain-5"), []
    for seed in range(7, 12):
        simulator = place.simulator(seed)
        engine = DirectEngine(simulator, place.curriculum("frontier", seed))
        engine.advance(place.budget, stops=True)
        assert simulator.done_at is not None
        samples.append(float(simulator.done_at))
    found = compare(["chain-5"], ["frontier"], num_seeds=5, seed=7)
    cell, oracle = found.cell("chain-5", "frontier"), found.cell("chain-5", "oracle")
    assert (cell.mean_samples, cell.low, cell.high) == pytest.approx(mean_interval(samples))
    needed = best_oracle(place.simulator(), place.budget).samples
    assert oracle.mean_samples == oracle.low == oracle.high == needed
    assert cell.ratio_to_oracle == pytest.approx(cell.mean_samples / needed)
    assert cell.ratio_low == pytest.approx(cell.low / needed)
    assert cell.ratio_high == pytest.approx(cell.high / needed)
    assert (cell.finished_share, cell.num_seeds, cell.budget) == (1.0, 5, place.budget)


def test_the_area_is_the_mean_fraction_of_mastered_tasks():
    # One task at 0.5 that every play of it raises by 0.4 of the rest: 0.7, 0.82, 0.892, 0.9352.
    # Everybody can only play that, so all are mastered after 4 plays, of a horizon of 40.
    place = GraphScenario(
        name="one",
        graph=TaskGraph.chain(1),
        dynamics=Prerequisite(eta=0.4, lambda_forget=0.0, start=0.5),
    )
    found = compare([place], ["frontier"], num_seeds=2)
    for name in ("oracle", "uniform", "frontier"):
        cell = found.cell("one", name)
        assert cell.mean_samples == 4
        assert cell.area == pytest.approx((HORIZON * 4 - 4) / (HORIZON * 4))
        assert cell.area_to_oracle == pytest.approx(1.0)
        assert cell.ratio_to_oracle == 1.0


def test_the_area_by_a_sum_over_plays():
    place = scenario("chain-4")
    needed = best_oracle(place.simulator(), place.budget).samples
    simulator = place.simulator(3)
    engine = DirectEngine(simulator, place.curriculum("uniform", 3))
    fractions = []
    for play in range(HORIZON * needed):
        fractions.append(simulator.num_mastered / 4)
        engine.advance(play + 1, stops=True)
        if simulator.done_at is not None:
            break
    fractions += [1.0] * (HORIZON * needed - len(fractions))
    cell = compare([place], [], num_seeds=1, seed=3).cell("chain-4", "uniform")
    # The learner recounts what it has forgotten every 64 plays only.
    assert cell.area == pytest.approx(np.mean(fractions), abs=0.01)


@pytest.mark.parametrize("name", ["chain-10", "noisy-10", "impossible-10", "mastered-20"])
@pytest.mark.parametrize("budget", [None, 200])
def test_areas_and_shares_are_fractions(name: str, budget: int | None):
    found = compare([name], ["frontier", "learnability"], num_seeds=3, budget=budget)
    for cell in found.cells:
        assert 0.0 <= cell.area <= 1.0
        shares = (cell.share_mastered, cell.share_locked, cell.share_impossible)
        assert min(shares) >= 0.0
        assert sum(shares) <= 1.0
        assert all(math.isfinite(value) for value in (cell.area_to_oracle, cell.low, cell.high))


def test_shares_say_what_plays_were_spent_on():
    found = compare(["impossible-10", "mastered-20"], [], num_seeds=8)
    # Uniform plays ten impossible tasks as often as ten others, and half of all are known.
    assert found.cell("impossible-10", "uniform").share_impossible == pytest.approx(0.5, abs=0.02)
    assert found.cell("mastered-20", "uniform").share_mastered > 0.5
    assert found.cell("mastered-20", "uniform").share_impossible == 0.0


# Repeating.


@pytest.mark.slow
def test_the_same_seeds_give_the_same_numbers_whatever_the_threads_do():
    names = ["frontier", "learning-progress", "level-replay"]
    first, second = (compare(["chain-5", "pool-30"], names, num_seeds=6) for _ in range(2))
    assert as_text(first) == as_text(second)


def test_other_seeds_give_other_numbers():
    first, second = (compare(["chain-5"], ["frontier"], num_seeds=4, seed=s) for s in (0, 100))
    assert first.cell("chain-5", "oracle") == second.cell("chain-5", "oracle")
    for name in ("uniform", "frontier"):
        one, other = first.cell("chain-5", name), second.cell("chain-5", name)
        assert one.mean_samples != other.mean_samples


def test_a_curriculum_is_not_disturbed_by_its_rivals():
    alone = compare(["chain-5"], ["frontier"], num_seeds=4).cell("chain-5", "frontier")
    among = compare(["tree-5", "chain-5"], ["staged", "frontier"], num_seeds=4)
    assert replace(among.cell("chain-5", "frontier"), is_winner=False) == replace(
        alone, is_winner=False
    )


def test_no_global_generator_is_read_or_written():
    texts = []
    for number in (1, 2):
        np.random.seed(number)  # noqa: NPY002, the generator nobody may touch
        held = np.random.get_state()[1].tolist()  # noqa: NPY002
        texts.append(as_text(compare(["dag-8"], ["frontier", "staged"], num_seeds=3)))
        assert np.random.get_state()[1].tolist() == held  # noqa: NPY002
    assert texts[0] == texts[1]


# Winners, and those who did not finish.


def cell(name: str, low: float, high: float, **changes) -> ComparisonCell:
    found = compare(["chain-1"], [], num_seeds=2).cell("chain-1", "uniform")
    settings = {"num_seeds": 2, "finished_share": 1.0} | changes
    return replace(
        found, curriculum=name, mean_samples=(low + high) / 2, low=low, high=high, **settings
    )


def winners(*cells: ComparisonCell) -> list[str]:
    return [found.curriculum for found in _with_winner(list(cells)) if found.is_winner]


def test_a_winners_interval_lies_below_all_others():
    oracle = cell("oracle", 1.0, 1.0, num_seeds=1)
    assert winners(oracle, cell("a", 10, 20), cell("b", 21, 30)) == ["a"]
    assert winners(oracle, cell("b", 21, 30), cell("a", 10, 20)) == ["a"]
    # They touch, they overlap, one lies inside the other.
    assert winners(oracle, cell("a", 10, 20), cell("b", 20, 30)) == []
    assert winners(oracle, cell("a", 10, 22), cell("b", 21, 30)) == []
    assert winners(oracle, cell("a", 10, 40), cell("b", 21, 30)) == []
    # Better than one rival is not enough.
    assert winners(oracle, cell("a", 10, 20), cell("b", 30, 40), cell("c", 15, 35)) == []


def test_nobody_wins_alone_or_with_a_single_seed_or_unfinished():
    assert winners(cell("oracle", 1, 1), cell("a", 10, 20)) == []
    single = {"num_seeds": 1}
    assert winners(cell("a", 10, 10, **single), cell("b", 30, 30, **single)) == []
    assert winners(cell("a", 10, 20, finished_share=0.9), cell("b", 30, 40)) == []
    assert winners(cell("a", 10, 20), cell("b", 30, 40, finished_share=0.0)) == ["a"]


def test_a_winner_is_marked_where_intervals_separate():
    found = compare(["chain-10", "chain-1"], ["frontier"], num_seeds=8)
    assert found.cell("chain-10", "frontier").is_winner
    assert not found.cell("chain-10", "uniform").is_winner
    assert not found.cell("chain-10", "oracle").is_winner
    # With a single task all do the same.
    assert not any(entry.is_winner for entry in found.cells if entry.scenario == "chain-1")


def test_a_single_seed_makes_no_winner():
    assert not any(
        found.is_winner for found in compare(["chain-10"], ["frontier"], num_seeds=1).cells
    )


def test_what_was_not_finished_says_so():
    found = compare(["chain-10"], ["frontier"], num_seeds=4, budget=700)
    oracle, uniform = found.cell("chain-10", "oracle"), found.cell("chain-10", "uniform")
    assert oracle.finished_share == 1.0
    assert (uniform.finished_share, uniform.mean_samples, uniform.budget) == (0.0, 700.0, 700)
    assert not uniform.is_winner
    assert uniform.area_to_oracle < 1.0


def test_an_oracle_that_runs_out_of_plays_says_so_too():
    found = compare(["chain-10"], ["frontier"], num_seeds=4, budget=100)
    oracle = found.cell("chain-10", "oracle")
    assert (oracle.finished_share, oracle.mean_samples) == (0.0, 100.0)
    # 100 plays of a horizon of 1,000; what it had mastered by then counts for the rest.
    best = best_oracle(scenario("chain-10").simulator(), 100)
    assert 0 < best.progress < 1
    assert oracle.area == pytest.approx((best.area + 900 * best.progress) / 1000)
    for name in ("uniform", "frontier"):
        entry = found.cell("chain-10", name)
        assert entry.ratio_to_oracle == 1.0
        assert 0.0 <= entry.area_to_oracle <= 1.05


def test_some_seeds_may_finish_and_others_not():
    found = compare(["chain-10"], ["frontier"], num_seeds=8)
    mean = int(found.cell("chain-10", "frontier").mean_samples)
    cut = compare(["chain-10"], ["frontier"], num_seeds=8, budget=mean).cell("chain-10", "frontier")
    assert 0.0 < cut.finished_share < 1.0
    assert cut.mean_samples < mean
    assert not cut.is_winner


def test_a_round_beyond_the_budget_does_not_count():
    found = compare(["chain-2"], ["frontier"], num_seeds=6, num_envs=64, budget=100)
    assert all(entry.mean_samples <= 100 for entry in found.cells)


# Corners.


def test_nothing_left_to_learn_is_no_division_by_zero():
    place = GraphScenario(name="known", graph=TaskGraph.chain(2), start=((0, 0.95), (1, 0.95)))
    found = compare([place], ["frontier"], num_seeds=2)
    for entry in found.cells:
        assert (entry.mean_samples, entry.ratio_to_oracle, entry.area) == (0.0, 1.0, 1.0)
    as_text(found)


def test_nothing_that_can_be_learned_is_no_division_by_zero():
    place = GraphScenario(name="hopeless", graph=TaskGraph.chain(2), impossible=(0,))
    as_text(compare([place], ["frontier"], num_seeds=2))


def test_many_envs_at_once_are_compared_as_well():
    one = compare(["chain-5"], ["frontier"], num_seeds=8).cell("chain-5", "frontier")
    many = compare(["chain-5"], ["frontier"], num_seeds=8, num_envs=8).cell("chain-5", "frontier")
    assert one.mean_samples != many.mean_samples
    assert many.finished_share == 1.0


def test_the_oracle_of_the_epochwise_learner_has_as_many_envs():
    # Its equations divide by the plays of all envs, so one env would learn eight times as fast.
    train = recipe("train")
    place = GraphScenario(
        name="ancestor",
        graph=TaskGraph.chain(3),
        dynamics=train.dynamics,
        noise=train.noise,
    )
    oracles = [
        compare([place], [], num_seeds=1, num_envs=num_envs).cell("ancestor", "oracle")
        for num_envs in (1, 8)
    ]
    assert oracles[1].mean_samples > 6 * oracles[0].mean_samples


def test_every_cell_is_told_of_as_soon_as_it_is_done():
    told: list[ComparisonCell] = []
    found = compare(["chain-2", "tree-3"], ["frontier"], num_seeds=2, on_cell=told.append)
    expected = [entry for entry in found.cells if entry.curriculum != "oracle"]
    assert [(entry.scenario, entry.curriculum) for entry in told] == [
        (entry.scenario, entry.curriculum) for entry in expected
    ]


def test_an_unknown_cell_is_refused():
    found = compare(["chain-2"], [], num_seeds=1)
    with pytest.raises(ConfigError, match="'frontier' was not compared on 'chain-2'"):
        found.cell("chain-2", "frontier")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scenarios": []}, "there is no scenario to compare on"),
        ({"scenarios": ["chain-x"]}, "there is no scenario 'chain-x'"),
        ({"scenarios": "chain-2"}, "scenarios must be a list of names; got 'chain-2'. Wrap it"),
        ({"curricula": "frontier"}, "curricula must be a list of names; got 'frontier'. Wrap it"),
        ({"curricula": ["magic"]}, "there is no curriculum 'magic'; there are uniform"),
        ({"num_seeds": 0}, "num_seeds"),
        ({"num_seeds": 2.0}, "num_seeds"),
        ({"seed": -1}, "seed"),
        ({"num_envs": 0}, "num_envs"),
        ({"budget": 0}, "budget"),
    ],
)
def test_impossible_comparisons_are_refused(arguments, message):
    settings = {"scenarios": ["chain-2"], "curricula": ["frontier"]} | arguments
    with pytest.raises(ConfigError, match=re.escape(message)) as error:
        compare(**settings)
    assert "\n" not in str(error.value)


# The bars. Other seeds than those of the published table, and a margin for there being fewer.

BARS = {
    "chain-10": 2.2,
    "tree-10": 2.2,
    "grid-3x3": 2.2,
    "chain-30": 3.3,
    "tree-31": 3.3,
    "grid-6x6": 3.3,
}


@pytest.fixture(scope="module")
def suite():
    names = ["frontier", "frontier-features", "learning-progress"]
    small = [name for name in SUITE if name not in ("chain-100", "pool-300")]
    cells = compare(small, names, num_seeds=16, seed=5000).cells
    cells += compare(["chain-100", "pool-300"], names, num_seeds=6, seed=5000).cells
    return {(cell.scenario, cell.curriculum): cell for cell in cells}


@pytest.mark.slow
@pytest.mark.parametrize("name", BARS)
def test_the_frontier_comes_close_to_the_oracle(suite, name: str):
    assert suite[name, "frontier"].ratio_to_oracle < BARS[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", BARS)
def test_the_frontier_comes_closer_with_features(suite, name: str):
    assert suite[name, "frontier-features"].ratio_to_oracle < 1.6


@pytest.mark.slow
@pytest.mark.parametrize("curriculum", ["frontier", "frontier-features", "learning-progress"])
@pytest.mark.parametrize("name", SUITE)
def test_no_scenario_makes_it_worse_than_uniform(suite, name: str, curriculum: str):
    found, uniform = suite[name, curriculum], suite[name, "uniform"]
    assert found.finished_share == 1.0
    assert found.mean_samples < uniform.mean_samples


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "times", "bar"),
    [("chain-10", 1, 3.8), ("chain-10", 10, 1.9), ("chain-10", 100, 1.7), ("noisy-10", 10, 2.8)],
)
def test_the_frontier_finds_the_speed_of_learning_with_many_envs(name: str, times: int, bar: float):
    slow = f"{name}-slow{times}"
    found = compare([slow], ["frontier"], num_seeds=8, seed=5000, num_envs=128)
    assert found.cell(slow, "frontier").finished_share == 1.0
    assert found.cell(slow, "frontier").ratio_to_oracle < bar


@pytest.mark.slow
@pytest.mark.parametrize("name", ["independent-30", "plateau-30"])
@pytest.mark.parametrize("curriculum", ["frontier", "frontier-features"])
def test_off_the_suite_it_is_little_worse_than_uniform(name: str, curriculum: str):
    found = compare([name], [curriculum], num_seeds=16, seed=5000)
    uniform = found.cell(name, "uniform").mean_samples
    assert found.cell(name, curriculum).mean_samples < 1.2 * uniform


@pytest.mark.slow
def test_features_do_not_mislead_where_half_of_a_tree_is_impossible():
    place = GraphScenario(name="half", graph=TaskGraph.tree(63), impossible=tuple(range(31, 63)))
    names = ["frontier", "frontier-features"]
    plain, knowing = (
        compare([place], names, num_seeds=16, seed=5000).cell("half", name).mean_samples
        for name in names
    )
    assert knowing < plain


def test_every_curriculum_can_be_compared():
    found = compare(["chain-3"], list(curriculum_variants(can_edit=False)), num_seeds=2)
    assert {entry.curriculum for entry in found.cells} == {
        "oracle",
        *curriculum_variants(can_edit=False),
    }


def test_settings_of_ones_own_can_be_compared_by_a_name():
    table = compare(
        ["chain-3"], {"mine": FrontierConfig(probing=0.2), "frontier": "frontier"}, num_seeds=2
    )
    assert [cell.curriculum for cell in table.cells] == ["oracle", "uniform", "mine", "frontier"]
    assert table.cell("chain-3", "mine").mean_samples > 0


def test_the_shares_of_the_oracle_are_measured():
    oracle = compare(["chain-10"], [], num_seeds=1).cell("chain-10", "oracle")
    # It goes back to finish tasks and moves on before they are mastered: few plays, but some, are
    # made while a gate is not half open yet.
    assert oracle.share_impossible == 0.0
    assert 0.0 <= oracle.share_mastered < 0.1
