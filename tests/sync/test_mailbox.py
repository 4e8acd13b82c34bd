"""The kernels of a mailbox: counters, the ring, messages, and what a kill leaves behind."""

import numpy as np
import pytest

from stepladder.errors import SnapshotError
from stepladder.plans.kernels import Words
from stepladder.plans.record import RECORD_DTYPE, TERMINATED, UNBUILDABLE, Draw, Record
from stepladder.saving.saved_array import SavedArray
from stepladder.sync import LocalHost, mailbox
from stepladder.sync.mailbox import (
    CAPACITY,
    M_ABORTED,
    M_CLOSED,
    M_DIALS,
    M_DRAW,
    M_NEXT_EPISODE,
    M_PID,
    M_POSTED,
    M_REPLAY,
    M_STARTED,
    M_TAKEN,
    MESSAGE_BYTES,
    MESSAGE_WORDS,
    NEVER_BEGAN,
    NO_ROOM,
    NOT_ADMITTED,
    NOTE_WORDS,
    POSTED,
    RECORD_WORDS,
)
from sync.rig import make_staged, numbered

PID = 77


def make_mails(num_envs: int, num_dials: int = 0) -> np.ndarray:
    mails = np.zeros((num_envs, mailbox.mailbox_words(num_dials)), dtype=np.int64)
    mails[:, M_PID] = PID
    return mails


def drain(mails: np.ndarray, num_dials: int = 0) -> list[Record]:
    """Empty all mailboxes but those with messages that nobody has read."""
    words = np.zeros((len(mails) * CAPACITY, RECORD_WORDS), dtype=np.int64)
    count, unbuildable = mailbox.drain(mails, M_DIALS + num_dials, words, np.arange(len(mails)))
    note, last, lags = np.zeros(NOTE_WORDS, dtype=np.int64), np.zeros(9, np.int64), np.zeros(9, int)
    mailbox.admit(mails, words, count, unbuildable, 1, last, lags, note)
    records = [Record(*row) for row in words.reshape(-1).view(RECORD_DTYPE)[:count].tolist()]
    assert unbuildable == sum(record.outcome == UNBUILDABLE for record in records)
    return records


def test_a_record_has_as_many_words_as_its_type() -> None:
    assert RECORD_DTYPE.itemsize == 8 * RECORD_WORDS


@pytest.mark.parametrize("num_dials", [0, 1, 5, 8, 100])
def test_a_mailbox_is_a_whole_number_of_cache_lines_and_holds_everything(num_dials: int) -> None:
    words = mailbox.mailbox_words(num_dials)
    assert words % 8 == 0
    assert words >= M_DIALS + num_dials + CAPACITY * (RECORD_WORDS + MESSAGE_WORDS)


def test_what_the_client_writes_and_what_the_host_writes_lie_in_different_cache_lines() -> None:
    of_client = {M_POSTED, M_STARTED, M_ABORTED, M_PID, M_NEXT_EPISODE, *range(M_DRAW, M_DRAW + 8)}
    of_host = {M_TAKEN, M_REPLAY, M_CLOSED}
    assert not {word // 8 for word in of_client} & {word // 8 for word in of_host}


def test_a_record_says_what_was_drawn_and_what_was_reported() -> None:
    curriculum = make_staged()
    block, mails = curriculum.plan.block, make_mails(3, num_dials=4)
    ring, dials = M_DIALS + 4, np.zeros(4)
    mails[2, M_NEXT_EPISODE] = 9
    drawn = Draw(*mailbox.start(block, mails[2], 2, PID, dials))
    slot, generation, _, version, seed, tick, _, _ = drawn
    assert drawn == (slot, 0, slot, curriculum.plan.version, seed, 0, 2, 9)
    assert 0 <= seed < 2**63
    np.testing.assert_array_equal(dials, curriculum.plan.dials)
    assert mailbox.in_flight(mails[2])
    assert mailbox.post(mails[2], ring, -1.5, 12, 0.25, TERMINATED) == POSTED
    assert not mailbox.in_flight(mails[2])
    assert drain(mails, 4) == [
        Record(slot, generation, version, tick, 2, 9, -1.5, 12, 0.25, TERMINATED)
    ]
    assert drain(mails, 4) == []
    assert mailbox.post(mails[2], ring, -1.5, 12, 0.25, TERMINATED) == NEVER_BEGAN
    assert mailbox.post(mails[0], ring, -1.5, 12, 0.25, TERMINATED) == NEVER_BEGAN
    assert drain(mails, 4) == []


def test_nothing_begins_for_a_process_that_has_not_signed_in() -> None:
    block, mails = numbered(5).plan.block, make_mails(1)
    before = mails.copy()
    assert mailbox.start(block, mails[0], 0, PID + 1, np.zeros(0))[0] == NOT_ADMITTED
    np.testing.assert_array_equal(mails, before)


def test_nothing_begins_and_nothing_ends_in_a_closed_mailbox() -> None:
    block, mails = numbered(5).plan.block, make_mails(1)
    assert mailbox.start(block, mails[0], 0, PID, np.zeros(0))[0] >= 0
    mails[0, M_CLOSED] = 1
    before = mails.copy()
    assert mailbox.start(block, mails[0], 0, PID, np.zeros(0))[0] == NOT_ADMITTED
    assert mailbox.post(mails[0], M_DIALS, 0.0, 1, 1.0, TERMINATED) == NO_ROOM
    np.testing.assert_array_equal(mails, before)


def test_a_new_start_gives_up_the_episode_in_flight() -> None:
    block, mails = numbered(5).plan.block, make_mails(1)
    episodes = [mailbox.start(block, mails[0], 0, PID, np.zeros(0))[-1] for _ in range(3)]
    assert episodes == [0, 1, 2]
    assert (mails[0, M_STARTED], mails[0, M_ABORTED], mails[0, M_POSTED]) == (3, 2, 0)
    assert mailbox.in_flight(mails[0])


def test_a_replay_gives_the_same_draw_once_without_starting_another() -> None:
    curriculum = make_staged()
    block, mails = curriculum.plan.block, make_mails(1, num_dials=4)
    drawn = mailbox.start(block, mails[0], 0, PID, np.zeros(4))
    dials_drawn = curriculum.plan.dials.copy()
    curriculum.go_to("hard")
    mails[0, M_REPLAY] = 1
    dials = np.zeros(4)
    assert mailbox.start(block, mails[0], 0, PID, dials) == drawn
    np.testing.assert_array_equal(dials, dials_drawn)
    assert (mails[0, M_STARTED], mails[0, M_ABORTED]) == (1, 0)
    assert mailbox.start(block, mails[0], 0, PID, dials)[-1] == 1
    np.testing.assert_array_equal(dials, curriculum.plan.dials)


@pytest.mark.parametrize("how", ["ended", "given up"])
def test_an_episode_that_is_over_is_not_replayed(how: str) -> None:
    block, mails = numbered(5).plan.block, make_mails(1)
    mailbox.start(block, mails[0], 0, PID, np.zeros(0))
    mails[0, M_REPLAY] = 1
    if how == "ended":
        assert mailbox.post(mails[0], M_DIALS, 0.0, 1, 1.0, TERMINATED) == POSTED
    else:
        mails[0, M_ABORTED] += 1
    assert mailbox.start(block, mails[0], 0, PID, np.zeros(0))[-1] == 1
    assert mails[0, M_STARTED] == 2
    assert mailbox.in_flight(mails[0])


def test_a_full_ring_takes_nothing_and_changes_nothing() -> None:
    block, mails = numbered(5).plan.block, make_mails(1)
    for number in range(CAPACITY):
        mailbox.start(block, mails[0], 0, PID, np.zeros(0))
        assert mailbox.post(mails[0], M_DIALS, float(number), 1, 1.0, TERMINATED) == POSTED
    mailbox.start(block, mails[0], 0, PID, np.zeros(0))
    before = mails.copy()
    assert mailbox.post(mails[0], M_DIALS, 64.0, 1, 1.0, TERMINATED) == NO_ROOM
    np.testing.assert_array_equal(mails, before)
    assert [record.episode_return for record in drain(mails)] == [*range(CAPACITY)]
    assert mailbox.post(mails[0], M_DIALS, 64.0, 1, 1.0, TERMINATED) == POSTED
    assert [record.episode_return for record in drain(mails)] == [64.0]


def test_records_come_in_env_order_and_first_in_first_out_however_often_the_ring_wraps() -> None:
    rng = np.random.default_rng(1)
    block, mails = numbered(5).plan.block, make_mails(3)
    waiting: list[list[float]] = [[], [], []]
    posted = 0
    while posted < 20 * 3 * CAPACITY:
        for env_index in range(3):
            for _ in range(rng.integers(0, CAPACITY + 1 - len(waiting[env_index]))):
                mailbox.start(block, mails[env_index], env_index, PID, np.zeros(0))
                value = float(rng.random())
                assert mailbox.post(mails[env_index], M_DIALS, value, 1, 1.0, TERMINATED) == POSTED
                waiting[env_index].append(value)
                posted += 1
        if rng.random() < 0.7:
            expected = [(env, value) for env in range(3) for value in waiting[env]]
            found = [(record.env_index, record.episode_return) for record in drain(mails)]
            assert found == expected
            waiting = [[], [], []]
    assert mails[:, M_POSTED].min() > 5 * CAPACITY


def test_a_mailbox_with_a_failure_counts_as_full_until_its_message_was_read() -> None:
    block, mails = numbered(5).plan.block, make_mails(2)
    for env_index, outcome in ((0, UNBUILDABLE), (1, TERMINATED)):
        mailbox.start(block, mails[env_index], env_index, PID, np.zeros(0))
        assert mailbox.post(mails[env_index], M_DIALS, 0.0, 1, 1.0, outcome) == POSTED
    assert len(drain(mails)) == 2
    assert mails[:, M_TAKEN].tolist() == [0, 1]


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


def problem(heads: Words) -> str | None:
    """What is wrong with saved mailboxes of a curriculum with five tasks in five slots."""
    try:
        SavedArray("heads", heads, mailbox.head_parts(5, 5)).read({"heads": heads})
    except SnapshotError as error:
        return str(error)
    return mailbox.problem_of(heads, M_DIALS, (), 5)


def test_only_mailboxes_that_clients_can_have_filled_are_possible() -> None:
    block, mails = numbered(5).plan.block, make_mails(2)
    for mail, env_index in ((mails[0], 0), (mails[1], 1)):
        mailbox.start(block, mail, env_index, PID, np.zeros(0))
    mailbox.post(mails[1], M_DIALS, 0.0, 1, 1.0, TERMINATED)
    assert problem(mails) is None
    assert problem(mails[:, :M_DIALS]) == "records waiting[1] is 1; expected an integer from 0 to 0"
    assert mailbox.without_empty_rings(mails, M_DIALS).shape == mails.shape
    drain(mails)
    heads = mailbox.without_empty_rings(mails, M_DIALS)
    assert heads.shape == (2, M_DIALS)
    assert problem(heads) is None
    for word, value in (
        (M_POSTED, -1),
        (M_TAKEN, 1),
        (M_TAKEN, -1),
        (M_STARTED, 0),
        (M_STARTED, 2),
        (M_ABORTED, 2),
        (M_DRAW, 5),
        (M_DRAW, -1),
        (M_DRAW + 2, 5),
        (M_DRAW + 6, 1),
        (M_CLOSED, 2),
    ):
        damaged = heads.copy()
        damaged[0, word] = value
        if (word, value) == (M_STARTED, 0):
            damaged[0, M_ABORTED] = 1
        assert problem(damaged) is not None, (word, value)
