"""Learnability over labels: what tasks of a label say about each other, and where draws go."""

from typing import Any

import numpy as np
import pytest

from curricula.fake_learner import play_results as play
from stepladder.curricula import Learnability
from stepladder.errors import ConfigError
from stepladder.simulator import compare
from stepladder.tasks import ListSource, Task


def levels(num_tasks: int = 100, labels: str = "abc") -> list[Task]:
    return [Task(f"{label}{n}", label=label) for label in labels for n in range(num_tasks)]


def taught(curriculum: Learnability, plays: int = 3_000) -> None:
    """Let tasks of ``a`` nearly always succeed, ``c`` hardly ever, and ``b`` better and better."""
    rng = np.random.default_rng(0)
    for skill in np.linspace(0.1, 0.6, plays // 10):
        rates = {"a": 0.97, "b": skill, "c": 0.01}
        draws = curriculum.draw_batch(10)
        chances = [rates[curriculum.label_of(slot)] for slot in draws["slot"]]
        curriculum.report_batch(draws, rng.random(10) < chances)


def share_of(curriculum: Learnability, label: str) -> float:
    return float(curriculum.probs()[curriculum.pool.slots_of_label(label)].sum())


def test_draws_go_to_the_label_that_can_be_learned_now():
    curriculum = Learnability(levels(), seed=1)
    assert share_of(curriculum, "b") == pytest.approx(1 / 3)
    taught(curriculum)
    assert share_of(curriculum, "b") > 0.85
    # The rest is exploration, and a little that may be learned.
    assert share_of(curriculum, "a") == pytest.approx(0.05 / 3, abs=0.03)
    assert share_of(curriculum, "c") == pytest.approx(0.05 / 3, abs=0.03)


def test_an_unplayed_task_is_judged_by_its_siblings():
    curriculum = Learnability(levels(), seed=1)
    for slot in range(20):
        play(curriculum, slot, "wwww")
    rates = curriculum.success_rates()
    assert rates[99] > 0.9
    assert rates[150] == pytest.approx(0.5)
    # One sibling that fails is an exception among its kind.
    play(curriculum, 0, "ffff")
    assert curriculum.success_rates()[0] < 0.8 < curriculum.success_rates()[99]
    assert curriculum.explain(99).reason.startswith("it is untried; its label has shown a success")


def test_scores_are_what_is_known_now_whenever_a_task_was_played():
    curriculum = Learnability(levels(), seed=1)
    taught(curriculum)
    rates = curriculum.success_rates()
    assert (curriculum.scores() <= rates * (1.0 - rates) + 1e-9).all()


def test_no_single_task_takes_the_draws_of_its_label():
    curriculum = Learnability(levels(), seed=1)
    taught(curriculum, plays=10_000)
    assert curriculum.probs().max() < 0.05


def test_labels_of_single_tasks_are_one_group():
    curriculum = Learnability([Task(f"t{n}", label=f"l{n}") for n in range(8)])
    assert not curriculum.groups_by_label
    play(curriculum, 0, "wfwf")
    play(curriculum, 1, "wwww")
    assert curriculum.probs()[0] > curriculum.probs()[1]


def test_a_replacement_has_the_same_label_where_labels_are_groups():
    source = ListSource(levels(num_tasks=30))
    curriculum = Learnability(source, capacity=30, seed=3, eviction_plays=5)
    labels = curriculum.pool.label_indices.copy()
    taught(curriculum, plays=2_000)
    assert curriculum.num_evicted > 0
    assert curriculum.pool.label_indices.tolist() == labels.tolist()
    others = [n for n in range(90) if source.label(n) != curriculum.label_of(0)]
    outside = next(n for n in others if not curriculum.pool.contains(n))
    with pytest.raises(ConfigError, match="keeps it"):
        curriculum.replace(0, outside)


def test_a_lost_task_takes_its_share_with_it():
    curriculum = Learnability(levels(num_tasks=2), exploration=0.0)
    before = share_of(curriculum, "a")
    curriculum.quarantine(0, 0, "broken")
    assert share_of(curriculum, "a") < before
    assert curriculum.probs().sum() == pytest.approx(1.0)


def test_a_hundred_thousand_tasks_are_judged_by_what_a_few_have_shown():
    curriculum = Learnability(levels(num_tasks=33_000), seed=1)
    taught(curriculum, plays=2_000)
    assert share_of(curriculum, "b") > 0.8


CASES: dict[str, Any] = {
    "levels-5x40": 0.8,
    "useless-3": 0.8,
    "mislabelled-3": 1.0,
    "noisy-10": 1.0,
    "chain-10": 1.0,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_pooling_helps_and_wrong_labels_do_not_turn_it_round(name: str):
    alone = {"pooled": Learnability.Config(), "alone": Learnability.Config(pooled=False)}
    table = compare([name], alone, num_seeds=4, seed=700, num_envs=8)
    pooled, other = table.cell(name, "pooled"), table.cell(name, "alone")
    assert pooled.finished_share == 1.0
    assert pooled.mean_samples < CASES[name] * other.mean_samples
