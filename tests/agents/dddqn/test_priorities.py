"""Prioritised replay: what is drawn how often, and how much it counts."""

import numpy as np
import pytest

from stepladder.agents.dddqn.priorities import SMALLEST, Priorities, importance

RNG = np.random.default_rng(0)


def places(*numbers: int) -> np.ndarray:
    """Return places."""
    return np.array(numbers, dtype=np.int64)


def made(errors: list[float], capacity: int = 6, exponent: float = 1.0) -> Priorities:
    """Make priorities of errors."""
    priorities = Priorities(capacity, exponent)
    priorities.add(np.arange(len(errors)))
    priorities.update(np.arange(len(errors)), np.array(errors))
    return priorities


def test_places_are_drawn_in_proportion_to_their_errors():
    priorities = made([1.0, -3.0, 0.0, 4.0])
    counts = np.zeros(6)
    for _ in range(50):
        drawn, _ = priorities.draw(np.random.default_rng(_).random(160))
        counts += np.bincount(drawn, minlength=6)
    # 8,000 draws over errors of 1, 3, 0 and 4, whatever their sign.
    assert counts[2] <= 1
    assert counts[4:].sum() == 0
    np.testing.assert_allclose(counts[[0, 1, 3]], [1_000, 3_000, 4_000], rtol=0.03)


def test_a_batch_is_spread_over_the_whole_sum():
    drawn, probs = made([1.0, 1.0, 2.0]).draw(np.full(4, 0.5))
    assert drawn.tolist() == [0, 1, 2, 2]
    assert probs.tolist() == pytest.approx([0.25, 0.25, 0.5, 0.5], rel=1e-4)


def test_the_exponent_tempers_errors():
    for exponent, expected in ((0.0, 0.5), (0.5, 1 / 3), (1.0, 0.2)):
        priorities = made([1.0, 4.0], exponent=exponent)
        probs = {
            int(place): prob for place, prob in zip(*priorities.draw(RNG.random(64)), strict=True)
        }
        assert probs[0] == pytest.approx(expected, rel=1e-4)


def test_new_transitions_have_the_highest_weight_so_far():
    priorities = made([0.5, 8.0, 1.0])
    priorities.add(places(3))
    drawn, probs = priorities.draw(np.linspace(0.0, 0.99, 200))
    assert probs[drawn == 3][0] == pytest.approx(8.0 / 17.5, rel=1e-4)


def test_the_last_of_two_errors_of_one_place_counts():
    priorities = made([1.0, 1.0])
    priorities.update(places(0, 0), np.array([5.0, 3.0]))
    assert priorities.total == pytest.approx(4.0, rel=1e-4)


def test_the_sum_stays_the_sum_of_all_weights():
    priorities, weights = Priorities(37, 0.6), np.zeros(37)
    for _ in range(200):
        some = RNG.integers(37, size=9)
        errors = RNG.normal(size=9)
        priorities.update(some, errors)
        for place, error in zip(some, errors, strict=True):
            weights[place] = (abs(error) + SMALLEST) ** 0.6
    assert priorities.total == pytest.approx(weights.sum())
    drawn, probs = priorities.draw(RNG.random(1_000))
    np.testing.assert_allclose(probs, weights[drawn] / weights.sum())


@pytest.mark.parametrize("capacity", [1, 2, 5, 8])
def test_the_ends_of_the_sum_lead_nowhere_empty(capacity: int):
    priorities = Priorities(capacity, 1.0)
    priorities.add(places(0))
    for share in (0.0, 1.0 - 2.0**-53):
        assert priorities.draw(np.array([share, share]))[0].tolist() == [0, 0]


def test_nothing_is_left_after_clearing():
    priorities = made([1.0, 9.0])
    priorities.clear()
    assert priorities.total == 0.0
    priorities.add(places(4))
    assert set(priorities.draw(RNG.random(20))[0].tolist()) == {4}
    assert priorities.total == 1.0


def test_weights_come_back_exactly():
    priorities, other = Priorities(21, 0.6), Priorities(21, 0.6)
    for _ in range(50):
        priorities.add(RNG.integers(21, size=4))
        priorities.update(RNG.integers(21, size=8), RNG.normal(size=8) * 10.0)
    other.load_state_dict(priorities.state_dict())
    shares = RNG.random(500)
    assert other.total == priorities.total
    for one, two in zip(priorities.draw(shares), other.draw(shares), strict=True):
        assert np.array_equal(one, two)
    for one in (priorities, other):
        one.add(places(3))
    assert other.total == priorities.total
    with pytest.raises(ValueError, match=r"leaves has the shape \[32\]"):
        Priorities(64, 0.6).load_state_dict(priorities.state_dict())


def test_what_is_drawn_often_counts_less():
    # Four transitions, drawn with 1/2, 1/4 and 1/8: (4 p)^-1 is 1/2, 1, 2; the most is 1.
    probs = np.array([0.5, 0.25, 0.125])
    assert importance(probs, 4, 1.0).tolist() == [0.25, 0.5, 1.0]
    assert importance(probs, 4, 0.0).tolist() == [1.0, 1.0, 1.0]
