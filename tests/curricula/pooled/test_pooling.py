"""Pooled statistics: a cell's rate, a task's place in it, and how much a cell says of a task."""

import numpy as np
import pytest

from stepladder.compiled import compiled
from stepladder.curricula.pooled.cells import MAX_CELLS, splits_by_label
from stepladder.curricula.pooled.pooling import (
    FIRST_HALFLIFE,
    PRIOR_STRENGTH,
    Cell,
    Evidence,
    Pooling,
    learn,
    rate_of,
)
from stepladder.tasks import ListSource, Pool, Task


@compiled
def learn_all(cells, pooling, tasks, order, values, keep):
    for index in range(len(order)):
        learn(cells[0], pooling[0], tasks[order[index]], keep, values[index])


@compiled
def rates(tasks, cell_rate, strength):
    found = np.zeros(len(tasks))
    for index in range(len(tasks)):
        found[index] = rate_of(tasks[index], cell_rate, strength)
    return found


def learned(order, values, num_tasks: int, keep: float = 1.0):
    """Let one cell learn results of its tasks, in order."""
    cells, pooling, tasks = Cell.zeros(), Pooling.zeros(), Evidence.zeros(num_tasks)
    cells["rate"], pooling["strength"] = 0.5, PRIOR_STRENGTH
    order, values = np.array(order, dtype=np.int64), np.array(values, dtype=float)
    learn_all(cells, pooling, tasks, order, values, keep)
    return cells[0], pooling[0], tasks


def test_three_results_by_hand():
    cell, _, tasks = learned([0, 1, 0], [1.0, 0.0, 1.0], 2)
    # Sums of the first clock: each result counts 2^(-1/16) after one more play of the cell.
    decay = 0.5 ** (1.0 / FIRST_HALFLIFE)
    assert cell["successes"][0] == pytest.approx(1.0 + decay**2)
    assert cell["plays"][0] == pytest.approx(1.0 + decay + decay**2)
    # Half a success in one play beforehand. All clocks are still nearly alike: about 2.5 / 4.
    assert cell["rate"] == pytest.approx(2.5 / 4.0, abs=0.01)
    # The first play was expected to succeed half the time, the third about 1.5 of 3.
    assert tasks["successes"].tolist() == [2.0, 0.0]
    assert tasks["failures"].tolist() == [0.0, 1.0]
    assert tasks["expected"] == pytest.approx([0.5 + 0.5, 0.75], abs=0.01)


def test_an_unplayed_task_has_the_rate_of_its_cell():
    tasks = Evidence.zeros(1)
    for rate in (0.01, 0.5, 0.97):
        assert rates(tasks, rate, 4.0)[0] == pytest.approx(rate)


def test_a_task_moves_the_odds_of_its_cell_by_what_it_did_beyond_expectation():
    tasks = Evidence.zeros(1)
    tasks["successes"], tasks["failures"], tasks["expected"] = 6.0, 2.0, 4.0
    # With strength 4 at rate 0.5: successes (6 + 2) / (4 + 2), failures (2 + 2) / (4 + 2); the
    # odds of 1 become 4/3 : 2/3.
    assert rates(tasks, 0.5, 4.0)[0] == pytest.approx(2.0 / 3.0)
    # The learner has become better since: the same task is judged by what its cell can do now.
    assert rates(tasks, 0.9, 4.0)[0] > 0.93


def test_a_cell_follows_a_learner_at_any_speed():
    rng = np.random.default_rng(0)
    for num_plays in (2_000, 50_000, 1_000_000):
        skill = np.linspace(0.1, 0.9, num_plays)
        values = rng.random(num_plays) < skill
        cell, _, _ = learned(rng.integers(50, size=num_plays), values, 50)
        assert cell["rate"] == pytest.approx(0.9, abs=0.06)


def test_a_cell_is_worth_more_the_more_its_tasks_are_alike():
    rng = np.random.default_rng(1)
    order = rng.integers(50, size=4_000)
    alike = learned(order, rng.random(4_000) < 0.5, 50)[1]["strength"]
    # Half of the tasks always succeed and half never: the label says nothing.
    apart = learned(order, order % 2 == 0, 50)[1]["strength"]
    assert alike > 16.0
    assert apart < 2.0


def test_labels_are_cells_only_if_they_stand_for_several_tasks():
    def pool(*labels: str) -> Pool:
        return Pool(ListSource([Task(f"t{n}", label=label) for n, label in enumerate(labels)]))

    assert splits_by_label(pool("a", "a", "b", "b"))
    assert not splits_by_label(pool("a", "b", "c", "a"))
    assert not splits_by_label(pool("a", "a"))
    many = [f"l{number}" for number in range(MAX_CELLS + 1)]
    assert not splits_by_label(pool(*many, *many))
