"""How unevenly something is spread: Gini, entropy, coefficient of variation, largest to smallest.

Used by `curricula.meter` on samples per label, samples per task and scores per task. Every function
takes numbers of 0 or more in any order, as a list or an array of any shape, and raises
`RecordError` if one is negative or not finite.
"""

import numpy as np
import numpy.typing as npt

from stepladder.arrays import Floats
from stepladder.errors import RecordError


def _checked(values: npt.ArrayLike, what: str) -> Floats:
    array = np.asarray(values, dtype=np.float64).reshape(-1)
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= 0.0)))
    if bad.size:
        raise RecordError(
            f"{what} needs finite numbers of 0 or more; number {bad[0]} is {array[bad[0]]}. Leave "
            "it out, or shift all of them."
        )
    return array


def gini(values: npt.ArrayLike) -> float:
    """Return the Gini coefficient: 0 when all are alike, (n - 1) / n when one has everything.

    With the n values in ascending order and i counted from 1, it is
    2 · sum(i · x_i) / (n · sum(x)) - (n + 1) / n. None at all, or nothing but zeros, give 0.
    """
    array = np.sort(_checked(values, "A Gini coefficient"))
    largest = float(array[-1]) if array.size else 0.0
    if largest == 0.0:
        return 0.0
    # Relative to the largest, so that no sum can overflow and no weight can vanish.
    array = array / largest
    count = array.size
    ranks = np.arange(1, count + 1, dtype=np.float64)
    # Not a product of NumPy's: with many values it wakes a thread on every core for a short sum.
    weighed = float((ranks * array).sum())
    result = 2.0 * weighed / (count * float(array.sum())) - (count + 1.0) / count
    return max(0.0, result)


def entropy_normalized(values: npt.ArrayLike) -> float:
    """Return the entropy of counts or probabilities, as a share of the largest possible.

    With p = x / sum(x) it is -sum(p · ln p) / ln n: 1 when all are alike, 0 when one has
    everything. Where nothing can be uneven the answer is 1: no value, one value, only zeros.
    """
    array = _checked(values, "An entropy")
    largest = float(array.max()) if array.size else 0.0
    if array.size < 2 or largest == 0.0:
        return 1.0
    array = array / largest
    probs = array[array > 0.0] / array.sum()
    # Rounding may leave it a hair outside of [0, 1].
    return min(1.0, max(0.0, -float((probs * np.log(probs)).sum()) / float(np.log(array.size))))


def coefficient_of_variation(values: npt.ArrayLike) -> float:
    """Return the standard deviation (of a population) over the mean; 0 when there is no mean."""
    array = _checked(values, "A coefficient of variation")
    mean = float(array.mean()) if array.size else 0.0
    return float(array.std()) / mean if mean > 0.0 else 0.0


def max_min_ratio(values: npt.ArrayLike) -> float:
    """Return the largest over the smallest; 1 when there are only zeros, inf with some zeros."""
    array = _checked(values, "A ratio")
    if not array.size or float(array.max()) == 0.0:
        return 1.0
    smallest = float(array.min())
    return float(array.max()) / smallest if smallest > 0.0 else float("inf")
