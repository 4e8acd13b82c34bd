"""Whom to play next, out of many: opponents in seats, prioritised by `Learnability`.

An opponent pool is a source like any other: each opponent is a task, a seat is a slot, and who
plays an episode is a draw. The curriculum weighs opponents by p(1 - p), p being how often the
learner wins (a draw is half a win), with a Beta posterior. `league` has one of these for past
selves and one for the archive.

A result is credited to the seat and generation that was drawn, so that one who has left a seat in
the meantime leaves nothing behind for the successor.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stepladder.curricula.explanation import TaskExplanation
from stepladder.curricula.learnability import Learnability, LearnabilityConfig
from stepladder.errors import ConfigError
from stepladder.plans.record import Draw
from stepladder.saving.snapshot import Snapshot
from stepladder.tasks import Source, Task
from stepladder.training.opponents.member import Member

OUTCOMES = (-1, 0, 1)
"""Lost, drawn, won: how an episode ended for the learner."""

EMPTY = "empty seat"

KNOWN_AFTER = 30
"""Games after which an opponent is well known, and may have to make room."""


class Roster(Source):
    """Opponents by number. A number that nobody has is an empty seat, which weighs nothing.

    Args:
        label: What all of them are, such as "pool".
    """

    def __init__(self, label: str):
        self.members: dict[int, Member] = {}
        self._label = label

    @property
    def num_tasks(self) -> None:
        """There is no end to numbers."""
        return None

    def get(self, task_id: int) -> Task:
        """Return the opponent with this number as a task."""
        return Task(self.name(task_id), self._label)

    def name(self, task_id: int) -> str:
        """Return what the opponent with this number is called."""
        member = self.members.get(self.check_id(task_id))
        return EMPTY if member is None else member.name

    def label(self, task_id: int) -> str:
        """Return the one label."""
        self.check_id(task_id)
        return self._label

    def labels(self) -> list[str]:
        """Return the one label."""
        return [self._label]

    def weight(self, task_id: int) -> float:
        """Return 1, or 0 for an empty seat."""
        return float(task_id in self.members)

    def describe(self) -> dict[str, Any]:
        """Return what never changes: opponents come and go, and snapshots hold them."""
        return {"kind": "opponents", "label": self._label}


@dataclass(frozen=True, kw_only=True)
class SeatReport:
    """What is known about one opponent."""

    name: str
    num_games: int
    score: float
    """How often the learner wins, draws counting half: the posterior mean."""
    learnability: float
    """The expectation of p(1 - p), at most 0.25."""
    prob: float
    """Probability of being drawn next."""


class Seats:
    """Opponents to choose from.

    Args:
        label: What they are, such as "pool".
        num_seats: Most opponents at once.
        seed: Of all draws.
    """

    def __init__(self, label: str, num_seats: int, seed: int):
        self._roster = Roster(label)
        # Seats are given away here, by `add`, and not by the curriculum: it knows no newcomers.
        self.curriculum = Learnability(
            self._roster,
            LearnabilityConfig(eviction_percentile=0.0),
            seed=seed,
            capacity=num_seats,
        )
        self._num_added = 0

    @property
    def members(self) -> Mapping[int, Member]:
        """Everybody who has a seat, by number, in the order of arrival."""
        return self._roster.members

    def add(self, member: Member) -> int:
        """Give a newcomer a seat; return the newcomer's number.

        Where no seat is empty, the least learnable of the well-known opponents leaves: one whom
        the learner always beats, or never does. While nobody is well known, the oldest leaves.
        """
        slot = self._empty_slot()
        leaving = None
        if slot is None:
            leaving = self.least_learnable()
            leaving = next(iter(self.members)) if leaving is None else leaving
            slot = self._slots()[leaving]
        number = self._num_added
        # An empty seat has a number as well, any at all; nobody may have the same.
        while self.curriculum.pool.contains(number):
            number += 1
        self._num_added = number + 1
        self._roster.members[number] = member
        self.curriculum.replace(slot, number)
        if leaving is not None:
            del self._roster.members[leaving]
        return number

    def remove(self, number: int) -> None:
        """Take somebody's seat away; it is empty then."""
        slot = self._slots()[number]
        self.curriculum.replace(slot)
        del self._roster.members[number]

    def draw(self) -> Draw | None:
        """Choose an opponent for one episode; its number is the `task_id`. None if all are gone."""
        return self.curriculum.draw_one() if self.members else None

    def report(self, draw: Draw, outcome: int) -> None:
        """Credit a result to the opponent that was drawn, if it still has its seat.

        Raises:
            ConfigError: The outcome is none.
        """
        require_outcome(outcome)
        self.curriculum.report(draw, success=(outcome + 1) / 2)

    def least_learnable(self) -> int | None:
        """Return the least learnable of those who have played `KNOWN_AFTER` games, if any have.

        Of several that are alike, the oldest.
        """
        plays, scores, slots = self.curriculum.plays(), self.curriculum.scores(), self._slots()
        known = [number for number, slot in slots.items() if plays[slot] >= KNOWN_AFTER]
        return min(known, key=lambda number: scores[slots[number]], default=None)

    def explain(self) -> list[SeatReport]:
        """Return what is known about everybody, the most learnable first."""
        reports = [self._seat_report(slot) for slot in self._slots().values()]
        return sorted(reports, key=lambda report: -report.learnability)

    def snapshot(self, index_of: Callable[[Member], int]) -> Snapshot:
        """Return everything but the members themselves.

        Args:
            index_of: Where the caller keeps a member.
        """
        numbers = [[number, index_of(member)] for number, member in self.members.items()]
        state = {"numbers": numbers, "num_added": self._num_added}
        return Snapshot.of_parts(state, curriculum=self.curriculum.snapshot())

    def restore(self, snapshot: Snapshot, members: list[Member]) -> None:
        """Continue exactly where `snapshot` was made.

        Args:
            snapshot: What `snapshot` returned.
            members: Those that `index_of` gave the places of.

        May leave things half done when it raises.
        """
        # First, because the curriculum asks who is there.
        self._roster.members = {
            int(number): members[index] for number, index in snapshot.state["numbers"]
        }
        self.curriculum.restore(snapshot.part("curriculum"))
        self._num_added = int(snapshot.state["num_added"])

    def _slots(self) -> dict[int, int]:
        """Return the slot of everybody, in the order of arrival."""
        slots = {number: slot for slot, number in enumerate(self.curriculum.pool.task_ids.tolist())}
        return {number: slots[number] for number in self.members}

    def _empty_slot(self) -> int | None:
        numbers = self.curriculum.pool.task_ids.tolist()
        return next(
            (slot for slot, number in enumerate(numbers) if number not in self.members), None
        )

    def _seat_report(self, slot: int) -> SeatReport:
        explanation = self.curriculum.explain(slot)
        assert isinstance(explanation, TaskExplanation)
        numbers = explanation.numbers
        return SeatReport(
            name=explanation.name,
            num_games=int(numbers["plays"]),
            score=numbers["success"],
            learnability=numbers["learnability"],
            prob=explanation.prob,
        )


def require_outcome(outcome: Any) -> None:
    """Raise unless something says how an episode ended for the learner."""
    if outcome not in OUTCOMES:
        raise ConfigError(
            f"an outcome must be 1 (won), 0 (drawn) or -1 (lost); got {outcome!r}. Give what the "
            "env calls the winner."
        )
