"""What every test may rely on."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def ctrl_c_works() -> Iterator[None]:
    """Heed Ctrl-C, also when the suite runs in the background, where shells switch it off.

    Processes that a test starts inherit this.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, before)
