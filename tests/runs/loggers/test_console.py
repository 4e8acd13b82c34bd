"""Lines on a console."""

import io
import math

import pytest

from stepladder.runs import ConsoleLogger, Logger


def lines(logger_metrics: tuple[str, ...], *logs: tuple[int, dict[str, float]]) -> list[str]:
    stream = io.StringIO()
    logger = ConsoleLogger(logger_metrics, stream)
    for step, metrics in logs:
        logger.log(step, metrics)
    return stream.getvalue().splitlines()


def test_the_chosen_metrics_are_shown_in_the_chosen_order() -> None:
    assert lines(("b", "a"), (12_000, {"a": 1.0, "b": 0.71349, "c": 3.0})) == [
        "step 12,000  b 0.7135  a 1"
    ]


def test_what_a_log_does_not_have_is_left_out() -> None:
    logs: list[tuple[int, dict[str, float]]] = [(1, {"a": 1.0}), (2, {"c": 2.0}), (3, {"b": 3.0})]
    assert lines(("a", "b"), *logs) == ["step 1  a 1", "step 3  b 3"]


def test_without_a_choice_the_first_six_are_shown() -> None:
    assert lines((), (1, {name: 0.5 for name in "abcdefgh"}), (2, {})) == [
        "step 1  a 0.5  b 0.5  c 0.5  d 0.5  e 0.5  f 0.5"
    ]


def test_any_number_can_be_shown() -> None:
    assert lines((), (0, {"n": math.nan, "i": -math.inf, "big": 1.23456e12, "é": 1e-9})) == [
        "step 0  n nan  i -inf  big 1.235e+12  é 1e-09"
    ]


def test_an_event_is_one_line_whatever_its_text() -> None:
    stream = io.StringIO()
    logger = ConsoleLogger(stream=stream)
    assert isinstance(logger, Logger)
    logger.event(1500, "stage_advanced", "because\n  it\twas time")
    logger.close()
    assert stream.getvalue() == "step 1,500  stage_advanced: because it was time\n"
    assert not stream.closed


def test_standard_error_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    ConsoleLogger().log(1, {"a": 1.0})
    assert capsys.readouterr() == ("", "step 1  a 1\n")
