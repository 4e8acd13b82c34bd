"""The frontier over kinds of tasks: what a label has shown counts for all its tasks."""

import numpy as np
import pytest

from curricula.fake_learner import play_results as play
from stepladder.curricula import Frontier
from stepladder.curricula.frontier.kernels import NUM_SIBLINGS
from stepladder.curricula.frontier.neighbors import MAX_COMPARED_TASKS
from stepladder.simulator import compare
from stepladder.tasks import ListSource, Task


def levels(num_tasks: int = 50, labels: str = "abc") -> list[Task]:
    return [Task(f"{label}{n}", label=label) for label in labels for n in range(num_tasks)]


def share_of(curriculum: Frontier, label: str) -> float:
    return float(curriculum.probs()[curriculum.pool.slots_of_label(label)].sum())


def taught(curriculum: Frontier, plays: int = 3_000) -> None:
    """Let tasks of ``a`` nearly always succeed, ``c`` never, and ``b`` better and better."""
    rng = np.random.default_rng(0)
    for skill in np.linspace(0.1, 0.6, plays // 10):
        rates = {"a": 0.97, "b": skill, "c": 0.0}
        draws = curriculum.draw_batch(10)
        chances = [rates[curriculum.label_of(slot)] for slot in draws["slot"]]
        curriculum.report_batch(draws, rng.random(10) < chances)


def test_every_task_of_a_kind_comes_into_the_zone_with_it():
    curriculum = Frontier(levels(), seed=1)
    taught(curriculum)
    states = np.array(curriculum.states()).reshape(3, 50)
    assert (states[0] == "mastered").mean() > 0.9
    assert (states[1] == "zone").mean() > 0.9
    assert (states[2] == "probed").mean() > 0.9
    assert share_of(curriculum, "b") > 0.8


def test_alone_each_task_has_to_show_itself():
    curriculum = Frontier(levels(), seed=1, pooled=False)
    taught(curriculum, plays=300)
    pooled = Frontier(levels(), seed=1)
    taught(pooled, plays=300)
    assert curriculum.states().count("mastered") < 10 < pooled.states().count("mastered")


def test_a_result_judges_some_siblings_anew_and_no_other_kind():
    curriculum = Frontier(levels(num_tasks=6, labels="ab"), seed=1)
    for slot in (0, 1):
        play(curriculum, slot, "wfwfwfwf")
    states = curriculum.states()
    # Sixteen results, four siblings each: all of the kind have been judged, also unplayed ones.
    assert NUM_SIBLINGS * 16 > 6
    assert states[:6] == ["zone"] * 6
    assert states[6:] == ["probed"] * 6
    assert "learnable now" in curriculum.explain(5).reason


def test_a_mastered_kind_is_still_drawn_by_what_is_left_to_learn():
    curriculum = Frontier(levels(num_tasks=20, labels="ab"), seed=1)
    for slot in range(20):
        play(curriculum, slot, "wwwwwwwwwwwf")
    for slot in range(20, 40):
        play(curriculum, slot, "wf")
    assert set(curriculum.states()[:20]) == {"mastered"}
    # More than the share of rehearsal among tasks that stand for themselves.
    assert 0.002 < share_of(curriculum, "a") < 0.1


def test_one_label_for_all_or_one_for_each_changes_nothing():
    for label_of in (lambda n: "same", lambda n: f"own{n}"):
        tasks = [Task(f"t{n}", label=label_of(n)) for n in range(12)]
        pooled, alone = Frontier(tasks, seed=3), Frontier(tasks, seed=3, pooled=False)
        for slot in (0, 1, 5):
            play(pooled, slot, "wfww")
            play(alone, slot, "wfww")
        assert pooled.probs().tolist() == alone.probs().tolist()


def test_more_tasks_than_can_be_compared_are_judged_in_bins_of_their_features():
    num_tasks = MAX_COMPARED_TASKS + 1
    source = ListSource(Task(f"t{x}", params={"x": x}) for x in range(num_tasks))
    curriculum = Frontier(source, features=("x",), seed=1)
    for slot in range(10):
        play(curriculum, slot, "wfwf")
    rates = curriculum.rates()
    assert rates[40] == pytest.approx(0.5, abs=0.1)
    assert curriculum.states()[num_tasks - 1] == "probed"


@pytest.mark.slow
def test_kinds_need_fewer_samples_than_single_tasks_even_if_labels_are_wrong():
    curricula = {"pooled": Frontier.Config(), "alone": Frontier.Config(pooled=False)}
    # On a useless group single seeds differ by a factor of two.
    for name, num_seeds, most in (
        ("levels-5x200", 2, 0.7),
        ("mislabelled-5", 2, 0.8),
        ("useless-5", 8, 0.8),
    ):
        table = compare([name], curricula, num_seeds=num_seeds, seed=77, num_envs=8)
        pooled, alone = (table.cell(name, one).ratio_to_oracle for one in curricula)
        assert pooled < most * alone
