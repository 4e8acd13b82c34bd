"""Which values are tried: all combinations in order, or Optuna's proposals, the same every time."""

import sys

import pytest

from stepladder.errors import ConfigError
from stepladder.simulator.sweep_search import (
    ROUND_TRIALS,
    Params,
    Told,
    grid_rounds,
    optuna_rounds,
)
from stepladder.simulator.sweep_space import Choice, Range

X = Range("x", 0.01, 1.0, log=True, whole=False)
N = Range("n", 1, 64, log=False, whole=True)
KIND = Choice("kind", (None, ("a", "b"), "c"))


def cost(params: Params) -> float:
    return (params["x"] - 0.3) ** 2 + abs(params["n"] - 20) / 100


def searched(
    num_trials: int, seed: int = 0, known: dict[int, Told] | None = None
) -> dict[int, Told]:
    told = dict(known or {})
    for proposals in optuna_rounds([X, N, KIND], num_trials, seed, lambda: told):
        for number, params in proposals:
            told.setdefault(number, (params, cost(params)))
    return told


def test_a_grid_has_every_combination_the_last_field_varying_fastest() -> None:
    ((*trials,),) = grid_rounds([Choice("a", (1, 2)), Choice("b", ("x", "y", "z"))])
    assert trials == [
        (0, {"a": 1, "b": "x"}),
        (1, {"a": 1, "b": "y"}),
        (2, {"a": 1, "b": "z"}),
        (3, {"a": 2, "b": "x"}),
        (4, {"a": 2, "b": "y"}),
        (5, {"a": 2, "b": "z"}),
    ]


class TestOptuna:
    @pytest.fixture(autouse=True)
    def installed(self) -> None:
        pytest.importorskip("optuna")

    def test_proposals_keep_to_their_ranges_and_can_be_typed(self) -> None:
        told = searched(30)
        assert sorted(told) == list(range(30))
        for params, _ in told.values():
            assert list(params) == ["x", "n", "kind"]
            assert 0.01 <= params["x"] <= 1.0
            assert params["x"] == float(f"{params['x']:.4g}")
            assert isinstance(params["n"], int)
            assert 1 <= params["n"] <= 64
            assert params["kind"] in KIND.values

    def test_the_same_seed_proposes_the_same_and_another_does_not(self) -> None:
        assert searched(20, seed=3) == searched(20, seed=3)
        assert searched(20, seed=3) != searched(20, seed=4)

    def test_no_two_trials_of_the_first_rounds_are_alike(self) -> None:
        assert len({params["x"] for params, _ in searched(16).values()}) == 16

    def test_a_search_that_is_continued_proposes_what_it_would_have(self) -> None:
        whole = searched(24)
        # Stopped in the middle of the second round, with one trial of it still being played.
        known = {number: whole[number] for number in (*range(ROUND_TRIALS + 2), ROUND_TRIALS + 3)}
        assert searched(24, known=known) == whole

    def test_more_trials_begin_with_the_same_ones(self) -> None:
        assert searched(12) == {n: told for n, told in searched(24).items() if n < 12}

    def test_it_learns_from_what_it_is_told(self) -> None:
        told = searched(64)
        early = [cost for number, (_, cost) in told.items() if number < 16]
        late = [cost for number, (_, cost) in told.items() if number >= 48]
        assert sum(late) / len(late) < 0.5 * sum(early) / len(early)

    def test_a_trial_that_could_not_be_played_is_no_obstacle(self) -> None:
        known: dict[int, Told] = {0: ({"x": 0.1, "n": 3, "kind": "c"}, None)}
        assert len(searched(16, known=known)) == 16


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ConfigError, match=r"pip install 'stepladder\[sweep\]'") as caught:
        next(optuna_rounds([X], 1, 0, dict))
    assert "\n" not in str(caught.value)
