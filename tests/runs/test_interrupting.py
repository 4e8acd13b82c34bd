"""Ctrl-C waits for a good moment once."""

import os
import signal

import pytest

from stepladder.runs.interrupting import InterruptGuard


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_one_waits_until_it_is_asked_for() -> None:
    before = signal.getsignal(signal.SIGINT)
    with InterruptGuard() as guard:
        assert not guard.was_interrupted
        interrupt()
        assert guard.was_interrupted
    assert signal.getsignal(signal.SIGINT) is before


def test_the_second_one_does_not_wait() -> None:
    with pytest.raises(KeyboardInterrupt), InterruptGuard():  # noqa: PT012
        interrupt()
        interrupt()
        pytest.fail("it waited")


def test_everything_is_as_before_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT)
    with InterruptGuard():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_who_ignores_it_goes_on_ignoring_it() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with InterruptGuard() as guard:
            interrupt()
            assert not guard.was_interrupted
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
