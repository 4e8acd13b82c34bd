"""A fast and a slow moving average, what their difference means, and how much of it is noise.

Used by `curricula.learning_progress`. An average with half-life h weighs a result by one half for
every h later results of the same task. It starts from nothing, not from zero: the weights given so
far are divided out, so that the first result is the average after one result.

The difference of the two averages of n results that all have the same mean is still not zero. Its
variance is the results' variance times ``noise[n]``; both averages see the same results, so most
of their error cancels.
"""

from dataclasses import dataclass

import numpy as np

from stepladder.arrays import Floats


@dataclass(frozen=True)
class AveragePair:
    """Constants of a fast and a slow average, tabulated by the number of results so far."""

    fast_rate: float
    """Weight of the newest result in the fast average."""

    slow_rate: float
    """Weight of the newest result in the slow average."""

    fast_sums: Floats
    """Sum of the fast average's weights after n results; 1 in the limit."""

    slow_sums: Floats
    """Sum of the slow average's weights after n results; 1 in the limit."""

    noise: Floats
    """Variance of fast minus slow after n results of variance one."""

    counts: Floats
    """Number of equally weighted results as certain as the slow average after n results."""

    @classmethod
    def of_halflives(cls, fast: float, slow: float) -> "AveragePair":
        """Tabulate for two half-lives, counted in results.

        The tables end when the slow average has forgotten its start; later entries would differ
        by less than one part in a million from the last.
        """
        a, b = 1.0 - 0.5 ** (1.0 / fast), 1.0 - 0.5 ** (1.0 / slow)
        num_results = np.arange(max(16, int(20 * slow) + 2), dtype=np.float64)
        keep_a, keep_b = 1.0 - a, 1.0 - b
        sum_a, sum_b = 1.0 - keep_a**num_results, 1.0 - keep_b**num_results
        square_a = a * a * (1.0 - keep_a ** (2 * num_results)) / (1.0 - keep_a**2)
        square_b = b * b * (1.0 - keep_b ** (2 * num_results)) / (1.0 - keep_b**2)
        keep_both = keep_a * keep_b
        both = a * b * (1.0 - keep_both**num_results) / (1.0 - keep_both)
        with np.errstate(invalid="ignore"):
            noise = square_a / sum_a**2 + square_b / sum_b**2 - 2.0 * both / (sum_a * sum_b)
            counts = sum_b**2 / square_b
        noise[0], counts[0] = 0.0, 0.0
        return cls(a, b, sum_a, sum_b, np.maximum(noise, 0.0), counts)
