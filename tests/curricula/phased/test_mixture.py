"""Mixture: labels in fixed shares."""

import numpy as np
import pytest

from curricula.fake_learner import live
from stepladder.curricula import Mixture, MixtureConfig
from stepladder.errors import ConfigError
from stepladder.tasks import NumberedSource, Task, UnionSource

TASKS = [
    Task(f"{label}{i}", label) for label, n in (("a", 4), ("b", 2), ("c", 1)) for i in range(n)
]


def test_labels_are_drawn_in_their_shares_however_many_tasks_they_have():
    # 3 to 1: the four of a get 3/4 between them, the two of b get 1/4, c is left out.
    probs = Mixture(TASKS, weights={"a": 3.0, "b": 1.0}).probs()
    assert probs.tolist() == pytest.approx([3 / 16] * 4 + [1 / 8] * 2 + [0.0])


def test_weights_need_not_sum_to_one_and_may_be_zero():
    one = Mixture(TASKS, weights={"a": 30, "b": 10, "c": 0})
    other = Mixture(TASKS, weights={"b": 0.25, "a": 0.75})
    assert one.probs().tolist() == other.probs().tolist()


def test_one_label_is_a_mixture_too():
    tasks = [Task("x", "only"), Task("y", "only")]
    assert Mixture(tasks, weights={"only": 2.0}).probs().tolist() == [0.5, 0.5]


def test_inside_a_label_the_sources_weights_hold():
    union = UnionSource([(NumberedSource(1, "a", "x"), 3.0), (NumberedSource(1, "a", "y"), 1.0)])
    assert Mixture(union, weights={"a": 1.0}).probs().tolist() == pytest.approx([0.75, 0.25])


def test_results_change_nothing():
    curriculum = Mixture(TASKS, weights={"a": 3.0, "b": 1.0})
    version, probs = curriculum.plan.version, curriculum.probs().tolist()
    assert {tuple(row) for row in live(curriculum, 50).probs} == {tuple(probs)}
    assert curriculum.plan.version == version
    assert int(curriculum.plays.sum()) == 50
    assert curriculum.plays[6] == 0


def test_while_a_label_has_no_task_its_share_goes_to_the_others():
    curriculum = Mixture(TASKS, weights={"a": 3.0, "b": 1.0, "c": 1.0})
    curriculum.quarantine(6, 0, "no such map")
    np.testing.assert_allclose(curriculum.probs(), [3 / 16] * 4 + [1 / 8] * 2 + [0.0])


@pytest.mark.parametrize(
    "weights",
    [{}, {"a": 0.0}, {"a": -1.0, "b": 2.0}, {"a": np.nan}, {"a": np.inf}, {"a": 1e308, "b": 1e308}],
)
def test_weights_that_are_none_are_refused(weights: dict[str, float]):
    with pytest.raises(ConfigError, match="weight"):
        MixtureConfig(weights=weights)


def test_a_label_that_no_task_has_is_refused_by_name():
    with pytest.raises(
        ConfigError, match=r"no task has label 'd'; the labels are \['a', 'b', 'c'\]"
    ):
        Mixture(TASKS, weights={"a": 1.0, "d": 1.0})


def test_the_reason_is_the_labels_share():
    curriculum = Mixture(TASKS, weights={"a": 3.0, "b": 1.0})
    assert curriculum.explain(0).reason == "label 'a' has a share of 0.75"
    assert curriculum.explain(6).reason == "label 'c' has a share of 0"
