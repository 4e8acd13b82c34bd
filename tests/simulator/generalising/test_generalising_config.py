"""Settings of the learner that generalises: what they stand for, and what is refused."""

import numpy as np
import pytest

from simulator.generalising.small_learner import SETTINGS, small
from stepladder.errors import ConfigError
from stepladder.simulator import Generalising


def test_neighbours_help_by_distance():
    # Three groups on a line: 1 to itself, 0.5 to a neighbour, 0.25 to the one after.
    own = Generalising(
        groups=("a", "b", "c"),
        **{name: (1,) * 3 for name in ("num_tasks", "success_steps", "failure_steps")},
        difficulty=(0.0, 1.0, 2.0),
        spread=(0.0,) * 3,
    )
    assert own.coupling_matrix.tolist() == [[1, 0.5, 0.25], [0.5, 1, 0.5], [0.25, 0.5, 1]]


def test_positions_decide_about_the_distance_and_become_parameters():
    own = small(positions=((0.0, 0.0), (3.0, 4.0)), transfer=0.9)
    assert own.coupling_matrix[0, 1] == pytest.approx(0.9**5)
    assert own.features == ("x", "y")
    task = own.source().get(4)
    assert (task.label, dict(task.params)) == ("hard", {"node": 4, "x": 3.0, "y": 4.0})


def test_a_coupling_of_ones_own_may_hinder():
    own = small(coupling=((1.0, -0.5), (0.0, 1.0)))
    assert own.coupling_matrix.tolist() == [[1.0, -0.5], [0.0, 1.0]]


def test_difficulties_lie_evenly_around_the_mean_and_in_no_order():
    own = small(num_tasks=(4, 100), spread=(1.0, 2.0))
    # Four tasks within 1 of 0: the middles of four quarters.
    assert sorted(own.task_difficulties[:4]) == pytest.approx([-0.75, -0.25, 0.25, 0.75])
    hard = own.task_difficulties[4:]
    assert (hard.min(), hard.max()) == pytest.approx((0.02, 3.98))
    assert hard.mean() == pytest.approx(2.0)
    assert hard.tolist() != sorted(hard)


def test_a_share_of_the_labels_is_wrong():
    own = small(num_tasks=(1000, 1000), mislabelled=0.4)
    # A label that is drawn at random is right in half of the cases.
    assert np.mean(own.label_groups != own.task_groups) == pytest.approx(0.2, abs=0.03)
    assert own.source().label(0) == own.groups[own.label_groups[0]]


def test_the_target_sums_to_one():
    assert small().target_weights.tolist() == [0.5, 0.5]
    assert small(target=(1.0, 3.0)).target_weights.tolist() == [0.25, 0.75]


def test_tasks_are_made_once():
    own = small()
    assert own.source() is own.source()


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"groups": ("a", "a")}, "groups has 'a' twice"),
        ({"groups": ()}, "groups must not be empty"),
        ({"num_tasks": (1, 2, 3)}, "num_tasks must have an entry per group (2); got 3"),
        ({"num_tasks": (1, 100_000)}, "num_tasks must be at most 100000 together; got 100001"),
        ({"difficulty": (0.0, float("nan"))}, "difficulty[1] must be a finite number"),
        ({"spread": (0.0, -1.0)}, "spread[1] must be finite and at least 0"),
        ({"success_steps": (0, 4)}, "success_steps[0] must be an integer of at least 1"),
        ({"eta": 0.0}, "eta must be finite and above 0"),
        ({"lambda_memory": 1.0}, "lambda_memory must lie in [0, 1); got 1.0"),
        ({"coupling": ((1.0,), (0.0, 1.0))}, "coupling[0] must have 2 entries; got 1"),
        ({"positions": ((0.0,), (1.0, 2.0))}, "positions must have the same number of axes"),
        ({"target": (0.0, 0.0)}, "target must name a group with a weight above 0"),
        ({"goal": 1.0}, "goal must lie in (0, 1); got 1.0"),
        ({"update_steps": 0}, "update_steps must be an integer of at least 1"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict, text: str):
    with pytest.raises(ConfigError) as caught:
        small(**settings)
    assert text in str(caught.value)


def test_json_and_back():
    own = small(coupling=((1.0, 0.25), (0.5, 1.0)), target=(0.0, 1.0))
    assert Generalising.from_json(own.to_json()) == own
    assert Generalising.from_json(SETTINGS) == small()
