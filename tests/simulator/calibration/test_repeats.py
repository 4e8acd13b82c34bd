"""What plays of the same task tell about each other, by hand and of a learner that is known."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from simulator.calibration.known_learner import KNOWN, NUM_ENVS
from stepladder.plans.record import RECORD_DTYPE
from stepladder.simulator import Generalising, GeneralScenario
from stepladder.simulator.calibration import Practice, RepeatedPlays, repeats_of
from stepladder.simulator.calibration.fit import fit, rates_of
from stepladder.simulator.calibration.repeats import (
    MEMORY_LOSSES,
    SlopeEvidence,
    _echoes,
    mean_by_part,
    slopes_of,
)
from stepladder.simulator.calibration.replay import mean_echo
from stepladder.simulator.engines import DirectEngine

NUM_STEPS, NUM_BINS = 200_000, 20


def practice_of(dynamics: Generalising) -> Practice:
    """Let a learner practise all tasks alike, and return what it practised."""
    scenario = GeneralScenario(name="known", dynamics=dynamics)
    curriculum = scenario.curriculum("uniform", 0)
    engine = DirectEngine(scenario.simulator(0, NUM_ENVS), curriculum, NUM_ENVS)
    taken: list[Any] = []
    tables = np.zeros((NUM_BINS, len(dynamics.groups), 4))
    curriculum.add_listener(lambda records: taken.append(records.copy()))
    groups = curriculum.pool.label_indices
    for number in range(NUM_BINS):
        first = len(taken)
        engine.advance((number + 1) * NUM_STEPS // NUM_BINS)
        some = np.concatenate(taken[first:])
        success, length = some["success"], some["length"]
        for column, value in enumerate((1.0, success, success * length, (1 - success) * length)):
            np.add.at(tables[number, :, column], groups[some["slot"]], value)
    known = repeats_of(np.concatenate(taken), groups, NUM_ENVS, dynamics.update_steps)
    return Practice(
        name="known",
        groups=dynamics.groups,
        num_tasks=np.array(dynamics.num_tasks),
        steps=np.arange(1, NUM_BINS + 1) * NUM_STEPS // NUM_BINS,
        plays=tables[:, :, 0],
        successes=tables[:, :, 1],
        success_steps=tables[:, :, 2],
        failure_steps=tables[:, :, 3],
        num_envs=NUM_ENVS,
        update_steps=dynamics.update_steps,
        repeats=known,
    )


def records_of(*plays: tuple[int, int, int, float]) -> Any:
    """Make records of (env, slot, length, success)."""
    records = np.zeros(len(plays), dtype=RECORD_DTYPE)
    for record, (env, slot, length, success) in zip(records, plays, strict=True):
        record["env_index"], record["slot"] = env, slot
        record["length"], record["success"] = length, success
    return records


def test_echoes_by_hand():
    """Updates after vector steps 10, 20 and so on.

    The play that ends at 5 teaches with update 1. The second begins at 6, before that. The third
    begins after step 21, after update 2: the first has lost its share once, the second, which
    teaches with update 2, never. The task of the fourth was not played before.
    """
    slots, begins, ends = np.array([7, 7, 7, 8]), np.array([0, 6, 22, 6]), np.array([5, 20, 30, 21])
    found = _echoes(slots, begins, ends, 10.0)
    kept = 1.0 - np.array(MEMORY_LOSSES)
    assert found[0].tolist() == found[1].tolist() == found[3].tolist() == [0.0] * 7
    assert found[2, :-1] == pytest.approx(kept + 1.0)


def test_pairs_of_plays_by_hand():
    """Task 0 fails, succeeds, succeeds; then, after half of the training, fails again.

    Two pairs, one of which differs; the last play is too long after the one before. Task 1 is
    played once.
    """
    plays = [(0, 0, 5, 0.0), (0, 0, 5, 1.0), (0, 0, 5, 1.0), (0, 1, 800, 1.0), (0, 0, 5, 0.0)]
    found = repeats_of(records_of(*plays), np.array([0, 0]), 1, 8)
    assert found.pairs.sum() == 2.0
    assert found.discords.sum() == 1.0


def test_the_mean_echo_is_that_of_many_tasks():
    ahead, spread = 0.7, 2.0
    chances = 1.0 / (1.0 + np.exp(-np.linspace(ahead - spread, ahead + spread, 200_001)))
    expected = np.mean(4.0 * (chances * (1.0 - chances)) ** 2)
    assert mean_echo(ahead, spread) == pytest.approx(expected, abs=1e-5)
    assert mean_echo(0.0, 0.0) == pytest.approx(0.25)


def test_slopes_lie_between_those_of_the_two_nearest_losses():
    """0.05 is one of the rates; the root of 0.05 times 0.015 lies in the middle of two."""
    assert slopes_of(np.array([[2.0]]), 0.05).tolist() == [0, 0, 2, 0, 0, 0]
    half = slopes_of(np.array([[2.0]]), (0.05 * 0.015) ** 0.5)
    assert half == pytest.approx([0, 0, 1, 1, 0, 0])
    assert slopes_of(np.array([[2.0]]), 1e-9).tolist() == [0, 0, 0, 0, 0, 2]


def test_evidence_is_least_surprised_by_the_slope_of_a_regression():
    """Products of one echo with itself 4, with success 2, of success 1.5 in 3 free plays: slope
    0.5, variance of success 0.5, so the weights are 8 and 4."""
    products = np.zeros((1, 1, 7, 7))
    products[0, 0, 0, 0], products[0, 0, 0, 6], products[0, 0, 6, 0] = 4.0, 2.0, 2.0
    products[0, 0, 6, 6] = 1.5
    ones = np.full((1, 1), 3.0)
    known = RepeatedPlays(
        steps=np.array([10]), counts=ones, pairs=ones, discords=ones, products=products
    )
    evidence = SlopeEvidence.of([known])
    slope = np.array([0.5, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert evidence.pull(slope) == pytest.approx(np.zeros(6))
    assert evidence.cost(slope) == pytest.approx(0.5 * 8.0 * 0.25 - 4.0 * 0.5)
    assert evidence.information(np.eye(6)[:, :1]) == pytest.approx(np.array([[8.0]]))


def test_means_by_part_are_weighted_by_plays():
    ones = np.ones((2, 1))
    known = RepeatedPlays(
        steps=np.array([20, 40]),
        counts=ones,
        pairs=ones,
        discords=ones,
        products=np.zeros((2, 1, 7, 7)),
    )
    plays, table = np.array([[1.0], [3.0], [5.0]]), np.array([[2.0], [6.0], [7.0]])
    found = mean_by_part(known, np.array([10, 20, 40]), plays, table)
    assert found.ravel().tolist() == [5.0, 7.0]


def test_they_go_into_json_and_back_and_into_another_order():
    records = records_of(*((0, number % 2, 3, float(number % 3 == 0)) for number in range(40)))
    found = repeats_of(records, np.array([0, 1]), 1, 8)
    back = RepeatedPlays.from_json(found.to_json())
    assert back.products == pytest.approx(found.products, rel=1e-4)
    assert back.pairs.tolist() == found.pairs.tolist()
    swapped = found.in_order([1, 0, -1])
    assert swapped.pairs[:, 0].tolist() == found.pairs[:, 1].tolist()
    assert not swapped.products[:, 2].any()
    assert len(found.until(int(found.steps[1])).steps) == 2


@pytest.mark.slow
def test_a_fast_memory_is_told_from_a_slow_one():
    """Of success per label alone both would be near the default, 1."""
    found = {}
    for rate, loss in ((4.0, 0.15), (0.1, 0.05)):
        practice = practice_of(replace(KNOWN, eta_memory=rate, lambda_memory=loss))
        found[rate] = rates_of(fit([practice]).vector, len(practice.groups)).eta_memory
    assert found[0.1] < 0.5 < 1.5 < found[4.0]


@pytest.mark.slow
def test_a_label_of_easy_and_impossible_tasks_is_told_from_one_of_tasks_that_are_alike():
    for spread in (0.2, 4.0):
        dynamics = replace(KNOWN, spread=(spread,) * 3, eta_memory=0.0, eta=1e-3)
        practice = practice_of(dynamics)
        fitted = rates_of(fit([practice]).vector, 3).spread[0]
        assert fitted < 1.0 if spread < 1.0 else 2.5 < fitted < 6.0
