"""Results of an evaluation: rates and means with intervals, for each group of games and in all.

Made by `playing`; kept in a run as metrics and JSON, shown as a table.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stepladder.stats.interval import mean_interval, wilson_lower

Z = 1.959964
"""Standard deviations of a two-sided interval of 95 %."""

PREFIX = "evaluation/"
"""How the names of all metrics of an evaluation begin."""

MATCH_METRICS = ("win_rate", "draw_rate", "loss_rate")
"""What games between two are logged as, instead of ``success``."""


class Interval(NamedTuple):
    """A measured value and the ends of its interval of 95 %."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class GameResults:
    """The result of every game; each array has one entry per game."""

    returns: npt.NDArray[np.float64]
    lengths: npt.NDArray[np.int64]

    successes: npt.NDArray[np.float64]
    """In [0, 1]; NaN where the env did not say."""

    winners: npt.NDArray[np.int64] | None
    """1, 0 or -1; None where it is not a game between two."""

    trials: npt.NDArray[np.int64]
    """Games with the same number are not independent: they were played on one level."""

    def of(self, some: Sequence[int]) -> "GameResults":
        """Return some of the games."""
        rows = np.asarray(some)
        winners = None if self.winners is None else self.winners[rows]
        others = (self.returns[rows], self.lengths[rows], self.successes[rows])
        return GameResults(*others, winners, self.trials[rows])


@dataclass(frozen=True, kw_only=True)
class Score:
    """The results of some games together."""

    name: str
    """Stage, opponent or another group; ``"all"``; of a part, its level or starting side."""

    num_games: int

    num_trials: int
    """Independent games, which the intervals are based on: each level counts once."""

    num_steps: int
    """Env steps of these games together."""

    num_successes: float | None
    """Games that were won or solved; None where the env does not say."""

    num_draws: int | None
    """None where it is not a game between two."""

    num_losses: int | None
    """None where it is not a game between two."""

    rate: Interval | None
    """Share of games that were won or solved, with Wilson's interval; a draw is not won."""

    mean_return: Interval
    """With Student's interval."""

    mean_length: float
    """Env steps per game."""

    parts: tuple["Score", ...] = ()
    """The same for each part."""

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain JSON; what is not finite is None."""
        return {
            **vars(self),
            "rate": None if self.rate is None else _plain(self.rate),
            "mean_return": _plain(self.mean_return),
            "parts": [part.to_json() for part in self.parts],
        }

    def metrics(self) -> dict[str, float]:
        """Return the figures that are plotted, by short name."""
        figures: dict[str, float] = {}
        if self.rate is not None and self.num_draws is not None and self.num_losses is not None:
            shares = (self.num_draws / self.num_games, self.num_losses / self.num_games)
            figures = dict(zip(MATCH_METRICS, (self.rate.value, *shares), strict=True))
        elif self.rate is not None:
            figures["success"] = self.rate.value
        return {**figures, "return": self.mean_return.value, "length": self.mean_length}

    def __str__(self) -> str:
        what = "solved" if self.num_draws is None else "won"
        measured, text = (self.mean_return, "return") if self.rate is None else (self.rate, what)
        return (
            f"{self.name} {text} {measured.value:.2f} ({measured.low:.2f} to {measured.high:.2f})"
        )


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """How well a policy plays what it was not trained on."""

    env: str
    """What was played."""

    seed: int
    """Of the games."""

    is_deterministic: bool
    """Whether the policy took its best actions, or drew them."""

    total: Score
    """All games together; its parts are the groups."""

    @property
    def groups(self) -> tuple[Score, ...]:
        """One score per stage, opponent or label."""
        return self.total.parts

    @property
    def num_games(self) -> int:
        """Episodes that were played, for the budget."""
        return self.total.num_games

    @property
    def num_steps(self) -> int:
        """Env steps that were played, for the budget."""
        return self.total.num_steps

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain JSON."""
        return {**vars(self), "total": self.total.to_json()}

    def metrics(self) -> dict[str, float]:
        """Return the figures under the names that a run logs them by."""
        logged = {
            f"{PREFIX}num_games": float(self.num_games),
            f"{PREFIX}num_steps": float(self.num_steps),
        }
        logged |= {f"{PREFIX}{name}": value for name, value in self.total.metrics().items()}
        for group in self.groups:
            for name, value in group.metrics().items():
                logged[f"{PREFIX}{name}/{group.name}"] = value
        return logged

    def __str__(self) -> str:
        games = f"{self.num_games:,} game{'' if self.num_games == 1 else 's'}"
        return f"{games}: {'; '.join(map(str, (*self.groups, self.total)))}"


def score(name: str, games: GameResults, parts: Sequence[Score] = ()) -> Score:
    """Return the score of some games, at least one.

    Where any game says whether it succeeded, those that do not count as failures: many envs say it
    on success only.
    """
    num_games = len(games.returns)
    returns = _per_trial(games.returns, games.trials)
    is_judged = not np.isnan(games.successes).all()
    successes = np.clip(np.nan_to_num(games.successes, nan=0.0), 0.0, 1.0)
    winners = games.winners
    return Score(
        name=name,
        num_games=num_games,
        num_trials=len(returns),
        num_steps=int(games.lengths.sum()),
        num_successes=float(successes.sum()) if is_judged else None,
        num_draws=None if winners is None else int((winners == 0).sum()),
        num_losses=None if winners is None else int((winners < 0).sum()),
        rate=rate_interval(float(successes.mean()), len(returns)) if is_judged else None,
        mean_return=Interval(*mean_interval(returns)),
        mean_length=float(games.lengths.mean()),
        parts=tuple(parts),
    )


def rate_interval(rate: float, count: int) -> Interval:
    """Return a rate that was seen over `count` trials, with Wilson's interval of 95 %.

    Example:
        >>> [round(end, 3) for end in rate_interval(1.0, 16)]
        [1.0, 0.806, 1.0]
    """
    # Rounding must not put the rate outside its own interval.
    low = min(wilson_lower(rate, count, Z), rate)
    high = max(1.0 - wilson_lower(1.0 - rate, count, Z), rate)
    return Interval(rate, low, high)


def _per_trial(values: npt.NDArray[np.float64], trials: npt.NDArray[np.int64]) -> list[float]:
    """Return the mean of each trial."""
    _, numbers = np.unique(trials, return_inverse=True)
    return (np.bincount(numbers, values) / np.bincount(numbers)).tolist()


def _plain(interval: Interval) -> dict[str, float | None]:
    return {
        name: value if math.isfinite(value) else None for name, value in interval._asdict().items()
    }
