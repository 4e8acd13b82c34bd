"""The curriculum's side: bad settings, quarantine, staleness, the dead, failed beginnings."""

import gc
import logging
import weakref
from typing import Any

import numpy as np
import pytest

from stepladder.curricula import Uniform
from stepladder.errors import BuildError, ChannelError, ConfigError, RecordError, TaskError
from stepladder.plans.record import RECORD_DTYPE
from stepladder.saving.snapshot import Snapshot
from stepladder.sync import EpisodeCounts, Host, LocalHost, PushedHost, SharedHost, mailbox
from stepladder.sync.collector import MAX_LAG
from stepladder.sync.counts import measure_staleness
from stepladder.sync.segment import Segment
from stepladder.tasks import ListSource, Task
from sync.rig import make_crowded, make_staged, numbered, open_descriptors

HOSTS: list[type[Host]] = [LocalHost, SharedHost, PushedHost]


# Beginning.


@pytest.mark.parametrize("kind", HOSTS)
@pytest.mark.parametrize("num_envs", [0, -1, 1.5, True, False])
def test_a_bad_number_of_envs_is_refused_and_claims_nothing(kind: Any, num_envs: Any) -> None:
    curriculum = numbered(5)
    with pytest.raises(ConfigError, match=f"num_envs must be .*; got {num_envs!r}"):
        kind(curriculum, num_envs)
    kind(curriculum, 1).close()


@pytest.mark.parametrize("kind", HOSTS)
def test_a_whole_number_of_any_type_is_a_number_of_envs(kind: Any) -> None:
    for num_envs in (3, 3.0, np.int32(3)):
        with kind(numbered(5), num_envs) as host:
            assert (host.num_envs, len(host.clients())) == (3, 3)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_bad_share_of_failures_is_refused(share: float) -> None:
    with pytest.raises(ConfigError, match="max_failed_share"):
        LocalHost(numbered(5), 1, max_failed_share=share)


@pytest.mark.parametrize("kind", HOSTS)
@pytest.mark.parametrize("env_index", [-1, 3, 100])
def test_an_env_that_does_not_exist_is_refused(kind: Any, env_index: int) -> None:
    with kind(numbered(5), 3) as host:
        for ask in (host.client, host.episodes_of, lambda index: host.discard_dead([index])):
            with pytest.raises(ConfigError, match="this channel has envs 0 to 2"):
                ask(env_index)


def test_a_host_that_cannot_be_made_lets_go_of_the_curriculum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(num_words: int) -> Segment:
        raise OSError("no memory left")

    curriculum = numbered(5)
    with monkeypatch.context() as patched:
        patched.setattr(Segment, "create", refuse)
        with pytest.raises(OSError, match="no memory left"):
            SharedHost(curriculum, 1)
    with SharedHost(curriculum, 1) as host:
        host.client(0).draw()


def test_a_host_that_nobody_closes_goes_with_its_curriculum_and_keeps_no_memory() -> None:
    gc.collect()
    before = open_descriptors()
    host = SharedHost(numbered(5), 1)
    host.client(0).draw()
    gone = weakref.ref(host)
    del host
    gc.collect()
    assert gone() is None
    assert open_descriptors() == before


# Tasks that cannot be built.


def fail_often(host: Host, failures: int, successes: int, failed: set[int]) -> None:
    client = host.client(0)
    for number in range(failures + successes):
        draw = client.draw()
        if number < failures:
            client.fail("no such level")
            failed.add(draw.slot)
        else:
            client.finish(success=1.0)
        if number % 50 == 49:
            host.collect()
    host.collect()


@pytest.mark.parametrize(
    ("share", "failures", "successes", "raises"),
    [
        (0.5, 10, 10, False),
        (0.5, 11, 9, True),
        (0.5, 19, 0, False),
        (0.5, 20, 0, True),
        (0.0, 1, 18, False),
        (0.0, 1, 19, True),
        (1.0, 60, 0, False),
        (0.1, 3, 27, False),
        (0.1, 4, 26, True),
    ],
)
def test_the_share_of_failures_is_judged_after_twenty_draws_and_can_be_set(
    share: float, failures: int, successes: int, raises: bool
) -> None:
    curriculum = numbered(1000)
    failed: set[int] = set()
    with LocalHost(curriculum, 1, max_failed_share=share) as host:
        if raises:
            with pytest.raises(BuildError, match=f"more than the allowed share of {share}"):
                fail_often(host, failures, successes, failed)
        else:
            fail_often(host, failures, successes, failed)
        assert host.counts == EpisodeCounts(failures + successes, successes, 0, failures, 0)
        assert {entry.slot for entry in curriculum.quarantined} == failed


def test_every_quarantine_is_logged_once_with_env_task_and_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    curriculum = numbered(2)
    with LocalHost(curriculum, 3, max_failed_share=1.0) as host:
        clients = host.clients()
        slots = [client.draw().slot for client in clients]
        for client in clients:
            client.fail("ValueError: no ice")
        with caplog.at_level(logging.WARNING, logger="stepladder.sync"):
            host.collect()
        expected = [
            f"Env {slots.index(slot)} could not build task 'task{slot}' (ValueError: no ice); "
            "it is quarantined."
            for slot in sorted(set(slots), key=slots.index)
        ]
        assert caplog.messages == expected
        assert host.counts.failed == 3


def test_a_task_already_replaced_is_not_quarantined_for_its_predecessor(
    caplog: pytest.LogCaptureFixture,
) -> None:
    curriculum = make_crowded()
    with LocalHost(curriculum, 1, max_failed_share=1.0) as host:
        client = host.client(0)
        draw = client.draw()
        curriculum.replace(draw.slot)
        client.fail("no such level")
        host.collect()
        assert curriculum.quarantined == []
        assert caplog.messages == []
        assert host.counts.failed == 1


def test_a_failure_that_stops_everything_does_not_hide_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    curriculum = numbered(10_000)
    quarantine = curriculum.quarantine

    def give_up(slot: int, generation: int, reason: str) -> bool:
        quarantine(slot, generation, reason)
        raise BuildError(f"nothing goes on without slot {slot}")

    with LocalHost(curriculum, 3, max_failed_share=1.0) as host:
        slots = [client.draw().slot for client in host.clients()]
        for client in host.clients():
            client.fail("no such level")
        monkeypatch.setattr(curriculum, "quarantine", give_up)
        with pytest.raises(BuildError, match=f"nothing goes on without slot {slots[0]}"):
            host.collect()
        assert [entry.slot for entry in curriculum.quarantined] == slots
        assert host.counts == EpisodeCounts(3, 0, 0, 3, 0)


class Unreadable(ListSource):
    """A source that knows the names of its tasks and cannot make one of them."""

    def get(self, task_id: int) -> Task:
        if task_id == 2:
            raise TaskError("the file is damaged")
        return super().get(task_id)

    def name(self, task_id: int) -> str:
        return f"level{task_id}"

    def label(self, task_id: int) -> str:
        return "default"


def test_a_task_that_its_source_cannot_make_is_quarantined_like_any_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    curriculum = Uniform(Unreadable(Task(f"level{index}") for index in range(4)), seed=1)
    with LocalHost(curriculum, 1, max_failed_share=1.0) as host:
        client = host.client(0)
        while curriculum.num_quarantined == 0:
            draw = client.draw()
            try:
                client.task(draw)
                client.finish(success=1.0)
            except TaskError as error:
                client.fail(f"TaskError: {error}")
            host.collect()
        assert [entry.task for entry in curriculum.quarantined] == ["level2"]
        assert "could not build task 'level2' (TaskError: the file is damaged)" in caplog.text


# Staleness and counts.


def test_staleness_is_a_histogram_by_collections() -> None:
    with LocalHost(numbered(5), 2) as host:
        slow, quick = host.clients()
        assert host.staleness.draws_by_lag == (0,) * (MAX_LAG + 1)
        assert (host.staleness.mean, host.staleness.largest) == (0.0, 0)
        slow.draw()
        for _ in range(20):
            quick.draw()
            quick.finish(success=1.0)
            host.collect()
        # An episode that takes long is not stale for it: its plan was fresh when it began.
        slow.finish(success=1.0)
        slow.draw()
        host.collect()
        slow.finish(success=1.0)
        host.collect()
        assert host.staleness.draws_by_lag == (21, 1, *[0] * (MAX_LAG - 1))
        assert host.staleness.mean == pytest.approx(1 / 22)
        assert host.staleness.largest == 1


def test_lags_beyond_the_last_are_counted_together() -> None:
    records = np.zeros(3, dtype=RECORD_DTYPE)
    last, histogram = np.array([30]), np.zeros(MAX_LAG + 1, dtype=np.int64)
    records["tick"] = (30 - MAX_LAG, 0, 31)
    measure_staleness(records[:1], 1, 31, last, histogram)
    assert histogram.tolist() == [*[0] * MAX_LAG, 1]
    last[0] = 30
    measure_staleness(records[1:2], 1, 31, last, histogram)
    assert histogram.tolist() == [*[0] * MAX_LAG, 2]
    # A draw from a newer plan than the last collection knew of is fresh.
    measure_staleness(records[2:], 1, 32, last, histogram)
    assert histogram.tolist() == [1, *[0] * (MAX_LAG - 1), 2]
    assert last.tolist() == [32]


def test_episodes_of_an_env_count_all_that_it_has_reported() -> None:
    with LocalHost(numbered(50), 2) as host:
        client = host.client(1)
        for _ in range(3):
            client.draw()
            client.finish(success=1.0)
        client.draw()
        client.fail("no such level")
        assert [host.episodes_of(index) for index in range(2)] == [0, 4]


def test_the_records_of_a_collection_are_those_observed() -> None:
    curriculum = make_staged()
    with LocalHost(curriculum, 2, max_failed_share=1.0) as host:
        first, second = host.clients()
        first.draw()
        first.fail("no such level")
        draw = second.draw()
        second.finish(success=0.5, episode_return=2.0, length=7, truncated=True)
        records = host.collect()
        assert records["env_index"].tolist() == [1]
        assert records["slot"].tolist() == [draw.slot]
        assert (curriculum.num_observed, curriculum.num_steps) == (1, 7)
        assert len(host.collect()) == 0


# The dead.


def test_nobody_is_dead_where_nobody_has_played() -> None:
    with LocalHost(numbered(5), 3) as host:
        assert host.find_dead() == []
        host.client(1).draw()
        assert host.find_dead() == []


def test_discarding_dead_envs_counts_what_was_in_flight_once() -> None:
    with LocalHost(numbered(5), 3) as host:
        clients = host.clients()
        for client in clients[:2]:
            client.draw()
        clients[0].finish(success=1.0)
        assert host.discard_dead([0, 1, 2]) == 1
        assert host.discard_dead([0, 1, 2]) == 0
        assert len(host.collect()) == 1
        assert host.counts == EpisodeCounts(2, 1, 1, 0, 0)
        # Whoever was discarded too early plays on.
        with pytest.raises(RecordError, match="never began"):
            clients[1].finish(success=1.0)
        assert clients[1].draw().episode_index == 1
        assert host.counts == EpisodeCounts(3, 1, 1, 0, 1)


# Saving.


def test_a_snapshot_taken_while_records_arrive_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    curriculum = make_staged()
    with LocalHost(curriculum, 2, max_failed_share=1.0) as host:
        first, second = host.clients()
        first.draw()
        second.draw()
        collect = host.collect

        def finish_late(ended: bool = True) -> Any:
            """Collect, as a client ends its episode right afterwards."""
            records = collect(ended)
            first.finish(success=1.0, episode_return=5.0)
            first.draw()
            first.fail("too late")
            return records

        monkeypatch.setattr(host, "collect", finish_late)
        snapshot = host.snapshot()
        monkeypatch.undo()
    for kind in HOSTS:
        restored = make_staged()
        with kind(restored, 2, max_failed_share=1.0) as host:
            host.restore(snapshot)
            clients: list[Any] = host.clients()
            if isinstance(host, PushedHost):
                host.call = lambda method, *args, to=tuple(clients): [
                    getattr(client, method)(*args) for client in to
                ]
                host.push()
            assert host.counts == EpisodeCounts(3, 0, 0, 0, 3)
            records = host.collect()
            assert records["episode_return"].tolist() == [5.0]
            assert [entry.reason for entry in restored.quarantined] == ["too late"]
            assert host.counts == EpisodeCounts(3, 1, 0, 1, 1)
            assert clients[1].draw().episode_index == 0
            assert clients[0].draw().episode_index == 2


def test_a_copy_of_a_mailbox_is_of_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalHost(numbered(5), 1) as host:
        client = host.client(0)
        client.draw()
        moves = iter([lambda: client.finish(success=1.0), client.draw, client.abort])
        heads = host.mails.heads

        class PlayedMeanwhile:
            """Lets the client play between the copy and each look at the counters."""

            def __getitem__(self, key: Any) -> Any:
                next(moves, lambda: None)()
                return heads[key]

        monkeypatch.setattr(host.mails, "heads", PlayedMeanwhile())
        copied = host.mails.copy_steady().words
        monkeypatch.undo()
        assert next(moves, None) is None
        np.testing.assert_array_equal(copied, host.mails.words)
        assert not mailbox.in_flight(copied[0])


def test_ending_a_restored_episode_without_drawing_it_again_does_no_harm() -> None:
    with LocalHost(numbered(5), 2) as host:
        clients = host.clients()
        for client in clients:
            client.draw()
        host.restore(host.snapshot())
        clients[0].finish(success=1.0)
        clients[1].abort()
        for client in clients:
            assert client.draw().episode_index == 1
            client.finish(success=1.0)
        assert len(host.collect()) == 3
        assert host.counts == EpisodeCounts(4, 3, 1, 0, 0)


def test_a_snapshot_of_a_curriculum_alone_is_refused() -> None:
    curriculum = numbered(5)
    with LocalHost(curriculum, 1) as host:
        with pytest.raises(Exception, match="made by a curriculum alone"):
            host.restore(curriculum.snapshot())
        assert isinstance(host.snapshot(), Snapshot)


# The end.


@pytest.mark.parametrize("kind", HOSTS)
def test_a_with_block_closes_also_when_it_fails(kind: Any) -> None:
    curriculum = numbered(5)
    with pytest.raises(ZeroDivisionError), kind(curriculum, 1) as host:
        raise ZeroDivisionError
    assert host.is_closed
    with pytest.raises(ChannelError, match="closed"):
        host.collect()
    kind(curriculum, 1).close()


def test_closing_collects_what_is_left() -> None:
    curriculum = numbered(5)
    with LocalHost(curriculum, 1) as host:
        host.client(0).draw()
        host.client(0).finish(success=1.0)
    assert curriculum.num_observed == 1
    assert host.counts == EpisodeCounts(1, 1, 0, 0, 0)


def test_closing_lets_go_even_if_the_last_collection_raises() -> None:
    curriculum = numbered(100)
    host = SharedHost(curriculum, 1, max_failed_share=0.0)
    client = host.client(0)
    for _ in range(30):
        client.draw()
        client.fail("no such level")
    with pytest.raises(BuildError, match="30 of 30 draws"):
        host.close()
    assert host.is_closed
    assert host.counts.failed == 30
    LocalHost(curriculum, 1).close()
