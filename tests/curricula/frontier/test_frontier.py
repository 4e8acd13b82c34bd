"""Frontier: eviction, phases, many results, snapshots, and a chain that is learnt."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from curricula.fake_learner import differences, live, record_for
from curricula.short_memory import BARE, draw_and_fail, make, on_a_line, overview, play, told
from stepladder.curricula import (
    Curriculum,
    Frontier,
    FrontierConfig,
    Phase,
    Phased,
    Snapshot,
    Uniform,
    UniformConfig,
)
from stepladder.errors import SnapshotError
from stepladder.plans.plan import aligned_words
from stepladder.plans.record import RECORD_DTYPE
from stepladder.tasks import NumberedSource, Task

# A pool with more tasks behind it.


def evicting(**settings: Any) -> Frontier:
    """Make a pool of four out of fifty tasks."""
    return Frontier(NumberedSource(50), capacity=4, **{**BARE, "eviction_plays": 5, **settings})


def test_a_mastered_task_makes_room_at_once():
    curriculum = evicting()
    old = int(curriculum.pool.task_ids[2])
    play(curriculum, 2, "www")
    assert curriculum.num_evicted == 0
    play(curriculum, 2, "w")
    assert curriculum.num_evicted == 1
    assert curriculum.pool.generations.tolist() == [0, 0, 1, 0]
    assert not curriculum.pool.contains(old)
    assert told(curriculum, 2).numbers["weighed_plays"] == 0.0
    assert curriculum.states() == ["probed"] * 4
    # The newcomer is tried in the present round.
    assert curriculum.probs().tolist() == pytest.approx([0.25] * 4)


def test_a_hopeless_task_makes_room_after_as_many_probes_in_a_row():
    curriculum = evicting()
    play(curriculum, 1, "ffff")
    assert curriculum.num_evicted == 0
    # Becoming learnable in between begins a new row: of the next plays four are probes.
    play(curriculum, 1, "w" + "ff" + "ffff")
    assert curriculum.num_evicted == 0
    play(curriculum, 1, "f")
    assert curriculum.num_evicted == 1
    assert overview(curriculum).num_evicted == 1


def test_a_coin_toss_makes_room_too():
    curriculum = evicting(mastery=0.9)
    play(curriculum, 0, "fw" + "fwfw" * 2)
    assert curriculum.states()[0] == "probed"
    play(curriculum, 0, "fwfw")
    assert curriculum.num_evicted == 0
    play(curriculum, 0, "f")
    assert curriculum.num_evicted == 1


def test_a_task_that_looks_mastered_is_not_hopeless():
    curriculum = evicting(eviction_plays=1)
    play(curriculum, 0, "w")
    assert curriculum.num_evicted == 0
    play(curriculum, 0, "f")
    # 0.5 to 1: it is in the zone, and out of it with the next failure.
    assert (curriculum.states()[0], curriculum.num_evicted) == ("zone", 0)
    play(curriculum, 0, "f")
    assert (curriculum.states()[0], curriculum.num_evicted) == ("probed", 0)
    play(curriculum, 0, "f")
    assert curriculum.num_evicted == 1


def test_later_results_of_the_same_batch_may_save_a_task():
    curriculum = evicting()
    results = [0.0] * 5 + [1.0]
    curriculum.observe([record_for(curriculum, 1, success) for success in results])
    assert (curriculum.states()[1], curriculum.num_evicted) == ("zone", 0)
    curriculum.observe([record_for(curriculum, 0, success) for success in [1.0] * 4 + [0.0]])
    assert (curriculum.states()[0], curriculum.num_evicted) == ("zone", 0)
    curriculum.observe([record_for(curriculum, 2, 1.0) for _ in range(4)])
    assert curriculum.num_evicted == 1


def test_a_task_in_practice_is_never_replaced():
    curriculum = evicting(eviction_plays=1, trial_episodes=10_000, mastery=0.9)
    play(curriculum, 3, "w")
    play(curriculum, 3, "fw" * 500)
    assert (curriculum.states()[3], curriculum.num_evicted) == ("zone", 0)


@pytest.mark.parametrize("results", ["wwww", "f" * 30])
def test_nothing_is_replaced_if_that_is_not_wanted_or_not_possible(results: str):
    for curriculum in (evicting(eviction_plays=0), make(4)):
        play(curriculum, 0, results)
        assert curriculum.num_evicted == 0
        assert curriculum.pool.generations.max() == 0


def test_when_the_last_of_a_round_is_replaced_by_hand_the_next_round_begins():
    curriculum = evicting(eviction_plays=0)
    for slot in (0, 1):
        play(curriculum, slot, "wwww")
    # 0 is due for rehearsal, 1 waits; the other two and then the newcomer are probed.
    assert curriculum.probs().tolist() == pytest.approx([1 / 3, 0.0, 1 / 3, 1 / 3])
    curriculum.replace(0)
    assert curriculum.states() == ["probed", "mastered", "probed", "probed"]
    assert curriculum.probs().tolist() == pytest.approx([2 / 9, 1 / 3, 2 / 9, 2 / 9])


def test_eviction_goes_on_and_late_results_are_credited_to_nobody():
    curriculum = evicting()
    late = record_for(curriculum, 0, 1.0)
    draw_and_fail(curriculum, 400)
    # Every fifth failure is the last of its task.
    assert 60 < curriculum.num_evicted <= 80
    before = told(curriculum, 0)
    curriculum.observe([late] * 5)
    assert curriculum.num_orphaned == 5
    assert told(curriculum, 0).numbers == before.numbers


def test_a_batch_that_evicts_more_than_fit_into_the_list_loses_nobody():
    curriculum = Frontier(NumberedSource(1000), capacity=100, **BARE)
    everybody = [record_for(curriculum, slot, 1.0) for slot in range(100)]
    curriculum.observe(everybody * 4)
    assert curriculum.num_evicted == 64
    assert overview(curriculum).num_mastered == 36
    live(curriculum, 500)
    assert overview(curriculum).num_mastered == 0


# In another curriculum's plan.


def phased(num_tasks: int = 12, capacity: int | None = None, **settings: Any) -> Phased:
    config = FrontierConfig(**{**BARE, **settings})
    phases = (
        Phase(name="look", curriculum=UniformConfig(), episodes=6),
        Phase(name="climb", curriculum=config, episodes=40),
        Phase(name="climb on", curriculum=config),
    )
    return Phased(NumberedSource(num_tasks), phases=phases, capacity=capacity)


def test_inside_a_phase_it_has_a_table_of_its_own():
    curriculum, alone = phased(3), make(3)
    for slot in (0, 1, 2, 0, 1, 2):
        curriculum.observe(record_for(curriculum, slot, 0.0))
    assert curriculum.current_phase == "climb"
    for other in (curriculum, alone):
        play(other, 1, "fw")
        play(other, 2, "wwww")
        play(other, 0, "f")
    np.testing.assert_allclose(curriculum.probs(), alone.probs())
    assert curriculum.probs()[1] == pytest.approx(1 / 1.75)
    assert told(curriculum, 1).reason.startswith("in phase 'climb', it is learnable now")
    assert curriculum.quarantine(0, 0, "no such map")
    assert curriculum.probs().tolist() == pytest.approx([0.0, 0.8, 0.2])


def test_inside_a_phase_it_replaces_tasks_for_all_phases():
    curriculum = phased(40, capacity=4, eviction_plays=3)
    draw_and_fail(curriculum, 100)
    inner = [method for method in curriculum.inner if isinstance(method, Frontier)]
    assert curriculum.current_phase == "climb on"
    assert [method.num_evicted > 3 for method in inner] == [True, True]
    assert curriculum.pool.generations.sum() == sum(method.num_evicted for method in inner)
    # What left in one phase left the other one too.
    for slot in range(4):
        play(curriculum, slot, "w")
    np.testing.assert_allclose(curriculum.probs().sum(), 1.0)


def test_it_goes_on_when_its_plan_moves_to_other_memory():
    moved, still = evicting(), evicting()
    live(moved, 60), live(still, 60)
    moved.move_plan(aligned_words(len(moved.plan.block)))
    assert live(moved, 100) == live(still, 100)
    assert differences(moved.snapshot(), still.snapshot()) == []


# Many results.


def test_a_million_results_leave_finite_numbers():
    curriculum = Frontier(NumberedSource(50))
    rng = np.random.default_rng(5)
    rates = rng.random(50)
    rates[:5], rates[5:10] = 0.0, 1.0
    for _ in range(100):
        records = np.zeros(10_000, dtype=RECORD_DTYPE)
        records["slot"] = rng.integers(0, 50, 10_000)
        records["success"] = rng.random(10_000) < rates[records["slot"]]
        curriculum.observe(records)
    assert curriculum.num_observed == 1_000_000
    other = Frontier(NumberedSource(50))
    other.restore(curriculum.snapshot())  # refuses numbers that are not finite
    np.testing.assert_allclose(curriculum.probs().sum(), 1.0)
    states = curriculum.states()
    assert states[:5] == ["probed"] * 5
    assert states[5:10] == ["mastered"] * 5


def test_parallel_envs_may_report_a_hundred_results_at_once():
    curriculum = make(10)
    rng = np.random.default_rng(1)
    for _ in range(50):
        draws = curriculum.draw_batch(128)
        curriculum.report_batch(draws, rng.random(128) < 0.3)
        np.testing.assert_allclose(curriculum.probs().sum(), 1.0)
    assert curriculum.num_observed == 6400


# What it is good for, on a pretended learner.


class Chain:
    """Skills of which each can only be learnt when the one before it is there; the rest cannot."""

    def __init__(self, num_tasks: int, seed: int, forgetting: float = 0.0):
        self.skills = np.full(num_tasks, 0.01)
        self._keep = 1.0 - forgetting
        self._rng = np.random.default_rng(seed)

    def play(self, task: int) -> bool:
        self.skills *= self._keep
        if task >= len(self.skills):
            return False
        success = bool(self._rng.random() < self.skills[task])
        gate = self.skills[task - 1] ** 2 if task else 1.0
        self.skills[task] += 0.05 * gate * (1.0 - self.skills[task])
        return success


def plays_to_learn(curriculum: Curriculum, seed: int) -> int:
    """Return the plays until every task of a chain of ten succeeds nine times in ten."""
    chain = Chain(10, seed)
    for count in range(1, 10_000):
        draw = curriculum.draw_one()
        curriculum.report(draw, chain.play(draw.task_id))
        if chain.skills.min() >= 0.9:
            return count
    raise AssertionError("the chain was never learnt")


def mean_plays(curricula: Iterable[Curriculum]) -> float:
    return float(np.mean([plays_to_learn(each, seed) for seed, each in enumerate(curricula)]))


def test_a_chain_is_learnt_in_half_the_plays_that_uniform_needs():
    tasks = [Task(f"task{x}", params={"x": x}) for x in range(10)]
    uniform = mean_plays(Uniform(tasks, seed=seed) for seed in range(8))
    plain = mean_plays(Frontier(tasks, seed=seed) for seed in range(8))
    knowing = mean_plays(Frontier(tasks, seed=seed, features=("x",)) for seed in range(8))
    assert plain < 0.5 * uniform
    assert knowing < 0.9 * plain


@pytest.mark.parametrize("seed", range(3))
def test_when_all_the_rest_is_impossible_what_is_known_is_kept_alive(seed: int):
    # Half of what is known would be forgotten in 3,500 plays of the forty that cannot be learnt.
    curriculum, chain = Frontier(NumberedSource(45), seed=seed), Chain(5, seed, forgetting=2e-4)
    known = np.zeros(40_000, dtype=bool)
    skills = np.zeros(40_000)
    for episode in range(40_000):
        draw = curriculum.draw_one()
        curriculum.report(draw, chain.play(draw.task_id))
        known[episode], skills[episode] = draw.task_id < 5, chain.skills.min()
    # Tasks that lapse and are mastered again do not keep up the probing for more.
    assert known[-10_000:].mean() > 0.5
    assert np.median(skills[-10_000:]) > 0.85


# Saving and resuming, beside what the contract asks of all.


def test_neighbors_are_near_after_a_restore_as_they_were_before():
    curriculum, other = on_a_line(8), on_a_line(8)
    for slot in (2, 5):
        play(curriculum, slot, "wwww")
    play(curriculum, 5, "f")
    play(other, 0, "wwww")
    other.restore(curriculum.snapshot())
    np.testing.assert_array_equal(curriculum.probs(), other.probs())
    for each in (curriculum, other):
        play(each, 2, "ff")
        play(each, 5, "f")
    assert [told(other, slot).reason for slot in range(8)] == [
        told(curriculum, slot).reason for slot in range(8)
    ]
    assert differences(curriculum.snapshot(), other.snapshot()) == []


@pytest.mark.parametrize(
    ("name", "path", "place", "number"),
    [
        ("tasks", "standing", 1, 3),
        ("tasks", "standing", 1, -1),
        ("tasks", "layer", 1, -1),
        ("tasks", "layer", 1, 5),
        ("tasks", "origin", 1, 3),
        ("tasks", "origin", 1, -7),
        ("tasks", "successes", 1, np.nan),
        ("tasks", "successes", 1, np.inf),
        ("method", "barren_rounds", 0, np.nan),
        ("method", "far.num_finds", 0, np.inf),
        ("method", "sides", (0, 0), 2),
        ("method", "sides", (0, 2), -1),
        ("method", "noted.count", 0, 65),
        ("method", "noted.count", 0, -1),
        ("method", "noted.slots", (0, 3), 4),
    ],
)
def test_numbers_that_point_nowhere_are_refused(name: str, path: str, place: Any, number: float):
    curriculum = evicting()
    live(curriculum, 30)
    before = curriculum.snapshot()
    arrays = {key: array.copy() for key, array in before.arrays.items()}
    field = arrays[f"method/{name}"]
    for part in path.split("."):
        field = field[part]
    field[place] = number
    with pytest.raises(SnapshotError, match=f"array '{name}' of part 'method' of the snapshot: "):
        curriculum.restore(Snapshot(before.state, arrays))
    assert differences(before, curriculum.snapshot()) == []
