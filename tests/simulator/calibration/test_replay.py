"""Predictions by hand, and against the simulator itself."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from simulator.calibration.known_learner import KNOWN, NUM_ENVS, known_scenario, make_training
from stepladder.errors import ConfigError
from stepladder.simulator import CompiledEngine
from stepladder.simulator.calibration import HeldOut, Practice, read_practice
from stepladder.simulator.calibration.fit import coupling_matrix, fit, rates_of
from stepladder.simulator.calibration.judging import wilson
from stepladder.simulator.calibration.replay import Rates, held_out_rows, replay
from stepladder.simulator.generalising.state import mean_chance


def practice(plays: list[list[float]], **changes: object) -> Practice:
    table = np.array(plays)
    usual: dict[str, object] = {
        "name": "run",
        "groups": tuple("abc"[: table.shape[1]]),
        "num_tasks": np.full(table.shape[1], 10),
        "steps": 100 * np.arange(1, len(table) + 1),
        "plays": table,
        "successes": table / 2.0,
        "success_steps": 3.0 * table,
        "failure_steps": 4.0 * table,
        "update_steps": 100,
    }
    return Practice(**(usual | changes))


def test_one_update_by_hand():
    # Before: skill 0, difficulty 0: p = 1/2, which teaches 1. One update per epoch, 8 plays of a.
    rates = Rates(np.zeros(2), np.zeros(2), np.array([[1.0, 0.5], [0.5, 1.0]]), 0.1, 1.0, 0.2, 0.0)
    found = replay(practice([[8.0, 0.0], [8.0, 0.0]]), rates)
    assert found.practised[0].tolist() == [0.5, 0.5]
    # Skills 0.8 and 0.4; each of the ten tasks of a has a memory of 0.8.
    chances = [1.0 / (1.0 + math.exp(-ahead)) for ahead in (0.8 + 0.8, 0.4)]
    assert found.practised[1] == pytest.approx(chances)
    assert found.held_out[0, 0] == pytest.approx(1.0 / (1.0 + math.exp(-0.8)))


def test_the_mean_over_difficulties_is_that_of_many_tasks():
    difficulties = np.linspace(-2.0, 2.0, 100_001)
    chances = 1.0 / (1.0 + np.exp(difficulties - 0.7))
    assert mean_chance(0.7, 2.0) == pytest.approx(chances.mean(), abs=1e-5)


def test_expected_outcomes_are_those_that_the_simulator_draws(tmp_path: Path):
    seen = read_practice(make_training(tmp_path / "run"))
    rates = Rates(
        *(np.array(KNOWN.difficulty), np.array(KNOWN.spread), KNOWN.coupling_matrix),
        *(KNOWN.eta, KNOWN.eta_memory, KNOWN.lambda_forget, KNOWN.lambda_memory),
    )
    found = replay(seen, rates)
    simulator = known_scenario().simulator(0, NUM_ENVS)
    CompiledEngine(simulator, known_scenario().curriculum("uniform", 0), NUM_ENVS).advance(160_000)
    assert found.held_out[-1] == pytest.approx(simulator.held_out(), abs=0.04)
    expected = (seen.plays * found.practised).sum(axis=0) / seen.plays.sum(axis=0)
    assert expected == pytest.approx(seen.successes.sum(axis=0) / seen.plays.sum(axis=0), abs=0.03)


def test_help_falls_with_the_distance():
    # 0.5, then 0.5 / e.
    found = coupling_matrix(3, 0.5, 1.0)
    assert found[0].tolist() == pytest.approx([1.0, 0.5, 0.5 / math.e])
    assert np.array_equal(found, found.T)


def test_without_evidence_the_usual_settings_stay():
    nothing = practice([[1e-9], [1e-9]])
    rates = rates_of(fit([nothing]).vector, 1)
    assert rates.eta == pytest.approx(8e-4, rel=0.01)
    assert rates.lambda_memory == pytest.approx(0.05, rel=0.01)


def test_wilson_by_hand():
    # Agresti and Coull's example: 0 of 10 has an upper bound of z² / (n + z²).
    assert wilson(0.0, 10.0) == pytest.approx((0.0, 1.96**2 / (10.0 + 1.96**2)), abs=1e-12)
    assert all(map(math.isnan, wilson(0.0, 0.0)))


def test_epochs_are_added_up_without_loss():
    whole = practice([[float(number), 1.0] for number in range(1, 8)])
    few = whole.binned(3)
    assert len(few.steps) == 3
    assert few.steps[-1] == whole.steps[-1]
    for name in ("plays", "successes", "success_steps", "failure_steps"):
        assert getattr(few, name).sum() == getattr(whole, name).sum()


def test_parts_of_a_training():
    evaluation = HeldOut(step=250, games=np.ones(1), successes=np.ones(1))
    whole = practice([[1.0], [2.0], [3.0]], held_out=(evaluation,))
    assert held_out_rows(whole).tolist() == [2]
    assert whole.until(200).plays.tolist() == [[1.0], [2.0]]
    assert whole.until(200).held_out == ()
    assert whole.since(2).plays.tolist() == [[3.0]]


def test_groups_are_put_in_another_order_and_tables_must_fit():
    mixed = practice([[1.0, 2.0]]).in_order(("b", "c", "a"))
    assert mixed.plays.tolist() == [[2.0, 0.0, 1.0]]
    with pytest.raises(ConfigError, match="has the label 'b', which is not named"):
        practice([[1.0, 2.0]]).in_order(("a",))
    with pytest.raises(ConfigError, match="plays must have a row per epoch"):
        replace(practice([[1.0, 2.0]]), plays=np.ones((2, 2)))
