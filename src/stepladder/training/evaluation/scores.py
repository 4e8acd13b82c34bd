"""Results of an evaluation: rates and means with intervals, for each group of games and in all.

Made by `playing`; kept in a run as metrics and JSON, shown as a table.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from stepladder.stats.interval import mean_interval, wilson_lower

Z = 1.959964
"""Standard deviations of a two-sided interval of 95 %."""

EVALUATION_PREFIX = "evaluation/"
"""How the names of all metrics of an evaluation begin."""

Way = Literal["drawn", "best", "random"]
"""How actions were chosen: drawn from the policy, the best one, or without any policy."""

WAYS_IN_WORDS: dict[Way, str] = {
    "random": "random play",
    "drawn": "drawn actions",
    "best": "best actions",
}
"""Every way in words, in the order of tables."""

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
    """Games with the same number are not independent: they were played on one level, or were one
    game that was played several times."""

    def of(self, some: Sequence[int]) -> "GameResults":
        """Return some of the games."""
        rows = np.asarray(some)
        winners = None if self.winners is None else self.winners[rows]
        others = (self.returns[rows], self.lengths[rows], self.successes[rows])
        return GameResults(*others, winners, self.trials[rows])

    @classmethod
    def joined(cls, parts: Sequence["GameResults"]) -> "GameResults":
        """Return the games of several batches; their trials are different ones."""
        winners = [part.winners for part in parts if part.winners is not None]
        first_trials = np.cumsum([0, *(int(part.trials.max()) + 1 for part in parts)])
        return cls(
            returns=np.concatenate([part.returns for part in parts]),
            lengths=np.concatenate([part.lengths for part in parts]),
            successes=np.concatenate([part.successes for part in parts]),
            winners=np.concatenate(winners) if winners else None,
            trials=np.concatenate(
                [part.trials + first for part, first in zip(parts, first_trials, strict=False)]
            ),
        )


@dataclass(frozen=True, kw_only=True)
class Score:
    """The results of some games together."""

    name: str
    """Stage, opponent or another group; ``"all"``; of a part, its level or starting side."""

    num_games: int

    num_trials: int
    """Independent games, which the intervals are based on: a level counts once, and so does a
    game that was the same each time it was played."""

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

    @property
    def headline(self) -> tuple[str, Interval]:
        """The figure that counts, with its short name."""
        if self.rate is None:
            return "return", self.mean_return
        return "success" if self.num_draws is None else MATCH_METRICS[0], self.rate

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
        figure, measured = self.headline
        text = {"success": "solved", MATCH_METRICS[0]: "won"}.get(figure, figure)
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

    way: Way
    """How actions were chosen; in evaluations of a training, the policy's own way."""

    total: Score
    """All games together; its parts are the groups."""

    levels: str | None = None
    """Which of the game's own held-out sets was played; None if it has none."""

    beside: tuple["Evaluation", ...] = ()
    """The same policy's other way of acting, and random play, where they were measured too."""

    @property
    def groups(self) -> tuple[Score, ...]:
        """One score per stage, opponent or label."""
        return self.total.parts

    @property
    def num_games(self) -> int:
        """Episodes that were played in this way."""
        return self.total.num_games

    @property
    def num_steps(self) -> int:
        """Env steps that were played in this way."""
        return self.total.num_steps

    @property
    def judged(self) -> tuple[float, float]:
        """What the policy is judged by: of two evaluations, the one with more is better.

        First the share of all games that were won or solved, as the policy itself played them,
        which is 0 where no game says; then the mean return. One that is not finite is the worst.
        """
        rate = 0.0 if self.total.rate is None else self.total.rate.value
        mean = self.total.mean_return.value
        return rate, mean if math.isfinite(mean) else -sys.float_info.max

    def in_way(self, way: Way) -> "Evaluation | None":
        """Return what was measured in one way of acting."""
        return next((one for one in (self, *self.beside) if one.way == way), None)

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain JSON."""
        beside = [other.to_json() for other in self.beside]
        return {**vars(self), "total": self.total.to_json(), "beside": beside}

    def metrics(self) -> dict[str, float]:
        """Return the figures under the names that a run logs them by."""
        logged = {
            f"{EVALUATION_PREFIX}num_games": float(self.num_games),
            f"{EVALUATION_PREFIX}num_steps": float(self.num_steps),
        }
        logged |= {
            f"{EVALUATION_PREFIX}{name}": value for name, value in self.total.metrics().items()
        }
        for group in self.groups:
            for name, value in group.metrics().items():
                logged[f"{EVALUATION_PREFIX}{name}/{group.name}"] = value
        for other in self.beside:
            logged |= other.headlines()
        return logged

    def headlines(self) -> dict[str, float]:
        """Return the figures that count under names with the way of acting in them."""
        name, figure = self.total.headline
        logged = {f"{EVALUATION_PREFIX}{self.way}/{name}": figure.value}
        for group in self.groups:
            name, figure = group.headline
            logged[f"{EVALUATION_PREFIX}{self.way}/{name}/{group.name}"] = figure.value
        return logged

    def __str__(self) -> str:
        games = f"{self.num_games:,} game{'' if self.num_games == 1 else 's'}"
        figures = "; ".join(map(str, (*self.groups, self.total)))
        return f"{games}, {WAYS_IN_WORDS[self.way]}: {figures}"


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
