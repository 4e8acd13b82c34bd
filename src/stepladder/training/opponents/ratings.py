"""Weng-Lin ratings of all agents, as a function of the games played.

`openskill` does the arithmetic (Weng and Lin 2011, "A Bayesian approximation method for online
ranking", Bradley-Terry, with the package's own defaults: mean 25, deviation 25/3). `archive` keeps
the games in a log and rates them.

Games of an agent that is still learning change its own rating only. Its opponents do not change,
and would otherwise lose points because the rating of an improving agent lags behind.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from openskill.models import BradleyTerryFull

from stepladder.errors import SnapshotError

BASELINES = ("weak", "strong")
"""Scripted players, which are rated like agents."""

LETTERS = {1: "w", 0: "d", -1: "l"}
"""How an outcome is written in the log, seen from the first player."""

_OUTCOMES = {letter: outcome for outcome, letter in LETTERS.items()}
_COUNTS = ("num_won", "num_drawn", "num_lost")
_MODEL = BradleyTerryFull()


@dataclass(frozen=True, kw_only=True)
class Rating:
    """An estimate of strength."""

    mu: float = _MODEL.mu
    sigma: float = _MODEL.sigma
    num_won: int = 0
    num_drawn: int = 0
    num_lost: int = 0

    @property
    def value(self) -> float:
        """The number that is shown: almost certainly not more than the true strength."""
        return self.mu - 3.0 * self.sigma

    @property
    def num_games(self) -> int:
        """Games that it is based on."""
        return self.num_won + self.num_drawn + self.num_lost

    def after(self, other: "Rating", outcome: int) -> "Rating":
        """Return the rating after a game against another: 1 is won, 0 drawn, -1 lost."""
        # Equal ranks are a draw; the lower rank has won.
        ranks = [-float(outcome), 0.0]
        teams = [[_MODEL.rating(mu=one.mu, sigma=one.sigma)] for one in (self, other)]
        (own,), _ = _MODEL.rate(teams, ranks=ranks)
        return Rating(
            mu=float(own.mu),
            sigma=float(own.sigma),
            num_won=self.num_won + (outcome > 0),
            num_drawn=self.num_drawn + (outcome == 0),
            num_lost=self.num_lost + (outcome < 0),
        )


@dataclass(frozen=True, kw_only=True)
class PairGames:
    """Games between the same two, in the order in which they ended."""

    one: str
    two: str
    outcomes: str
    """A letter per game, as the first player saw it: w, d or l."""

    @classmethod
    def of(cls, one: str, two: str, outcomes: Iterable[int]) -> "PairGames":
        """Make them of outcomes: 1, 0 and -1."""
        return cls(one=one, two=two, outcomes="".join(LETTERS[outcome] for outcome in outcomes))

    def results(self) -> list[int]:
        """Return the outcomes: 1, 0 and -1."""
        return [_OUTCOMES[letter] for letter in self.outcomes]


class Ratings:
    """All ratings, as far as the log has been read."""

    def __init__(self) -> None:
        self._ratings: dict[str, Rating] = {}
        self._batches: dict[str, int] = {}

    def __getitem__(self, who: str) -> Rating:
        """Return a rating; the initial one if there is none yet."""
        return self._ratings.get(who, Rating())

    def known(self) -> list[str]:
        """Return all names that have a rating."""
        return list(self._ratings)

    def has_batch(self, origin: str | None, batch: int) -> bool:
        """Whether games that a run has numbered were counted already, before it was resumed."""
        return origin is not None and batch <= self._batches.get(origin, -1)

    def apply(self, entry: Mapping[str, Any]) -> None:
        """Apply one entry of the log, in place.

        Raises:
            SnapshotError: The entry is damaged. Then nothing has changed.
        """
        try:
            if "entered" in entry:
                self._enter(str(entry["entered"]), str(entry["as"]))
                return
            origin, batch, learner = entry["origin"], int(entry["batch"]), entry["learner"]
            games = [PairGames(**one) for one in entry["games"]]
            for one in games:
                one.results()
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise SnapshotError(
                f"an entry of the match log is damaged ({type(error).__name__}: {error})."
            ) from error
        if self.has_batch(origin, batch):
            return
        if origin is not None:
            self._batches[origin] = batch
        self.play(games, learner)

    def _enter(self, who: str, former: str) -> None:
        """Start with the rating that an agent had while learning, and with none of its games."""
        rating = self[former]
        self._ratings[who] = Rating(mu=rating.mu, sigma=rating.sigma)

    def put(self, who: str, rating: Rating) -> None:
        """Set a rating, in place."""
        self._ratings[who] = rating

    def play(self, games: Sequence[PairGames], learner: str | None = None) -> None:
        """Count games, in place.

        Args:
            games: What was played.
            learner: The agent that is still learning, if any: only its rating changes.
        """
        rounds = [one.results() for one in games]
        # One game of each pair in turn, so that no pair's games all count before another's.
        for turn in range(max(map(len, rounds), default=0)):
            for pair, outcomes in zip(games, rounds, strict=True):
                if turn < len(outcomes):
                    self._play_one(pair, outcomes[turn], learner)

    def _play_one(self, pair: PairGames, outcome: int, learner: str | None) -> None:
        one, two = self[pair.one], self[pair.two]
        if learner in (None, pair.one):
            self._ratings[pair.one] = one.after(two, outcome)
        if learner in (None, pair.two):
            self._ratings[pair.two] = two.after(one, -outcome)

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain JSON."""
        return {
            "ratings": {who: asdict(rating) for who, rating in self._ratings.items()},
            "batches": dict(self._batches),
        }

    @classmethod
    def from_json(cls, data: Any) -> "Ratings":
        """Return what `to_json` gave.

        Raises:
            SnapshotError: The data is damaged.
        """
        ratings = cls()
        try:
            for who, fields in data["ratings"].items():
                counts = {name: int(fields[name]) for name in _COUNTS}
                ratings._ratings[str(who)] = Rating(
                    mu=float(fields["mu"]), sigma=float(fields["sigma"]), **counts
                )
            ratings._batches = {str(who): int(batch) for who, batch in data["batches"].items()}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise SnapshotError(f"the ratings are damaged ({error}).") from error
        return ratings
