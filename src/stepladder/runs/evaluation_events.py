"""What the events of evaluations say, for readers that know nothing of trainings.

A training writes `Evaluation.to_json` into a run (events of kind "evaluation", and "baseline" for
random play); reports, calibration and `explain` read it here.
"""

from collections.abc import Mapping
from typing import Any

WAYS = ("random", "drawn", "best")
"""How actions can be chosen: without a policy, drawn from it, or the best one."""


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
