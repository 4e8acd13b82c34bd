"""How quickly the success of a label changes: what its clocks say, as far as it is not noise.

Called by `kernels`. A label's rate is followed by several averages (`pooling`). Two of them that
follow each other lie apart as far as the rate has changed between their mean ages: a change per
play of the label. Which two to believe is found by prediction: a pair counts as much as its faster
average has predicted the results well. So a label that changes within a hundred plays and one that
takes ten thousand are both seen to change.

What chance alone would put between two averages is known, and the change is shrunk towards a prior
accordingly: labels are expected to change as quickly as those that are drawn now, on the scale of
log odds, on which a success rate near 0 or 1 moves as much as one in between. So a label that was
hardly played is worth trying unless it always or never succeeds, and one that was played much and
stands still is worth nothing. This is empirical Bayes again, now over labels.
"""

from itertools import pairwise
from typing import Annotated

import numpy as np

from stepladder.compiled import bare, inlined
from stepladder.curricula.pooled.labels import Label
from stepladder.curricula.pooled.pooling import KEEP_PLAYS, NUM_CLOCKS, clock_weight
from stepladder.curricula.returns import ReturnScale, update_spread
from stepladder.records import Count, Fields, Limits, Records

USUAL_AT_FIRST = 0.01
"""Change of log odds per play that is expected before any result."""

NEWEST_WEIGHT = 0.01
"""Weight of the newest result in how quickly labels change as a rule."""

LEAST_SLOPE = 1e-3
"""Of success over log odds: success below 1 in 1,000 counts as none."""

LEAST_WEIGHT = 1e-300
"""So that weights can be divided by their sum."""

SLOWEST_RATE = 0.01
"""Least weight of the newest result in the variance of a label's results."""

HORIZON = tuple(1.0 / (1.0 - keep) for keep in KEEP_PLAYS)
"""Mean age of a clock's results in the long run, in plays."""

OWN_NOISE = tuple(1.0 / (1.0 + keep) for keep in KEEP_PLAYS)
SHARED_NOISE = tuple(1.0 / (1.0 - fast * slow) for fast, slow in pairwise(KEEP_PLAYS))
"""Factors of the variance of a clock's mean, and of the covariance with that of the next."""


class UsualChange(Fields):
    """How quickly labels change that are drawn now."""

    square: Annotated[float, Limits(0.0, 1.0)]
    """Mean square of their change of log odds per play: the prior of any label."""


class ChangingLabel(Label):
    """What is known of all tasks with one label, and how quickly it changes."""

    num_plays: Count
    variance: Annotated[float, Limits(0.0, 1.0)]
    """Of its results around its rate."""
    progress: Annotated[float, Limits(0.0, 1.0)]
    """Expected change of its rate per play, up or down."""


@inlined
def _left(label: ChangingLabel, clock: int) -> float:
    """Return the weight of a clock's beginning: what all plays since have left of it."""
    return 1.0 - label.plays[clock] * (1.0 - KEEP_PLAYS[clock])


@inlined
def _mean_age(label: ChangingLabel, clock: int, per_play: float) -> float:
    """Return the mean age of a clock's results, in plays; `per_play` is 1 over its plays."""
    return (KEEP_PLAYS[clock] - label.num_plays * _left(label, clock) * per_play) * HORIZON[clock]


@inlined
def _own_noise(label: ChangingLabel, clock: int, per_play: float) -> float:
    """Return the variance of a clock's mean, of results of variance one."""
    return (1.0 + _left(label, clock)) * OWN_NOISE[clock] * per_play


@inlined
def _shared_noise(label: ChangingLabel, clock: int) -> float:
    """Return the covariance of the means of a clock and the next, times the plays of both."""
    return (1.0 - _left(label, clock) * _left(label, clock + 1)) * SHARED_NOISE[clock]


@inlined
def note_variance(label: ChangingLabel, value: float) -> None:
    """Update the variance of a label's results by another one; call before its rate moves."""
    rate = max(SLOWEST_RATE, 1.0 / (label.num_plays + 1.0))
    label.variance = update_spread(label.variance, value - label.rate, rate)


@inlined
def slope_of(rate: float) -> float:
    """Return how much a rate changes with its log odds."""
    return max(LEAST_SLOPE, rate * (1.0 - rate))


@inlined
def change_of(label: ChangingLabel, noise_z: float, prior: float) -> float:
    """Return the expected change of a label's log odds per play: root of the mean square, up to 1.

    Args:
        label: The label.
        noise_z: Standard errors that count as noise.
        prior: Mean square that is expected of any label.
    """
    if label.num_plays < 2:
        return np.sqrt(prior)
    slope = slope_of(label.rate)
    # One success and one failure more than were seen: no rate is ever certain to be 0 or 1.
    variance = (label.variance * label.num_plays + 0.5) / (label.num_plays + 2.0)
    total, weights = 0.0, LEAST_WEIGHT
    # What is known of the slower clock of a pair is kept for the next pair: divisions take longest.
    per_slow = 1.0 / label.plays[0]
    slow_age, slow_rate = _mean_age(label, 0, per_slow), label.successes[0] * per_slow
    slow_noise = _own_noise(label, 0, per_slow)
    for clock in range(NUM_CLOCKS - 1):
        per_fast, fast_age, fast_rate, fast_noise = per_slow, slow_age, slow_rate, slow_noise
        per_slow = 1.0 / label.plays[clock + 1]
        slow_age = _mean_age(label, clock + 1, per_slow)
        slow_rate = label.successes[clock + 1] * per_slow
        slow_noise = _own_noise(label, clock + 1, per_slow)
        age, change = slow_age - fast_age, fast_rate - slow_rate
        if age <= 0.0:
            continue
        per_slope = 1.0 / (age * slope)
        change *= per_slope
        shared = _shared_noise(label, clock) * per_fast * per_slow
        chance = max(0.0, fast_noise + slow_noise - 2.0 * shared)
        noise = noise_z * noise_z * variance * chance * per_slope * per_slope
        known = prior / (prior + noise)
        weight = clock_weight(label, clock)
        total += weight * np.sqrt(noise * known + (known * change) ** 2)
        weights += weight
    return min(1.0, total / weights)


@bare
def move_labels(
    labels: Records[ChangingLabel], low: float, high: float, returns: ReturnScale
) -> None:
    """Say what labels have shown in the range of returns that is found now.

    It was from `low` to `high` before: a range that grows is no change of a label.
    """
    span = returns.high - returns.low
    if high <= low or span <= 0.0:
        return
    factor, shift = (high - low) / span, (low - returns.low) / span
    for index in range(len(labels)):
        label = labels[index]
        for clock in range(NUM_CLOCKS):
            moved = factor * label.successes[clock] + shift * label.plays[clock]
            label.successes[clock] = min(label.plays[clock], max(0.0, moved))
        label.rate = min(1.0, max(0.0, factor * label.rate + shift))
        label.variance = min(1.0, factor * factor * label.variance)


@inlined
def note_change(label: ChangingLabel, usual: UsualChange, noise_z: float) -> None:
    """Judge how quickly a label changes, after a result of one of its tasks."""
    change = change_of(label, noise_z, usual.square)
    label.progress = slope_of(label.rate) * change
    usual.square += NEWEST_WEIGHT * (change * change - usual.square)
