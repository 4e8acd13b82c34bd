"""Owning a plan: replacing and quarantining tasks, moving the plan, resuming elsewhere."""

from typing import Any

import numpy as np
import pytest

from curricula.fake_learner import differences, live, play, record_for
from stepladder.curricula import (
    LearningProgress,
    LearningProgressConfig,
    Mixture,
    MixtureConfig,
    Phase,
    Phased,
    Quarantined,
    Staged,
    StagedConfig,
    Uniform,
)
from stepladder.errors import BuildError, ConfigError, SnapshotError, TaskError
from stepladder.plans.plan import aligned_words
from stepladder.tasks import ListSource, NumberedSource, Pool, Task


def tasks_of(**counts: int) -> ListSource:
    """Make so many tasks per label, each with a maker."""
    return ListSource(
        Task(f"{label}{i}", label, {"maker": f"m{i % 2}"})
        for label, count in counts.items()
        for i in range(count)
    )


def test_a_quarantine_is_reported_in_full():
    curriculum = Uniform(tasks_of(a=2, b=2))
    assert curriculum.quarantine(3, 0, "no such map")
    assert curriculum.quarantined == [Quarantined(3, 0, "b1", "b", "no such map", False)]
    assert (curriculum.num_quarantined, curriculum.is_quarantined(3)) == (1, True)
    assert curriculum.probs().tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0.0])


def test_reports_about_a_task_that_is_gone_change_nothing():
    curriculum = Uniform(NumberedSource(100), capacity=4)
    assert curriculum.quarantine(1, 0, "no such map")
    before = curriculum.snapshot()
    assert not curriculum.quarantine(1, 0, "no such map")
    assert not curriculum.quarantine(1, 2, "from the future")
    assert differences(before, curriculum.snapshot()) == []


def test_each_quarantine_and_each_replacement_is_one_version_of_the_plan():
    curriculum = Uniform(tasks_of(a=4), capacity=3)
    version = curriculum.plan.version
    curriculum.replace(0)
    assert curriculum.plan.version == version + 1
    curriculum.quarantine(1, 0, "no such map")
    assert curriculum.plan.version == version + 2


def test_a_task_put_into_a_quarantined_slot_is_in_play_again():
    source = tasks_of(a=5, b=3)
    curriculum = Mixture(Pool(source, capacity=7, seed=2), MixtureConfig(weights={"a": 1, "b": 1}))
    outside = next(task_id for task_id in range(8) if not curriculum.pool.contains(task_id))
    label = source.label(outside)
    other = int(np.flatnonzero(curriculum.pool.label_indices != source.labels().index(label))[0])
    # No task with the other label is left outside, so its slot stays empty.
    assert curriculum.quarantine(other, 0, "no such map")
    assert not curriculum.quarantined[0].replaced
    assert curriculum.is_quarantined(other)
    assert curriculum.probs()[other] == 0.0
    same = int(np.flatnonzero(curriculum.pool.label_indices == source.labels().index(label))[0])
    gone = int(curriculum.pool.task_ids[same])
    curriculum.replace(same)
    assert not curriculum.pool.contains(gone)
    curriculum.quarantine(same, 1, "no such map")
    assert curriculum.quarantined[1].replaced
    assert int(curriculum.pool.task_ids[same]) == gone
    assert curriculum.num_quarantined == 1


def test_replacing_a_quarantined_task_by_hand_revives_its_slot(monkeypatch: pytest.MonkeyPatch):
    curriculum = Mixture(tasks_of(a=40, b=4), weights={"a": 1.0, "b": 1.0}, capacity=20, seed=1)
    slot = int(np.flatnonzero(curriculum.pool.label_indices == 1)[0])
    with monkeypatch.context() as patch:
        # As in a source in which the label is so rare that looking for it is given up.
        patch.setattr("stepladder.tasks.pool.MAX_TRIES", 1)
        assert curriculum.quarantine(slot, 0, "no such map")
    assert not curriculum.quarantined[0].replaced
    assert curriculum.probs()[slot] == 0.0
    assert curriculum.replace(slot) == 1
    assert not curriculum.is_quarantined(slot)
    assert curriculum.num_quarantined == 0
    assert curriculum.probs()[slot] > 0
    assert slot in {draw.slot for draw in curriculum.draw(200)}
    assert "quarantined" not in str(curriculum.explain(slot))


def test_a_stage_split_by_makers_loses_its_unbuildable_tasks():
    # A successor might belong to another sub-group, so there is none; the task must still go.
    config = StagedConfig(stages=("a", "b"), balance_by="maker")
    curriculum = Staged(Pool(tasks_of(a=10, b=10), capacity=12, seed=1), config)
    assert curriculum.pool.can_replace
    slot = int(np.argmax(curriculum.probs()))
    assert curriculum.quarantine(slot, 0, "no such map")
    assert not curriculum.quarantined[0].replaced
    assert curriculum.probs()[slot] == 0.0
    with pytest.raises(ConfigError, match="balance_by"):
        curriculum.replace(slot)


@pytest.mark.parametrize("demotion", [True, False])
def test_a_stage_without_tasks_is_an_error_as_long_as_it_may_be_played(demotion: bool):
    config: dict[str, Any] = {} if demotion else {"demotion": None}
    curriculum = Staged(tasks_of(a=1, b=1, c=1), stages=("a", "b", "c"), **config)
    curriculum.go_to("b")
    if demotion:
        with pytest.raises(BuildError, match="no task of stage 'a' is left"):
            curriculum.quarantine(0, 0, "no such map")
    else:
        assert curriculum.quarantine(0, 0, "no such map")
        assert curriculum.probs().tolist() == [0.0, 1.0, 0.0]
        with pytest.raises(BuildError, match="no task of stage 'a' is left"):
            curriculum.go_to("a")
        assert curriculum.current_stage == "b"
    with pytest.raises(BuildError, match=r"no task of stage 'c' is left.*last: no such map"):
        curriculum.quarantine(2, 0, "no such map")
    with pytest.raises(BuildError, match="no task of stage 'b' is left"):
        curriculum.quarantine(1, 0, "no such map")


def test_a_mixture_of_which_nothing_is_left_is_an_error_not_a_mixture_of_the_rest():
    curriculum = Mixture(tasks_of(a=1, b=1, c=1), weights={"a": 1.0, "b": 2.0, "c": 0.0})
    curriculum.quarantine(0, 0, "no such map")
    assert curriculum.probs().tolist() == [0.0, 1.0, 0.0]
    with pytest.raises(BuildError, match="no task with label 'a' or 'b' is left"):
        curriculum.quarantine(1, 0, "no such map")


def test_what_a_phase_still_to_come_cannot_do_without_is_an_error_now():
    curriculum = Phased(
        tasks_of(a=1, b=1, c=2),
        phases=(
            Phase(name="first", mixture={"a": 1.0, "c": 1.0}, episodes=5),
            Phase(name="second", curriculum=StagedConfig(stages=("a", "b", "c"))),
        ),
    )
    assert curriculum.quarantine(2, 0, "no such map")
    with pytest.raises(BuildError, match="no task of stage 'b' is left"):
        curriculum.quarantine(1, 0, "no such map")


def test_what_only_a_past_phase_needed_may_go():
    curriculum = Phased(
        tasks_of(a=1, b=2),
        phases=(
            Phase(name="first", mixture={"a": 1.0}, episodes=5),
            Phase(name="second", mixture={"b": 1.0}),
        ),
    )
    live(curriculum, 5)
    assert curriculum.current_phase == "second"
    assert curriculum.quarantine(0, 0, "no such map")
    assert curriculum.probs().tolist() == [0.0, 0.5, 0.5]


EAGER = LearningProgressConfig(eviction_plays=2, eviction_percentile=1.0, novice_plays=1)
"""Evicts whatever was played twice."""


def evicting_phase(inner: Any, pool: Pool) -> Phased:
    """Make a phase that evicts, before one that has its own idea of labels."""
    practice = Phase(name="practice", curriculum=EAGER, episodes=10**6)
    return Phased(pool, phases=(practice, Phase(name="later", curriculum=inner)))


def test_an_eviction_for_which_there_is_no_successor_does_not_take_place():
    # The mixture to come wants labels kept, and label b has no task outside the pool.
    source = ListSource([*(Task(f"a{i}", "a") for i in range(30)), Task("b0", "b")])
    pool = Pool(source, capacity=30, seed=1)
    if not pool.contains(30):
        pool.replace(0, 30)
    slot = int(np.flatnonzero(pool.task_ids == 30)[0])
    curriculum = evicting_phase(MixtureConfig(weights={"a": 1.0, "b": 1.0}), pool)
    generation = int(pool.generations[slot])
    for _ in range(5):
        curriculum.observe(record_for(curriculum, slot, 1.0))
    assert curriculum.pool.generations[slot] == generation
    progress = curriculum.inner[0]
    assert isinstance(progress, LearningProgress)
    assert progress.num_evicted == 0
    assert progress.plays()[slot] == 5


def test_no_task_is_evicted_while_another_phase_is_split_by_makers():
    staged = StagedConfig(stages=("a", "b"), balance_by="maker")
    curriculum = evicting_phase(staged, Pool(tasks_of(a=20, b=20), capacity=12))
    live(curriculum, 200)
    assert curriculum.pool.generations.max() == 0


def test_labels_are_kept_while_another_phase_goes_by_labels():
    curriculum = evicting_phase(
        StagedConfig(stages=("a", "b")), Pool(tasks_of(a=20, b=20), capacity=12)
    )
    labels = curriculum.pool.label_indices.copy()
    live(curriculum, 300)
    assert curriculum.pool.generations.sum() > 10
    np.testing.assert_array_equal(curriculum.pool.label_indices, labels)


class Stubborn(NumberedSource):
    """A source that fails when asked for one more task."""

    is_stubborn = False

    def weights(self, task_ids: Any) -> Any:
        if self.is_stubborn:
            raise ValueError("the disk is full")
        return super().weights(task_ids)


@pytest.mark.parametrize("way", ["observe", "report"])
def test_an_error_of_the_source_is_not_swallowed_and_nothing_is_counted_twice(way: str):
    source = Stubborn(100)
    curriculum = LearningProgress(
        source, capacity=4, eviction_plays=2, eviction_percentile=1.0, seed=1
    )
    curriculum.observe([record_for(curriculum, 0, 1.0)])
    source.is_stubborn = True
    draw = curriculum.draw(1)[0]._replace(slot=0, generation=0)
    ways = {
        "observe": lambda: curriculum.observe(play(draw)),
        "report": lambda: curriculum.report(draw, 1.0),
    }
    with pytest.raises(ValueError, match="the disk is full"):
        ways[way]()
    assert curriculum.num_observed == 2
    assert curriculum.plays()[0] == 2


def test_a_replacement_keeps_the_label_that_its_slot_must_have():
    curriculum = Mixture(tasks_of(a=3, b=3), weights={"a": 1.0, "b": 1.0}, capacity=5)
    slot = 0
    mine = curriculum.pool.task(slot).label
    other = next(task_id for task_id in range(6) if curriculum.pool.source.label(task_id) != mine)
    with pytest.raises(ConfigError, match=f"belongs to {mine!r} and keeps it"):
        curriculum.replace(slot, other)


def test_a_pool_that_holds_all_tasks_has_none_to_replace_them_by():
    curriculum = Uniform(tasks_of(a=3))
    with pytest.raises(TaskError, match="there is none to put in"):
        curriculum.replace(0)
    assert curriculum.pool.generations.tolist() == [0, 0, 0]


def test_a_plan_in_other_memory_has_the_same_future():
    stays, moves = (
        LearningProgress(NumberedSource(50), capacity=8, eviction_plays=5) for _ in range(2)
    )
    live(stays, 20), live(moves, 20)
    memory = aligned_words(len(moves.plan.block))
    moves.move_plan(memory)
    assert live(stays, 100) == live(moves, 100)
    assert np.shares_memory(moves.plan.block, memory)
    assert np.shares_memory(moves.pool.generations, memory)
    assert moves.pool.generations.sum() > 0


@pytest.mark.parametrize("inside_a_phase", [False, True])
@pytest.mark.parametrize(
    "config",
    [MixtureConfig(weights={"a": 1.0, "b": 1.0}), StagedConfig(stages=("a", "b"))],
    ids=["mixture", "staged"],
)
def test_groups_made_for_other_labels_refuse_a_snapshot(config: Any, inside_a_phase: bool):
    # Pools with other seeds hold other tasks; restoring would put slots into the wrong group.
    def make(pool_seed: int) -> Any:
        pool = Pool(tasks_of(a=20, b=20), capacity=10, seed=pool_seed)
        return (
            Phased(pool, phases=(Phase(name="p", curriculum=config),))
            if inside_a_phase
            else (config.make(pool))
        )

    first, second = make(1), make(2)
    assert first.pool.label_indices.tolist() != second.pool.label_indices.tolist()
    live(second, 5)
    before = second.snapshot()
    with pytest.raises(SnapshotError, match="has another label than here"):
        second.restore(first.snapshot())
    assert differences(before, second.snapshot()) == []
    fresh = make(1)
    fresh.restore(first.snapshot())
    assert live(first, 20) == live(fresh, 20)


def test_stages_split_for_other_makers_refuse_a_snapshot():
    # One label, so that the labels of both pools agree; what splits them does not.
    def make(pool_seed: int) -> Staged:
        pool = Pool(tasks_of(a=40), capacity=10, seed=pool_seed)
        return Staged(pool, stages=("a",), balance_by="maker")

    first, second = make(1), make(2)
    live(second, 5)
    before = second.snapshot()
    with pytest.raises(SnapshotError, match="differ from those here in 'maker'"):
        second.restore(first.snapshot())
    assert differences(before, second.snapshot()) == []
    fresh = make(1)
    fresh.restore(first.snapshot())
    assert live(first, 20) == live(fresh, 20)


def test_without_groups_the_pools_seed_comes_with_the_snapshot():
    first, second = (Uniform(Pool(NumberedSource(99), capacity=5, seed=seed)) for seed in (1, 2))
    live(first, 10)
    second.restore(first.snapshot())
    assert live(first, 20) == live(second, 20)
    assert first.replace(0) == second.replace(0)
    assert first.pool.task_ids.tolist() == second.pool.task_ids.tolist()


def test_restoring_twice_is_restoring_once():
    curriculum = Staged(tasks_of(a=2, b=2), stages=("a", "b"), min_episodes=3, window_episodes=3)
    live(curriculum, 40)
    snapshot = curriculum.snapshot()
    live(curriculum, 40)
    curriculum.restore(snapshot)
    curriculum.restore(snapshot)
    assert differences(snapshot, curriculum.snapshot()) == []
