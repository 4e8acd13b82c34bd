"""What other programs left on this machine is no finding of a test."""

import pytest

from stepladder.diagnosis import machine


@pytest.fixture(autouse=True)
def nothing_was_left_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide shared memory that was left over before the test."""
    before = {one.name for one in machine.look().left_over}
    find = machine._left_over
    monkeypatch.setattr(
        machine, "_left_over", lambda: (one for one in find() if one.name not in before)
    )
