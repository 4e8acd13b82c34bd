"""Memory that several processes see: who gets it, who is refused, and that it goes away."""

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stepladder.errors import ChannelError, HostGoneError, StaleSegmentError
from stepladder.sync import SharedHost, segment
from stepladder.sync.segment import Segment, Ticket
from sync.rig import forked, numbered, open_descriptors, receive

pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


@pytest.fixture
def shared() -> Iterator[Segment]:
    made = Segment.create(100)
    yield made
    made.close()


def holders(inode: int) -> set[int]:
    """Return the processes that map, or hold open, the memory with this inode."""
    return {int(process.name) for process in Path("/proc").glob("[0-9]*") if holds(process, inode)}


def holds(process: Path, inode: int) -> bool:
    try:
        maps = (process / "maps").read_text().splitlines()
        links = list((process / "fd").iterdir())
    except OSError:
        return False
    if any("memfd:stepladder" in line and int(line.split()[4]) == inode for line in maps):
        return True
    for link in links:
        try:
            if "memfd:stepladder" in os.readlink(link) and os.stat(link).st_ino == inode:
                return True
        except OSError:
            # Closed between the two looks.
            continue
    return False


def inode_of(ticket: Ticket) -> int:
    return os.stat(ticket.address).st_ino


def test_a_segment_begins_as_zeros_and_both_sides_see_the_same_words(shared: Segment) -> None:
    assert shared.words.shape == (100,)
    assert not shared.words.any()
    attached = Segment.attach(shared.ticket)
    attached.words[7] = 42
    shared.words[99] = -1
    assert (shared.words[7], attached.words[99]) == (42, -1)


def test_words_begin_a_cache_line(shared: Segment) -> None:
    assert shared.words.ctypes.data % 64 == 0
    assert Segment.attach(shared.ticket).words.ctypes.data % 64 == 0


def test_all_who_attach_in_one_process_share_one_mapping(shared: Segment) -> None:
    first = Segment.attach(shared.ticket)
    before = open_descriptors()
    attached = [Segment.attach(shared.ticket) for _ in range(100)]
    assert open_descriptors() == before
    assert {other.words.ctypes.data for other in attached} == {first.words.ctypes.data}


def test_the_memory_has_no_name_in_any_file_system(shared: Segment) -> None:
    assert os.readlink(shared.ticket.address) == "/memfd:stepladder (deleted)"


@pytest.mark.parametrize("change", [{"nonce": 1}, {"num_words": 99}, {"num_words": 10**6}])
def test_a_ticket_that_says_something_else_is_refused(
    shared: Segment, change: dict[str, int]
) -> None:
    before = open_descriptors()
    with pytest.raises(StaleSegmentError, match="not the one this client was made for"):
        Segment.attach(replace(shared.ticket, **change))
    assert open_descriptors() == before


def test_a_segment_of_another_program_is_refused(shared: Segment) -> None:
    mark: Any = shared.words.base[: segment.Mark.num_words].view(segment.Mark.dtype)  # type: ignore[index]
    mark["magic"] += 1
    with pytest.raises(StaleSegmentError, match="another mark"):
        Segment.attach(shared.ticket)


def stale_ticket() -> tuple[Ticket, int]:
    """Return the ticket of a segment that was closed, and the descriptor it had."""
    made = Segment.create(100)
    made.close()
    return made.ticket, int(made.ticket.address.rpartition("/")[2])


@contextmanager
def taking(descriptor: int, *opened: int) -> Iterator[None]:
    """Give the first of some open files a descriptor for the length of a ``with`` block."""
    os.dup2(opened[0], descriptor)
    try:
        yield
    finally:
        for number in {descriptor, *opened}:
            os.close(number)


def test_a_closed_segment_is_refused() -> None:
    ticket, _ = stale_ticket()
    with pytest.raises(StaleSegmentError, match="No such file"):
        Segment.attach(ticket)


def test_a_file_that_has_the_descriptor_now_is_refused_and_left_alone(tmp_path: Path) -> None:
    ticket, descriptor = stale_ticket()
    other = tmp_path / "other"
    content = bytes(range(256)) * 4
    other.write_bytes(content)
    with taking(descriptor, os.open(other, os.O_RDWR)):
        with pytest.raises(StaleSegmentError, match="1024 bytes instead of 864"):
            Segment.attach(ticket)
        os.truncate(other, 864)
        with pytest.raises(StaleSegmentError, match="another mark"):
            Segment.attach(ticket)
    assert other.read_bytes() == content[:864]


def test_a_pipe_that_has_the_descriptor_now_is_refused_without_waiting() -> None:
    ticket, descriptor = stale_ticket()
    with taking(descriptor, *os.pipe()), pytest.raises(StaleSegmentError):
        Segment.attach(ticket)


def test_another_segment_that_has_the_descriptor_now_is_refused() -> None:
    ticket, _ = stale_ticket()
    successor = Segment.create(100)
    assert successor.ticket.address == ticket.address, "the descriptor was not taken again"
    with pytest.raises(StaleSegmentError, match="another mark"):
        Segment.attach(ticket)
    Segment.attach(successor.ticket)
    successor.close()


def test_the_ticket_of_a_process_that_never_was_says_that_the_host_is_gone(
    shared: Segment,
) -> None:
    largest = int(Path("/proc/sys/kernel/pid_max").read_text())
    with pytest.raises(HostGoneError, match="is gone"):
        Segment.attach(replace(shared.ticket, host_pid=largest + 1))


def hold(pipe: Connection) -> None:
    made = Segment.create(1000)
    made.words[0] = 5
    pipe.send((made.ticket, inode_of(made.ticket)))
    time.sleep(60)


@pytest.mark.processes
def test_a_host_that_is_killed_leaves_no_memory_behind() -> None:
    with forked(hold) as (process, pipe):
        ticket, inode = receive(pipe)
        attached = Segment.attach(ticket)
        assert attached.words[0] == 5
        assert holders(inode) == {os.getpid(), process.pid}
        os.kill(ticket.host_pid, signal.SIGKILL)
        process.join(30)
        with pytest.raises((HostGoneError, StaleSegmentError)):
            Segment.attach(ticket)
        # What was attached before can still be read, and goes when it is let go of.
        assert attached.words[0] == 5
        assert holders(inode) == {os.getpid()}
        del attached
        gc.collect()
        assert holders(inode) == set()


@pytest.mark.slow
def test_closing_frees_descriptor_and_mapping() -> None:
    gc.collect()
    before = open_descriptors()
    kept = []
    for _ in range(50):
        made = Segment.create(1000)
        inode = inode_of(made.ticket)
        attached = Segment.attach(made.ticket)
        assert os.getpid() in holders(inode)
        made.close()
        made.close()
        del attached
        # Whoever keeps the object does not keep the memory.
        kept.append(made)
    assert open_descriptors() == before
    assert holders(inode) == set()


def test_a_segment_that_nobody_closes_goes_with_its_last_holder() -> None:
    gc.collect()
    before = open_descriptors()
    made = Segment.create(1000)
    inode = inode_of(made.ticket)
    assert open_descriptors() > before
    del made
    gc.collect()
    assert open_descriptors() == before
    assert holders(inode) == set()


def test_a_segment_that_cannot_be_made_leaves_no_descriptor_behind() -> None:
    before = open_descriptors()
    with pytest.raises(OSError, match=r".*"):
        Segment.create(2**58)
    assert open_descriptors() == before


# Where there are no anonymous files.


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment, "sys", SimpleNamespace(platform="darwin"))
    # Python starts it with the first named segment; it is not ours to count.
    resource_tracker.ensure_running()


def is_named(ticket: Ticket) -> bool:
    return Path("/dev/shm", ticket.address).exists()


@pytest.mark.processes
@pytest.mark.usefixtures("elsewhere")
def test_elsewhere_a_named_segment_does_the_same_and_goes_away_too() -> None:
    gc.collect()
    before = open_descriptors()
    made = Segment.create(100)
    assert not made.ticket.address.startswith("/")
    attached = Segment.attach(made.ticket)
    attached.words[7] = 42
    assert made.words[7] == 42
    assert not made.words[8:].any()
    assert is_named(made.ticket)
    made.close()
    assert not is_named(made.ticket)
    # Who is attached stays so; nobody new gets in.
    assert attached.words[7] == 42
    del attached
    gc.collect()
    assert open_descriptors() == before
    with pytest.raises(StaleSegmentError, match="not the one this client was made for"):
        Segment.attach(made.ticket)


@pytest.mark.processes
@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("change", [{"nonce": 1}, {"num_words": 10**6}])
def test_elsewhere_a_ticket_that_says_something_else_is_refused(change: dict[str, int]) -> None:
    gc.collect()
    before = open_descriptors()
    made = Segment.create(100)
    with pytest.raises(StaleSegmentError, match="not the one this client was made for"):
        Segment.attach(replace(made.ticket, **change))
    made.close()
    gc.collect()
    assert open_descriptors() == before


@pytest.mark.processes
@pytest.mark.usefixtures("elsewhere")
def test_elsewhere_a_channel_works_and_leaves_nothing_behind() -> None:
    gc.collect()
    before = open_descriptors()
    curriculum = numbered(50)
    with SharedHost(curriculum, 2) as host:
        clients = host.clients()
        ticket = host.client(0)._ticket
        assert is_named(ticket)
        for client in clients:
            client.draw()
            client.finish(success=1.0)
        # An attached client that goes takes its own view along, and nobody else's.
        del client, clients[0]
        gc.collect()
        assert len(host.collect()) == 2
        clients[0].draw()
    with pytest.raises(ChannelError, match="closed"):
        clients[0].draw()
    assert curriculum.num_observed == 2
    assert not is_named(ticket)
    clients.clear()
    gc.collect()
    assert open_descriptors() == before


ELSEWHERE = """
import sys
from types import SimpleNamespace
from stepladder.curricula import Uniform
from stepladder.sync import SharedHost, segment
from stepladder.tasks import ListSource

segment.sys = SimpleNamespace(platform="darwin")
host = SharedHost(Uniform(ListSource.numbered(5)), 1)
client = host.client(0)
client.draw()
client.finish(success=1.0)
assert len(host.collect()) == 1
print(client._ticket.address)
if sys.argv[1] == "close":
    host.close()
"""


@pytest.mark.processes
@pytest.mark.parametrize("what", ["close", "forget"])
def test_elsewhere_python_finds_nothing_left_when_it_ends(what: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", ELSEWHERE, what],
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )
    assert ended.stderr == ""
    assert ended.stdout.startswith("stepladder-")
    assert not Path("/dev/shm", ended.stdout.strip()).exists()


@pytest.mark.processes
@pytest.mark.usefixtures("elsewhere")
def test_elsewhere_a_fork_that_ends_does_not_take_the_name_along() -> None:
    made = Segment.create(100)
    pid = os.fork()
    if pid == 0:
        made.close()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert is_named(made.ticket)
    made.words[3] = 7
    assert Segment.attach(made.ticket).words[3] == 7
    made.close()
    assert not is_named(made.ticket)
