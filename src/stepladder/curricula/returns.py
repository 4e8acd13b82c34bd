"""What a method measures of an episode: its success, or its return on a scale from 0 to 1.

Compiled into the rules of methods with a `SignalConfig`. Returns have any scale, and in a range ten
times too wide nothing seems to change. So unless the user gives the range, it is measured: the
smallest and the largest return so far, where a single outlier at most doubles the range, and
extremes that do not come back are slowly forgotten. Mean and variance of all returns are
kept too, for methods that tell change from noise.
"""

from typing import Annotated, Any

from stepladder.compiled import bare, inlined
from stepladder.curricula.config import SignalConfig
from stepladder.records import Count, Fields, Limits
from stepladder.saving.saved_array import MAX_FLOAT

LARGEST_RETURN = 1e150
"""Where returns end, so that their squares can be added up."""

NUM_TRUSTED = 20
"""Returns at the start, each of which may widen the range as far as it likes."""

FORGETTING = 1e-4
"""Share of the way to the mean by which the ends of the range move with every return."""

SLOWEST_RATE = 1e-3
"""Least weight of the newest return in mean and variance."""


class ReturnScale(Fields):
    """What is known of all returns together."""

    num_returns: Count
    low: float
    high: float
    mean: float
    variance: Annotated[float, Limits(0.0, MAX_FLOAT)]


class ReturnVariance(Fields):
    """What is known of the returns of a slot's task, beside their averages."""

    variance: Annotated[float, Limits(0.0, MAX_FLOAT)]


def signal_settings(config: SignalConfig) -> dict[str, Any]:
    """Return what the functions below read of the settings, for `settings_record`."""
    low, high = config.return_range or (0.0, 1.0)
    return {
        "uses_return": config.signal == "return",
        "finds_range": config.return_range is None,
        "return_low": low,
        "return_high": high,
    }


@inlined
def update_spread(variance: float, delta: float, rate: float) -> float:
    """Return the variance after another value, `delta` away from the mean before it."""
    return (1.0 - rate) * (variance + rate * delta * delta)


@bare
def note_moments(scale: ReturnScale, value: float) -> None:
    """Update mean and variance of all returns by another one."""
    scale.num_returns += 1
    rate = max(SLOWEST_RATE, 1.0 / scale.num_returns)
    delta = value - scale.mean
    scale.mean += rate * delta
    scale.variance = update_spread(scale.variance, delta, rate)


@bare
def note_return(scale: ReturnScale, episode_return: float) -> float:
    """Update range, mean and variance of all returns by another one.

    Returns:
        The return, an outlier cut off at one width of the range so far beyond its ends.
    """
    value = min(max(episode_return, -LARGEST_RETURN), LARGEST_RETURN)
    span = scale.high - scale.low
    # Where all returns were alike, any other one is news and no outlier.
    if scale.num_returns >= NUM_TRUSTED and span > 0.0:
        value = min(max(value, scale.low - span), scale.high + span)
    if scale.num_returns == 0:
        scale.low = scale.high = scale.mean = value
    note_moments(scale, value)
    scale.low = min(value, scale.low + FORGETTING * (scale.mean - scale.low))
    scale.high = max(value, scale.high + FORGETTING * (scale.mean - scale.high))
    return value


@bare
def scaled_return(settings: Any, scale: ReturnScale, episode_return: float) -> float:
    """Return where a return lies in the range that is given or found, in [0, 1].

    A return that nothing can be compared with yet is 0. Changes `scale` in place.
    """
    low, high, value = settings.return_low, settings.return_high, episode_return
    if settings.finds_range:
        value = note_return(scale, episode_return)
        low, high = scale.low, scale.high
    if high <= low:
        return 0.0
    return min(1.0, max(0.0, (value - low) / (high - low)))


@inlined
def signal_of(settings: Any, scale: ReturnScale, success: float, episode_return: float) -> float:
    """Return what a method measures of an episode: its success, or its return scaled to [0, 1]."""
    if not settings.uses_return:
        return success
    return scaled_return(settings, scale, episode_return)
