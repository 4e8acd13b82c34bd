"""Level replay that edits tasks (ACCEL): which edits come in, and what is said about them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from curricula.fake_learner import differences, live
from stepladder.curricula import (
    CurriculumMeter,
    LevelReplay,
    LevelReplayConfig,
    LevelReplayExplanation,
    Phase,
    Phased,
    StagedConfig,
    TaskExplanation,
)
from stepladder.curricula.config import TaskKnowledge
from stepladder.curricula.registry import curriculum_variant, rebuilt
from stepladder.errors import ConfigError
from stepladder.tasks import EditedSource, FloatRange, NumberedSource, ParameterSource, Pool, Task
from stepladder.tasks.editing import FIRST_EDIT, NUM_VARIANTS

GAPS = ParameterSource({"gap": FloatRange(0.0, 1.0), "kind": ["x", "y"]}, num_tasks=20)
LABELLED = ParameterSource(
    {"gap": FloatRange(0.0, 1.0), "kind": ["x", "y"]}, num_tasks=20, label_from="kind"
)


def make(source: Any = GAPS, **settings: Any) -> LevelReplay:
    """Make a curriculum in which a trainer's lowest score goes at once, for an edit of the best."""
    keen: dict[str, Any] = {
        "scored_by": "trainer",
        "transform": "greedy",
        "staleness": 0.0,
        "editing": 1.0,
        "eviction_plays": 1,
        "eviction_percentile": 0.25,
    }
    return LevelReplay(source, **{"capacity": 4, **keen, **settings})


def score(curriculum: LevelReplay, *scores: float) -> None:
    """Report one score for each slot, one after the other."""
    for slot, one in enumerate(scores):
        curriculum.report_scores(slot, curriculum.pool.generations[slot], one)


def origin_of(curriculum: LevelReplay, slot: int) -> tuple[int, int]:
    """Return parent and depth of a slot's task."""
    source, task_id = curriculum.pool.source, int(curriculum.pool.task_ids[slot])
    assert isinstance(source, EditedSource)
    return source.parent(task_id), source.depth(task_id)


# What comes in.


def test_the_lowest_score_makes_room_for_an_edit_of_the_highest():
    curriculum = make()
    ids = curriculum.pool.task_ids.tolist()
    score(curriculum, 3.0, 9.0, 5.0)
    # A quarter of three scores is less than one.
    assert curriculum.num_evicted == 0
    curriculum.report_scores(3, 0, 1.0)
    assert curriculum.num_evicted == 1
    assert origin_of(curriculum, 3) == (ids[1], 1)
    curriculum.report_scores([3, 0], [1, 0], [10.0, 0.1])
    # Now the edit is the best, and is edited again.
    child = int(curriculum.pool.task_ids[3])
    assert origin_of(curriculum, 0) == (child, 2)
    assert curriculum.num_edits == 2
    assert curriculum.deepest_edit == 2


def test_without_a_score_nothing_is_edited_and_the_next_task_comes_in():
    curriculum = make()
    assert curriculum.choose_newcomer(2, None) is None


def test_the_choice_changes_nothing_and_is_the_same_until_the_slot_has_another_task():
    curriculum = make(eviction_percentile=0.1)
    score(curriculum, 3.0, 9.0, 5.0, 1.0)
    before = curriculum.snapshot()
    chosen = [curriculum.choose_newcomer(slot, None) for slot in range(4)]
    assert [curriculum.choose_newcomer(slot, None) for slot in range(4)] == chosen
    assert differences(before, curriculum.snapshot()) == []
    assert len(set(chosen)) > 1
    curriculum.replace(3)
    assert curriculum.choose_newcomer(3, None) != chosen[3]


def test_the_share_of_edits_is_what_was_asked_for():
    for editing in (0.0, 0.3, 0.8, 1.0):
        curriculum = make(editing=editing) if editing else make(EditedSource(GAPS), editing=0.0)
        score(curriculum, 3.0, 9.0, 5.0, 7.0)
        count = 0
        for number in range(400):
            curriculum.pool.generations[2] = number
            count += curriculum.choose_newcomer(2, None) is not None
        assert count == pytest.approx(400 * editing, abs=3 * np.sqrt(400 * editing * (1 - editing)))


def test_tasks_are_chosen_for_editing_as_they_are_for_replays():
    curriculum = make(transform="proportional", temperature=1.0, eviction_plays=9)
    score(curriculum, 3.0, 9.0, 6.0, 2.0)
    source: Any = curriculum.pool.source
    counts, num_tries = np.zeros(4), 2000
    for number in range(num_tries):
        curriculum.pool.generations[3] = number
        parent = source.parent(curriculum.choose_newcomer(3, None))
        counts[curriculum.pool.task_ids.tolist().index(parent)] += 1
    expected = num_tries * np.array([3, 9, 6, 2]) / 20
    assert np.all(np.abs(counts - expected) < 4 * np.sqrt(expected))


def test_an_edit_that_is_in_the_pool_is_not_made_again_and_then_another_task_is_edited():
    curriculum = make(capacity=NUM_VARIANTS + 3, source=ParameterSource({"gap": FloatRange(0, 1)}))
    source: Any = curriculum.pool.source
    score(curriculum, 5.0, 9.0)
    best = int(curriculum.pool.task_ids[1])
    for variant in range(1, NUM_VARIANTS + 1):
        curriculum.replace(variant + 1, source.child(best, variant))
    for slot in (0, 5, 9):
        assert curriculum.choose_newcomer(slot, None) is None
    curriculum = make(
        capacity=NUM_VARIANTS + 3,
        source=ParameterSource({"gap": FloatRange(0, 1)}),
        transform="proportional",
        temperature=1.0,
    )
    score(curriculum, 5.0, 9.0)
    other, best = curriculum.pool.task_ids[:2].tolist()
    for variant in range(1, NUM_VARIANTS + 1):
        curriculum.replace(variant + 1, source.child(best, variant))
    assert source.parent(curriculum.choose_newcomer(5, None)) == other


def test_what_is_as_deep_as_ids_reach_is_not_edited():
    curriculum = make()
    source: Any = curriculum.pool.source
    deepest = 3
    for _ in range(source.max_depth):
        deepest = source.child(deepest, 31)
    curriculum.replace(1, deepest)
    curriculum.report_scores(1, 1, 9.0)
    assert curriculum.choose_newcomer(2, None) is None


def test_a_pool_that_holds_every_task_is_edited_too():
    curriculum = make(capacity=None)
    assert curriculum.pool.num_slots == 20
    score(curriculum, *range(20, 0, -1))
    assert curriculum.num_evicted > 5
    assert curriculum.num_edits == curriculum.num_evicted
    before = curriculum.pool.task_ids.copy()
    # The tasks that made room wait outside, and come back in turn.
    curriculum.replace(0)
    assert curriculum.pool.task_ids[0] < FIRST_EDIT
    assert curriculum.pool.task_ids[0] not in before


def test_labels_are_kept_where_another_phase_needs_them():
    config = replace(make(LABELLED).config, scored_by="deviation", eviction_percentile=0.8)
    curriculum = Phased(
        LABELLED,
        phases=(
            Phase(name="climb", curriculum=StagedConfig(stages=("x", "y")), episodes=20),
            Phase(name="edit", curriculum=config),
        ),
        capacity=12,
    )
    labels = curriculum.pool.label_indices.tolist()
    live(curriculum, 300)
    inner: Any = curriculum.inner[1]
    assert inner.num_edits > 3
    assert curriculum.pool.label_indices.tolist() == labels
    source = curriculum.pool.source
    assert source.label_indices(curriculum.pool.task_ids).tolist() == labels


# What is said.


def test_explanations_say_where_tasks_come_from_and_how_many_are_edits():
    curriculum = make()
    score(curriculum, 3.0, 9.0, 5.0, 1.0)
    overview, told = curriculum.explain(), curriculum.explain(3)
    assert isinstance(overview, LevelReplayExplanation)
    assert isinstance(told, TaskExplanation)
    assert (overview.num_edits, overview.deepest_edit) == (1, 1)
    assert "Edits of other tasks: 1, up to 1 edit deep." in str(overview)
    best = curriculum.task_name(1)
    assert told.name.startswith(f"{best}~")
    assert told.origin == f"an edit of {best!r}"
    assert f"It is an edit of {best!r}." in str(told)
    assert told.to_json()["origin"] == told.origin
    other: Any = curriculum.explain(1)
    assert other.origin == ""
    assert "It is" not in str(other)
    assert curriculum.task(curriculum.draw_one()._replace(task_id=curriculum.pool.task_ids[3]))


def test_metrics_count_edits():
    curriculum = make()
    meter = CurriculumMeter(curriculum)
    score(curriculum, 3.0, 9.0, 5.0, 1.0)
    metrics = meter.metrics()
    assert metrics["env_curriculum_stats/num_edits"] == 1.0
    assert metrics["env_curriculum_stats/deepest_edit"] == 1.0
    plain = CurriculumMeter(LevelReplay(NumberedSource(3))).metrics()
    assert "env_curriculum_stats/num_edits" not in plain


# Settings.


def test_accel_has_the_settings_of_the_papers_mazes():
    config = curriculum_variant("accel").make(TaskKnowledge())
    assert isinstance(config, LevelReplayConfig)
    assert config.scored_by == "positive_value_loss"
    assert (config.temperature, config.staleness, config.min_seen) == (0.3, 0.3, 0.5)
    # Of a round's plays 0.2 are of new levels, 0.8 are replays and 0.8 of edits of these.
    assert config.replay_prob == pytest.approx(0.8 / 1.8)
    assert config.editing == pytest.approx(0.8)
    assert config.changes_per_edit == 5


def test_tasks_that_cannot_be_edited_are_refused_with_the_fix():
    for tasks in (NumberedSource(8), [Task("one"), Task("two")]):
        with pytest.raises(ConfigError, match=r"cannot be edited.* Set editing to 0"):
            LevelReplay(tasks, editing=0.5)
    with pytest.raises(ConfigError, match=r"Pool\(EditedSource\(source, 5\)"):
        LevelReplay(Pool(GAPS, 4), editing=0.5)
    with pytest.raises(ConfigError, match=r"changes_per_edit is 5.*num_changes=2"):
        LevelReplay(Pool(EditedSource(GAPS, 2), 4), editing=0.5)
    with pytest.raises(ConfigError, match="eviction_percentile"):
        LevelReplay(GAPS, editing=0.5, eviction_percentile=0.0)
    with pytest.raises(ConfigError, match="best single tasks"):
        LevelReplay(GAPS, editing=0.5, pooled=True)
    assert LevelReplay(Pool(EditedSource(GAPS, 2), 4), editing=0.5, changes_per_edit=2)


def test_without_editing_the_source_stays_as_it_is():
    curriculum = LevelReplay(GAPS, capacity=4)
    assert curriculum.pool.source is GAPS
    assert curriculum.pool.can_replace


def test_a_curriculum_is_rebuilt_from_its_snapshot_and_the_plain_source():
    curriculum = make()
    score(curriculum, 3.0, 9.0, 5.0, 1.0)
    again: Any = rebuilt(curriculum.snapshot(), GAPS)
    assert again.pool.task_ids.tolist() == curriculum.pool.task_ids.tolist()
    assert str(again.explain(3)) == str(curriculum.explain(3))
