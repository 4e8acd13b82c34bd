"""Why a run failed: what was raised comes first, then where, on one line."""

from pathlib import Path

import pytest

from stepladder.runs import Run, RunReader
from stepladder.runs.reasons import LONGEST_REASON, notes_of, reason_of


def noted(error: BaseException, *notes: str) -> BaseException:
    """Return an exception with notes."""
    for note in notes:
        error.add_note(note)
    return error


def test_type_and_message_come_before_notes() -> None:
    error = noted(ValueError("bad\nlevel"), "raised by env 0, in this process")
    assert reason_of(error) == "ValueError: bad level (raised by env 0, in this process)"
    assert reason_of(KeyboardInterrupt()) == "KeyboardInterrupt"


def test_the_traceback_of_a_worker_is_left_out() -> None:
    note = "raised by env 3 in worker process 7; there:\nTraceback (most recent call last):\n  x"
    assert reason_of(noted(KeyError("a"), note)) == (
        "KeyError: 'a' (raised by env 3 in worker process 7)"
    )


def test_members_of_a_group_are_named() -> None:
    group = ExceptionGroup(
        "two envs", [noted(ValueError("one"), "raised by env 1"), TypeError("two")]
    )
    assert reason_of(group) == (
        "ExceptionGroup: two envs (2 sub-exceptions): ValueError: one (raised by env 1); "
        "TypeError: two"
    )


def test_a_cause_is_named_unless_its_message_is_there_already() -> None:
    error = RuntimeError("the training cannot go on")
    error.__cause__ = ValueError("reward is nan")
    assert reason_of(error) == (
        "RuntimeError: the training cannot go on, caused by ValueError: reward is nan"
    )
    error = RuntimeError("the training cannot go on: reward is nan")
    error.__cause__ = ValueError("reward is nan")
    assert reason_of(error) == "RuntimeError: the training cannot go on: reward is nan"


def test_circles_and_lengths_have_an_end() -> None:
    error, other = ValueError("a"), ValueError("b")
    error.__cause__, other.__cause__ = other, error
    assert reason_of(error) == "ValueError: a, caused by ValueError: b"
    many = noted(ValueError("x" * 5_000), *["n" * 5_000] * 9)
    assert len(reason_of(many)) == LONGEST_REASON
    assert "(nnn" in reason_of(many)


def test_an_exception_that_cannot_be_printed_still_has_a_name() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    assert reason_of(Mute()) == "Mute: <its message cannot be read: RuntimeError>"
    odd = ValueError("a")
    odd.__notes__ = "no list"  # type: ignore[assignment]
    assert notes_of(odd) == []
    odd.__notes__ = [3, "", "there"]  # type: ignore[list-item]
    assert reason_of(odd) == "ValueError: a (there)"


def test_a_failed_run_says_what_was_raised_and_by_which_env(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Run.create(tmp_path / "run", kind="training"):
        raise noted(ZeroDivisionError("division by zero"), "raised by env 0, in this process")
    assert RunReader(tmp_path / "run").status == (
        "failed: ZeroDivisionError: division by zero (raised by env 0, in this process)"
    )
