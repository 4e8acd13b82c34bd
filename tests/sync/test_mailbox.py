"""The kernels of a mailbox: counters, the ring, messages, and what a kill leaves behind."""

import numpy as np
import pytest

from stepladder.errors import SnapshotError
from stepladder.plans.record import TERMINATED, UNBUILDABLE, Draw, Record, RecordFields
from stepladder.plans.status import DONE, NEVER_BEGAN, NO_ROOM, NOT_ADMITTED
from stepladder.saving.saved_array import MAX_COUNT
from stepladder.sync import LocalHost, mailbox, taking
from stepladder.sync.mailbox import CAPACITY, HEAD, HEAD_WORDS, MESSAGE_BYTES, Mailboxes
from sync.rig import make_staged, numbered

PID = 77


def make_mails(num_envs: int, num_dials: int = 0) -> Mailboxes:
    words = np.zeros((num_envs, mailbox.words_per_mailbox(num_dials)), dtype=np.int64)
    mails = Mailboxes(words, num_dials)
    mails.heads["pid"] = PID
    return mails


def drain(mails: Mailboxes) -> list[Record]:
    """Empty all mailboxes but those with messages that nobody has read."""
    words, taken = mails.words, RecordFields.zeros(len(mails.words) * CAPACITY)
    count, unbuildable = taking.drain(words, mails.ring_at, taken, np.arange(len(words)))
    last, lags = np.zeros(9, np.int64), np.zeros(9, int)
    taking.admit(words, taken, count, unbuildable, 1, last, lags, taking.TakenBatch.zeros())
    records = [Record(*row) for row in taken[:count].tolist()]
    assert unbuildable == sum(record.outcome == UNBUILDABLE for record in records)
    return records


@pytest.mark.parametrize("num_dials", [0, 1, 5, 8, 100])
def test_a_mailbox_is_a_whole_number_of_cache_lines_and_holds_everything(num_dials: int) -> None:
    words = mailbox.words_per_mailbox(num_dials)
    assert words % 8 == 0
    record_bytes = RecordFields.dtype.itemsize
    assert 8 * words >= 8 * (HEAD_WORDS + num_dials) + CAPACITY * (record_bytes + MESSAGE_BYTES)


def test_what_the_client_writes_and_what_the_host_writes_lie_in_different_cache_lines() -> None:
    lines: dict[str, set[int]] = {}
    for name in ("posted", "started", "aborted", "pid", "next_episode", "draw"):
        first = HEAD.fields[name][1]
        size = HEAD.fields[name][0].itemsize
        lines.setdefault("client", set()).update(range(first // 64, (first + size - 1) // 64 + 1))
    for name in ("taken", "replay", "closed"):
        lines.setdefault("host", set()).add(HEAD.fields[name][1] // 64)
    assert not lines["client"] & lines["host"]


def test_a_record_says_what_was_drawn_and_what_was_reported() -> None:
    curriculum = make_staged()
    block, mails = curriculum.plan.block, make_mails(3, num_dials=4)
    ring, dials = mails.ring_at, np.zeros(4)
    mails.heads["next_episode"][2] = 9
    drawn = Draw(*mailbox.start(block, mails.words[2], 2, PID, dials))
    slot, generation, _, version, seed, tick, _, _ = drawn
    assert drawn == (slot, 0, slot, curriculum.plan.version, seed, 0, 2, 9)
    assert 0 <= seed < 2**63
    np.testing.assert_array_equal(dials, curriculum.plan.dials)
    assert mailbox.in_flight(mails.words[2])
    assert mailbox.post(mails.words[2], ring, -1.5, 12, 0.25, TERMINATED) == DONE
    assert not mailbox.in_flight(mails.words[2])
    assert drain(mails) == [
        Record(slot, generation, version, tick, 2, 9, -1.5, 12, 0.25, TERMINATED)
    ]
    assert drain(mails) == []
    assert mailbox.post(mails.words[2], ring, -1.5, 12, 0.25, TERMINATED) == NEVER_BEGAN
    assert mailbox.post(mails.words[0], ring, -1.5, 12, 0.25, TERMINATED) == NEVER_BEGAN
    assert drain(mails) == []


def test_nothing_begins_for_a_process_that_has_not_signed_in() -> None:
    block, mails = numbered(5).plan.block, make_mails(1)
    before = mails.words.copy()
    assert mailbox.start(block, mails.words[0], 0, PID + 1, np.zeros(0))[0] == NOT_ADMITTED
    np.testing.assert_array_equal(mails.words, before)


def test_nothing_begins_and_nothing_ends_in_a_closed_mailbox() -> None:
    block, mails = numbered(5).plan.block, make_mails(1)
    assert mailbox.start(block, mails.words[0], 0, PID, np.zeros(0))[0] >= 0
    mails.heads["closed"][0] = 1
    before = mails.words.copy()
    assert mailbox.start(block, mails.words[0], 0, PID, np.zeros(0))[0] == NOT_ADMITTED
    assert mailbox.post(mails.words[0], HEAD_WORDS, 0.0, 1, 1.0, TERMINATED) == NO_ROOM
    np.testing.assert_array_equal(mails.words, before)


def test_a_new_start_gives_up_the_episode_in_flight() -> None:
    block, mails = numbered(5).plan.block, make_mails(1)
    episodes = [mailbox.start(block, mails.words[0], 0, PID, np.zeros(0))[-1] for _ in range(3)]
    assert episodes == [0, 1, 2]
    assert (mails.heads["started"][0], mails.heads["aborted"][0], mails.heads["posted"][0]) == (
        3,
        2,
        0,
    )
    assert mailbox.in_flight(mails.words[0])


def test_a_replay_gives_the_same_draw_once_without_starting_another() -> None:
    curriculum = make_staged()
    block, mails = curriculum.plan.block, make_mails(1, num_dials=4)
    drawn = mailbox.start(block, mails.words[0], 0, PID, np.zeros(4))
    dials_drawn = curriculum.plan.dials.copy()
    curriculum.go_to("hard")
    mails.heads["replay"][0] = 1
    dials = np.zeros(4)
    assert mailbox.start(block, mails.words[0], 0, PID, dials) == drawn
    np.testing.assert_array_equal(dials, dials_drawn)
    assert (mails.heads["started"][0], mails.heads["aborted"][0]) == (1, 0)
    assert mailbox.start(block, mails.words[0], 0, PID, dials)[-1] == 1
    np.testing.assert_array_equal(dials, curriculum.plan.dials)


@pytest.mark.parametrize("how", ["ended", "given up"])
def test_an_episode_that_is_over_is_not_replayed(how: str) -> None:
    block, mails = numbered(5).plan.block, make_mails(1)
    mailbox.start(block, mails.words[0], 0, PID, np.zeros(0))
    mails.heads["replay"][0] = 1
    if how == "ended":
        assert mailbox.post(mails.words[0], HEAD_WORDS, 0.0, 1, 1.0, TERMINATED) == DONE
    else:
        mails.heads["aborted"][0] += 1
    assert mailbox.start(block, mails.words[0], 0, PID, np.zeros(0))[-1] == 1
    assert mails.heads["started"][0] == 2
    assert mailbox.in_flight(mails.words[0])


def test_a_full_ring_takes_nothing_and_changes_nothing() -> None:
    block, mails = numbered(5).plan.block, make_mails(1)
    for number in range(CAPACITY):
        mailbox.start(block, mails.words[0], 0, PID, np.zeros(0))
        assert mailbox.post(mails.words[0], HEAD_WORDS, float(number), 1, 1.0, TERMINATED) == DONE
    mailbox.start(block, mails.words[0], 0, PID, np.zeros(0))
    before = mails.words.copy()
    assert mailbox.post(mails.words[0], HEAD_WORDS, 64.0, 1, 1.0, TERMINATED) == NO_ROOM
    np.testing.assert_array_equal(mails.words, before)
    assert [record.episode_return for record in drain(mails)] == [*range(CAPACITY)]
    assert mailbox.post(mails.words[0], HEAD_WORDS, 64.0, 1, 1.0, TERMINATED) == DONE
    assert [record.episode_return for record in drain(mails)] == [64.0]


def test_records_come_in_env_order_and_first_in_first_out_however_often_the_ring_wraps() -> None:
    rng = np.random.default_rng(1)
    block, mails = numbered(5).plan.block, make_mails(3)
    waiting: list[list[float]] = [[], [], []]
    posted = 0
    while posted < 20 * 3 * CAPACITY:
        for env_index in range(3):
            for _ in range(rng.integers(0, CAPACITY + 1 - len(waiting[env_index]))):
                mailbox.start(block, mails.words[env_index], env_index, PID, np.zeros(0))
                value = float(rng.random())
                assert (
                    mailbox.post(mails.words[env_index], HEAD_WORDS, value, 1, 1.0, TERMINATED)
                    == DONE
                )
                waiting[env_index].append(value)
                posted += 1
        if rng.random() < 0.7:
            expected = [(env, value) for env in range(3) for value in waiting[env]]
            found = [(record.env_index, record.episode_return) for record in drain(mails)]
            assert found == expected
            waiting = [[], [], []]
    assert mails.heads["posted"].min() > 5 * CAPACITY


def test_a_mailbox_with_a_failure_counts_as_full_until_its_message_was_read() -> None:
    block, mails = numbered(5).plan.block, make_mails(2)
    for env_index, outcome in ((0, UNBUILDABLE), (1, TERMINATED)):
        mailbox.start(block, mails.words[env_index], env_index, PID, np.zeros(0))
        assert mailbox.post(mails.words[env_index], HEAD_WORDS, 0.0, 1, 1.0, outcome) == DONE
    assert len(drain(mails)) == 2
    assert mails.heads["taken"].tolist() == [0, 1]


# Messages, through a host that reads them.


def fail(host: LocalHost, reasons: list[str]) -> list[str]:
    """Report failures with these reasons; return what the host made of them."""
    client = host.client(0)
    for reason in reasons:
        client.draw()
        client.fail(reason)
    before = len(host.curriculum.quarantined)
    host.collect()
    return [entry.reason for entry in host.curriculum.quarantined[before:]]


LONG = "x" * MESSAGE_BYTES


@pytest.mark.parametrize(
    ("sent", "received"),
    [
        ("plain", "plain"),
        ("", ""),
        ("Übung № 5 — 日本語 🏒", "Übung № 5 — 日本語 🏒"),
        (LONG, LONG),
        (LONG + "y", LONG),
        (LONG[:-1] + "ü", LONG[:-1]),
        ("é" * 1000, "é" * (MESSAGE_BYTES // 2)),
        ("日" * 1000, "日" * (MESSAGE_BYTES // 3)),
        ("lone \ud800 surrogate", "lone ? surrogate"),
        ("line\nbreak\0inside", "line\nbreak\0inside"),
    ],
)
def test_a_reason_arrives_as_it_was_given_or_cut_at_a_character(sent: str, received: str) -> None:
    with LocalHost(numbered(100), 1, max_failed_share=1.0) as host:
        assert fail(host, [sent]) == [received]


def test_a_short_reason_shows_nothing_of_a_longer_one_before_it() -> None:
    with LocalHost(numbered(1000), 1, max_failed_share=1.0) as host:
        fail(host, [LONG] * CAPACITY)
        assert set(fail(host, ["short"] * CAPACITY)) == {"short"}


def test_each_failure_keeps_its_own_reason_when_several_envs_fail_several_times() -> None:
    rng = np.random.default_rng(2)
    curriculum = numbered(100_000)
    with LocalHost(curriculum, 4, max_failed_share=1.0) as host:
        clients = host.clients()
        for _ in range(30):
            # Only the first report of a task quarantines it.
            expected: dict[int, tuple[int, int, str]] = {}
            for client in clients:
                for _ in range(rng.integers(0, 20)):
                    draw = client.draw()
                    if rng.random() < 0.5:
                        client.finish(success=1.0)
                        continue
                    reason = f"{draw.env_index}:{draw.episode_index}"
                    client.fail(reason)
                    expected.setdefault(draw.slot, (draw.slot, draw.generation, reason))
            before = len(curriculum.quarantined)
            host.collect()
            found = [(e.slot, e.generation, e.reason) for e in curriculum.quarantined[before:]]
            assert found == [*expected.values()]
        assert host.counts.in_flight == 0
        assert min(host.episodes_of(env_index) for env_index in range(4)) > 2 * CAPACITY


# Saving.


def test_only_mailboxes_that_clients_can_have_filled_are_possible() -> None:
    block, mails = numbered(5).plan.block, make_mails(2)
    for env_index in range(2):
        mailbox.start(block, mails.words[env_index], env_index, PID, np.zeros(0))
    mailbox.post(mails.words[1], HEAD_WORDS, 0.0, 1, 1.0, TERMINATED)
    assert mails.problem_of(mails.heads, mails.rings, 5) is None
    waiting = "records waiting[1] is 1; expected 0"
    assert mails.problem_of(mails.heads, None, 5) == waiting
    assert mails.without_empty_rings().shape == mails.words.shape
    drain(mails)
    assert mails.without_empty_rings().shape == (2, HEAD_WORDS)
    assert mails.problem_of(mails.heads, None, 5) is None


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("posted", -1),
        ("posted", MAX_COUNT + 1),
        ("taken", 1),
        ("taken", -1),
        ("started", 0),
        ("started", 2),
        ("aborted", 2),
        ("draw.slot", 5),
        ("draw.slot", -1),
        ("draw.task_id", 5),
        ("draw.env_index", 1),
        ("replay", 2),
        ("closed", 1),
    ],
)
def test_a_damaged_head_is_refused(path: str, value: int) -> None:
    with LocalHost(numbered(5), 2) as host:
        for client in host.clients():
            client.draw()
        host.client(1).finish(success=1.0)
        snapshot = host.snapshot()
        field = snapshot.arrays["channel/heads"]
        for name in path.split("."):
            field = field[name]
        field[0] = value
        if (path, value) == ("started", 0):
            snapshot.arrays["channel/heads"]["aborted"][0] = 1
        with pytest.raises(SnapshotError, match="channel"):
            host.restore(snapshot)
