"""Which agents of an archive a run plays, as the archive grows and shrinks.

Between `archive`, which any process may change at any time, and `league`, which looks at it at
defined moments only. Each agent that fits has a seat, up to `NUM_SEATS`; beyond that, at each look
one that the learner always beats, or never does, is replaced by one that waits.
"""

from collections.abc import Callable
from typing import Any

from stepladder.errors import SnapshotError
from stepladder.training.opponents.archive import Archive
from stepladder.training.opponents.entry import Entry
from stepladder.training.opponents.member import Member, misfit
from stepladder.training.opponents.seats import Seats

NUM_SEATS = 32
"""Most agents of the archive that are played at a time; their weights are in memory."""


class ArchiveOpponents:
    """Agents of an archive, in seats.

    Args:
        archive: Where they are.
        wanted: Description of an agent that fits the env.
        seed: Of all draws.
        try_out: Raises `SnapshotError` if a member cannot play at all.
        num_seats: Most of them at a time.
    """

    def __init__(
        self,
        archive: Archive,
        wanted: dict[str, Any],
        seed: int,
        try_out: Callable[[Member], object],
        num_seats: int = NUM_SEATS,
    ):
        self.archive = archive
        self.seats = Seats("archive", num_seats, seed)
        self.skipped: dict[str, str] = {}
        """Agents that were skipped at the last look, and why."""
        self.last_seated = ""
        """Id of the agent that was given a seat last."""
        self._wanted, self._try_out = wanted, try_out
        self._num_seats = num_seats

    def look(self) -> None:
        """Read the archive, and assign the seats accordingly."""
        fitting = self._fitting()
        for number, member in list(self.seats.members.items()):
            if member.name not in fitting:
                self.seats.remove(number)
        seated = {member.name for member in self.seats.members.values()}
        waiting = [entry for name, entry in fitting.items() if name not in seated]
        # The newest first: if there are too many, the oldest wait.
        while waiting and len(self.seats.members) < self._num_seats:
            self._seat(waiting.pop())
        if waiting:
            self._exchange(waiting)

    def _fitting(self) -> dict[str, Entry]:
        listing = self.archive.list()
        reasons = {
            entry.agent_id: misfit(entry.description, self._wanted) for entry in listing.entries
        }
        misfits = {name: reason for name, reason in reasons.items() if reason}
        self.skipped = {**listing.skipped, **misfits}
        return {entry.agent_id: entry for entry in listing.entries if entry.agent_id not in misfits}

    def _exchange(self, waiting: list[Entry]) -> None:
        """Replace an opponent from which there is little to learn by one that waits."""
        leaving = self.seats.least_learnable()
        if leaving is None:
            return
        # In turns by id, so that each gets a seat.
        turn = sorted(waiting, key=lambda entry: entry.agent_id)
        later = [entry for entry in turn if entry.agent_id > self.last_seated]
        self.seats.remove(leaving)
        self._seat((later or turn)[0])

    def _seat(self, entry: Entry) -> None:
        self.last_seated = entry.agent_id
        try:
            member = entry.load()
            self._try_out(member)
        except SnapshotError as error:
            self.skipped[entry.agent_id] = str(error)
        else:
            self.seats.add(member)
