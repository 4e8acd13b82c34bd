"""Labels are drawn by the mean absolute advantage of their latest episodes."""

import math
from typing import Any

import numpy as np
import pytest

from curricula.fake_learner import differences, live, record_for
from stepladder.curricula import (
    AdvantageBandit,
    AdvantageBanditConfig,
    AdvantageBanditExplanation,
    Phase,
    Phased,
)
from stepladder.errors import ConfigError, SnapshotError
from stepladder.saving.snapshot import Snapshot
from stepladder.tasks import ListSource, Task

TASKS = [Task("a0", "a"), Task("a1", "a"), Task("b0", "b"), Task("c0", "c")]


def make(**settings: Any) -> AdvantageBandit:
    return AdvantageBandit(TASKS, **{"exploration": 0.0, **settings})


def tell(curriculum: AdvantageBandit, *pairs: tuple[int, float]) -> None:
    slots = np.array([slot for slot, _ in pairs])
    curriculum.report_scores(slots, curriculum.pool.generations[slots], [x for _, x in pairs])


# Worked out by hand.


def test_shares_are_a_softmax_of_means_and_bonuses():
    curriculum = make(temperature=0.5)
    tell(curriculum, (0, 4.0), (2, 2.0))
    # Means 4, 2 and 0, divided by the largest; ln(2 + 1) over 1 + 1 scores, over 0 + 1 for c.
    values = [
        1.0 + math.sqrt(2 * math.log(3) / 2),
        0.5 + math.sqrt(2 * math.log(3) / 2),
        0.0 + math.sqrt(2 * math.log(3) / 1),
    ]
    shares = np.exp(np.array(values) / 0.5)
    shares /= shares.sum()
    # Tasks of a label share alike.
    expected = [shares[0] / 2, shares[0] / 2, shares[1], shares[2]]
    np.testing.assert_allclose(curriculum.probs(), expected, rtol=1e-12)
    assert curriculum.label_means() == {"a": 4.0, "b": 2.0, "c": 0.0}
    np.testing.assert_allclose(list(curriculum.label_shares().values()), shares, rtol=1e-12)


def test_without_a_bonus_only_means_count():
    curriculum = make(temperature=1.0, bonus=0.0)
    tell(curriculum, (0, 4.0), (2, 2.0), (2, 4.0), (3, 1.0))
    weights = np.exp([4.0 / 4.0, 3.0 / 4.0, 1.0 / 4.0])
    shares = weights / weights.sum()
    np.testing.assert_allclose(list(curriculum.label_shares().values()), shares, rtol=1e-12)


def test_only_the_latest_episodes_count():
    curriculum = make(window_episodes=3)
    tell(curriculum, *((0, float(x)) for x in (9, 1, 2, 3)))
    assert curriculum.label_means()["a"] == pytest.approx(2.0)
    tell(curriculum, (1, 7.0), (0, 8.0))
    assert curriculum.label_means()["a"] == pytest.approx(6.0)


def test_the_scale_of_the_reward_does_not_matter():
    small, large = make(), make()
    for slot, score in [(0, 1.0), (2, 3.0), (3, 0.5), (1, 2.0)]:
        tell(small, (slot, score))
        tell(large, (slot, 1024.0 * score))
    np.testing.assert_allclose(small.probs(), large.probs(), rtol=1e-12)


def test_rounding_errors_do_not_add_up():
    curriculum = make(window_episodes=10)
    rng = np.random.default_rng(0)
    scores = rng.random(10_003) * 10.0 ** rng.integers(-8, 8, 10_003)
    curriculum.report_scores(np.zeros(10_003, int), np.zeros(10_003, int), scores)
    tell(curriculum, *((0, 1e-9) for _ in range(10)))
    assert curriculum.label_means()["a"] == pytest.approx(1e-9, rel=1e-3)


# Without a trainer.


def test_until_a_trainer_reports_deviations_of_results_are_the_scores():
    curriculum = make()
    curriculum.observe(record_for(curriculum, 0, 1.0))
    # |1 - 0.5|; the mean moves halfway, to 0.75.
    assert curriculum.label_means()["a"] == 0.5
    curriculum.observe(record_for(curriculum, 0, 0.0))
    assert curriculum.label_means()["a"] == (0.5 + 0.75) / 2
    assert "scored by deviation" in str(curriculum.explain())


def test_the_first_score_of_a_trainer_ends_deviations():
    curriculum = make()
    live(curriculum, 40)
    tell(curriculum, (2, 0.25))
    assert curriculum.label_means() == {"a": 0.0, "b": 0.25, "c": 0.0}
    before = curriculum.probs()
    curriculum.observe(record_for(curriculum, 0, 1.0))
    assert np.array_equal(curriculum.probs(), before)
    assert curriculum.plays()[0] > 0
    assert "scored by advantage" in str(curriculum.explain())


def test_envs_that_tell_no_success_are_scored_by_the_trainer_alone():
    curriculum = make()
    assert not curriculum.needs_success
    curriculum.observe(record_for(curriculum, 0, float("nan")))
    assert curriculum.label_means()["a"] == 0.0
    assert make(scored_by="deviation").needs_success


def test_scores_are_refused_where_deviations_are_wanted():
    with pytest.raises(ConfigError, match="scored_by is 'deviation'"):
        tell(make(scored_by="deviation"), (0, 1.0))


# Credit, tasks that come and go.


def test_a_score_of_a_task_that_was_replaced_counts_for_no_label():
    source = ListSource([Task(f"{label}{n}", label) for label in "ab" for n in range(5)])
    curriculum = AdvantageBandit(source, capacity=4)
    curriculum.replace(1)
    tell(curriculum, (0, 2.0))
    curriculum.report_scores(1, 0, 100.0)
    assert curriculum.num_orphaned_scores == 1
    assert max(curriculum.label_means().values()) == 2.0


def test_a_label_without_tasks_does_not_outweigh_the_others():
    curriculum = make(temperature=0.001)
    tell(curriculum, *((slot, 1.0) for slot in (0, 1, 2) for _ in range(200)))
    assert curriculum.label_shares()["c"] == 1.0
    curriculum.quarantine(3, 0, "no such map")
    assert curriculum.label_shares()["c"] == 0.0
    assert sum(curriculum.label_shares().values()) == pytest.approx(1.0)
    tell(curriculum, (0, 1.0))
    assert curriculum.label_shares()["c"] == 0.0


def test_with_many_labels_shares_wait_for_scores():
    tasks = [Task(f"t{n}", f"label{n}") for n in range(96)]
    curriculum = AdvantageBandit(tasks, bonus=0.0, exploration=0.0)
    before = curriculum.probs()
    tell(curriculum, (0, 1.0))
    tell(curriculum, (0, 1.0))
    assert np.array_equal(curriculum.probs(), before)
    tell(curriculum, (0, 1.0))
    assert curriculum.probs()[0] > 0.9


def test_it_works_inside_a_phase_and_resumes():
    def phased() -> Phased:
        return Phased(
            TASKS,
            phases=(
                Phase(name="look", episodes=10),
                Phase(name="bandit", curriculum=AdvantageBanditConfig(window_episodes=5)),
            ),
            seed=2,
        )

    curriculum = phased()
    live(curriculum, 30)
    inner: Any = curriculum.inner[1]
    tell(inner, (0, 1.0), (2, 3.0))
    again = phased()
    again.restore(curriculum.snapshot())
    tell(again.inner[1], (3, 2.0))  # type: ignore[arg-type]
    tell(inner, (3, 2.0))
    assert differences(again.snapshot(), curriculum.snapshot()) == []
    assert curriculum.probs()[2] > 0.25


# Explained, refused.


def test_it_says_which_labels_surprise():
    curriculum = make()
    tell(curriculum, (0, 4.0), (2, 2.0))
    explanation = curriculum.explain()
    assert isinstance(explanation, AdvantageBanditExplanation)
    assert [row[0] for row in explanation.labels] == ["a", "b", "c"]
    assert "a                        mean 4" in str(explanation)
    one = str(curriculum.explain(0))
    assert "label 'a' is drawn by the mean advantage of its latest episodes" in one
    assert "no episode of label 'c' was scored yet" in str(curriculum.explain(3))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"scored_by": "value_loss"}, "scored_by must be 'advantage' or 'deviation'"),
        ({"temperature": 0.0}, "temperature must"),
        ({"bonus": -1.0}, "bonus must"),
        ({"window_episodes": 0}, "window_episodes must"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings: dict[str, Any], words: str):
    with pytest.raises(ConfigError, match=words):
        make(**settings)


def test_more_memory_than_there_should_be_is_refused():
    tasks = [Task(f"t{n}", f"label{n}") for n in range(60)]
    with pytest.raises(ConfigError, match="for each of 60 labels makes more than"):
        AdvantageBandit(tasks, window_episodes=1_000_000)


@pytest.mark.parametrize(
    ("array", "column", "value", "words"),
    [
        ("labels", "total", np.nan, "total"),
        ("labels", "num_scores", -1, "num scores"),
        ("windows", None, -1.0, "windows"),
        ("method", "has_trainer", 2, "has trainer"),
    ],
)
def test_damage_is_refused(array: str, column: Any, value: Any, words: str):
    curriculum = make()
    saved = curriculum.snapshot()
    damaged = saved.arrays[f"method/{array}"].copy()
    if column is None:
        damaged[0, 0] = value
    else:
        damaged[column][0] = value
    with pytest.raises(SnapshotError, match=words):
        curriculum.restore(Snapshot(saved.state, {**saved.arrays, f"method/{array}": damaged}))
