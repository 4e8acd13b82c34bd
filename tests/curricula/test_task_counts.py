"""Every episode counts once, for the task and the label it was played with."""

import math

import numpy as np
import pytest

from curricula.fake_learner import differences, live, play, record_for
from stepladder.curricula import AncestorProgress, LearningProgress, Snapshot, Uniform
from stepladder.curricula.reporting import task_counts
from stepladder.curricula.reporting.task_counts import TaskCounts
from stepladder.errors import RecordError, SnapshotError
from stepladder.tasks import ListSource, Task

# Slots 0, 1, 2 have the labels a, a, b.
SMALL = ListSource([Task("x", "a"), Task("y", "a"), Task("z", "b")])
LARGE = ListSource(Task(f"{label}{i}", label) for i in range(40) for label in "abc")


def watched(source=SMALL, **settings):
    curriculum = Uniform(source, **settings)
    return curriculum, TaskCounts(curriculum)


def test_sums_per_task_and_label_by_hand():
    curriculum, counted = watched()
    curriculum.observe(
        [
            record_for(curriculum, 0, 1.0, episode_return=2.0, length=3),
            record_for(curriculum, 0, 0.5, episode_return=-1.0, length=4),
            record_for(curriculum, 2, math.nan, length=9),
        ]
    )
    assert counted.slots.tolist() == [
        (2.0, 2.0, 1.5, 2.0, 1.0, 7.0),
        (0.0,) * 6,
        (1.0, 1.0, 0.0, 0.0, 0.0, 9.0),
    ]
    assert counted.by_label.tolist() == [(2.0, 2.0, 1.5, 2.0), (1.0, 1.0, 0.0, 0.0)]
    assert counted.total_completions == 3


def test_the_end_of_an_epoch_clears_only_what_belongs_to_it():
    curriculum, counted = watched()
    curriculum.observe([record_for(curriculum, 1, 1.0)])
    counted.end_epoch()
    assert counted.slots[1].tolist() == (1.0, 0.0, 1.0, 1.0, 0.0, 1.0)
    assert counted.by_label[0].tolist() == (1.0, 0.0, 0.0, 0.0)
    curriculum.observe([record_for(curriculum, 1, 0.0)])
    assert counted.slots[["num_samples", "num_epoch_samples"]][1].tolist() == (2.0, 1.0)
    assert counted.by_label[0].tolist() == (2.0, 1.0, 0.0, 1.0)


def test_a_late_result_counts_for_the_label_it_was_played_with_and_for_no_task():
    curriculum, counted = watched(LARGE, capacity=6)
    before = curriculum.pool.label_names[int(curriculum.pool.label_indices[2])]
    other = next(
        i for i in range(120) if LARGE.label(i) != before and not curriculum.pool.contains(i)
    )
    late = record_for(curriculum, 2, 1.0)
    curriculum.observe(late)
    curriculum.replace(2, other)
    assert counted.slots[2].tolist() == (0.0,) * 6
    curriculum.observe([late, record_for(curriculum, 2, 0.0)])
    names = curriculum.pool.label_names
    old, new = names.index(before), names.index(LARGE.label(other))
    assert counted.by_label[old].tolist() == (2.0, 2.0, 2.0, 2.0)
    assert counted.by_label[new].tolist() == (1.0, 1.0, 0.0, 1.0)
    assert counted.slots[["num_samples", "successes"]][2].tolist() == (1.0, 0.0)
    assert counted.total_completions == 3
    assert curriculum.num_orphaned == 1


@pytest.mark.parametrize("kind", [LearningProgress, AncestorProgress])
@pytest.mark.parametrize("batch", [1, 7])
def test_every_label_is_right_while_tasks_come_and_go(kind, batch):
    settings = {"eviction_plays": 2} if kind is LearningProgress else {}
    curriculum = kind(LARGE, capacity=9, **settings)
    counted, expected = TaskCounts(curriculum), np.zeros((3, 2))
    for _ in range(210 // batch):
        draws = curriculum.draw(batch)
        records = [play(draw) for draw in draws]
        for draw, record in zip(draws, records, strict=True):
            row = expected[curriculum.pool.label_names.index(LARGE.label(draw.task_id))]
            row += 1.0, record.success
        curriculum.observe(records)
    assert curriculum.num_evicted > 10
    labels = counted.by_label
    assert labels["num_samples"].tolist() == expected[:, 0].tolist()
    assert labels["epoch_successes"].tolist() == expected[:, 1].tolist()
    for name in ("num_epoch_samples", "num_epoch_judged"):
        assert labels[name].tolist() == expected[:, 0].tolist()
    assert counted.total_completions == curriculum.num_observed == 210
    assert counted.num_unlabelled == 0
    if kind is LearningProgress:
        assert counted.slots["num_samples"][:].tolist() == curriculum.plays().tolist()


def test_labels_of_the_long_gone_are_forgotten_and_their_results_still_count(monkeypatch):
    monkeypatch.setattr(task_counts, "MAX_PAST", 1)
    curriculum, counted = watched(LARGE, capacity=6)
    late = [record_for(curriculum, slot, 1.0) for slot in (0, 1)]
    curriculum.replace(0)
    curriculum.replace(1)
    curriculum.observe(late)
    assert counted.num_unlabelled == 1
    assert counted.total_completions == 2
    assert counted.by_label["num_samples"][:].sum() == 1.0


def test_nothing_counts_after_the_end():
    curriculum, counted = watched()
    live(curriculum, 2)
    counted.close()
    live(curriculum, 2)
    assert counted.total_completions == 2


# Sums from outside.


def test_sums_count_like_the_episodes_they_stand_for():
    one, counted = watched()
    other, added = watched()
    one.observe(
        [
            record_for(one, 0, 1.0, episode_return=2.0, length=3),
            record_for(one, 0, 0.0, episode_return=0.5, length=1),
            record_for(one, 2, 0.25, episode_return=1.0, length=2),
        ]
    )
    added.add_counts([2, 0, 1], [1.0, 0.0, 0.25], [2.5, 0.0, 1.0], [4, 0, 2], [3, 0, 0.5])
    assert added.slots.tolist() == counted.slots.tolist()
    assert added.by_label.tolist() == counted.by_label.tolist()
    assert added.label_steps.tolist() == counted.label_steps.tolist() == [(3.0, 1.0), (0.5, 1.5)]
    assert other.num_observed == 0


def test_returns_and_lengths_may_be_left_out():
    _, counted = watched()
    counted.add_counts(np.array([1, 2, 3]), np.zeros(3))
    for name in ("returns", "lengths"):
        assert counted.slots[name].tolist() == [0, 0, 0]
    assert counted.slots["num_judged"].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("sums", "problem"),
    [
        (([1, 1], [0, 0]), "counts must be 3 finite numbers"),
        (([1, 1, 1], [0, 0, math.nan]), "successes must be 3 finite numbers"),
        (([1, -1, 1], [0, 0, 0]), "slot 1 has -1 episodes"),
        (([1, 1, 1.5], [0, 0, 0]), r"slot 2 has 1\.5 episodes"),
        (([1, 1, 1], [0, 0, 2]), "slot 2 has 1 episodes, 2 successes"),
        (([1, 1, 1], [-1, 0, 0]), "slot 0 has 1 episodes, -1 successes"),
        (([1, 1, 1], [0, 0, 0], 0, [0, -4, 0]), "-4 steps"),
        (([1, 1, 1], [0, 0, 1], 0, [5, 5, 5], [0, 0, 6]), "slot 2 has 1 episodes"),
    ],
)
def test_impossible_sums_are_refused_and_nothing_counts(sums, problem):
    _, counted = watched()
    with pytest.raises(RecordError, match=problem):
        counted.add_counts(*sums)
    assert counted.total_completions == 0
    assert set(counted.slots.tolist()) == {(0,) * 6}


# Saving and resuming.


def test_a_restored_tally_goes_on_as_if_nothing_had_happened(tmp_path):
    def make():
        return LearningProgress(LARGE, capacity=9, eviction_plays=2)

    before = make()
    counted = TaskCounts(before)
    live(before, 60)
    late = record_for(before, 0, 1.0, generation=int(before.pool.generations[0]))
    before.replace(0)
    saved = counted.snapshot()
    saved.save(tmp_path / "tally.npz")
    after = make()
    resumed = TaskCounts(after)
    after.restore(before.snapshot())
    resumed.restore(Snapshot.load(tmp_path / "tally.npz"))
    for curriculum in (before, after):
        curriculum.observe(late)
        live(curriculum, 60)
    assert differences(resumed.snapshot(), counted.snapshot()) == []
    assert resumed.total_completions == 121


def test_a_curriculum_that_goes_back_takes_only_its_tasks_along():
    curriculum, counted = watched(LARGE, capacity=6)
    beginning = curriculum.snapshot()
    curriculum.observe([record_for(curriculum, slot, 1.0) for slot in (0, 1)])
    curriculum.replace(1)
    curriculum.observe([record_for(curriculum, slot, 1.0) for slot in (0, 1)])
    curriculum.restore(beginning)
    assert counted.slots["num_samples"][:2].tolist() == [2.0, 0.0]
    curriculum.observe(record_for(curriculum, 1, 1.0))
    assert counted.slots["num_samples"][1] == 1.0
    assert counted.total_completions == 5
    assert counted.num_unlabelled == 0


def test_another_task_in_the_same_generation_is_another_task():
    curriculum, counted = watched(LARGE, capacity=6)
    elsewhere = Uniform(LARGE, capacity=6)
    # Ids 0, 3, 6, … have the label a, ids 1, 4, 7, … the label b.
    one = next(i for i in range(0, 120, 3) if not curriculum.pool.contains(i))
    two = next(i for i in range(1, 120, 3) if not curriculum.pool.contains(i))
    curriculum.replace(1, one)
    elsewhere.replace(1, two)
    curriculum.observe(record_for(curriculum, 1, 1.0))
    curriculum.restore(elsewhere.snapshot())
    assert counted.slots["num_samples"][1] == 0.0
    curriculum.observe(record_for(curriculum, 1, 1.0))
    labels = [curriculum.pool.label_names.index(LARGE.label(task)) for task in (one, two)]
    assert counted.by_label["num_samples"][labels].tolist() == [1.0, 1.0]


def test_counts_of_tasks_that_are_gone_are_not_taken_over():
    curriculum, counted = watched(LARGE, capacity=6)
    curriculum.observe([record_for(curriculum, slot, 1.0) for slot in (0, 1)])
    saved = counted.snapshot()
    curriculum.replace(1)
    counted.restore(saved)
    assert counted.slots["num_samples"][:2].tolist() == [1.0, 0.0]
    assert counted.by_label["num_samples"][:].sum() == 2.0


@pytest.mark.parametrize("damage", ["slots", "by_label", "task_ids", "past", "label", "number"])
def test_a_damaged_snapshot_changes_nothing(damage):
    curriculum, counted = watched(LARGE, capacity=6)
    live(curriculum, 5)
    curriculum.replace(0)
    saved = counted.snapshot()
    arrays, state = dict(saved.arrays), dict(saved.state)
    if damage == "label":
        arrays["past"] = np.array([[0, 0, 3]])
    elif damage == "number":
        state["num_unlabelled"] = -1
    elif damage == "past":
        arrays["past"] = np.zeros((2, 4), dtype=np.int64)
    else:
        arrays[damage] = arrays[damage][:-1]
    live(curriculum, 5)
    present = counted.snapshot()
    with pytest.raises(SnapshotError):
        counted.restore(Snapshot(state, arrays))
    assert differences(counted.snapshot(), present) == []
    with pytest.raises(SnapshotError):
        counted.restore({})
