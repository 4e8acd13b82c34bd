"""Thousands of small changes to everything that is loaded, in child processes.

``make fuzz`` searches for longer. A case that once failed is kept in `KEPT`.
"""

import pytest

from fuzz.harness import FUZZERS, PLAYED_ON, REFUSED, fuzz

COUNTS = {
    "curricula": 750,
    "channels": 750,
    "games": 600,
    "learners": 750,
    "checkpoints": 75,
    "databases": 150,
    "levels": 400,
}

KEPT = {
    "curricula": (2549, 2567, 10834, 5000798, 5001036, 5011483, 5012000, 5019381),
    "channels": (10804, 14147, 14849),
    "games": (10407, 5001011, 5005521, 5013366, 30013557, 30031351),
    "checkpoints": (5002438, 5003242, 9000388, 9001046),
    "databases": (1129, 5002171, 5004042),
}


@pytest.mark.processes
@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", FUZZERS)
def test_what_was_changed_is_refused_or_played_on_with(name: str) -> None:
    # First those that once failed: all in one process, which takes seconds to start.
    cases = [*KEPT.get(name, ()), *range(COUNTS[name])]
    outcomes = fuzz(name, cases, timeout_s=150.0)
    assert set(outcomes) == {REFUSED, PLAYED_ON}
    assert sum(outcomes.values()) == len(cases)
