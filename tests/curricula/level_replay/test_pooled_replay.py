"""Level replay over labels: scores are drawn towards those of their label."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from curricula.fake_learner import play_results as play
from stepladder.curricula import LevelReplay
from stepladder.simulator import compare
from stepladder.tasks import Task


def levels(num_tasks: int = 100, labels: str = "ab") -> list[Task]:
    return [Task(f"{label}{n}", label=label) for label in labels for n in range(num_tasks)]


def share_of(curriculum: LevelReplay, label: str) -> float:
    return float(curriculum.probs()[curriculum.pool.slots_of_label(label)].sum())


def score(curriculum: LevelReplay, slots: list[int], scores: list[float]) -> None:
    generations = curriculum.pool.generations[slots]
    curriculum.report_scores(slots, generations, scores)


def test_unseen_tasks_of_labels_with_high_scores_come_first():
    curriculum = LevelReplay(levels(), pooled=True, schedule="fixed", replay_prob=0.0)
    assert share_of(curriculum, "a") == pytest.approx(0.5)
    for slot in range(20):
        play(curriculum, slot, "wf")  # a surprise every time
        play(curriculum, 100 + slot, "ff")  # less and less of one
    means = curriculum.label_scores()
    assert means["a"] > means["b"]
    # By the squares of the labels' mean scores, and 80 unseen tasks in each.
    expected = means["a"] ** 2 / (means["a"] ** 2 + means["b"] ** 2)
    assert share_of(curriculum, "a") == pytest.approx(expected)


def test_a_score_is_drawn_towards_the_mean_of_its_label():
    curriculum = LevelReplay(levels(), pooled=True, scored_by="trainer")
    score(curriculum, list(range(50)), [4.0] * 50)
    score(curriculum, list(range(100, 150)), [1.0] * 50)
    score(curriculum, [0, 100], [2.0, 2.0])
    scores = curriculum.scores()
    means = curriculum.label_scores()
    assert 2.0 < scores[0] < means["a"]
    assert means["b"] < scores[100] < 2.0
    # What was never scored has no score of its own.
    assert scores[99] == 0.0
    told = curriculum.explain(99)
    assert told.numbers["label_score"] == pytest.approx(means["a"])
    assert "its label has shown scores of about" in told.reason


def test_labels_are_told_with_their_scores_and_shares():
    curriculum = LevelReplay(levels(), pooled=True)
    for slot in range(20):
        play(curriculum, slot, "wf")
        play(curriculum, 100 + slot, "ff")
    told: Any = curriculum.explain()
    assert [name for name, _, _ in told.labels] == ["a", "b"]
    assert sum(share for _, _, share in told.labels) == pytest.approx(1.0)
    assert any(line.startswith("  label a ") for line in told.lines())


def test_what_stays_a_surprise_whatever_is_played_fades():
    rng = np.random.default_rng(0)
    results = ["".join(rng.choice(["w", "f"], size=500).tolist()) for _ in range(2)]
    known = {}
    for pooled in (True, False):
        curriculum = LevelReplay(levels(), pooled=pooled)
        play(curriculum, 0, results[0])
        known[pooled] = float(curriculum.scores()[0])
    assert known[False] > 0.4
    assert known[True] < 0.3


def test_by_default_and_where_labels_do_not_split_it_is_the_published_method():
    assert not LevelReplay.Config().pooled
    tasks = [Task(f"t{n}", label=f"l{n}") for n in range(8)]
    pooled, alone = (LevelReplay(tasks, pooled=value, seed=3) for value in (True, False))
    rng = np.random.default_rng(1)
    for _ in range(100):
        results = rng.random(4) < 0.5
        for curriculum in (pooled, alone):
            curriculum.report_batch(curriculum.draw_batch(4), results)
    np.testing.assert_array_equal(pooled.probs(), alone.probs())
    assert pooled.label_scores() == {}


def test_replays_are_told_from_first_looks_whatever_the_label():
    curriculum = LevelReplay(levels(), pooled=True, seed=1)
    first = curriculum.draw_one()
    assert not curriculum.is_replay(first)
    assert curriculum.replay_prob == 0.0
    play(curriculum, 150, "w")
    assert curriculum.replay_prob == pytest.approx(1 / 200)


def test_a_hundred_thousand_tasks_are_judged_by_what_a_few_have_shown():
    curriculum = LevelReplay(levels(num_tasks=50_000), pooled=True)
    for slot in range(100):
        play(curriculum, slot, "wf")
        play(curriculum, 50_000 + slot, "ff")
    assert share_of(curriculum, "a") > 0.7


CASES = {"levels-5x200": 0.9, "useless-5": 0.8, "mislabelled-5": 1.0, "shuffled-5": 1.1}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_pooling_helps_and_wrong_labels_do_not_turn_it_round(name: str):
    # Without the largest share, which is not a part of the method.
    alone = LevelReplay.Config(max_share=1.0)
    both = {"pooled": replace(alone, pooled=True), "alone": alone}
    table = compare([name], both, num_seeds=4, seed=700, num_envs=8)
    pooled, other = table.cell(name, "pooled"), table.cell(name, "alone")
    assert pooled.finished_share == 1.0
    assert pooled.mean_samples < CASES[name] * other.mean_samples
