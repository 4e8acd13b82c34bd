"""Learning progress over labels: a label's change is the prior of its tasks, and gets the draws."""

from typing import Any

import numpy as np
import pytest

from curricula.fake_learner import play_results as play
from stepladder.curricula import LearningProgress, Snapshot
from stepladder.curricula.learning_progress.label_progress import (
    ChangingLabel,
    change_of,
    note_change,
    note_variance,
    slope_of,
)
from stepladder.curricula.pooled.pooling import FIRST_HALFLIFE, NUM_CLOCKS
from stepladder.simulator import compare
from stepladder.tasks import ListSource, Task


def levels(num_tasks: int = 100, labels: str = "abc") -> list[Task]:
    return [Task(f"{label}{n}", label=label) for label in labels for n in range(num_tasks)]


def taught(curriculum: Any, plays: int = 3_000, batch: int = 10) -> None:
    """Let tasks of ``a`` be coin tosses, ``c`` hardly ever succeed, and ``b`` better and better."""
    rng = np.random.default_rng(0)
    for skill in np.linspace(0.1, 0.7, plays // batch):
        rates = {"a": 0.5, "b": skill, "c": 0.01}
        draws = curriculum.draw_batch(batch)
        chances = [rates[curriculum.label_of(slot)] for slot in draws["slot"]]
        curriculum.report_batch(draws, rng.random(batch) < chances)


def share_of(curriculum: LearningProgress, label: str) -> float:
    return float(curriculum.probs()[curriculum.pool.slots_of_label(label)].sum())


def label_after(values: list[float]) -> Any:
    """Return what is known of a label after some results, all clocks trusted alike."""
    label: Any = ChangingLabel.zeros()[0]
    keeps = 0.5 ** (1.0 / (FIRST_HALFLIFE * 4.0 ** np.arange(NUM_CLOCKS)))
    for value in values:
        label["successes"] = keeps * label["successes"] + value
        label["plays"] = keeps * label["plays"] + 1.0
        label["num_plays"] += 1
    label["rate"], label["variance"] = 0.5, 0.25
    return label


def test_the_change_of_a_label_is_the_slope_of_its_results():
    # Results that rise by 0.001 a play lie on a line, whatever averages one looks at. At a rate of
    # one half, success changes by a quarter of what the log odds do: 0.004 a play.
    rising = label_after([0.3 + 0.001 * number for number in range(400)])
    assert change_of(rising, 0.0, 1.0) == pytest.approx(0.004, rel=1e-6)
    falling = label_after([0.7 - 0.001 * number for number in range(400)])
    assert change_of(falling, 0.0, 1.0) == pytest.approx(0.004, rel=1e-6)


def test_a_label_without_results_is_expected_to_change_as_labels_do():
    assert change_of(label_after([]), 1.5, 0.01**2) == pytest.approx(0.01)
    # A few results say next to nothing about so slow a change; thousands that stand still do.
    assert change_of(label_after([0.5] * 4), 1.5, 0.001**2) == pytest.approx(0.001, rel=0.01)
    assert change_of(label_after([0.5] * 20_000), 1.5, 0.001**2) < 0.00075


def test_rates_near_the_ends_move_less_with_their_log_odds():
    assert slope_of(0.5) == 0.25
    assert slope_of(0.1) == pytest.approx(0.09)
    assert slope_of(0.0) == slope_of(1.0) == 0.001


def test_what_is_usual_follows_the_labels_that_are_played():
    label: Any = label_after([0.5] * 20_000)
    usual: Any = np.zeros(1, [("square", float)])[0]
    usual["square"] = 0.01**2
    note_variance(label, 1.0)
    assert label["variance"] == pytest.approx(0.99 * (0.25 + 0.01 * 0.25))
    change = change_of(label, 1.5, 0.01**2)
    note_change(label, usual, 1.5)
    assert label["progress"] == pytest.approx(0.25 * change)
    assert usual["square"] == pytest.approx(0.99 * 0.01**2 + 0.01 * change**2)


def test_draws_go_to_the_label_whose_success_is_changing():
    curriculum = LearningProgress(levels(), seed=1)
    for label in "abc":
        assert share_of(curriculum, label) == pytest.approx(1 / 3)
    taught(curriculum)
    assert share_of(curriculum, "b") > 0.5
    assert share_of(curriculum, "b") > 1.5 * share_of(curriculum, "a")
    assert share_of(curriculum, "c") < 0.1


def test_an_unplayed_task_is_judged_by_its_label():
    curriculum = LearningProgress(levels(num_tasks=2_000), seed=1)
    taught(curriculum)
    plays, progress = curriculum.plays(), curriculum.progress()
    labels = curriculum.pool.label_indices
    unplayed = [int(np.flatnonzero((labels == index) & (plays == 0))[0]) for index in (0, 2)]
    told = list(curriculum.label_progress().values())
    np.testing.assert_allclose(progress[unplayed], [told[0], told[2]], rtol=1e-9)
    reason = curriculum.explain(unplayed[0]).reason
    assert reason.startswith("it is untried; the success of its label")


def test_own_results_move_a_task_away_from_its_label():
    curriculum = LearningProgress(levels(), seed=1)
    for slot in range(20):
        play(curriculum, slot, "wfwf")
    play(curriculum, 0, 20 * "f")
    progress = curriculum.progress()
    # It hardly ever succeeds, so what the label learns moves it less.
    assert progress[0] < 0.8 * progress[99]


def test_labels_are_told_with_their_change_and_share():
    curriculum = LearningProgress(levels(), seed=1)
    taught(curriculum)
    told: Any = curriculum.explain()
    name, change, share = told.labels[0]
    assert name == "b"
    assert change == pytest.approx(1000.0 * curriculum.label_progress()["b"])
    assert share == pytest.approx(share_of(curriculum, "b"))
    assert any(line.startswith("  label b ") for line in told.lines())


def test_labels_of_single_tasks_change_nothing():
    tasks = [Task(f"t{n}", label=f"l{n}") for n in range(8)]
    pooled, alone = (LearningProgress(tasks, pooled=value, seed=3) for value in (True, False))
    rng = np.random.default_rng(1)
    for _ in range(100):
        results = rng.random(4) < 0.5
        for curriculum in (pooled, alone):
            curriculum.report_batch(curriculum.draw_batch(4), results)
    np.testing.assert_array_equal(pooled.probs(), alone.probs())
    assert pooled.label_progress() == {}


def test_a_replacement_has_the_same_label_and_begins_anew():
    source = ListSource(levels(num_tasks=30))
    curriculum = LearningProgress(source, capacity=30, seed=3, eviction_plays=5)
    labels = curriculum.pool.label_indices.copy()
    taught(curriculum, plays=2_000)
    assert curriculum.num_evicted > 0
    assert curriculum.pool.label_indices.tolist() == labels.tolist()
    slot = int(np.argmax(curriculum.plays()))
    curriculum.replace(slot)
    told = curriculum.label_progress()[curriculum.label_of(slot)]
    assert curriculum.progress()[slot] == pytest.approx(told)


def test_returns_of_any_range_are_pooled_too():
    curriculum = LearningProgress(levels(), seed=1, signal="return")
    rng = np.random.default_rng(0)
    for skill in np.linspace(0.1, 0.7, 300):
        draws = curriculum.draw_batch(10)
        middle = [{"a": 0.5, "b": skill, "c": 0.1}[curriculum.label_of(s)] for s in draws["slot"]]
        returns = 40.0 * (np.array(middle) + 0.05 * rng.normal(size=10)) - 20.0
        curriculum.report_batch(draws, np.zeros(10), returns)
    assert share_of(curriculum, "b") > 0.5


@pytest.mark.slow
def test_a_hundred_thousand_tasks_are_judged_by_what_a_few_have_shown(tmp_path: Any):
    curriculum = LearningProgress(levels(num_tasks=33_000), seed=1)
    taught(curriculum, plays=3_000)
    assert share_of(curriculum, "b") > 0.5
    again = LearningProgress(levels(num_tasks=33_000), seed=1)
    again.restore(Snapshot.load(curriculum.snapshot().save(tmp_path / "state.npz")))
    assert again.draw(20) == curriculum.draw(20)


CASES = {"levels-5x40": 0.85, "useless-3": 0.8, "mislabelled-3": 1.0, "shuffled-5": 1.1}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_pooling_helps_and_wrong_labels_do_not_turn_it_round(name: str):
    both = {"pooled": LearningProgress.Config(), "alone": LearningProgress.Config(pooled=False)}
    table = compare([name], both, num_seeds=4, seed=700, num_envs=8)
    pooled, alone = table.cell(name, "pooled"), table.cell(name, "alone")
    assert pooled.finished_share == 1.0
    assert pooled.mean_samples < CASES[name] * alone.mean_samples
