"""Host and clients in different processes: full mailboxes, deaths, and what is left behind."""

import gc
import logging
import os
import pickle
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepladder.errors import (
    ChannelError,
    HostGoneError,
    StaleSegmentError,
    WrongProcessError,
)
from stepladder.plans import kernels
from stepladder.plans.record import Record
from stepladder.sync import Client, EpisodeCounts, LocalHost, SharedHost
from stepladder.sync import client as client_module
from stepladder.sync.mailbox import CAPACITY
from sync.rig import (
    Workers,
    forked,
    kill_self,
    make_staged,
    num_mapped,
    numbered,
    open_descriptors,
    patiently,
    receive,
    wait_until,
)

pytestmark = [
    pytest.mark.processes,
    pytest.mark.timeout(60),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


@contextmanager
def staffed(host: SharedHost, num_workers: int = 1) -> Iterator[Workers]:
    """Put all clients into forked workers for the length of a ``with`` block."""
    clients = host.clients()
    share = len(clients) // num_workers
    workers = Workers("fork", [clients[share * i : share * (i + 1)] for i in range(num_workers)])
    try:
        yield workers
    finally:
        workers.close()


def play(client: Client, num_episodes: int) -> None:
    for _ in range(num_episodes):
        draw = client.draw()
        client.finish(success=1.0, episode_return=float(draw.episode_index))


# Full mailboxes.


def post_many(pipe: Connection, client: Client, num_records: int) -> None:
    play(client, num_records)
    pipe.send("done")


def test_a_full_mailbox_waits_and_never_drops() -> None:
    with SharedHost(numbered(50), 2) as host:
        arrived: list[float] = []
        with forked(post_many, host.client(1), 1000) as (_, pipe):
            wait_until(lambda: host.mails.heads["waits"][1] > 0, "a client that waits")
            assert host.episodes_of(1) == CAPACITY
            for _ in patiently():
                time.sleep(1e-3)
                arrived += host.collect()["episode_return"].tolist()
                if len(arrived) >= 1000:
                    break
            assert receive(pipe) == "done"
        assert arrived == [*map(float, range(1000))]
        assert len(host.collect()) == 0
        assert host.counts == EpisodeCounts(1000, 1000, 0, 0, 0)


def fail_many(pipe: Connection, client: Client, num_failures: int) -> None:
    sent = []
    for number in range(num_failures):
        draw = client.draw()
        client.fail(f"reason {number}")
        sent.append((draw.slot, draw.generation, f"reason {number}"))
    pipe.send(sent)


def test_a_client_that_waits_to_fail_writes_over_no_message_that_was_not_read() -> None:
    curriculum = numbered(200_000)
    with SharedHost(curriculum, 1, max_failed_share=1.0) as host:
        with forked(fail_many, host.client(0), 1000) as (_, pipe):
            for _ in patiently():
                # Let it fill up each time, so that it waits for the room of the oldest.
                time.sleep(1e-3)
                host.collect()
                if host.counts.failed >= 1000:
                    break
            sent = receive(pipe)
        first_reports: dict[int, Any] = {}
        for slot, generation, reason in sent:
            first_reports.setdefault(slot, (slot, generation, reason))
        found = [(e.slot, e.generation, e.reason) for e in curriculum.quarantined]
        assert found == [*first_reports.values()]
        assert host.mails.heads["waits"][0] > 0


def test_in_one_process_a_full_mailbox_is_an_error_instead_of_a_wait_without_end() -> None:
    with SharedHost(numbered(50), 1) as host:
        client = host.client(0)
        play(client, CAPACITY)
        client.draw()
        for report in (lambda: client.finish(success=1.0), lambda: client.fail("no reason")):
            with pytest.raises(ChannelError, match=r"Call host.collect\(\) after every step"):
                report()
        assert len(host.collect()) == CAPACITY
        client.finish(success=1.0, episode_return=5.0)
        assert host.collect()["episode_return"].tolist() == [5.0]
        assert host.counts == EpisodeCounts(CAPACITY + 1, CAPACITY + 1, 0, 0, 0)


class Messages(logging.Handler):
    """Keeps what was logged."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.kept.append(record.getMessage())


def wait_and_say_so(pipe: Connection, client: Client) -> None:
    messages = Messages()
    client_module.logger.addHandler(messages)
    play(client, CAPACITY)
    pipe.send("full")
    play(client, 1)
    pipe.send(messages.kept)


def test_a_client_that_has_lost_patience_says_so_once_and_goes_on_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_module, "PATIENCE_S", 0.05)
    with SharedHost(numbered(50), 1) as host, forked(wait_and_say_so, host.client(0)) as (_, pipe):
        assert receive(pipe) == "full"
        assert not pipe.poll(0.4), "it did not wait"
        assert len(host.collect()) == CAPACITY
        (message,) = receive(pipe)
        assert re.match(r"Env 0 has waited \d+ s for the host to collect its records", message)
        assert len(host.collect()) == 1


# Hosts that die.


def be_host(pipe: Connection, dies_writing: bool = False) -> None:
    """Make a channel, send its clients, and wait for the end."""
    host = SharedHost(make_staged(), 2)
    pipe.send(host.clients())
    pipe.recv()
    if dies_writing:
        kernels.begin_write(host.curriculum.plan.block)
        kill_self()
    time.sleep(60)


def test_a_client_that_waits_notices_that_its_host_was_killed() -> None:
    with forked(be_host) as (process, pipe):
        client = receive(pipe)[0]
        play(client, CAPACITY)
        client.draw()
        killer = threading.Timer(0.3, process.kill)
        killer.start()
        try:
            began = time.monotonic()
            with pytest.raises(HostGoneError, match="restore its last snapshot"):
                client.finish(success=1.0)
            assert time.monotonic() - began > 0.2, "the host was still there, and nobody waited"
        finally:
            killer.join()


def test_a_host_killed_in_the_middle_of_a_write_is_noticed() -> None:
    with forked(be_host, True) as (process, pipe):
        clients = receive(pipe)
        before = clients[0].draw()
        pipe.send("die")
        process.join(30)
        assert process.exitcode == -signal.SIGKILL
        for act in (
            clients[0].draw,
            clients[0].current_stage,
            clients[0].mixing_ratio,
            # This one has never been used.
            clients[1].draw,
        ):
            with pytest.raises(HostGoneError, match="is gone"):
                act()
        # The episode in flight is as it was.
        clients[0].finish(success=1.0)
        assert before.episode_index == 0


def test_a_client_waits_while_the_plan_is_being_written() -> None:
    curriculum = make_staged()
    with SharedHost(curriculum, 1) as host, staffed(host) as worker:
        assert worker.ask(0, "call", 0, "draw", (), {}).episode_index == 0
        kernels.begin_write(curriculum.plan.block)
        worker.tell(0, "call", 0, "draw", (), {})
        time.sleep(0.2)
        assert not worker.has_answer(0)
        kernels.end_write(curriculum.plan.block)
        draw = worker.answer(0)
        assert (draw.episode_index, draw.plan_version) == (1, curriculum.plan.version)


def test_nothing_is_left_of_a_host_that_was_killed() -> None:
    gc.collect()
    before = num_mapped()
    with forked(be_host) as (process, pipe):
        clients = receive(pipe)
        spare = pickle.loads(pickle.dumps(clients[1]))
        clients[0].draw()
        process.kill()
        process.join(30)
        for client in (clients[1], spare):
            with pytest.raises((HostGoneError, StaleSegmentError)):
                client.draw()
        with forked(try_to_attach, spare) as (_, other):
            assert receive(other) == "HostGoneError"
        # Who was attached can still look, and is the last to do so.
        assert num_mapped() == before + 1
    clients.clear()
    del client
    gc.collect()
    assert num_mapped() == before


def try_to_attach(pipe: Connection, client: Client) -> None:
    try:
        client.draw()
    except ChannelError as error:
        pipe.send(type(error).__name__)


# Workers that die.


def play_then_hang(pipe: Connection, clients: list[Client], num_finished: int) -> None:
    for client in clients:
        play(client, num_finished)
        pipe.send(client.draw())
    time.sleep(60)


def test_a_worker_killed_in_mid_episode_loses_that_episode_only() -> None:
    curriculum = numbered(50)
    with SharedHost(curriculum, 3) as host:
        bystander = host.client(2)
        bystander.draw()
        with forked(play_then_hang, host.clients()[:2], 5) as (process, pipe):
            receive(pipe)
            receive(pipe)
            assert host.find_dead() == []
            process.kill()
            wait_until(lambda: host.find_dead() == [0, 1], "the death of a worker")
        records = host.collect()
        assert records["episode_index"].tolist() == [0, 1, 2, 3, 4] * 2
        assert host.counts == EpisodeCounts(13, 10, 0, 0, 3)
        assert host.discard_dead(host.find_dead()) == 2
        assert host.counts == EpisodeCounts(13, 10, 2, 0, 1)
        assert host.find_dead() == []
        assert host.discard_dead([0, 1]) == 0
        bystander.finish(success=1.0)
        assert len(host.collect()) == 1
        assert curriculum.num_observed == 11


def test_a_worker_that_nobody_has_waited_for_is_found_dead() -> None:
    with SharedHost(numbered(50), 1) as host:
        client = host.client(0)
        pid = os.fork()
        if pid == 0:
            client.draw()
            kill_self()
        try:
            wait_until(
                lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z",
                "a zombie",
            )
            assert host.mails.heads["pid"][0] == pid
            assert host.find_dead() == [0]
        finally:
            os.waitpid(pid, 0)
        assert host.discard_dead([0]) == 1


def test_a_worker_that_dies_after_a_restore_is_still_found_dead() -> None:
    with SharedHost(numbered(50), 1) as host:
        with forked(play_then_hang, host.clients(), 1) as (_, pipe):
            receive(pipe)
            host.restore(host.snapshot())
            assert host.find_dead() == []
        assert host.find_dead() == [0]


def test_a_client_that_takes_over_goes_on_with_the_next_episode() -> None:
    with SharedHost(numbered(1000), 1) as host:
        with forked(play_then_hang, host.clients(), 3) as (_, pipe):
            lost = receive(pipe)
        # Nobody has discarded the old one: the new one counts what it finds.
        with forked(play_then_hang, host.clients(), 2) as (_, pipe):
            lost_too = receive(pipe)
        assert (lost.episode_index, lost_too.episode_index) == (3, 6)
        client = host.client(0)
        draw = client.draw()
        assert draw.episode_index == 7
        assert len({lost.seed, lost_too.seed, draw.seed}) == 3
        client.finish(success=1.0)
        assert host.collect()["episode_index"].tolist() == [0, 1, 2, 4, 5, 7]
        assert host.counts == EpisodeCounts(8, 6, 2, 0, 0)


def play_for_ever(pipe: Connection, client: Client) -> None:
    rng = np.random.default_rng()
    pipe.send("ready")
    while True:
        client.draw()
        if rng.random() < 0.9:
            client.finish(success=1.0)


def test_whenever_a_worker_is_killed_every_draw_is_accounted_for() -> None:
    rng = np.random.default_rng(3)
    curriculum = numbered(50)
    with SharedHost(curriculum, 1) as host:
        episodes: list[int] = []
        for _ in range(25):
            with forked(play_for_ever, host.client(0)) as (process, pipe):
                receive(pipe)
                deadline = time.monotonic() + rng.uniform(0.0005, 0.01)
                while time.monotonic() < deadline:
                    episodes += host.collect()["episode_index"].tolist()
                process.kill()
                process.join(30)
            episodes += host.collect()["episode_index"].tolist()
            host.discard_dead([0])
            counts = host.counts
            assert counts.in_flight == 0
            assert counts.finished == len(episodes) == curriculum.num_observed
            assert counts.started == counts.finished + counts.aborted
        assert episodes == sorted(set(episodes))
        # An index may be skipped by a kill between taking it and beginning; never given twice.
        assert host.client(0).draw().episode_index - counts.started in range(26)
        assert counts.finished > 100


def test_a_worker_killed_while_it_waits_has_lost_nothing() -> None:
    with SharedHost(numbered(50), 1) as host:
        with forked(post_many, host.client(0), CAPACITY + 1):
            wait_until(lambda: host.mails.heads["waits"][0] > 0, "a client that waits")
        assert len(host.collect()) == CAPACITY
        assert host.discard_dead([0]) == 1
        assert host.counts == EpisodeCounts(CAPACITY + 1, CAPACITY, 1, 0, 0)


# Channels that are closed while clients live.


def wait_for_the_end(pipe: Connection, client: Client) -> None:
    play(client, CAPACITY)
    client.draw()
    pipe.send("full")
    outcomes = []
    for act in (lambda: client.finish(success=1.0), client.draw, lambda: client.fail("late")):
        try:
            act()
            outcomes.append("done")
        except ChannelError as error:
            outcomes.append(str(error))
    pipe.send(outcomes)


def test_a_client_that_waits_when_the_channel_is_closed_is_told_so() -> None:
    curriculum = numbered(50)
    with SharedHost(curriculum, 1) as host, forked(wait_for_the_end, host.client(0)) as (_, pipe):
        assert receive(pipe) == "full"
        wait_until(lambda: host.mails.heads["waits"][0] > 0, "a client that waits")
        host.close()
        outcomes = receive(pipe)
    # Its last record is refused, not put where nobody will ever look.
    assert all("was closed by its host" in outcome for outcome in outcomes)
    assert curriculum.num_observed == CAPACITY
    assert host.counts == EpisodeCounts(CAPACITY + 1, CAPACITY, 0, 0, 1)


def test_a_client_that_waits_is_told_of_the_end_even_if_nobody_makes_room() -> None:
    with SharedHost(numbered(50), 1) as host, forked(wait_for_the_end, host.client(0)) as (_, pipe):
        assert receive(pipe) == "full"
        wait_until(lambda: host.mails.heads["waits"][0] > 0, "a client that waits")
        host.mails.heads["closed"] = 1
        assert all("was closed by its host" in outcome for outcome in receive(pipe))
        assert len(host.collect()) == CAPACITY


def test_a_client_first_used_after_the_end_finds_nothing() -> None:
    with SharedHost(numbered(50), 2) as host:
        clients = host.clients()
        clients[0].draw()
    with pytest.raises(ChannelError, match="closed by its host"):
        clients[0].draw()
    clients.pop(0)
    gc.collect()
    with pytest.raises(StaleSegmentError, match="Make new clients"):
        clients[0].draw()


@pytest.mark.parametrize("change", [{"nonce": 1}, {"num_words": 8}])
def test_a_client_with_a_wrong_ticket_is_refused(change: dict[str, int]) -> None:
    with SharedHost(numbered(50), 1) as host:
        client = host.client(0)
        client._ticket = replace(client._ticket, **change)
        for act in (client.draw, client.plan_version, lambda: client.finish(success=1.0)):
            with pytest.raises(StaleSegmentError):
                act()
        assert host.counts == EpisodeCounts(0, 0, 0, 0, 0)


def test_closing_frees_what_a_host_holds() -> None:
    curriculum = numbered(1000)
    SharedHost(curriculum, 4).close()
    gc.collect()
    before = open_descriptors(), num_mapped()
    hosts = []
    for _ in range(50):
        host = SharedHost(curriculum, 4)
        for client in host.clients():
            client.draw()
        host.close()
        hosts.append(host)
    del client
    gc.collect()
    assert (open_descriptors(), num_mapped()) == before
    # What was counted can still be read.
    assert hosts[0].counts == EpisodeCounts(4, 0, 0, 0, 4)


# Forks.


def misuse(pipe: Connection, host: SharedHost) -> None:
    outcomes = []
    for act in (host.collect, host.snapshot):
        try:
            act()
            outcomes.append("done")
        except WrongProcessError:
            outcomes.append("refused")
    with host:
        pass
    pipe.send(outcomes)


def test_a_fork_of_the_host_can_neither_take_records_nor_close_the_channel() -> None:
    curriculum = numbered(50)
    with SharedHost(curriculum, 2) as host:
        client = host.client(0)
        play(client, 3)
        client.draw()
        with forked(misuse, host) as (process, pipe):
            assert receive(pipe) == ["refused", "refused"]
            process.join(30)
            assert process.exitcode == 0
        assert len(host.collect()) == 3
        client.finish(success=1.0)
        play(host.client(1), 1)
        assert len(host.collect()) == 2
        assert curriculum.num_observed == 5


def play_on(pipe: Connection, client: Client) -> None:
    client.finish(success=0.5)
    play(client, 2)
    pipe.send("done")


def test_a_client_that_was_attached_before_a_fork_goes_on_in_the_child() -> None:
    with SharedHost(numbered(50), 1) as host:
        client = host.client(0)
        client.draw()
        with forked(play_on, client) as (process, pipe):
            assert receive(pipe) == "done"
            assert host.mails.heads["pid"][0] == process.pid
        assert host.collect()["episode_index"].tolist() == [0, 1, 2]
        # And comes back: the counters are in the mailbox, not in the client.
        assert client.draw().episode_index == 3
        assert host.mails.heads["pid"][0] == os.getpid()


def test_two_hosts_at_once_keep_their_clients_apart() -> None:
    first, second = numbered(50), numbered(50, seed=4)
    with SharedHost(first, 1) as host, SharedHost(second, 1) as other:
        play(host.client(0), 2)
        play(other.client(0), 3)
        assert (len(host.collect()), len(other.collect())) == (2, 3)


# Large plans.


def draw_many(pipe: Connection, client: Client, num_draws: int) -> None:
    slots = []
    for _ in range(num_draws):
        draw = client.draw()
        slots.append((draw.slot, draw.seed, client.task(draw).name))
        client.finish(success=1.0)
    pipe.send(slots)


def test_a_plan_of_a_million_slots_works_like_a_small_one() -> None:
    curriculum, num_draws = numbered(1_000_000), 2000
    with LocalHost(numbered(1_000_000), 1) as host:
        here = [tuple(host.client(0).draw())[:5] for _ in range(num_draws)]
    with SharedHost(curriculum, 1) as host:
        with forked(draw_many, host.client(0), num_draws) as (_, pipe):
            for _ in patiently():
                host.collect()
                if curriculum.num_observed >= num_draws:
                    break
            there = receive(pipe)
        assert [slot for slot, _, _ in there] == [draw[0] for draw in here]
        assert [seed for _, seed, _ in there] == [draw[4] for draw in here]
        assert all(name == f"task{slot}" for slot, _, name in there)
        slots = np.array([slot for slot, _, _ in there])
        # Spread over all of them: the mean of 2,000 even draws is off by 6,500 one time in three.
        assert abs(slots.mean() - 500_000) < 40_000
        assert curriculum.plays.sum() == num_draws
        curriculum.quarantine(999_999, 0, "no such level")
        assert host.client(0).plan_version() == curriculum.plan.version
    assert curriculum.is_quarantined(999_999)


# Saving while everybody plays.


def test_a_snapshot_taken_while_workers_run_freely_accounts_for_every_draw() -> None:
    curriculum, num_episodes = numbered(100), 3000
    with SharedHost(curriculum, 2, max_failed_share=1.0) as host:
        with staffed(host, num_workers=2) as workers:
            for worker in range(2):
                workers.tell(worker, "run", play_without_failing, (num_episodes,))
            snapshots = []
            for _ in patiently():
                snapshots.append(host.snapshot())
                if all(workers.has_answer(worker) for worker in range(2)):
                    break
            for worker in range(2):
                assert workers.answer(worker) == num_episodes
        snapshots.append(host.snapshot())
    heads = [snapshot.arrays["channel/heads"] for snapshot in snapshots]
    caught = [bool((head["posted"] > head["taken"]).any()) for head in heads]
    # Above all those into which a record came just after the collection.
    order = sorted(range(len(snapshots)), key=lambda index: not caught[index])
    for index in (*order[:40], len(snapshots) - 1):
        snapshot = snapshots[index]
        restored = numbered(100)
        with SharedHost(restored, 2) as host:
            host.restore(snapshot)
            late = [Record(*row) for row in host.collect().tolist()]
            counts = host.counts
            assert counts.finished == restored.num_observed == restored.plays.sum()
            assert counts.started == counts.finished + counts.in_flight
            assert 0 <= counts.in_flight <= 2
            # What arrived too late to be observed was kept whole.
            assert [(record.env_index, record.episode_index) for record in late] == [
                (env_index, number)
                for env_index, head in enumerate(heads[index])
                for number in range(head["taken"], head["posted"])
            ]
            assert all(record.episode_return == record.episode_index for record in late)
            for env_index, client in enumerate(host.clients()):
                assert client.draw().episode_index in (
                    host.episodes_of(env_index),
                    host.episodes_of(env_index) + 1,
                )


def play_without_failing(clients: list[Client], num_episodes: int) -> int:
    play(clients[0], num_episodes)
    return num_episodes


def test_counts_read_while_a_worker_resets_in_mid_episode_are_never_negative() -> None:
    with SharedHost(numbered(100), 1) as host:
        with staffed(host) as workers:
            workers.tell(0, "run", reset_often, (20_000,))
            looks = 0
            for _ in patiently():
                looks += 1
                assert host.counts.in_flight >= 0
                if workers.has_answer(0):
                    break
            workers.answer(0)
        assert looks > 100
        assert host.counts == EpisodeCounts(20_000, 0, 19_999, 0, 1)


def reset_often(clients: list[Client], num_resets: int) -> None:
    for _ in range(num_resets):
        clients[0].draw()
