"""How success is read: which signal wins, and what is said when there is none."""

import math
from typing import Any

import numpy as np
import pytest

from stepladder.envs.success import SuccessReader
from stepladder.errors import ConfigError, SignalError


def read(
    info: dict[str, Any], *, total: float = 0.0, needed: bool = True, **settings: Any
) -> float:
    return SuccessReader(**settings).read(info, total, needed)


@pytest.mark.parametrize(
    ("value", "success"),
    [
        (True, 1.0),
        (False, 0.0),
        (np.bool_(True), 1.0),
        (np.float32(0.25), 0.25),
        (np.array(1.0), 1.0),
        (1, 1.0),
        (0.5, 0.5),
    ],
)
def test_any_bool_or_number_is_a_success(value: Any, success: float) -> None:
    assert read({"is_success": value}) == success


def test_is_success_comes_before_success() -> None:
    assert read({"success": 0.0, "is_success": 1.0}) == 1.0
    assert read({"success": 1.0}) == 1.0


@pytest.mark.parametrize("needed", [True, False])
def test_a_named_key_is_required_in_every_episode(needed: bool) -> None:
    assert read({"has_won": 1, "is_success": 0}, key="has_won", needed=needed) == 1.0
    said = r"without info\['has_won'\], the named success_key \(it has \['is_success'\]\)"
    with pytest.raises(SignalError, match=said):
        read({"is_success": 0}, key="has_won", needed=needed)
    missing = {"key": "has_won", "missing_is_failure": True}
    assert read({"is_success": 1}, needed=needed, **missing) == 0.0


def test_success_is_read_from_a_key_or_from_the_return_and_not_from_both() -> None:
    with pytest.raises(ConfigError, match="success is read from one of them"):
        SuccessReader(key="has_won", return_threshold=1.0)


@pytest.mark.parametrize(("total", "success"), [(9.99, 0.0), (10.0, 1.0), (11.0, 1.0)])
def test_a_return_from_the_threshold_on_is_a_success(total: float, success: float) -> None:
    assert read({}, total=total, return_threshold=10.0) == success


def test_a_key_comes_before_the_threshold() -> None:
    assert read({"success": 0.0}, total=99.0, return_threshold=10.0) == 0.0


def test_a_missing_signal_names_what_was_there_and_the_three_ways_out() -> None:
    with pytest.raises(SignalError) as raised:
        read({"lives": 3, "coins": 7})
    message = str(raised.value)
    assert "'is_success' or 'success'" in message
    assert "['coins', 'lives']" in message
    for way_out in ("success_key", "return_threshold", "missing_success_is_failure=True"):
        assert way_out in message


def test_a_missing_signal_can_mean_failure() -> None:
    assert read({}, missing_is_failure=True) == 0.0
    assert read({"success": 1}, missing_is_failure=True) == 1.0


def test_no_signal_is_nan_where_none_is_needed() -> None:
    assert math.isnan(read({}, needed=False))
    assert math.isnan(read({"success": math.nan}, needed=False))


@pytest.mark.parametrize("value", [None, "won", [1, 2], {"a": 1}])
def test_a_signal_that_is_no_number_is_shown(value: Any) -> None:
    with pytest.raises(SignalError, match=r"info\['success'\] is .*expected a bool or a number"):
        read({"success": value})


def test_nan_is_no_signal_where_one_is_needed() -> None:
    # Passed on, it would reach the curriculum in a batch with other envs' results.
    with pytest.raises(SignalError, match=r"info\['success'\] is nan"):
        read({"success": math.nan})


@pytest.mark.parametrize("threshold", [math.nan, math.inf])
def test_a_threshold_must_be_finite(threshold: float) -> None:
    with pytest.raises(ConfigError, match="must be a finite number"):
        SuccessReader(return_threshold=threshold)
