"""The learner in the archive: results that are still to be reported, and its rating.

Used by `league`. Reports are numbered, so that the games of a run that was killed and resumed are
not counted twice.
"""

import uuid
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from stepladder.agents.base import Agent
from stepladder.saving.saved_fields import read_count, read_fields
from stepladder.training.opponents.archive import Archive
from stepladder.training.opponents.member import Member
from stepladder.training.opponents.ratings import PairGames, Rating


class Standing:
    """The learner's standing.

    Args:
        archive: Where it is kept.
        origin: Name of the run there.
    """

    def __init__(self, archive: Archive, origin: str):
        self.archive = archive
        self.rating: Rating | None = None
        """The learner's rating at the last report; None before the first."""
        self._origin = origin
        # Unique, so that a new run of the same name does not continue an old one's rating.
        self._learner = f"{origin}:{uuid.uuid4().hex[:8]}"
        self._pending: dict[str, list[int]] = {}
        self._num_reports = 0

    def note(self, agent_id: str, outcome: int) -> None:
        """Keep a result against an archived agent for the next report."""
        self._pending.setdefault(agent_id, []).append(outcome)

    def report(self) -> None:
        """Count the results since the last report."""
        if not self._pending:
            return
        games = [
            PairGames.of(self._learner, who, outcomes) for who, outcomes in self._pending.items()
        ]
        # Not read from the archive: a resumed run would find there what it has yet to play.
        ratings = self.archive.ratings()
        ratings.put(self._learner, self.rating or Rating())
        ratings.play(games, self._learner)
        self.archive.rate(
            games, learner=self._learner, origin=self._learner, batch=self._num_reports
        )
        self.rating = ratings[self._learner]
        self._num_reports += 1
        self._pending = {}

    def enter(self, agent: Agent, step: int, tags: Iterable[str]) -> str:
        """Put the learner as it is now into the archive, with its rating; return its id."""
        self.report()
        member = Member.of_agent(agent, step, self._origin)
        former = self._learner if self._num_reports else None
        return self.archive.add(member, origin=self._origin, tags=tags, former=former)

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain JSON."""
        return {
            "learner": self._learner,
            "pending": {who: list(outcomes) for who, outcomes in self._pending.items()},
            "num_reports": self._num_reports,
            "rating": None if self.rating is None else asdict(self.rating),
        }

    def restore(self, data: Any) -> None:
        """Continue where `to_json` was called."""
        self._learner, rating = str(data["learner"]), data["rating"]
        place = "the learner's standing"
        self.rating = None if rating is None else read_fields(Rating, rating, place)
        self._num_reports = read_count(data["num_reports"], f"num_reports of {place}")
        self._pending = {who: list(map(int, each)) for who, each in data["pending"].items()}
