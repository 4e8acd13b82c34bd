"""What the events of evaluations say, for readers that know nothing of trainings.

A training writes `Evaluation.to_json` into a run (events of kind "evaluation", and "baseline" for
random play); reports, pictures, calibration and `explain` read it here.
"""

from collections.abc import Mapping
from math import nan
from typing import Any

WAYS = ("random", "drawn", "best")
"""How actions can be chosen: without a policy, drawn from it, or the best one."""

Scores = dict[str, Mapping[str, Any]]
"""What was measured in one way: the score of each group and of all games, by name."""


def by_way(evaluation: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return what was measured in each way of acting, the policy's own way first.

    What is damaged is left out.
    """
    beside = evaluation.get("beside")
    every = [evaluation, *(beside if isinstance(beside, list) else ())]
    found = {way_of(one): one for one in every if isinstance(one, Mapping)}
    return {way: one for way, one in found.items() if way in WAYS}


def way_of(evaluation: Mapping[str, Any]) -> str:
    """Return how actions were chosen; empty if the evaluation does not say."""
    way, older = evaluation.get("way"), evaluation.get("is_deterministic")
    if way is None and isinstance(older, bool):
        # Runs of 0.1.0 say it like this.
        return "best" if older else "drawn"
    return way if isinstance(way, str) and way in WAYS else ""


def scores_by_way(evaluation: Mapping[str, Any]) -> dict[str, Scores]:
    """Return the scores in each way that an evaluation has, its own first."""
    found = {way: _scores(one) for way, one in by_way(evaluation).items()}
    return {way: scores for way, scores in found.items() if scores}


def _scores(evaluation: Mapping[str, Any]) -> Scores:
    total = evaluation.get("total")
    parts = total.get("parts") if isinstance(total, Mapping) else None
    groups = parts if isinstance(parts, list) else []
    every = groups if len(groups) == 1 else [*groups, total]
    return {
        str(one["name"]): one
        for one in every
        if isinstance(one, Mapping) and "name" in one and isinstance(interval_of(one), Mapping)
    }


def interval_of(score: Mapping[str, Any]) -> Any:
    """Return the figure that counts: the rate, where the env says what succeeded."""
    return score.get("rate") or score.get("mean_return")


def figure_of(scores: Scores) -> str:
    """Return in words what is measured."""
    first = next(iter(scores.values()))
    if first.get("rate") is None:
        return "return of held-out episodes"
    what = "solved" if first.get("num_draws") is None else "won"
    return f"share of held-out episodes {what}"


def ends_of(score: Mapping[str, Any]) -> tuple[float, float, float]:
    """Return the figure that counts and the ends of its interval; what is missing is NaN."""
    measured = interval_of(score) or {}
    found = (measured.get(end) for end in ("value", "low", "high"))
    value, low, high = (float(one) if isinstance(one, int | float) else nan for one in found)
    return value, low, high
