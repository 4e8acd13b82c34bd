"""What a league reports: counts of results, and which opponents are played and why.

Filled by `league`; the training loop logs the numbers and shows the text.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stepladder.training.opponents.names import KINDS
from stepladder.training.opponents.seats import SeatReport

WON_GAME, DRAWN_GAME, LOST_GAME = 0, 1, 2


class ResultCounts:
    """Results by kind of opponent: in all, and since the last call of `take`."""

    def __init__(self) -> None:
        self.totals = {kind: [0, 0, 0] for kind in KINDS}
        """Games won, drawn and lost by the learner, per kind."""
        self.num_aborted = 0
        """Episodes whose end was never reported; they are not counted as games."""
        self._taken = {kind: [0, 0, 0] for kind in KINDS}

    def add(self, kind: str, outcome: int) -> None:
        """Count one result: 1, 0 or -1."""
        self.totals[kind][1 - outcome] += 1

    def take(self) -> dict[str, list[int]]:
        """Return the results since the last call, of kinds that have any."""
        fresh = {
            kind: [now - before for now, before in zip(counts, self._taken[kind], strict=True)]
            for kind, counts in self.totals.items()
        }
        self._taken = {kind: list(counts) for kind, counts in self.totals.items()}
        return {kind: counts for kind, counts in fresh.items() if sum(counts)}

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain JSON."""
        return {
            "totals": {kind: list(counts) for kind, counts in self.totals.items()},
            "taken": {kind: list(counts) for kind, counts in self._taken.items()},
            "num_aborted": self.num_aborted,
        }

    @classmethod
    def from_json(cls, data: Any) -> "ResultCounts":
        """Return what `to_json` returned; damaged data raises any error."""
        counts = cls()
        for own, saved in ((counts.totals, data["totals"]), (counts._taken, data["taken"])):
            for kind in KINDS:
                won, drawn, lost = saved[kind]
                own[kind] = [int(won), int(drawn), int(lost)]
        counts.num_aborted = int(data["num_aborted"])
        return counts


@dataclass(frozen=True, kw_only=True)
class LeagueExplanation:
    """Which opponents are played, and why."""

    results: Mapping[str, tuple[int, int, int]]
    """Games won, drawn and lost, by kind of opponent."""

    num_aborted: int
    """Episodes whose end was never reported."""

    seats: Mapping[str, tuple[SeatReport, ...]]
    """Opponents that may be drawn, by kind, the most learnable first."""

    skipped: Mapping[str, str]
    """Agents of the archive that are skipped, with the reason."""

    trouble: str = ""
    """Why the archive could not be used when it was last needed."""

    def lines(self) -> list[str]:
        """Return the text, line by line."""
        text = [
            f"Against {kind}: {won} won, {drawn} drawn, {lost} lost."
            for kind, (won, drawn, lost) in self.results.items()
        ]
        for kind, reports in self.seats.items():
            if not reports:
                text.append(f"The {kind} is empty; the newest self plays instead.")
                continue
            text.append(f"In the {kind}, the most learnable first:")
            text += [
                f"  {seat.name:<28} score {seat.score:.2f} of {seat.num_games} games, "
                f"learnability {seat.learnability:.3f}, probability {seat.prob:.3f}"
                for seat in reports
            ]
        text += [f"Skipped: {name}: {reason}" for name, reason in self.skipped.items()]
        return [*text, f"Problem: {self.trouble}"] if self.trouble else text

    def __str__(self) -> str:
        """Return the whole text."""
        return "\n".join(self.lines())


def rates(prefix: str, results: Mapping[str, list[int]]) -> dict[str, float]:
    """Return results as metrics: games, and shares of games won and drawn."""
    metrics: dict[str, float] = {}
    for kind, counts in results.items():
        num_games = sum(counts)
        metrics[f"{prefix}/games/{kind}"] = float(num_games)
        metrics[f"{prefix}/won/{kind}"] = counts[WON_GAME] / num_games
        metrics[f"{prefix}/drawn/{kind}"] = counts[DRAWN_GAME] / num_games
    return metrics
