"""How well a fitted learner explains a training: seen against predicted, and against baselines.

Between `fit` and `calibrate`. Two baselines know nothing of learning: every label keeps one rate,
or keeps the rate that it had last.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.simulator.calibration.fit import fit, log_likelihood, rates_of, with_slips
from stepladder.simulator.calibration.practice import Practice
from stepladder.simulator.calibration.replay import Rates, replay

THIRDS = ("beginning", "middle", "end")
"""Thirds of a training, by env steps."""

FAR_SHARE = 0.05
"""Difference of two rates from which it matters."""

CONFIDENCE_Z = 1.96
FITTED_SHARE = 0.7
"""Share of a training from which the rest of it is forecast."""

RECENT_SHARE = 0.1
"""Share of a training that counts as its latest."""


@dataclass(frozen=True, kw_only=True)
class PartFit:
    """Success of a label in a third of the training."""

    part: str
    plays: int
    seen: float
    """NaN without plays; so are the others."""
    low: float
    """Bounds of the 95 % interval of what was seen (Wilson's)."""
    high: float
    predicted: float

    @property
    def is_inside(self) -> bool:
        """Whether the prediction lies in the interval of what was seen."""
        return not self.plays or bool(self.low <= self.predicted <= self.high)

    @property
    def is_far(self) -> bool:
        """Whether the prediction is wrong by an amount that matters."""
        return bool(not self.is_inside and abs(self.seen - self.predicted) > FAR_SHARE)


@dataclass(frozen=True, kw_only=True)
class Likelihoods:
    """Mean logarithm of the probability of a play's outcome; nearer to 0 is better."""

    plays: int
    learner: float
    constant: float
    """If every label had one rate."""
    last: float
    """If every label had the rate of the epochs before."""


@dataclass(frozen=True, kw_only=True)
class LabelFit:
    """How well the success of one label is predicted."""

    label: str
    parts: tuple[PartFit, ...]
    likelihoods: Likelihoods


def wilson(successes: float, count: float) -> tuple[float, float]:
    """Return the bounds of the 95 % interval of a rate."""
    if count <= 0:
        return math.nan, math.nan
    rate, square = successes / count, CONFIDENCE_Z * CONFIDENCE_Z
    centre = (rate + square / (2.0 * count)) / (1.0 + square / count)
    half = CONFIDENCE_Z * math.sqrt(rate * (1.0 - rate) / count + square / (4.0 * count * count))
    half /= 1.0 + square / count
    return max(0.0, centre - half), min(1.0, centre + half)


def _thirds(practice: Practice) -> Words:
    """Return the third that each epoch belongs to."""
    ends = practice.steps / practice.steps[-1]
    return np.clip(np.ceil(3.0 * ends - 1e-9).astype(np.int64) - 1, 0, 2)


def _part_fits(
    practices: Sequence[Practice], predicted: Sequence[Floats], group: int
) -> tuple[PartFit, ...]:
    """Return seen and predicted success of a group in thirds of the trainings."""
    found: list[PartFit] = []
    for third, name in enumerate(THIRDS):
        plays = wins = expected = 0.0
        for practice, chances in zip(practices, predicted, strict=True):
            rows = _thirds(practice) == third
            plays += practice.plays[rows, group].sum()
            wins += practice.successes[rows, group].sum()
            expected += (practice.plays[rows, group] * chances[rows, group]).sum()
        low, high = wilson(wins, plays)
        seen, guess = (wins / plays, expected / plays) if plays else (math.nan, math.nan)
        found.append(
            PartFit(part=name, plays=int(plays), seen=seen, low=low, high=high, predicted=guess)
        )
    return tuple(found)


def _rate(successes: Floats, plays: Floats) -> Floats:
    """Return rates per group, drawn to one half by one play."""
    return (successes.sum(axis=0) + 0.5) / (plays.sum(axis=0) + 1.0)


def _last_values(practice: Practice) -> Floats:
    """Return for every epoch and group the rate of the epochs before, the recent ones."""
    count = len(practice.steps)
    recent = max(1, round(RECENT_SHARE * count))
    rates = np.empty(practice.plays.shape)
    for epoch in range(count):
        rows = slice(max(0, epoch - recent), epoch)
        rates[epoch] = _rate(practice.successes[rows], practice.plays[rows])
    return rates


class Guesses(NamedTuple):
    """Chances of success in one training, per epoch and group or per group."""

    learner: Floats
    constant: Floats
    """If every label had one rate."""
    last: Floats
    """If every label had the rate of the epochs before."""


def _likelihoods(
    practices: Sequence[Practice], guesses: Sequence[Guesses], group: int | None = None
) -> Likelihoods:
    """Return the likelihoods of three predictions per training, of one group or of all."""
    columns = slice(None) if group is None else slice(group, group + 1)
    sums, total = dict.fromkeys(Guesses._fields, 0.0), 0.0
    for practice, chances in zip(practices, guesses, strict=True):
        plays, wins = practice.plays[:, columns], practice.successes[:, columns]
        total += float(plays.sum())
        for name, table in chances._asdict().items():
            rates = np.broadcast_to(table, practice.plays.shape)[:, columns]
            sums[name] += float(log_likelihood(with_slips(rates), plays, wins).sum())
    means = {name: whole / max(1.0, total) for name, whole in sums.items()}
    return Likelihoods(plays=int(total), **means)


def judge_fit(
    practices: Sequence[Practice], rates: Rates
) -> tuple[tuple[LabelFit, ...], Likelihoods]:
    """Return how well a learner explains trainings, per label and altogether."""
    predicted = [replay(one, rates).practised for one in practices]
    guesses = [
        Guesses(chances, _rate(one.successes, one.plays), _last_values(one))
        for one, chances in zip(practices, predicted, strict=True)
    ]
    labels = tuple(
        LabelFit(
            label=label,
            parts=_part_fits(practices, predicted, group),
            likelihoods=_likelihoods(practices, guesses, group),
        )
        for group, label in enumerate(practices[0].groups)
    )
    return labels, _likelihoods(practices, guesses)


def forecast(practices: Sequence[Practice], seed: int) -> Likelihoods | None:
    """Fit to the beginning of trainings and predict the rest, whose plays are known.

    Returns:
        The likelihoods of the rest; None if a training is too short to be divided.
    """
    halves = [one.until(int(FITTED_SHARE * one.steps[-1])) for one in practices]
    if any(
        len(half.steps) in (1, len(one.steps)) for half, one in zip(halves, practices, strict=True)
    ):
        return None
    found = fit(halves, seed=seed)
    rates = rates_of(found.vector, len(practices[0].groups))
    rests: list[Practice] = []
    guesses: list[Guesses] = []
    for half, one in zip(halves, practices, strict=True):
        first = len(half.steps)
        rest = one.since(first)
        if not rest.plays.sum():
            return None
        recent = slice(first - max(1, round(RECENT_SHARE * first)), first)
        constant = _rate(half.successes, half.plays)
        last = _rate(half.successes[recent], half.plays[recent])
        rests.append(rest)
        guesses.append(Guesses(replay(one, rates).practised[first:], constant, last))
    return _likelihoods(rests, guesses)
