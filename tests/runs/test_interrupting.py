"""Ctrl-C waits for a good moment once."""

import os
import signal

import pytest

from stepladder.runs.interrupting import Patience


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_one_waits_until_it_is_asked_for() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Patience() as patience:
        assert not patience.is_over
        interrupt()
        assert patience.is_over
    assert signal.getsignal(signal.SIGINT) is before


def test_the_second_one_does_not_wait() -> None:
    with pytest.raises(KeyboardInterrupt), Patience():  # noqa: PT012
        interrupt()
        interrupt()
        pytest.fail("it waited")


def test_everything_is_as_before_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Patience():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_who_ignores_it_goes_on_ignoring_it() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Patience() as patience:
            interrupt()
            assert not patience.is_over
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
