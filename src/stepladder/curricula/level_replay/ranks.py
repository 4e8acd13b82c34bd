"""Ranks without sorting: counts of scores in fixed bins, and the weight of a rank.

Called by `kernels`. Scores fall into bins that are 1.5 to 3 % wide, 32 for each
doubling from 2 ** -32 to 2 ** 32. A Fenwick tree over the bins adds a score, takes one away and
counts the scores below a bin in a dozen steps, however many tasks there are. Scores in one bin
are tied: they share the ranks they take up between them. Powers of ranks lie in a table: every
score looks up several, and a power takes longer than all the rest.
"""

import math
from typing import Annotated, Any

import numpy as np

from stepladder.arrays import Words
from stepladder.compiled import bare, compiled, inlined
from stepladder.records import Fields, Records, Shape

PER_DOUBLING, NUM_RANK_BINS = 32, 2048
LOWEST_EXPONENT = -31
"""Of the smallest score that differs from 0, as `math.frexp` counts: 2 ** -32."""


class RankTree(Fields):
    """How many scores lie in which bin: a Fenwick tree; node 0 is not used."""

    nodes: Annotated[Words, Shape(NUM_RANK_BINS + 1)]


class RankPower(Fields):
    """What a rank is worth."""

    own: float
    """rank ** -power."""
    beyond: float
    """(rank + 1/2) ** (1 - power): an integral up to half a step beyond the rank ends there."""


def powers_of_ranks(num_ranks: int, power: float) -> Records[RankPower]:
    """Return what the ranks 1 to `num_ranks` are worth, at their own index."""
    found: Any = np.zeros(num_ranks + 1, RankPower.dtype)
    _fill_powers(found, power)
    return found


@compiled
def _fill_powers(powers: Records[RankPower], power: float) -> None:
    for rank in range(1, len(powers)):
        powers[rank].own = float(rank) ** -power
        powers[rank].beyond = (rank + 0.5) ** (1.0 - power)


@bare
def bin_of(score: float) -> int:
    """Return the bin of a score of 0 or more; bin 0 holds 0 and what is too small to tell."""
    if score <= 0.0:
        return 0
    mantissa, exponent = math.frexp(score)
    inside = int((mantissa - 0.5) * (2 * PER_DOUBLING))
    place = 1 + (exponent - LOWEST_EXPONENT) * PER_DOUBLING + inside
    return min(max(place, 0), NUM_RANK_BINS - 1)


@inlined
def add(ranks: RankTree, bin_index: int, amount: int) -> None:
    """Count a score in (+1) or out (-1) of a bin."""
    node = bin_index + 1
    while node <= NUM_RANK_BINS:
        ranks.nodes[node] += amount
        node += node & -node


@inlined
def count_below(ranks: RankTree, bin_index: int) -> int:
    """Return how many scores lie in bins below this one."""
    total, node = 0, bin_index
    while node > 0:
        total += ranks.nodes[node]
        node -= node & -node
    return total


@inlined
def count_in(ranks: RankTree, bin_index: int) -> int:
    """Return how many scores lie in a bin: its node, less what that also counts below it."""
    node = bin_index + 1
    total, first = ranks.nodes[node], node - (node & -node)
    node -= 1
    while node > first:
        total -= ranks.nodes[node]
        node -= node & -node
    return total


@inlined
def weight_of_ranks(first: int, count: int, power: float, powers: Records[RankPower]) -> float:
    """Return the mean of rank ** -power over `count` ranks from `first` on.

    The first rank is exact, and so is a single one. Of the others it takes the integral, each
    rank reaching half a step to either side, which is off by less than 3 %.
    """
    total = powers[first].own
    if count > 1:
        last = first + count - 1
        if abs(power - 1.0) < 1e-9:
            total += math.log((last + 0.5) / (first + 0.5))
        else:
            total += (powers[first].beyond - powers[last].beyond) / (power - 1.0)
    return total / count
