"""What several seeds of one training came to: a mean and an interval of each figure.

Reads the runs alone, so that `train --seeds`, reports and sweeps give the same figures. Only seeds
that have finished count: a seed that stands elsewhere in its training is not another sample of the
same thing.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from stepladder.runs.evaluation_events import (
    WAYS,
    Scores,
    ends_of,
    figure_of,
    interval_of,
    scores_by_way,
)
from stepladder.runs.reader import RunReader
from stepladder.runs.seeds.folder import SeedsInfo, runs_of, seed_folder
from stepladder.stats.interval import mean_interval

FINISHED = "finished"
"""How a seed stands; other words are "not begun" and those of `RunReader.status`."""

SPEED = "overview/steps_per_second"
"""Metric with the env steps per second of each epoch."""

MEAN_RETURN, STEPS_PER_SECOND = "return", "steps/s"
"""Names of figures beside the groups of games."""


@dataclass(frozen=True, kw_only=True)
class SeedStanding:
    """How one seed stands."""

    seed: int
    folder: Path
    status: str
    step: int
    """Env steps of training at its last evaluation; 0 before the first."""

    way: str = ""
    """In which way of acting the policy was evaluated."""

    measures: str = ""
    """What the groups are measured by, in words."""

    is_share: bool = False
    """Whether the groups are measured by a share in [0, 1]."""

    figures: Mapping[str, float]
    """Held-out figure of each group of games and of all, the mean return and the speed."""

    at_random: Mapping[str, float]
    """The same of random play, where it was measured."""


@dataclass(frozen=True, kw_only=True)
class OverSeeds:
    """One figure over all seeds that have finished."""

    name: str
    values: Mapping[int, float]
    """By seed."""

    mean: float
    low: float | None
    """End of Student's interval of 95 %, of shares inside [0, 1]; None where it cannot be known:
    with one seed, or with values that are all alike."""

    high: float | None
    at_random: float | None
    """Mean of random play, where it was measured."""

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {**asdict(self), "values": values_to_json(self.values)}


@dataclass(frozen=True, kw_only=True)
class SeedsSummary:
    """What several seeds came to."""

    seeds: tuple[SeedStanding, ...]
    rows: tuple[OverSeeds, ...]
    """Empty as long as none has finished."""

    @property
    def finished(self) -> list[SeedStanding]:
        """Those that have finished."""
        return [one for one in self.seeds if one.status == FINISHED]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        first = self.finished[0] if self.finished else None
        return {
            "seeds": [
                {"seed": one.seed, "run": str(one.folder), "status": one.status, "step": one.step}
                for one in self.seeds
            ],
            "way": first.way if first else None,
            "measures": first.measures if first else None,
            "interval": "Student's t, 95 %, over seeds",
            "rows": [row.to_json() for row in self.rows],
        }


def summarize(parent: Path) -> SeedsSummary:
    """Return what the seeds in a folder came to.

    Raises:
        RunError: The folder does not hold several seeds, or a run in it is damaged.
    """
    info, runs = SeedsInfo.read(parent), runs_of(parent)
    seeds = [_result(seed, parent, runs) for seed in info.seeds]
    finished = [one for one in seeds if one.status == FINISHED]
    names = dict.fromkeys(name for one in finished for name in one.figures)
    rows = [_over_seeds(name, [one for one in finished if name in one.figures]) for name in names]
    return SeedsSummary(seeds=tuple(seeds), rows=tuple(rows))


def over_seeds(name: str, values: Mapping[int, float], *, is_share: bool) -> OverSeeds:
    """Return the mean of a figure, with an interval where one can be known."""
    mean, low, high = mean_interval(list(values.values()))
    row = OverSeeds(name=name, values=values, mean=mean, low=None, high=None, at_random=None)
    if low == high or not math.isfinite(mean):
        return row
    if is_share:
        low, high = max(0.0, low), min(1.0, high)
    return replace(row, low=low, high=high)


def values_to_json(values: Mapping[int, float]) -> list[dict[str, Any]]:
    """Return the values of seeds as plain JSON; what is not finite is None."""
    return [
        {"seed": seed, "value": value if math.isfinite(value) else None}
        for seed, value in values.items()
    ]


def _over_seeds(name: str, seeds: Sequence[SeedStanding]) -> OverSeeds:
    is_share = seeds[0].is_share and name not in (MEAN_RETURN, STEPS_PER_SECOND)
    row = over_seeds(name, {one.seed: one.figures[name] for one in seeds}, is_share=is_share)
    beside = [one.at_random[name] for one in seeds if name in one.at_random]
    return replace(row, at_random=math.fsum(beside) / len(beside) if beside else None)


def _result(seed: int, parent: Path, runs: Mapping[int, Path]) -> SeedStanding:
    if seed not in runs:
        folder = seed_folder(parent, seed)
        return SeedStanding(
            seed=seed, folder=folder, status="not begun", step=0, figures={}, at_random={}
        )
    reader = RunReader(runs[seed])
    step, by_way = _last_evaluation(reader)
    own = next(iter(by_way), "")
    figures = _figures(by_way[own]) if own else {}
    names = reader.metric_names()
    if SPEED in names:
        # Of epochs, so that evaluations and the time between a stop and a resume do not count.
        figures[STEPS_PER_SECOND] = statistics.median(reader.metric(SPEED)[1].tolist())
    return SeedStanding(
        seed=seed,
        folder=runs[seed],
        status=reader.status,
        step=step,
        way=own,
        measures=figure_of(by_way[own]) if own else "",
        is_share=bool(own) and all(one.get("rate") for one in by_way[own].values()),
        figures=figures,
        at_random=_figures(by_way[WAYS[0]]) if WAYS[0] in by_way and own != WAYS[0] else {},
    )


def _last_evaluation(reader: RunReader) -> tuple[int, dict[str, Scores]]:
    """Return the step of the last evaluation and its scores, those in the policy's way first."""
    events = reader.events("evaluation")
    if not events:
        return 0, {}
    found = scores_by_way(events[-1].data)
    if found and WAYS[0] not in found:
        for event in reader.events("baseline"):
            found |= scores_by_way(event.data)
    return events[-1].step, found


def _figures(scores: Scores) -> dict[str, float]:
    figures = {name: ends_of(score)[0] for name, score in scores.items()}
    total = list(scores.values())[-1]
    if total.get("rate"):
        # Beside shares of success; otherwise the figures are returns already.
        mean = interval_of({"mean_return": total.get("mean_return")}) or {}
        if isinstance(mean.get("value"), int | float):
            figures[MEAN_RETURN] = float(mean["value"])
    return figures
