"""Workers that are kept from one test to the next are ended with the module."""

from collections.abc import Iterator

import pytest

from testing_env import dismiss


@pytest.fixture(scope="module", autouse=True)
def no_worker_is_left_behind() -> Iterator[None]:
    yield
    dismiss()
