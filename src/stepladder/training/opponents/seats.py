"""Which of many opponents to play next: opponents in seats, prioritised by `Learnability`.

An opponent pool is a source like any other: each opponent is a task, a seat is a slot, and the
opponent of an episode is drawn. The curriculum weighs opponents by p(1 - p), p being how often the
learner wins (a draw is half a win), with a Beta posterior. `league` has one of these for past
selves and one for the archive.

A result is credited to the seat and generation that was drawn, so that the result of an opponent
that has lost its seat does not count for its successor.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stepladder.curricula.learnability.config import LearnabilityConfig
from stepladder.curricula.learnability.learnability import Learnability
from stepladder.curricula.reporting.explanation import TaskExplanation
from stepladder.errors import ConfigError
from stepladder.plans.record import Draw
from stepladder.saving.snapshot import Snapshot
from stepladder.tasks import Source, Task
from stepladder.training.opponents.member import Member

OUTCOMES = (-1, 0, 1)
"""Lost, drawn, won: how an episode ended for the learner."""

EMPTY = "empty seat"

KNOWN_AFTER = 30
"""Games after which an opponent is well known, and may be replaced."""


class Roster(Source):
    """Opponents by number. A number without opponent is an empty seat, which has weight 0.

    Args:
        label: Of all of them, such as "pool".
    """

    def __init__(self, label: str):
        self.members: dict[int, Member] = {}
        self._label = label

    @property
    def num_tasks(self) -> None:
        """None: there is no largest number."""
        return None

    def get(self, task_id: int) -> Task:
        """Return the opponent with this number as a task."""
        return Task(self.name(task_id), self._label)

    def name(self, task_id: int) -> str:
        """Return the name of the opponent with this number."""
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
        """Return what never changes; the opponents themselves are in snapshots."""
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
        label: Of all of them, such as "pool".
        num_seats: Most opponents at once.
        seed: Of all draws.
    """

    def __init__(self, label: str, num_seats: int, seed: int):
        self._roster = Roster(label)
        # `add` assigns seats, not the curriculum: the source has no other opponents.
        self.curriculum = Learnability(
            self._roster,
            LearnabilityConfig(pooled=False, exploration=0.0, eviction_percentile=0.0),
            seed=seed,
            capacity=num_seats,
        )
        self._num_added = 0

    @property
    def members(self) -> Mapping[int, Member]:
        """All that have a seat, by number, oldest first."""
        return self._roster.members

    def add(self, member: Member) -> int:
        """Give an opponent a seat; return its number.

        If no seat is empty, it replaces the least learnable of the well-known opponents: one that
        the learner always beats, or never does. If none is well known, it replaces the oldest.
        """
        slot = self._empty_slot()
        leaving = None
        if slot is None:
            leaving = self.least_learnable()
            leaving = next(iter(self.members)) if leaving is None else leaving
            slot = self._slots()[leaving]
        number = self._num_added
        # An empty seat has a number as well, which must not be used twice.
        while self.curriculum.pool.contains(number):
            number += 1
        self._num_added = number + 1
        self._roster.members[number] = member
        self.curriculum.replace(slot, number)
        if leaving is not None:
            del self._roster.members[leaving]
        return number

    def remove(self, number: int) -> None:
        """Remove an opponent; its seat is empty then."""
        slot = self._slots()[number]
        self.curriculum.replace(slot)
        del self._roster.members[number]

    def draw(self) -> Draw | None:
        """Draw an opponent for one episode; its number is the `task_id`. None if there is none."""
        return self.curriculum.draw_one() if self.members else None

    def report(self, draw: Draw, outcome: int) -> None:
        """Credit a result to the opponent that was drawn, if it still has its seat.

        Raises:
            ConfigError: The outcome is not 1, 0 or -1.
        """
        require_outcome(outcome)
        self.curriculum.report(draw, success=(outcome + 1) / 2)

    def least_learnable(self) -> int | None:
        """Return the least learnable of those with at least `KNOWN_AFTER` games, if any.

        Of several equal ones, the oldest.
        """
        plays, scores, slots = self.curriculum.plays(), self.curriculum.scores(), self._slots()
        known = [number for number, slot in slots.items() if plays[slot] >= KNOWN_AFTER]
        return min(known, key=lambda number: scores[slots[number]], default=None)

    def explain(self) -> list[SeatReport]:
        """Return what is known about each opponent, the most learnable first."""
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
        # First, because the curriculum reads the names.
        self._roster.members = {
            int(number): members[index] for number, index in snapshot.state["numbers"]
        }
        self.curriculum.restore(snapshot.part("curriculum"))
        self._num_added = int(snapshot.state["num_added"])

    def _slots(self) -> dict[int, int]:
        """Return the slot of each opponent, oldest first."""
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
    """Raise unless a value is the outcome of an episode for the learner."""
    if outcome not in OUTCOMES:
        raise ConfigError(
            f"an outcome must be 1 (won), 0 (drawn) or -1 (lost); got {outcome!r}. Give the env's "
            "winner."
        )
