"""The small parts of the worker vector env, each by itself."""

import math
import os
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv

from stepladder import cores
from stepladder.compiled import compiled, load_acquire, store_release, yield_core
from stepladder.cores import cpu_quota, usable_cores
from stepladder.envs.workers.faults import pack_fault, unpack_fault
from stepladder.envs.workers.memory.lanes import LANE_DTYPE, NO_ENTRY, await_order, give_one
from stepladder.envs.workers.memory.layout import MemoryLayout, VectorArrays
from stepladder.envs.workers.memory.messages import (
    INFO_MESSAGE,
    MESSAGE_MARK,
    OBJECTS_MESSAGE,
    OVERFLOW,
    MessageWriter,
    read_messages,
    read_overflow,
)
from stepladder.envs.workers.memory.row_split import RowSplit
from stepladder.envs.workers.memory.rows import Recycler
from stepladder.envs.workers.memory.spaces import build, leaves_of
from stepladder.envs.workers.parent import worker_pool
from stepladder.envs.workers.parent.infos import merge_infos
from stepladder.envs.workers.spinning import SPIN_S, SpinLimit
from stepladder.errors import EnvError
from worker_envs import BoomError, Parcel, StubbornError, TroubleEnv, worker_env, worker_pids

# Cores.


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def groups(tmp_path: Path) -> Any:
    """Control groups in a folder: their files, and the line that says in which one we are."""

    def quota(own: str, **files: str) -> float:
        write(tmp_path / "own", own)
        for name, text in files.items():
            write(tmp_path / "cgroup" / name.replace("__", "/").replace("_DOT_", "."), text)
        return cpu_quota(tmp_path / "cgroup", tmp_path / "own")

    return quota


@pytest.mark.parametrize(
    ("text", "quota"),
    [
        ("200000 100000\n", 2.0),
        ("150000 100000\n", 1.5),
        ("50000 100000\n", 0.5),
        ("400000 50000\n", 8.0),
        ("max 100000\n", math.inf),
        ("", math.inf),
    ],
)
def test_version_2_gives_its_quota(groups: Any, text: str, quota: float) -> None:
    assert groups("0::/\n", cpu_DOT_max=text) == quota


def test_of_nested_groups_the_tightest_counts(groups: Any) -> None:
    files = {
        "cpu_DOT_max": "max 100000",
        "a__cpu_DOT_max": "300000 100000",
        "a__b__cpu_DOT_max": "max 100000",
        "a__b__c__cpu_DOT_max": "700000 100000",
        "other__cpu_DOT_max": "100000 100000",
    }
    assert groups("0::/a/b/c\n", **files) == 3.0
    assert groups("0::/a\n", **files) == 3.0
    assert groups("0::/\n", **files) == math.inf


def test_a_path_that_only_the_outside_sees_leaves_our_own_root(groups: Any) -> None:
    assert groups("0::/docker/0123\n", cpu_DOT_max="250000 100000") == 2.5
    assert groups("0::/../../outer\n", cpu_DOT_max="250000 100000") == 2.5


def test_version_1_gives_its_quota(groups: Any) -> None:
    own = "12:memory:/x\n4:cpu,cpuacct:/docker/0123\n3:cpuset:/\n1:name=systemd:/y\n"
    files = {
        "cpu,cpuacct__cpu_DOT_cfs_quota_us": "-1\n",
        "cpu,cpuacct__cpu_DOT_cfs_period_us": "100000\n",
    }
    assert groups(own, **files) == math.inf
    files |= {
        "cpu,cpuacct__docker__0123__cpu_DOT_cfs_quota_us": "350000\n",
        "cpu,cpuacct__docker__0123__cpu_DOT_cfs_period_us": "100000\n",
    }
    assert groups(own, **files) == 3.5
    files |= {
        "cpu,cpuacct__docker__cpu_DOT_cfs_quota_us": "20000\n",
        "cpu,cpuacct__docker__cpu_DOT_cfs_period_us": "10000\n",
    }
    assert groups(own, **files) == 2.0


def test_of_both_versions_at_once_the_tighter_counts(groups: Any) -> None:
    files = {
        "cpu__cpu_DOT_cfs_quota_us": "100000",
        "cpu__cpu_DOT_cfs_period_us": "100000",
        "cpu_DOT_max": "300000 100000",
    }
    assert groups("2:cpu:/\n0::/\n", **files) == 1.0


def test_without_control_groups_there_is_no_quota(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path / "none", tmp_path / "none") == math.inf
    write(tmp_path / "own", "0::/\n")
    assert cpu_quota(tmp_path / "none", tmp_path / "own") == math.inf


@pytest.mark.parametrize(
    ("affinity", "quota", "usable"),
    [(4, math.inf, 4), (4, 2.0, 2), (4, 2.9, 2), (4, 0.5, 1), (1, 8.0, 1), (64, 16.0, 16)],
)
def test_affinity_and_quota_both_limit(
    affinity: int, quota: float, usable: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(affinity)), raising=False)
    monkeypatch.setattr(cores, "cpu_quota", lambda: quota)
    assert usable_cores() == usable


def test_without_affinity_all_cores_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    monkeypatch.setattr(cores, "cpu_quota", lambda: math.inf)
    assert usable_cores() == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores() == 1


def test_a_real_affinity_is_heeded() -> None:
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("this platform has no affinity")
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, before)


# Spinning.


def test_whoever_has_no_core_to_spin_on_does_not() -> None:
    spin_limit = SpinLimit(may_spin=False)
    spin_limit.begin()
    assert spin_limit.spins == 1
    assert not spin_limit.may_continue()


def test_spinning_ends() -> None:
    spin_limit = SpinLimit(may_spin=True)
    for _ in range(2):
        spin_limit.begin()
        began = time.perf_counter()
        while spin_limit.may_continue():
            pass
        assert SPIN_S <= time.perf_counter() - began < SPIN_S + 1.0


@pytest.mark.processes
@pytest.mark.timeout(60, method="signal")
@pytest.mark.parametrize(("available", "spins"), [(1, False), (2, False), (3, True), (8, True)])
def test_spinners_never_outnumber_cores(
    available: int, spins: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers and their parent are three who might spin."""
    asked: list[bool] = []

    class Spy(worker_pool.Assignment):
        def __init__(self, *, may_spin: bool, **kwargs: Any):
            asked.append(may_spin)
            super().__init__(may_spin=may_spin, **kwargs)

    monkeypatch.setattr(worker_pool, "Assignment", Spy)
    monkeypatch.setattr(worker_pool, "usable_cores", lambda: available)
    with worker_env(3, num_workers=2) as vec:
        vec.reset()
        vec.step(np.zeros(3, dtype=np.int64))
        assert vec._coordinator._pool._may_spin == spins
    assert asked == [spins, spins]


@pytest.mark.processes
@pytest.mark.timeout(60, method="signal")
def test_idle_workers_use_no_time() -> None:
    with worker_env(3, num_workers=2) as vec:
        vec.reset()
        vec.step(np.zeros(3, dtype=np.int64))
        workers = [psutil.Process(pid) for pid in worker_pids(vec)]
        time.sleep(0.1)
        before = [worker.cpu_times().user + worker.cpu_times().system for worker in workers]
        time.sleep(0.6)
        after = [worker.cpu_times().user + worker.cpu_times().system for worker in workers]
        assert max(np.subtract(after, before)) < 0.1


# RowSplit.


@pytest.mark.parametrize("num_envs", [1, 2, 3, 7, 8, 64])
@pytest.mark.parametrize("num_workers", [0, 1, 3])
@pytest.mark.parametrize("num_batches", [1, 2, 3])
@pytest.mark.parametrize("parent_steps", [True, False])
def test_every_row_has_one_owner(
    num_envs: int, num_workers: int, num_batches: int, parent_steps: bool
) -> None:
    split = RowSplit(num_envs, num_workers, num_batches, parent_steps)
    assert [row for rows in split.batches for row in range(rows.start, rows.stop)] == list(
        range(num_envs)
    )
    owned: list[int] = []
    for batch, rows in enumerate(split.batches):
        parts = [split.of_parent(batch)]
        parts += [split.of_worker(worker, batch) for worker in range(num_workers)]
        owned += [row for part in parts for row in part]
        sizes = [len(part) for part in parts[1 if num_workers and not parent_steps else 0 :]]
        assert max(sizes) - min(sizes) <= 1
        assert all(rows.start <= row < rows.stop for part in parts for row in part)
        if num_workers and not parent_steps:
            assert not len(parts[0])
    assert owned == list(range(num_envs))


# Spaces.


SPACE = spaces.Dict(
    {
        "a": spaces.Box(-1, 1, (2, 3), np.float32),
        "b": spaces.Tuple((spaces.Discrete(3), spaces.Dict({"deep": spaces.MultiBinary(4)}))),
        "c": spaces.Text(5),
        "d": spaces.Tuple(()),
        "e": Parcel(),
    }
)


def test_a_value_taken_apart_and_built_again_is_the_same() -> None:
    SPACE.seed(0)
    value = SPACE.sample()
    leaves = leaves_of(SPACE)
    assert [leaf.path for leaf in leaves] == [("a",), ("b", 0), ("b", 1, "deep"), ("c",), ("e",)]
    assert [leaf.is_array for leaf in leaves] == [True, True, True, False, False]
    assert [leaf.shape for leaf in leaves[:3]] == [(2, 3), (), (4,)]
    again = build(SPACE, [leaf.get(value) for leaf in leaves])
    assert again.keys() == value.keys()
    assert again["b"][1]["deep"] is value["b"][1]["deep"]
    assert again["d"] == ()
    assert again["e"] == value["e"]


def test_a_plain_space_is_its_own_leaf() -> None:
    (leaf,) = leaves_of(spaces.Discrete(3))
    assert leaf.path == ()
    assert leaf.dtype == np.int64
    assert leaf.get(2) == 2


# Memory.


def test_arrays_do_not_overlap_and_lie_on_lines_of_their_own() -> None:
    leaves = leaves_of(SPACE)
    layout = MemoryLayout(5, 2, 2, leaves, leaves)
    memory = VectorArrays(layout)
    arrays: list[Any] = [
        memory.lanes,
        memory.messages,
        memory.rewards,
        memory.terminated,
        memory.truncated,
        memory.reset_mask,
        *(
            column
            for column in (*memory.observations, *memory.actions)
            if isinstance(column, np.ndarray)
        ),
    ]
    bounds = sorted((array.ctypes.data, array.ctypes.data + array.nbytes) for array in arrays)
    for (_, stop), (start, _) in pairwise(bounds):
        assert stop <= start
    assert all(start % 64 == 0 for start, _ in bounds)
    assert memory.lanes.shape == (2, 2)
    assert LANE_DTYPE.itemsize == 3 * 64
    assert memory.observations[3] == [None] * 5


def test_two_views_of_one_block_see_the_same() -> None:
    layout = MemoryLayout(
        3, 1, 1, leaves_of(spaces.Box(-1, 1, (2,))), leaves_of(spaces.Discrete(2))
    )
    block = np.zeros(layout.num_words, dtype=np.int64)
    first, second = VectorArrays(layout, block), VectorArrays(layout, block)
    first.observations[0][1] = (3, 4)
    first.terminated[2] = True
    first.rewards[:] = 7
    np.testing.assert_array_equal(second.observations[0], [[0, 0], [3, 4], [0, 0]])
    np.testing.assert_array_equal(second.terminated, [False, False, True])
    np.testing.assert_array_equal(second.rewards, 7)


def test_an_empty_observation_takes_no_room() -> None:
    layout = MemoryLayout(
        3, 0, 1, leaves_of(spaces.Box(-1, 1, (0,))), leaves_of(spaces.Discrete(2))
    )
    assert VectorArrays(layout).observations[0].shape == (3, 0)


# Messages.


def test_messages_are_read_as_they_were_written() -> None:
    lane, room, sent = np.zeros(1, dtype=LANE_DTYPE)[0], np.zeros(4096, dtype=np.uint8), []
    writer = MessageWriter(lane, room, sent.append)
    writer.begin(8)
    said = [
        (INFO_MESSAGE, 3, {"a": np.arange(3)}),
        (OBJECTS_MESSAGE, 4, ["text", [1]]),
        (INFO_MESSAGE, 4, {}),
    ]
    for kind, row, value in said:
        writer.write(kind, row, value)
    read = list(read_messages(room, lane["message_bytes"]))
    assert [message[:2] for message in read] == [message[:2] for message in said]
    np.testing.assert_array_equal(read[0][2]["a"], [0, 1, 2])
    assert read[1][2] == ["text", [1]]
    assert not sent
    writer.begin(12)
    writer.write(INFO_MESSAGE, 1, {"b": 1})
    assert list(read_messages(room, lane["message_bytes"])) == [(INFO_MESSAGE, 1, {"b": 1})]


def test_what_has_no_room_is_sent_and_what_has_is_still_written() -> None:
    lane, room, sent = np.zeros(1, dtype=LANE_DTYPE)[0], np.zeros(256, dtype=np.uint8), []
    writer = MessageWriter(lane, room, sent.append)
    writer.begin(8)
    writer.write(INFO_MESSAGE, 0, {"large": bytes(1000)})
    writer.write(INFO_MESSAGE, 1, {"small": 1})
    assert lane["num_overflows"] == 1
    assert list(read_messages(room, lane["message_bytes"])) == [(INFO_MESSAGE, 1, {"small": 1})]
    assert MESSAGE_MARK.unpack_from(sent[0]) == (OVERFLOW, 8)
    assert read_overflow(memoryview(sent[0])[MESSAGE_MARK.size :]) == (
        INFO_MESSAGE,
        0,
        {"large": bytes(1000)},
    )


def test_what_was_read_does_not_change_when_the_room_is_written_again() -> None:
    lane, room = np.zeros(1, dtype=LANE_DTYPE)[0], np.zeros(4096, dtype=np.uint8)
    writer = MessageWriter(lane, room, lambda data: None)
    writer.begin(4)
    writer.write(INFO_MESSAGE, 0, {"a": np.ones(20), "b": b"xyz" * 9})
    ((_, _, value),) = read_messages(room, lane["message_bytes"])
    room[:] = 255
    np.testing.assert_array_equal(value["a"], 1)
    assert value["b"] == b"xyz" * 9


# Infos.


INFOS: list[list[dict[str, Any]]] = [
    [{}, {}, {}],
    [{"a": 1}, {}, {"a": 2.5}],
    [{"a": 1.5}, {"b": "x"}, {"a": 2}],
    [{"a": np.float32(1)}, {"a": np.float32(2)}, {}],
    [{"a": np.arange(2)}, {}, {"a": np.arange(2) + 5}],
    [{"a": None}, {"a": [1]}, {"a": {1, 2}}],
    [{"a": True}, {"a": False}, {}],
    [{"a": np.bool_(True)}, {}, {}],
    [{"a": {"b": {"c": 1}}}, {"a": {"d": "x"}}, {"a": {}}],
    [{"final_obs": np.arange(3), "final_info": {"a": 1}}, {}, {"final_obs": np.arange(3)}],
    [{"final_obs": {"a": 1}}, {}, {"final_obs": (1, 2)}],
    [{}, {"a": np.array(3)}, {}],
    [{"a": {"final_obs": np.arange(2)}}, {}, {}],
    [{"a": "text"}, {"a": np.arange(2)}, {"a": 3}],
    [{1: 2, (3, "x"): 4.5}, {None: "x"}, {1: 5, b"raw": np.arange(2)}],
    [{"a": {1: {None: 2}}}, {"a": {(): "x"}}, {"a": {1: {None: 3}, "b": 1}}],
    [{1: 2}, {True: 3}, {1.0: 4}],
    [{1: 2}, {"1": "x"}, {}],
    [{"a": 1, "_a": 5}, {"_a": 6}, {"a": 2}],
    [{"_a": 5, "a": 1}, {"a": 2}, {}],
    [{"a": OrderedDict(b=1)}, {"a": {"b": 2}}, {}],
    [{"final_info": {1: 2}, "final_obs": 3, 4: 5}, {4: 6}, {}],
]


@pytest.mark.parametrize("infos", INFOS)
def test_infos_are_merged_as_gymnasium_merges_them(infos: list[dict[str, Any]]) -> None:
    theirs = SyncVectorEnv([TroubleEnv] * 3)
    expected: dict[str, Any] = {}
    for row, info in enumerate(infos):
        expected = theirs._add_info(expected, info, row)
    theirs.close()
    merged = merge_infos([(row, info) for row, info in enumerate(infos) if info], 3)
    _assert_alike(merged, expected)


def _assert_alike(ours: Any, theirs: Any) -> None:
    assert type(ours) is type(theirs)
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys()
        for key in theirs:
            _assert_alike(ours[key], theirs[key])
    elif isinstance(theirs, np.ndarray) and theirs.dtype == object:
        for our, their in zip(ours, theirs, strict=True):
            _assert_alike(our, their)
    elif isinstance(theirs, np.ndarray):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    else:
        assert ours == theirs


@pytest.mark.parametrize(
    "infos", [[{"a": 1.5}, {"a": "x"}, {}], [{"a": np.zeros(2)}, {"a": np.zeros(3)}, {}]]
)
def test_infos_that_do_not_fit_together_fail_as_gymnasiums_do(infos: Any) -> None:
    theirs = SyncVectorEnv([TroubleEnv] * 3)
    merged = theirs._add_info({}, infos[0], 0)
    with pytest.raises(ValueError, match="could not") as expected:
        theirs._add_info(merged, infos[1], 1)
    with pytest.raises(ValueError, match="could not") as caught:
        merge_infos([(0, infos[0]), (1, infos[1])], 3)
    assert str(caught.value) == str(expected.value)
    theirs.close()


# Faults.


def test_an_exception_travels_with_its_type_traceback_and_env() -> None:
    try:
        raise BoomError("it broke")
    except BoomError as error:
        fault = pack_fault(7, error)
    there = unpack_fault(fault, 123)
    assert type(there) is BoomError
    assert str(there) == "it broke"
    assert there.env_index == 7  # type: ignore[attr-defined]
    (note,) = there.__notes__
    assert "env 7" in note
    assert "123" in note
    assert 'raise BoomError("it broke")' in note


def test_an_exception_that_cannot_travel_is_told() -> None:
    for error in (StubbornError("it broke", more=1), _Demanding(1, 2)):
        there = unpack_fault(pack_fault(3, error), 123)
        assert isinstance(there, EnvError)
        assert type(error).__name__ in str(there)
        assert "env 3" in str(there)


class _Demanding(Exception):
    """Can be pickled, and not be made again from that."""

    def __init__(self, first: int, second: int):
        super().__init__(f"{first} {second}")


def test_an_exception_that_cannot_even_be_told_is_forwarded() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    there = unpack_fault(pack_fault(3, Mute()), 123)
    assert "Mute" in "".join((str(type(there)), str(there), *there.__notes__))


# Copies.


def test_a_large_copy_takes_memory_that_nobody_has_any_more() -> None:
    source = np.arange(20_000.0)
    copied = Recycler(source)
    first = copied()
    address = first.ctypes.data
    del first
    again = copied()
    assert again.ctypes.data == address
    np.testing.assert_array_equal(again, source)


def test_a_large_copy_is_never_one_that_somebody_has_or_has_a_view_of() -> None:
    source = np.zeros(20_000)
    copied = Recycler(source)
    kept = []
    for number in range(10):
        source[:] = number
        copy = copied()
        # The user keeps the whole of some, and a view of others.
        kept.append(copy if number % 2 else copy[5:7])
        del copy
    assert [array[0] for array in kept] == list(range(10))


# Orders.

MANY_SPINS = 1000
"""The other side answers sooner, unless it waits for this core."""


@compiled
def give_pairs(lanes: Any, num_pairs: int) -> None:
    """Give orders to both batches of worker 0, and wait until both are done."""
    done = lanes["done"][0]
    for number in range(num_pairs):
        give_one(lanes, 0, 0, 2 * number + 1)
        give_one(lanes, 0, 1, 2 * number + 2)
        spins = 0
        while load_acquire(done, 0) != 2 * number + 1 or load_acquire(done, 1) != 2 * number + 2:
            spins += 1
            if spins % MANY_SPINS == 0:
                yield_core()


@compiled
def count_newer_first(lanes: Any, num_pairs: int) -> int:
    """Carry out orders; return how often a newer one was found while an older one was there."""
    orders, done = lanes["order"][0], lanes["done"][0]
    num_wrong = 0
    for _ in range(2 * num_pairs):
        batch = await_order(lanes, 0, MANY_SPINS)
        while batch == NO_ENTRY:
            yield_core()
            batch = await_order(lanes, 0, MANY_SPINS)
        other = 1 - batch
        num_wrong += done[other] != orders[other] and orders[other] < orders[batch]
        store_release(done, batch, orders[batch])
    return num_wrong


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_worker_finds_the_oldest_order_first() -> None:
    # A worker that took the newer one first would drop the actions that came with the older one.
    # One that looked only once would do so a thousand times here.
    lanes, num_pairs = np.zeros((1, 2), LANE_DTYPE), 20_000
    give_pairs(lanes, 0), count_newer_first(lanes, 0)
    with ThreadPoolExecutor(1) as thread:
        wrong = thread.submit(count_newer_first, lanes, num_pairs)
        give_pairs(lanes, num_pairs)
        assert wrong.result() == 0
