"""Ctrl-C at every line of a collection: no finished episode is lost, none is observed twice.

For each curriculum, the batches are found that together execute every line of the library that any
batch of a long stream does: stages and phases that change, tasks that are evicted, quarantined,
replaced. From a snapshot before such a batch, the collection is interrupted at its first line,
then at its second, and so on; each time the next call must lead to the very state, and tell every
listener the very records, of a collection that nobody interrupted.

Lines that all curricula share are interrupted once in four for each of them, other ones for each,
and all of them for two; with ``STEPLADDER_EVERY_LINE=1`` in the environment all for each.
"""

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from contracts.test_curriculum_contract import CASES
from curricula.fake_learner import differences, live
from curricula.fake_learner import play as played
from interrupts import EVERY_LINE, interrupted, lines_of
from stepladder.curricula import (
    AncestorProgress,
    CurriculumMeter,
    Frontier,
    Phased,
    Snapshot,
    Staged,
)
from stepladder.curricula.eviction import Evicting
from stepladder.errors import RecordError
from stepladder.plans.plan import header_record
from stepladder.plans.status import DONE
from stepladder.sync import EpisodeCounts, LocalHost, mailbox
from sync.rig import CURRICULA, IN_PROCESS, Rig, numbered, rig

pytestmark = pytest.mark.slow

NUM_ENVS = 2
NUM_BATCHES = {Frontier: 50, AncestorProgress: 70}
"""Until a task is evicted; 40 for others."""

MANY_LINES = 450

SHARED_LINES = 4
"""Of so many lines that all curricula share, one is interrupted for each."""

WHOLE = ("uniform_replacing", "phased_nested_evicting")
"""For which every line is."""

Ledger = list[tuple[int, int]]
Saved = tuple[Snapshot, Snapshot]


@dataclass
class Scene:
    """A curriculum with envs that are played by a script, and who listens to it."""

    wired: Rig
    curriculum: Any
    ledger: Ledger = field(default_factory=list)
    """Env and episode of each record that a listener was told of."""

    second: Ledger = field(default_factory=list)
    collected: Ledger = field(default_factory=list)
    """The same, as the channel tells its own listeners."""

    replaced: list[tuple[int | None, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.meter = CurriculumMeter(self.curriculum)
        self.curriculum.add_listener(noting(self.ledger), on_replace=self._note)
        self.curriculum.add_listener(noting(self.second))
        self.wired.host.on_collected(noting(self.collected))

    def _note(self, slot: int | None) -> None:
        generation = 0 if slot is None else int(self.curriculum.pool.generations[slot])
        self.replaced.append((slot, generation))

    def play(self, number: int) -> Ledger:
        """Play two episodes in each env; return those that were finished."""
        finished: Ledger = []
        for episode in range(2):
            for env_index, client in enumerate(self.wired.clients):
                draw = client.draw()
                if number in (9, 23) and episode != env_index == 0:
                    client.fail("cannot be built")
                    continue
                record = played(draw)
                client.finish(
                    success=record.success,
                    episode_return=record.episode_return,
                    length=record.length,
                    truncated=record.truncated,
                )
                finished.append((env_index, draw.episode_index))
        return sorted(finished)

    def save(self) -> Saved:
        return self.wired.host.snapshot(), self.meter.snapshot()

    def load(self, saved: Saved) -> None:
        self.wired.host.restore(saved[0])
        self.meter.restore(saved[1])
        for ledger in (self.ledger, self.second, self.collected, self.replaced):
            ledger.clear()


def noting(ledger: Ledger) -> Callable[[Any], None]:
    def note(records: Any) -> None:
        ledger.extend(records[["env_index", "episode_index"]].tolist())

    return note


def telling_batches(
    scene: Scene, counts: Callable[[int, str], bool]
) -> list[tuple[int, Saved, list[int]]]:
    """Play a long stream; return batches, and at which of their lines to interrupt them.

    Those are every line of the batch that executes the most different ones, then the lines of
    others that were not among these, until every line that any of them executes is there.

    Args:
        scene: What to play.
        counts: Whether a line counts, given its place among those of the batch and its file.
    """
    batches = []
    for number in range(NUM_BATCHES.get(type(scene.curriculum), 40)):
        saved = scene.save()
        scene.play(number)
        batches.append((number, saved, lines_of(scene.wired.host.collect)))
    batches.sort(key=lambda batch: -len(set(batch[2])))
    chosen: list[tuple[int, Saved, list[int]]] = []
    seen: set[Any] = set()
    for number, saved, lines in batches:
        places = [index for index in thinned(lines) if counts(index, lines[index][0])]
        new = [index + 1 for index in places if not seen or lines[index] not in seen]
        if new:
            chosen.append((number, saved, new))
            seen.update(lines)
    return chosen


def thinned(lines: list[Any]) -> list[int]:
    """Return the places of all lines; in a long list only the first three times of each."""
    times: Counter[Any] = Counter()
    places = []
    for place, line in enumerate(lines):
        times[line] += 1
        if len(lines) < MANY_LINES or times[line] <= 3:
            places.append(place)
    return places


VERSIONS = ("version", "history", "seen_versions")
"""What holds or follows from the number of the plan."""


def assert_same_end(scene: Scene, expected: tuple[Snapshot, Snapshot], where: str) -> None:
    """Fail unless everything is as after a collection that nobody interrupted.

    A replacement that is completed later may count as two changes of the plan instead of one.
    """
    found = scene.save()
    assert not differences(found[1], expected[1]), where
    apart = differences(found[0], expected[0])
    if scene.replaced or any(entry.slot >= 0 for entry in scene.curriculum.quarantined):
        apart = [name for name in apart if not any(word in name for word in VERSIONS)]
    assert not apart, where
    block = scene.curriculum.plan.block
    assert header_record(block)["sequence"] % 2 == 0, where


def assert_consistent(counts: EpisodeCounts) -> None:
    assert counts.started == counts.finished + counts.aborted + counts.failed + counts.in_flight
    assert counts.in_flight == 0


def go_on(scene: Scene, line: int) -> None:
    """Let whatever may come next complete an interrupted collection."""
    host = scene.wired.host
    ways = (host.collect, host.complete, host.snapshot, scene.curriculum.finish)
    ways[line % len(ways)]()
    # And once more, which must find nothing left to do.
    host.collect()


def interrupt_everywhere(
    scene: Scene, number: int, saved: Saved, lines: list[int], twice: bool
) -> None:
    """Interrupt one batch at each of these lines."""
    scene.load(saved)
    finished = scene.play(number)
    scene.wired.host.collect()
    assert sorted(scene.ledger) == finished
    ledgers = scene.ledger.copy(), scene.replaced.copy()
    expected = scene.save()
    for line in lines:
        scene.load(saved)
        scene.play(number)
        assert interrupted(line, scene.wired.host.collect)
        where = f"batch {number}, line {line}"
        if twice:
            interrupted(1 + line * 7 % 40, scene.wired.host.collect)
        go_on(scene, line)
        assert (scene.ledger, scene.replaced) == ledgers, where
        assert scene.second == scene.collected == scene.ledger, where
        assert_consistent(scene.wired.host.counts)
        assert_same_end(scene, expected, where)


def every_line(place: int, file: str) -> bool:
    return True


def own_lines(name: str) -> Callable[[int, str], bool]:
    """Let the lines of a method count, and some of those that are the same for all."""
    folder = f"{os.sep}curricula{os.sep}"
    first = list(CASES).index(name)

    def counts(place: int, file: str) -> bool:
        is_own = os.sep in file.rpartition(folder)[2] if folder in file else False
        # The lines of the channel are the same whatever it carries.
        is_shared = f"{os.sep}sync{os.sep}" not in file
        return is_own or (is_shared and (place + first) % SHARED_LINES == 0)

    return every_line if EVERY_LINE or name in WHOLE else counts


def check(
    backend: str,
    curriculum: Any,
    *,
    twice: bool = False,
    counts: Callable[[int, str], bool] = every_line,
) -> None:
    with rig(backend, curriculum, NUM_ENVS) as wired:
        scene = Scene(wired, curriculum)
        batches = telling_batches(scene, counts)
        if isinstance(curriculum, Staged | Phased):
            assert curriculum.history, "nothing has happened"
        if isinstance(curriculum, Evicting) and curriculum.pool.can_replace:
            assert curriculum.num_evicted > 0, "nothing has happened"
        assert len(batches[0][2]) > (40 if counts is every_line else 10)
        for number, saved, lines in batches:
            interrupt_everywhere(scene, number, saved, lines, twice)


@pytest.mark.parametrize("name", CASES)
def test_ctrl_c_at_any_line_of_a_collection_loses_and_doubles_nothing(name: str) -> None:
    # So that a task makes room within the few episodes that are played here.
    sooner = {"eviction_plays": 2} if name == "frontier_evicting" else {}
    curriculum = CASES[name].make(**sooner)
    check("local", curriculum, counts=own_lines(name))


@pytest.mark.parametrize("name", CURRICULA)
@pytest.mark.parametrize("backend", IN_PROCESS)
def test_ctrl_c_twice_in_a_row_does_neither(backend: str, name: str) -> None:
    check(backend, CURRICULA[name](), twice=True)


# By hand.

LATE, EARLY = "after", "before"


def all_or_nothing(make: Callable[[], Any], act: Callable[[Any], Any]) -> set[str]:
    """Interrupt something done by hand at every line; return what came of it, which is all."""
    curriculum = make()
    before = curriculum.snapshot()
    act(curriculum)
    after = curriculum.snapshot()
    outcomes: set[str] = set()
    for line in range(1, 1000):
        curriculum.restore(before)
        if not interrupted(line, lambda: act(curriculum)):
            break
        # Whatever comes next completes what was begun.
        ways = (curriculum.finish, curriculum.draw_one, lambda: curriculum.draw(2))
        ways[line % 3]()
        found = curriculum.snapshot()
        names = {
            name: [part for part in differences(found, side) if not is_free(part)]
            for name, side in ((EARLY, before), (LATE, after))
        }
        outcome = next((name for name, apart in names.items() if not apart), None)
        assert outcome is not None, (line, names)
        outcomes.add(outcome)
        assert curriculum.plan.header["sequence"] % 2 == 0
    return outcomes


def is_free(part: str) -> bool:
    return "num_drawn" in part or any(word in part for word in VERSIONS)


def lived(name: str) -> Callable[[], Any]:
    def make() -> Any:
        curriculum = CASES[name].make()
        live(curriculum, 60)
        return curriculum

    return make


@pytest.mark.parametrize(
    "name", ["uniform", "staged", "progress_evicting", "frontier_evicting", "phased"]
)
def test_what_is_observed_by_hand_is_observed_as_a_whole_or_not_at_all(name: str) -> None:
    def report(curriculum: Any) -> None:
        curriculum.report(curriculum.draw_one(), 1.0)

    def observe(curriculum: Any) -> None:
        curriculum.observe([played(draw) for draw in curriculum.draw(4)])

    for act in (report, observe):
        assert all_or_nothing(lived(name), act) == {EARLY, LATE}


@pytest.mark.parametrize("name", ["level_replay_evicting", "staged_replacing", "uniform"])
def test_a_replacement_or_quarantine_by_hand_is_carried_out_as_a_whole_or_not_at_all(
    name: str,
) -> None:
    def quarantine(curriculum: Any) -> None:
        curriculum.quarantine(2, int(curriculum.pool.generations[2]), "cannot be built")

    acts = [quarantine] + ([lambda some: some.replace(1)] if CASES[name].can_replace else [])
    for act in acts:
        assert all_or_nothing(lived(name), act) == {EARLY, LATE}


def test_a_stage_set_by_hand_is_entered_once() -> None:
    def go(curriculum: Any) -> None:
        curriculum.go_to("hard")

    assert all_or_nothing(lived("staged"), go) == {EARLY, LATE}


# Listeners that fail, and listeners that ask.


def test_what_a_listener_raises_makes_nobody_observe_or_hear_twice() -> None:
    curriculum = numbered(4)
    heard: dict[str, int] = {"first": 0, "last": 0}

    def first(records: Any) -> None:
        heard["first"] += len(records)

    def failing(records: Any) -> None:
        raise OSError("disk full")

    def last(records: Any) -> None:
        heard["last"] += len(records)

    for listener in (first, failing, last):
        curriculum.add_listener(listener)
    with LocalHost(curriculum, 1) as host:
        client = host.client(0)
        client.draw()
        client.finish(success=1.0)
        with pytest.raises(OSError, match="disk full"):
            host.collect()
        assert (curriculum.num_observed, heard) == (1, {"first": 1, "last": 0})
        assert len(host.collect()) == 1
        assert (curriculum.num_observed, heard) == (1, {"first": 1, "last": 1})
        assert host.counts == EpisodeCounts(1, 1, 0, 0, 0)
        curriculum.remove_listener(failing)


def test_a_listener_may_ask_save_and_observe() -> None:
    curriculum = numbered(4)
    seen: list[tuple[int, int]] = []

    def listen(records: Any) -> None:
        seen.append((len(records), curriculum.snapshot().state["num_drawn"]))
        assert len(host.collect()) == 0
        assert len(host.complete()) == 0
        draw = curriculum.draw_one()
        if len(seen) == 1:
            curriculum.report(draw, 0.5)

    with LocalHost(curriculum, 1) as host:
        curriculum.add_listener(listen)
        client = host.client(0)
        client.draw()
        client.finish(success=1.0)
        assert len(host.collect()) == 1
        assert (curriculum.num_observed, seen) == (2, [(1, 0), (1, 1)])
        assert host.counts == EpisodeCounts(1, 1, 0, 0, 0)


def test_an_impossible_record_is_refused_once_and_does_not_come_again() -> None:
    curriculum = CASES["staged"].make()
    host = LocalHost(curriculum, 1)
    client = host.client(0)
    client.draw()
    mails = host.mails
    assert mailbox.post(mails.words[0], mails.ring_at, float("nan"), 1, 1.0, 0) == DONE
    with pytest.raises(RecordError, match="return nan is not finite"):
        host.collect()
    client.draw()
    client.finish(success=1.0)
    assert len(host.collect()) == 1
    host.close()


@pytest.mark.parametrize("backend", IN_PROCESS)
def test_ctrl_c_at_any_line_of_closing_loses_nothing_that_was_finished(backend: str) -> None:
    for line in range(1, 2000):
        curriculum = CASES["mixture_replacing"].make()
        with rig(backend, curriculum, NUM_ENVS) as wired:
            scene = Scene(wired, curriculum)
            finished = scene.play(0)
            was_interrupted = interrupted(line, wired.host.close)
            wired.host.close()
            assert wired.host.is_closed
            assert sorted(scene.ledger) == scene.collected == finished
            assert curriculum.num_observed == len(finished)
        # Somebody else can carry it now.
        LocalHost(curriculum, 1).close()
        if not was_interrupted:
            return
