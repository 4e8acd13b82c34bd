"""A pool belongs to one curriculum."""

import pytest

from stepladder.curricula import Uniform
from stepladder.errors import ConfigError
from stepladder.tasks import ListSource, Pool


def test_a_pool_cannot_serve_two_curricula():
    pool = Pool(ListSource.numbered(10), 5)
    first, second = Uniform(pool), Uniform(pool)
    first.draw(3)
    with pytest.raises(ConfigError, match="already belongs to another curriculum"):
        second.draw(3)
    assert len(first.draw(3)) == 3
