"""From a logged series to what can be drawn: smoothing, thinning, slicing.

Takes the arrays that `runs.RunReader.metric` returns; gives arrays to `charts`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Steps = NDArray[np.int64]
Values = NDArray[np.float64]
MAX_POINTS = 800
"""Most points of one line: about two per pixel of a plot on a laptop screen."""

# Beyond this the span of an axis would overflow; such a value is a fault and is shown as a gap.
_LARGEST = 1e300


def drawable(values: Values) -> Values:
    """Return a copy in which everything that has no place on an axis is NaN."""
    values = np.array(values, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        values[~(np.abs(values) <= _LARGEST)] = np.nan
    return values


def smoothed(values: Values, window: int) -> Values:
    """Return the centred moving average; gaps stay gaps and are left out of the averages.

    Args:
        values: One series; NaN marks a gap.
        window: Number of points averaged, fewer at both ends. 1 changes nothing.
    """
    if window <= 1 or values.size == 0:
        return values
    finite = np.isfinite(values)
    sums = np.concatenate([[0.0], np.cumsum(np.where(finite, values, 0.0))])
    counts = np.concatenate([[0], np.cumsum(finite)])
    places = np.arange(values.size)
    first = np.maximum(places - (window - 1) // 2, 0)
    after = np.minimum(places + window // 2 + 1, values.size)
    means = (sums[after] - sums[first]) / np.maximum(counts[after] - counts[first], 1)
    return np.where(finite, means, np.nan)


def thin(steps: Steps, values: Values, limit: int = MAX_POINTS) -> tuple[Steps, Values]:
    """Return at most `limit` points that look the same: lowest and highest of each bucket.

    First and last point stay. A bucket with a gap keeps one, so that the line is broken there.
    """
    size = values.size
    if size <= limit:
        return steps, values
    finite = np.isfinite(values)
    per_bucket = 2 if finite.all() else 3
    edges = np.linspace(0, size, max((limit - 2) // per_bucket, 1) + 1).astype(np.int64)
    kept = {0, size - 1}
    for first, after in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        part, good = values[first:after], finite[first:after]
        if good.any():
            kept.add(first + int(np.nanargmin(part)))
            kept.add(first + int(np.nanargmax(part)))
        if not good.all():
            kept.add(first + int(np.argmin(good)))
    places = np.array(sorted(kept))
    return steps[places], values[places]


@dataclass(frozen=True, kw_only=True)
class Slices:
    """Several series of one run, cut into slices of equally many steps."""

    first: int
    last: int
    """First and last step of any of the series."""

    centres: Values
    """Middle step of each slice, shape ``(num_slices,)``."""

    sums: Values
    """Sum of the finite values of each series in each slice, ``(num_series, num_slices)``."""

    counts: NDArray[np.int64]
    """How many finite values that are."""

    logged: NDArray[np.bool_]
    """Whether anything was logged there, be it NaN."""

    def held(self) -> Values:
        """Return the mean per slice; where nothing was logged, the last value holds on."""
        with np.errstate(invalid="ignore"):
            means = np.where(self.counts > 0, self.sums / np.maximum(self.counts, 1), np.nan)
        return _hold(means, self.logged)

    def shares(self) -> Values:
        """Return each series' share of its slice; NaN where the slice adds up to nothing.

        A series that is absent while others are logged has a share of 0 there.
        """
        parts = np.maximum(self.sums, 0.0)
        totals = parts.sum(axis=0)
        shares = np.where(totals > 0, parts / np.where(totals > 0, totals, 1.0), np.nan)
        anything = np.broadcast_to(self.logged.any(axis=0), shares.shape)
        return _hold(shares, anything)


def cut(series: Sequence[tuple[Steps, Values]], limit: int) -> Slices:
    """Cut series into at most `limit` slices, one per logged step if there are fewer.

    Args:
        series: Steps and values of each series; together they hold at least one point.
        limit: Most slices.
    """
    steps = np.unique(np.concatenate([s for s, _ in series]))
    first, last = int(steps[0]), int(steps[-1])
    num_slices = min(limit, steps.size)
    shape = (len(series), num_slices)
    sums, counts = np.zeros(shape), np.zeros(shape, np.int64)
    logged = np.zeros(shape, np.bool_)
    for row, (where, values) in enumerate(series):
        places = np.zeros(where.size, np.int64)
        if last > first:
            places = ((where - first) / (last - first) * num_slices).astype(np.int64)
        places = np.minimum(places, num_slices - 1)
        finite = np.isfinite(values)
        np.add.at(sums[row], places[finite], values[finite])
        np.add.at(counts[row], places[finite], 1)
        logged[row, places] = True
    centres = first + (np.arange(num_slices) + 0.5) * (last - first) / num_slices
    return Slices(first=first, last=last, centres=centres, sums=sums, counts=counts, logged=logged)


def _hold(values: Values, logged: NDArray[np.bool_]) -> Values:
    """Fill places where nothing was logged from the nearest logged place to their left."""
    places = np.where(logged, np.arange(values.shape[1]), -1)
    source = np.maximum.accumulate(places, axis=1)
    # Before its first logged place a row has NaN, which its first place holds as well.
    return np.take_along_axis(values, np.maximum(source, 0), axis=1)
