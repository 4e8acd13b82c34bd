"""Find the learner that explains one or more trainings best.

Between `replay`, which predicts, and `calibrate`, which reports. The settings of the learner become
one vector without bounds. Minimised is the negative log likelihood of the successes seen, binomial
per epoch and group, divided by how much more they scatter than coins do, plus a normal prior around
the usual settings. Where `repeats` are known, the squared surprise of how success depends on
earlier plays of the same task is added. The method is Fisher scoring with a damped step (Levenberg
and Marquardt), from several starts.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stepladder.arrays import Floats
from stepladder.simulator.calibration.practice import Practice
from stepladder.simulator.calibration.repeats import SlopeEvidence, mean_by_part, slopes_of
from stepladder.simulator.calibration.replay import Rates, held_out_rows, replay
from stepladder.simulator.generalising.config import Generalising

SLIP = 0.005
"""Share of plays that end otherwise than the learner would have it; bounds what one play costs."""

MANY_GROUPS = 20
"""Groups from which all of them have the same spread."""

SHARED = ("eta", "eta_memory", "lambda_forget", "lambda_memory", "near", "reach")
"""First entries of the vector, all logarithms but `near`, which is a logit."""

USUAL_RATES = np.array([math.log(8e-4), 0.0, math.log(1e-4), math.log(0.05), 0.0, math.log(1.44)])
DEVIATION = np.array([3.0, 1.0, 1.5, 1.0, 1.0, 0.7])
"""Mean and deviation of the prior of the shared entries: the defaults of `Generalising`."""

MEASURED_DEVIATION = np.array([3.0, 2.5, 1.5, 1.5, 1.0, 0.7])
"""The same deviation where repeats are known, which measure the memory."""

FIRST, HARDER = (0.0, 3.0), (2.0, 3.0)
"""Mean and deviation of the easiest group's difficulty, and of the step from one to the next."""

FIRST_SPREAD, MORE_SPREAD = (0.0, 0.7), (0.0, 0.5)
"""The same of the logarithm of the spread."""

LARGEST_LOG = 30.0
DIFFERENCE_STEP = 1e-5
"""Difference by which derivatives are measured."""

START_ETAS = (1.0, 0.1, 10.0, 100.0)
"""Learning rates of the starts, as multiples of the usual one."""

NUM_STARTS, FEW_STARTS = 6, 2
"""Starts of a fit, and of one with many groups, where each takes long."""

SHORT, LONG = 12, 60
"""Iterations of every start, and of the best one."""


def coupling_matrix(num_groups: int, near: float, reach: float) -> Floats:
    """Return what groups in a row give each other.

    Args:
        num_groups: Number of groups, in the order of their difficulty.
        near: What a neighbour gets, as a share.
        reach: Groups after which that has fallen by a factor of e.
    """
    ranks = np.arange(num_groups)
    distances = np.abs(ranks[:, None] - ranks)
    return np.where(distances == 0, 1.0, near * np.exp(-(distances - 1.0) / reach))


@dataclass(frozen=True)
class Problem:
    """What is fitted, as vectors of counts, and what was seen of repeats."""

    practices: Sequence[Practice]
    counts: Floats
    """Plays of every epoch and group, then of evaluations, then pairs of plays of one task."""
    successes: Floats
    repeated: SlopeEvidence

    @classmethod
    def of(cls, practices: Sequence[Practice]) -> "Problem":
        """Lay out trainings that have the same groups in the same order."""
        counts, successes = [], []
        for one in practices:
            counts += [one.plays.ravel(), *(part.games for part in one.held_out)]
            successes += [one.successes.ravel(), *(part.successes for part in one.held_out)]
            if one.repeats is not None:
                counts.append(one.repeats.pairs.ravel())
                successes.append(one.repeats.discords.ravel())
        known = [one.repeats for one in practices if one.repeats is not None]
        both = np.concatenate(counts), np.concatenate(successes)
        return cls(practices, *both, SlopeEvidence.of(known))

    @property
    def num_groups(self) -> int:
        """Groups of every training."""
        return len(self.practices[0].groups)

    @property
    def prior(self) -> "Prior":
        """What is known beforehand."""
        is_measured = len(self.repeated.linear) > 0
        return Prior.of(self.num_groups, MEASURED_DEVIATION if is_measured else DEVIATION)

    def chances(self, found: Floats) -> Floats:
        """Return the part of a prediction that belongs to the counts."""
        return found[: len(self.counts)]

    def predict(self, vector: Floats) -> Floats:
        """Return the chance of success that belongs to each count, then what repeats add."""
        rates, found, added = rates_of(vector, self.num_groups), [], []
        for one in self.practices:
            predicted = replay(one, rates)
            found.append(predicted.practised.ravel())
            found.extend(predicted.held_out[row] for row in held_out_rows(one))
            if one.repeats is not None:
                taught, echo = (
                    mean_by_part(one.repeats, one.steps, one.plays, table)
                    for table in (predicted.taught, predicted.echo)
                )
                # Two plays differ with probability 2 p (1 - p); a play teaches 4 p (1 - p).
                found.append(0.5 * taught.ravel())
                added.append(slopes_of(rates.eta_memory * echo, rates.lambda_memory))
        return np.concatenate([with_slips(np.concatenate(found)), *added])

    def cost(self, found: Floats, dispersion: float) -> float:
        """Return the negative log likelihood of what was seen, given a prediction."""
        seen = log_likelihood(self.chances(found), self.counts, self.successes).sum()
        return self.repeated.cost(found[len(self.counts) :]) - float(seen) / dispersion

    def pull(self, found: Floats, dispersion: float) -> Floats:
        """Return how much less it would cost if each entry of a prediction were larger by 1."""
        chances = self.chances(found)
        inverse = 1.0 / (chances * (1.0 - chances) * dispersion)
        surprise = (self.successes - self.counts * chances) * inverse
        return np.concatenate([surprise, self.repeated.pull(found[len(self.counts) :])])

    def information(self, found: Floats, slopes: Floats, dispersion: float) -> Floats:
        """Return what was learnt about the vector (Fisher's matrix), given its slopes."""
        chances, own = self.chances(found), slopes[: len(self.counts)]
        weights = self.counts / (chances * (1.0 - chances) * dispersion)
        rest = self.repeated.information(slopes[len(self.counts) :])
        return (own * weights[:, None]).T @ own + rest


def with_slips(chances: Floats) -> Floats:
    """Keep chances away from 0 and 1."""
    return SLIP + (1.0 - 2.0 * SLIP) * chances


def log_likelihood(chances: Floats, counts: Floats, successes: Floats) -> Floats:
    """Return the log likelihood of successes, entry by entry."""
    return successes * np.log(chances) + (counts - successes) * np.log1p(-chances)


def rates_of(vector: Floats, num_groups: int) -> Rates:
    """Return the settings that a vector stands for."""
    eta, eta_memory, forget, forget_memory = np.exp(np.minimum(vector[:4], LARGEST_LOG)).tolist()
    near, reach = 1.0 / (1.0 + math.exp(-vector[4])), math.exp(min(LARGEST_LOG, vector[5]))
    first = len(SHARED)
    difficulty = vector[first : first + num_groups]
    spread = np.exp(np.minimum(vector[first + num_groups :], 3.0))
    return Rates(
        difficulty=np.ascontiguousarray(difficulty),
        spread=np.ascontiguousarray(np.broadcast_to(spread, num_groups)),
        coupling=coupling_matrix(num_groups, near, reach),
        eta=eta,
        eta_memory=eta_memory,
        lambda_forget=min(forget, 0.5),
        lambda_memory=min(forget_memory, 0.9),
    )


class Prior(NamedTuple):
    """Independent normal distributions of weighted sums of the entries of a vector."""

    sums: Floats
    """Weights, shape ``(num_sums, num_entries)``."""
    mean: Floats
    deviation: Floats

    @classmethod
    def of(cls, num_groups: int, shared: Floats = DEVIATION) -> "Prior":
        """Return the prior of a learner with so many groups, in the order of their difficulty.

        Shared entries are near the usual ones. The first group is of no special difficulty; each
        other one is harder than the one before and about as mixed. So a group that is never solved,
        which says little, resembles its neighbour.
        """
        spreads = num_groups if num_groups < MANY_GROUPS else 1
        sums = np.eye(len(SHARED) + num_groups + spreads)
        for size, first in ((num_groups, len(SHARED)), (spreads, len(SHARED) + num_groups)):
            for index in range(first + 1, first + size):
                sums[index, index - 1] = -1.0
        mean = [*USUAL_RATES, FIRST[0], *[HARDER[0]] * (num_groups - 1), FIRST_SPREAD[0]]
        deviation = [*shared, FIRST[1], *[HARDER[1]] * (num_groups - 1), FIRST_SPREAD[1]]
        mean += [MORE_SPREAD[0]] * (spreads - 1)
        deviation += [MORE_SPREAD[1]] * (spreads - 1)
        return cls(sums, np.array(mean), np.array(deviation))

    @property
    def centre(self) -> Floats:
        """The most probable vector."""
        return np.asarray(np.linalg.solve(self.sums, self.mean), dtype=np.float64)

    def surprise(self, vector: Floats) -> Floats:
        """Return how many deviations each sum lies from its mean."""
        return (self.sums @ vector - self.mean) / self.deviation

    def cost(self, vector: Floats) -> float:
        """Return the negative logarithm of the density, up to a constant."""
        return float(0.5 * np.sum(self.surprise(vector) ** 2))


class Fitted(NamedTuple):
    """The result of a fit."""

    vector: Floats
    cost: float
    dispersion: float
    """Variance of the successes seen around the prediction, as a multiple of that of coins."""


def _cost(problem: Problem, prior: Prior, dispersion: float, vector: Floats) -> float:
    return prior.cost(vector) + problem.cost(problem.predict(vector), dispersion)


def _slopes(problem: Problem, vector: Floats, found: Floats) -> Floats:
    """Return how every entry of a prediction changes with every entry of the vector."""
    slopes = np.empty((len(found), len(vector)))
    for index in range(len(vector)):
        moved = vector.copy()
        moved[index] += DIFFERENCE_STEP
        slopes[:, index] = (problem.predict(moved) - found) / DIFFERENCE_STEP
    return slopes


def _descend(
    problem: Problem, prior: Prior, dispersion: float, start: Floats, iterations: int
) -> Fitted:
    """Go downhill from a start by damped Fisher scoring."""
    vector, damping = start.copy(), 1e-2
    cost = _cost(problem, prior, dispersion, vector)
    weighted = prior.sums / prior.deviation[:, None]
    for _ in range(iterations):
        found = problem.predict(vector)
        slopes = _slopes(problem, vector, found)
        downhill = slopes.T @ problem.pull(found, dispersion)
        downhill -= weighted.T @ prior.surprise(vector)
        curvature = problem.information(found, slopes, dispersion) + weighted.T @ weighted
        before = cost
        for _ in range(8):
            damped = curvature + damping * np.diag(np.diag(curvature))
            tried = vector + np.clip(np.linalg.solve(damped, downhill), -3.0, 3.0)
            tried_cost = _cost(problem, prior, dispersion, tried)
            if tried_cost < cost:
                vector, cost, damping = tried, tried_cost, max(1e-6, damping / 5.0)
                break
            damping *= 4.0
        if before - cost < 1e-4:
            break
    return Fitted(vector, cost, dispersion)


def uncertainty(practices: Sequence[Practice], fitted: Fitted) -> dict[str, float]:
    """Return how uncertain the shared settings still are, as a share of the prior's deviation."""
    problem = Problem.of(practices)
    prior = problem.prior
    found = problem.predict(fitted.vector)
    slopes = _slopes(problem, fitted.vector, found)
    weighted = prior.sums / prior.deviation[:, None]
    known = problem.information(found, slopes, fitted.dispersion)
    curvature = known + weighted.T @ weighted
    left = np.sqrt(np.diag(np.linalg.inv(curvature))) / prior.deviation
    return dict(zip(SHARED, np.minimum(1.0, left[: len(SHARED)]).tolist(), strict=True))


def _starts(problem: Problem, prior: Prior, seed: int, num_starts: int) -> list[Floats]:
    """Return vectors to start from: usual settings, several learning rates, then random ones."""
    rng, groups = np.random.default_rng(seed), problem.num_groups
    plays = sum(one.plays[: max(1, len(one.steps) // 10)].sum(axis=0) for one in problem.practices)
    wins = sum(
        one.successes[: max(1, len(one.steps) // 10)].sum(axis=0) for one in problem.practices
    )
    share = (np.asarray(wins) + 0.5) / (np.asarray(plays) + 1.0)
    usual = prior.centre
    usual[len(SHARED) : len(SHARED) + groups] = np.log((1.0 - share) / share) + 0.5
    found: list[Floats] = []
    for number in range(num_starts):
        vector = usual.copy()
        if number < len(START_ETAS):
            vector[0] += math.log(START_ETAS[number])
        else:
            noise = 0.5 * prior.deviation * rng.standard_normal(len(vector))
            vector += np.linalg.solve(prior.sums, noise)
        found.append(vector)
    return found


def _dispersion(problem: Problem, vector: Floats) -> float:
    """Return how much more successes scatter than coins would: Pearson's statistic, at least 1."""
    chances = problem.chances(problem.predict(vector))
    variance = problem.counts * chances * (1.0 - chances)
    # Where less than one success or failure is expected, the statistic is no measure.
    counts = variance > 0.5
    if int(counts.sum()) <= len(vector):
        return 1.0
    squares = (problem.successes - problem.counts * chances)[counts] ** 2 / variance[counts]
    return max(1.0, float(squares.sum()) / (int(counts.sum()) - len(vector)))


def fit(practices: Sequence[Practice], *, seed: int = 0) -> Fitted:
    """Fit one learner to trainings that have the same groups, in the order of their difficulty.

    The same seed gives the same result.
    """
    problem = Problem.of(practices)
    prior = problem.prior
    num_starts = NUM_STARTS if problem.num_groups < MANY_GROUPS else FEW_STARTS
    rough = [
        _descend(problem, prior, 1.0, start, SHORT)
        for start in _starts(problem, prior, seed, num_starts)
    ]
    best = min(rough, key=lambda one: one.cost)
    dispersion = _dispersion(problem, best.vector)
    return _descend(problem, prior, dispersion, best.vector, LONG)


class Lengths(NamedTuple):
    """Mean env steps of a play per group."""

    success: Floats
    failure: Floats


def dynamics_of(rates: Rates, practices: Sequence[Practice], lengths: Lengths) -> Generalising:
    """Return the settings of the fitted learner; target and goal are the usual ones."""
    first = practices[0]
    near = [[float(f"{entry:.6g}") for entry in row] for row in rates.coupling.tolist()]
    updates = [one.update_steps for one in practices]
    return Generalising(
        groups=first.groups,
        num_tasks=tuple(np.max([one.num_tasks for one in practices], axis=0).tolist()),
        difficulty=tuple(float(f"{entry:.6g}") for entry in rates.difficulty),
        spread=tuple(float(f"{entry:.6g}") for entry in rates.spread),
        success_steps=tuple(max(1, round(entry)) for entry in lengths.success.tolist()),
        failure_steps=tuple(max(1, round(entry)) for entry in lengths.failure.tolist()),
        coupling=tuple(map(tuple, near)),
        eta=rates.eta,
        eta_memory=rates.eta_memory,
        lambda_forget=rates.lambda_forget,
        lambda_memory=rates.lambda_memory,
        update_steps=int(np.median(updates)),
    )
