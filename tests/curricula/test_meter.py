"""The metrics of a curriculum, by hand; one meaning each, whatever plays."""

import math

import numpy as np
import pytest

from curricula.fake_learner import differences, live, record_for
from curricula.test_foreign import in_a_fork
from curricula.three_stages import make as make_stages
from curricula.two_labels import REST
from curricula.two_labels import make as make_phases
from curricula.two_labels import play as play_phases
from stepladder.curricula import (
    AncestorProgress,
    LearningProgress,
    LearningProgressConfig,
    Mixture,
    Phase,
    StagedConfig,
    Uniform,
)
from stepladder.curricula.reporting.meter import CurriculumMeter, task_table
from stepladder.errors import ConfigError
from stepladder.stats.names import MAX_PER_FAMILY, MetricNames
from stepladder.stats.rollout import payload
from stepladder.tasks import ListSource, NumberedSource, Task
from testing_env import arena, staged_tasks

# Slots 0, 1, 2, 3 have the labels a, a, b, c.
TASKS = ListSource([Task("w", "a"), Task("x", "a"), Task("y", "b"), Task("z", "c")])
STATS = "env_curriculum_stats"


def metered(curriculum=None, **settings):
    curriculum = Uniform(TASKS) if curriculum is None else curriculum
    return curriculum, CurriculumMeter(curriculum, **settings)


def play(curriculum, *slots, success=1.0, **changes):
    curriculum.observe([record_for(curriculum, slot, success, **changes) for slot in slots])


def family(metrics, name):
    prefix = f"{STATS}/{name}/"
    return {
        key.removeprefix(prefix): value for key, value in metrics.items() if key.startswith(prefix)
    }


# Sampling, over labels.


def test_sampling_over_labels_by_hand():
    curriculum, meter = metered()
    play(curriculum, 0, 1, 0, 0, 2, 2)
    metrics = meter.metrics()
    # 4, 2 and 0 episodes: p = 2/3, 1/3; ascending 0, 2, 4.
    entropy = (2 / 3 * math.log(3 / 2) + 1 / 3 * math.log(3)) / math.log(3)
    assert metrics["overview/sampling_entropy_normalized"] == pytest.approx(entropy)
    # 2·(0 + 4 + 12) / (3·6) - 4/3 = 4/9.
    assert metrics["overview/sampling_gini_coefficient"] == pytest.approx(4 / 9)
    assert metrics[f"{STATS}/sampling_gini"] == pytest.approx(4 / 9)
    # Mean 2, variance 8/3.
    assert metrics["overview/sampling_coefficient_of_variation"] == pytest.approx(
        math.sqrt(8 / 3) / 2
    )
    # The label that was never played counts as played once.
    assert metrics["overview/sampling_max_min_ratio"] == 4.0


def test_before_the_first_episode_nothing_is_uneven():
    metrics = metered()[1].metrics()
    assert metrics["overview/sampling_entropy_normalized"] == 1.0
    assert metrics["overview/sampling_gini_coefficient"] == 0.0
    assert metrics["overview/sampling_coefficient_of_variation"] == 0.0
    assert metrics["overview/sampling_max_min_ratio"] == 1.0
    assert metrics[f"{STATS}/pool_occupancy_gini"] == 0.0
    assert family(metrics, "per_label_success") == {}


def test_samples_per_label_are_of_the_epoch_and_unevenness_of_the_whole_run():
    curriculum, meter = metered()
    play(curriculum, 0, 1, 2)
    assert family(meter.metrics(), "per_label_samples") == {"a": 2.0, "b": 1.0, "c": 0.0}
    before = meter.metrics()[f"{STATS}/sampling_gini"]
    meter.end_epoch()
    after = meter.metrics()
    assert family(after, "per_label_samples") == {"a": 0.0, "b": 0.0, "c": 0.0}
    assert after[f"{STATS}/sampling_gini"] == before > 0.0
    assert after[f"{STATS}/total_completions"] == 3.0


def test_success_of_a_label_is_the_mean_of_the_epoch_and_only_of_what_was_played():
    curriculum, meter = metered()
    play(curriculum, 0, 1, success=1.0)
    play(curriculum, 1, 3, success=0.25)
    play(curriculum, 2, success=math.nan)
    assert family(meter.metrics(), "per_label_success") == {"a": 0.75, "c": 0.25}
    meter.end_epoch()
    play(curriculum, 0, success=0.0)
    assert family(meter.metrics(), "per_label_success") == {"a": 0.0}


def test_steps_of_a_label_are_told_apart_by_success():
    curriculum, meter = metered()
    play(curriculum, 0, success=1.0, length=30)
    play(curriculum, 1, success=0.0, length=100)
    play(curriculum, 1, success=0.25, length=40)
    play(curriculum, 2, success=math.nan, length=7)
    # a: 30 + 0.25 * 40; 100 + 0.75 * 40. Nothing is known of b's success.
    assert family(meter.metrics(), "per_label_success_steps") == {"a": 40.0}
    assert family(meter.metrics(), "per_label_failure_steps") == {"a": 130.0}
    meter.end_epoch()
    assert family(meter.metrics(), "per_label_failure_steps") == {}


def test_a_snapshot_without_steps_per_label_can_be_restored():
    curriculum, meter = metered()
    play(curriculum, 0, success=1.0, length=30)
    snapshot = meter.snapshot()
    del snapshot.arrays["label_steps"]
    meter.restore(snapshot)
    assert family(meter.metrics(), "per_label_success_steps") == {}
    assert family(meter.metrics(), "per_label_success") == {"a": 1.0}


def test_probabilities_and_composition_of_labels():
    curriculum, meter = metered(Mixture(TASKS, weights={"a": 1.0, "b": 3.0}))
    metrics = meter.metrics()
    assert family(metrics, "per_label_probs") == pytest.approx({"a": 0.25, "b": 0.75, "c": 0.0})
    assert family(metrics, "pool_composition_fraction") == {"a": 0.5, "b": 0.25, "c": 0.25}
    curriculum.quarantine(0, 0, "broken")
    assert family(meter.metrics(), "pool_composition_fraction") == pytest.approx(
        {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}
    )


# Scores, over active tasks.


class Opinionated(Uniform):
    """Thinks what it was told to."""

    opinion = (0.0, 1.0, 2.0, 5.0)

    def scores(self):
        return np.array(self.opinion)


def test_scores_by_hand():
    _, meter = metered(Opinionated(TASKS))
    metrics = meter.metrics()
    assert metrics[f"{STATS}/mean_lp_score"] == 2.0
    # 2·(0 + 2 + 6 + 20) / (4·8) - 5/4.
    assert metrics[f"{STATS}/pool_lp_gini"] == pytest.approx(0.5)
    assert [metrics[f"{STATS}/pool_lp_score_p{p}"] for p in (25, 50, 75, 90, 95)] == pytest.approx(
        [0.75, 1.5, 2.75, 4.1, 4.55]
    )
    assert family(metrics, "per_label_lp_scores") == {"a": 0.5, "b": 2.0, "c": 5.0}
    assert family(metrics, "tracked_task_lp_scores") == {"task_0": 0, "task_1": 1, "task_2": 2}


def test_only_active_tasks_have_a_say():
    curriculum, meter = metered(Opinionated(TASKS))
    play(curriculum, 0, 1, 2, 3, 3, 3)
    curriculum.quarantine(3, 0, "broken")
    metrics = meter.metrics()
    assert metrics[f"{STATS}/mean_lp_score"] == 1.0
    assert metrics[f"{STATS}/pool_occupancy_gini"] == 0.0
    assert metrics[f"{STATS}/pool_lp_gini"] == pytest.approx(4 / 9)
    assert family(metrics, "per_label_lp_scores") == {"a": 0.5, "b": 2.0}
    assert metrics[f"{STATS}/num_active_tasks"] == 3.0
    assert metrics[f"{STATS}/num_quarantined"] == 1.0


def test_scores_below_zero_or_without_end_do_no_harm():
    curriculum, meter = metered(Opinionated(TASKS))
    curriculum.opinion = (-1.0, math.inf, math.nan, 3.0)
    metrics = meter.metrics()
    assert metrics[f"{STATS}/mean_lp_score"] == 1.0
    assert metrics[f"{STATS}/pool_lp_gini"] == pytest.approx(0.5)
    assert family(metrics, "per_label_lp_scores") == {"a": -1.0, "c": 3.0}
    curriculum.opinion = (math.nan,) * 4
    assert f"{STATS}/mean_lp_score" not in meter.metrics()
    assert meter.metrics()[f"{STATS}/pool_lp_gini"] == 0.0


def test_occupancy_counts_the_episodes_of_the_tasks_that_are_there_now():
    curriculum, meter = metered(Uniform(NumberedSource(9), capacity=3))
    play(curriculum, 0, 1, 2, 2, 2, 2)
    # 1, 1, 4: 2·(1 + 2 + 12) / (3·6) - 4/3.
    assert meter.metrics()[f"{STATS}/pool_occupancy_gini"] == pytest.approx(1 / 3)
    curriculum.replace(2)
    # 0, 1, 1: 2·(2 + 3) / (3·2) - 4/3.
    assert meter.metrics()[f"{STATS}/pool_occupancy_gini"] == pytest.approx(1 / 3)
    play(curriculum, 2)
    assert meter.metrics()[f"{STATS}/pool_occupancy_gini"] == 0.0


@pytest.mark.parametrize("kind", [LearningProgress, AncestorProgress])
def test_scores_are_those_of_the_method(kind):
    curriculum, meter = metered(kind(TASKS))
    live(curriculum, 200)
    scores = curriculum.scores()
    assert meter.metrics()[f"{STATS}/mean_lp_score"] == pytest.approx(scores.mean())
    assert family(meter.metrics(), "per_label_lp_scores")["a"] == pytest.approx(scores[:2].mean())


# Tracked tasks.


def test_tracked_tasks_are_the_first_slots_and_count_by_epoch():
    curriculum, meter = metered(num_tracked=2)
    play(curriculum, 0, 0, 1, 3)
    assert family(meter.metrics(), "tracked_task_completions") == {"task_0": 2.0, "task_1": 1.0}
    meter.end_epoch()
    play(curriculum, 1)
    assert family(meter.metrics(), "tracked_task_completions") == {"task_0": 0.0, "task_1": 1.0}


def test_a_tracked_task_that_is_replaced_takes_its_episodes_along():
    curriculum, meter = metered(Uniform(NumberedSource(9), capacity=3), num_tracked=1)
    play(curriculum, 0, 0)
    curriculum.replace(0)
    play(curriculum, 0)
    assert family(meter.metrics(), "tracked_task_completions") == {"task_0": 1.0}


def test_there_are_no_more_tracked_tasks_than_tasks():
    assert len(family(metered(num_tracked=9)[1].metrics(), "tracked_task_lp_scores")) == 4
    assert family(metered(num_tracked=0)[1].metrics(), "tracked_task_lp_scores") == {}


@pytest.mark.parametrize("num_tracked", [-1, 101, 2.5])
def test_an_impossible_number_of_tracked_tasks_is_refused(num_tracked):
    with pytest.raises(ConfigError, match="num_tracked"):
        CurriculumMeter(Uniform(TASKS), num_tracked)


# The state of the curriculum.


def test_counts_of_evictions_orphans_and_plans():
    curriculum, meter = metered(LearningProgress(NumberedSource(50), capacity=5, eviction_plays=2))
    late = record_for(curriculum, 0, 1.0)
    curriculum.replace(0)
    curriculum.observe(late)
    live(curriculum, 100)
    metrics = meter.metrics()
    assert metrics[f"{STATS}/num_orphaned"] == curriculum.num_orphaned == 1
    assert metrics[f"{STATS}/num_evicted"] == curriculum.num_evicted > 0
    assert metrics[f"{STATS}/plan_version"] == curriculum.plan.version
    assert metrics[f"{STATS}/total_completions"] == 101.0
    assert metrics[f"{STATS}/num_active_tasks"] == 5.0
    assert f"{STATS}/stage" not in metrics
    assert f"{STATS}/phase" not in metrics


def test_the_stage_is_told():
    curriculum, meter = metered(make_stages())
    assert meter.metrics()[f"{STATS}/stage"] == 0.0
    curriculum.go_to("c")
    assert meter.metrics()[f"{STATS}/stage"] == 2.0


def test_phases_tell_of_what_is_inside_them():
    progress = LearningProgressConfig(noise_z=0.0, eviction_plays=2)
    curriculum, meter = metered(
        make_phases(
            Phase(name="climb", curriculum=StagedConfig(stages=("a", "b")), episodes=1),
            Phase(name="look", curriculum=progress, episodes=3),
            REST,
        )
    )
    metrics = meter.metrics()
    assert (metrics[f"{STATS}/phase"], metrics[f"{STATS}/stage"]) == (0.0, 0.0)
    play_phases(curriculum, 1.0)
    play_phases(curriculum, 0.0, 1.0)
    metrics = meter.metrics()
    assert metrics[f"{STATS}/phase"] == 1.0
    assert f"{STATS}/stage" not in metrics
    progress_of_slot_0 = curriculum.inner[1].progress()[0]
    assert metrics[f"{STATS}/tracked_task_lp_scores/task_0"] == progress_of_slot_0 > 0.0
    assert metrics[f"{STATS}/num_evicted"] == 0.0
    curriculum.inner[1].num_evicted = 4
    play_phases(curriculum, 1.0)
    assert meter.metrics()[f"{STATS}/phase"] == 2.0
    assert meter.metrics()[f"{STATS}/num_evicted"] == 4.0


# Many labels.


def test_labels_beyond_the_limit_share_one_name_and_nothing_is_lost():
    labels = ["other", *(f"l{i}" for i in range(MAX_PER_FAMILY + 2))]
    curriculum, meter = metered(Uniform([Task(label, label) for label in labels]))
    # Labels l0 and l99 have names of their own; "other", l100 and l101 share one.
    for label, success in (("l0", 1.0), ("l99", 1.0), ("other", 1.0), ("l100", 0.0), ("l101", 0.5)):
        play(curriculum, labels.index(label), success=success)
    metrics = meter.metrics()
    samples = family(metrics, "per_label_samples")
    assert list(samples) == [*(f"l{i}" for i in range(MAX_PER_FAMILY)), "other"]
    assert sum(samples.values()) == 5.0
    assert samples["other"] == 3.0
    assert family(metrics, "per_label_success") == {"l0": 1.0, "l99": 1.0, "other": 0.5}
    assert family(metrics, "per_label_probs")["other"] == pytest.approx(3 / 103)
    assert family(metrics, "pool_composition_fraction")["other"] == pytest.approx(3 / 103)
    assert family(metrics, "per_label_lp_scores")["other"] == pytest.approx(1 / 103)
    # Unevenness is that of all of them.
    assert metrics[f"{STATS}/sampling_gini"] == pytest.approx(98 / 103)
    logged = payload(None, 0, 0, extra=metrics, names=MetricNames())
    assert {name: logged[name] for name in metrics} == metrics


# Sums from compiled engines, saving, other processes.


def test_sums_from_an_engine_give_the_same_metrics():
    curriculum, meter = metered()
    engine, other = metered()
    play(curriculum, 0, 0, 2, success=0.5)
    wins, steps = [1.0, 0.0, 0.5, 0.0], [2, 0, 1, 0]
    other.add_counts([2, 0, 1, 0], wins, lengths=steps, success_lengths=wins)
    assert other.metrics() == meter.metrics()
    assert engine.num_observed == 0


def test_a_saved_meter_goes_on():
    curriculum, meter = metered()
    play(curriculum, 0, 1, 2)
    after, other = metered()
    after.restore(curriculum.snapshot())
    other.restore(meter.snapshot())
    assert other.metrics() == meter.metrics()
    assert differences(other.snapshot(), meter.snapshot()) == []


def test_a_closed_meter_counts_no_more():
    curriculum, meter = metered()
    meter.close()
    play(curriculum, 0)
    assert meter.total_completions == 0


def test_only_a_curriculum_can_be_metered():
    with pytest.raises(ConfigError, match="expected a curriculum; got 3"):
        CurriculumMeter(3)


@pytest.mark.processes
@pytest.mark.timeout(60)
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_cannot_read_a_meter():
    curriculum, meter = metered()
    assert "WrongProcessError" in in_a_fork(meter.metrics)
    assert "WrongProcessError" in in_a_fork(lambda: CurriculumMeter(curriculum))


@pytest.mark.processes
@pytest.mark.timeout(60)
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("kind", ["sync", "async-fork"])
def test_all_envs_are_counted_wherever_they_run(kind):
    curriculum = Uniform(staged_tasks(length=2))
    meter = CurriculumMeter(curriculum)
    with arena(kind, curriculum, 4) as envs:
        envs.reset()
        envs.run(20)
        ends = envs.finished_by_task()
        assert meter.total_completions == sum(ends.values()) == curriculum.num_observed > 20
        table = task_table(meter)
    assert dict(zip(table["task"], table["samples"].tolist(), strict=True)) == {
        name: ends[name] for name in table["task"]
    }
    assert set(table["mean_length"].tolist()) == {2.0}


# The table of tasks.


def test_the_table_has_a_row_per_slot_by_hand():
    curriculum, meter = metered(Opinionated(TASKS))
    curriculum.observe(
        [
            record_for(curriculum, 0, 1.0, episode_return=3.0, length=4),
            record_for(curriculum, 0, 0.0, episode_return=1.0, length=8),
            record_for(curriculum, 2, math.nan, episode_return=5.0, length=2),
        ]
    )
    table = task_table(meter)
    assert table["task"] == ["w", "x", "y", "z"]
    assert table["label"] == ["a", "a", "b", "c"]
    assert table["prob"].tolist() == [0.25] * 4
    assert table["score"].tolist() == [0.0, 1.0, 2.0, 5.0]
    assert table["samples"].tolist() == [2, 0, 1, 0]
    assert table["success"][0] == 0.5
    assert np.isnan(table["success"]).tolist() == [False, True, True, True]
    assert table["mean_return"][[0, 2]].tolist() == [2.0, 5.0]
    assert table["mean_length"][[0, 2]].tolist() == [6.0, 2.0]
    assert np.isnan(table["mean_return"][[1, 3]]).all()
    assert table["generation"].tolist() == [0, 0, 0, 0]
    assert {len(column) for column in table.values()} == {4}


def test_the_table_can_be_had_before_anything_was_drawn():
    _, meter = metered(make_phases(Phase(name="all", mixture={"a": 1.0}, episodes=1), REST))
    table = task_table(meter)
    assert table["score"].tolist() == table["prob"].tolist() == [0.5, 0.5, 0.0, 0.0]


def test_the_table_follows_replacements_and_asks_for_new_names_only(monkeypatch):
    source = NumberedSource(50)
    # Reasons in words name their tasks as well.
    monkeypatch.setattr("stepladder.curricula.reporting.meter.MOST_REASONS", 0)
    curriculum, meter = metered(Uniform(source, capacity=5))
    play(curriculum, 1)
    first = task_table(meter)
    asked = []
    name = source.name
    monkeypatch.setattr(source, "name", lambda task_id: asked.append(task_id) or name(task_id))
    curriculum.replace(1)
    second = task_table(meter)
    new = int(curriculum.pool.task_ids[1])
    assert asked == [new]
    assert second["task"] == [first["task"][0], f"task{new}", *first["task"][2:]]
    assert second["samples"].tolist() == [0] * 5
    assert second["generation"].tolist() == [0, 1, 0, 0, 0]


def test_a_table_does_not_change_afterwards():
    curriculum, meter = metered(Uniform(NumberedSource(50), capacity=5))
    table = task_table(meter)
    task = table["task"][0]
    curriculum.replace(0)
    play(curriculum, 0)
    task_table(meter)
    assert (table["task"][0], table["generation"][0], table["samples"][0]) == (task, 0, 0)


def test_the_table_says_why_unless_there_are_too_many_to_read(monkeypatch):
    curriculum, meter = metered(Uniform(NumberedSource(3)))
    assert task_table(meter)["reason"] == ["every task is drawn equally often"] * 3
    curriculum.quarantine(1, 0, "broken")
    assert "quarantined" in task_table(meter)["reason"][1]
    monkeypatch.setattr("stepladder.curricula.reporting.meter.MOST_REASONS", 2)
    assert "reason" not in task_table(meter)
