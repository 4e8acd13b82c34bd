"""TaskCache: bounded, forgets the oldest first, never travels."""

import pickle

import pytest

from stepladder.errors import ConfigError
from stepladder.tasks import Task
from stepladder.tasks.cache import TaskCache


def test_the_task_unused_for_longest_leaves_first():
    cache = TaskCache(2)
    cache.keep(0, Task("a"))
    cache.keep(1, Task("b"))
    assert cache.find(0) == Task("a")
    cache.keep(2, Task("c"))
    assert (cache.find(0), cache.find(1), cache.find(2)) == (Task("a"), None, Task("c"))
    assert len(cache) == 2


def test_a_cache_of_size_zero_keeps_nothing():
    cache = TaskCache(0)
    cache.keep(0, Task("a"))
    assert len(cache) == 0


def test_a_pickled_cache_is_empty_and_of_the_same_size():
    cache = TaskCache(1)
    cache.keep(0, Task("a"))
    twin = pickle.loads(pickle.dumps(cache))
    assert len(twin) == 0
    twin.keep(0, Task("a"))
    twin.keep(1, Task("b"))
    assert len(twin) == 1


@pytest.mark.parametrize("cache_size", [-1, 1.5, None, True])
def test_a_size_that_is_no_count_is_refused(cache_size):
    with pytest.raises(ConfigError, match="cache_size must"):
        TaskCache(cache_size)
