"""How quickly the success of a label changes: what its clocks say, noise taken off.

Called by `kernels`. A label's rate is followed by several averages (`pooling`). Each two that follow
each other lie apart as far as the rate has changed between their mean ages: a change per play of the
label. What chance alone would put between them is taken off first. Which two to believe is found
by prediction: each pair counts as much as its faster average has predicted the results well. So a
label that changes within a hundred plays and one that takes ten thousand are both seen to change,
and one that stands still shows nothing.
"""

from typing import Annotated

import numpy as np

from stepladder.compiled import inlined
from stepladder.curricula.labels import Label
from stepladder.curricula.pooling import CLOCK_RATIO, FIRST_HALFLIFE, NUM_CLOCKS
from stepladder.curricula.returns import update_spread
from stepladder.records import Count, Fields, Limits

SLOWEST_RATE = 0.01
"""Least weight of the newest result in the variance of a label's results."""


class UsualChange(Fields):
    """How quickly labels change that are drawn now."""

    square: Annotated[float, Limits(0.0, 1.0)]
    """Mean square of their change per play: the prior of any label."""


class ChangingLabel(Label):
    """What is known of all tasks with one label, and how quickly it changes."""

    num_plays: Count
    variance: Annotated[float, Limits(0.0, 1.0)]
    """Of its results around its rate."""
    progress: Annotated[float, Limits(0.0, 1.0)]
    """Change of its rate per play, up or down, noise taken off."""


@inlined
def _mean_age(keep: float, left: float, num_plays: int) -> float:
    """Return the mean age of an average's results in plays; `left` is ``keep ** num_plays``."""
    return keep / (1.0 - keep) - num_plays * left / (1.0 - left)


@inlined
def _noise(fast: float, fast_left: float, slow: float, slow_left: float) -> float:
    """Return the variance of the difference of two averages of results of variance one."""
    fast_sum, slow_sum = (1.0 - fast_left) / (1.0 - fast), (1.0 - slow_left) / (1.0 - slow)
    fast_square = (1.0 - fast_left * fast_left) / (1.0 - fast * fast)
    slow_square = (1.0 - slow_left * slow_left) / (1.0 - slow * slow)
    both = (1.0 - fast_left * slow_left) / (1.0 - fast * slow)
    noise = fast_square / fast_sum**2 + slow_square / slow_sum**2 - 2.0 * both / fast_sum / slow_sum
    return max(0.0, noise)


@inlined
def note_variance(label: ChangingLabel, value: float) -> None:
    """Update the variance of a label's results by another one; call before its rate moves."""
    rate = max(SLOWEST_RATE, 1.0 / (label.num_plays + 1.0))
    label.variance = update_spread(label.variance, value - label.rate, rate)


@inlined
def change_of(label: ChangingLabel, noise_z: float, prior: float) -> float:
    """Return the change of a label's rate per play, beyond what chance explains; at most 1."""
    size = max(1e-3, label.rate * (1.0 - label.rate))
    if label.num_plays < 2:
        return size * np.sqrt(prior)
    least = np.inf
    for clock in range(NUM_CLOCKS):
        least = min(least, label.losses[clock])
    # One success and one failure more than were seen: no rate is ever certain to be 0 or 1.
    variance = (label.variance * label.num_plays + 0.5) / (label.num_plays + 2.0)
    total, weights, halflife = 0.0, 1e-300, FIRST_HALFLIFE
    fast = 0.5 ** (1.0 / halflife)
    fast_left = fast**label.num_plays
    for clock in range(NUM_CLOCKS - 1):
        halflife *= CLOCK_RATIO
        slow = 0.5 ** (1.0 / halflife)
        slow_left = slow**label.num_plays
        change = label.successes[clock] / label.plays[clock]
        change -= label.successes[clock + 1] / label.plays[clock + 1]
        noise = noise_z * noise_z * variance * _noise(fast, fast_left, slow, slow_left)
        age = _mean_age(slow, slow_left, label.num_plays)
        age -= _mean_age(fast, fast_left, label.num_plays)
        weight = np.exp(least - label.losses[clock])
        if age > 0.0:
            change /= age * size
            noise /= (age * size) ** 2
            known = prior / (prior + noise)
            total += weight * np.sqrt(noise * known + (known * change) ** 2)
            weights += weight
        fast, fast_left = slow, slow_left
    return min(1.0, size * total / weights)
