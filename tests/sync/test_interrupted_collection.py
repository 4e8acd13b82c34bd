"""Ctrl-C at every line of a collection: no finished episode is lost, none is observed twice.

For each curriculum, the batches are found that together execute every line of the library that any
batch of a long stream does: stages and phases that change, tasks that are evicted, quarantined,
replaced. From a snapshot before such a batch, the collection is interrupted at its first line,
then at its second, and so on; each time the next call must lead to the very state, and tell every
listener the very records, of a collection that nobody interrupted.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from contracts.test_curriculum_contract import CASES
from curricula.fake_learner import differences
from curricula.fake_learner import play as played
from interrupts import interrupted, lines_of
from stepladder.curricula import CurriculumMeter, Snapshot
from stepladder.curricula.kernels import H_SEQUENCE
from stepladder.sync import EpisodeCounts
from sync.rig import CURRICULA, IN_PROCESS, Rig, rig

NUM_ENVS = 2
NUM_BATCHES = 40

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


def telling_batches(scene: Scene) -> list[tuple[int, Saved, list[int]]]:
    """Play a long stream; return batches, and at which of their lines to interrupt them.

    Those are every line of the batch that executes the most different ones, then the lines of
    others that were not among these, until every line that any of them executes is there.
    """
    batches = []
    for number in range(NUM_BATCHES):
        saved = scene.save()
        scene.play(number)
        batches.append((number, saved, lines_of(scene.wired.host.collect)))
    batches.sort(key=lambda batch: -len(set(batch[2])))
    chosen: list[tuple[int, Saved, list[int]]] = []
    seen: set[Any] = set()
    for number, saved, lines in batches:
        new = [index + 1 for index, line in enumerate(lines) if line not in seen]
        if new:
            chosen.append((number, saved, new if seen else [*range(1, len(lines) + 1)]))
            seen.update(lines)
    return chosen


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
    assert block[H_SEQUENCE] % 2 == 0, where


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


def check(backend: str, curriculum: Any, twice: bool = False) -> None:
    with rig(backend, curriculum, NUM_ENVS) as wired:
        scene = Scene(wired, curriculum)
        batches = telling_batches(scene)
        assert len(batches[0][2]) > 40
        for number, saved, lines in batches:
            interrupt_everywhere(scene, number, saved, lines, twice)


@pytest.mark.parametrize("name", CASES)
def test_ctrl_c_at_any_line_of_a_collection_loses_and_doubles_nothing(name: str) -> None:
    check("local", CASES[name].make())


@pytest.mark.parametrize("name", CURRICULA)
@pytest.mark.parametrize("backend", IN_PROCESS)
def test_ctrl_c_twice_in_a_row_does_neither(backend: str, name: str) -> None:
    check(backend, CURRICULA[name](), twice=True)
