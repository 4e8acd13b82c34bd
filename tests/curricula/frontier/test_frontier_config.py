"""Settings of the frontier: what is refused, what follows from them."""

from typing import Any

import numpy as np
import pytest

from stepladder.curricula import Frontier, FrontierConfig
from stepladder.errors import ConfigError
from stepladder.tasks import NumberedSource


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"mastery": 1.0}, r"mastery must lie in \(0, 1\); got 1.0"),
        ({"mastery": 0.0}, r"mastery must lie in \(0, 1\); got 0.0"),
        ({"mastery": "high"}, "mastery must lie in"),
        ({"mastery": 0.5, "lapse": 0.5}, r"lapse must lie below mastery \(0.5\); got 0.5"),
        ({"lapse": -0.1}, "lapse must lie in"),
        ({"halflife_episodes": 0.0}, r"halflife_episodes must lie in \(0, 100000\]; got 0.0"),
        ({"halflife_episodes": 1e6}, r"must lie in \(0, 100000\]; got 1000000\.0"),
        (
            {"halflife_episodes": 0.5},
            r"halflife_episodes is 0\.5, too short to see mastery 0\.9: a task that never fails is "
            r"taken to succeed 0\.875 of the time\. Give a longer half-life",
        ),
        ({"mastery": 0.99}, r"halflife_episodes is 8\.0, too short to see mastery 0\.99"),
        ({"probing": 0.0}, r"probing must lie in \(0, 1000\]; got 0.0"),
        ({"probing": 2000.0}, r"probing must lie in \(0, 1000\]; got 2000\.0"),
        ({"rehearsal": np.inf}, r"rehearsal must lie in \(0, 1000\]; got inf"),
        ({"rehearsal": 1e300}, r"rehearsal must lie in \(0, 1000\]; got 1e\+300"),
        ({"patience_rounds": -1.0}, "patience_rounds must be finite and above 0"),
        ({"trial_episodes": 1}, "trial_episodes must be an integer of at least 2"),
        ({"promote_z": -0.5}, r"promote_z must lie in \[0, 100\); got -0.5"),
        ({"promote_z": np.nan}, "promote_z must lie in"),
        ({"stuck_z": "one"}, r"stuck_z must lie in \[0, 100\); got 'one'"),
        ({"num_neighbors": 0}, "num_neighbors must be an integer of at least 1"),
        ({"num_neighbors": 101}, "num_neighbors must be at most 100; got 101"),
        ({"eviction_plays": -1}, "eviction_plays must be an integer of at least 0"),
        ({"features": "x"}, "features must be a list; got 'x'"),
        ({"features": ("x", 3)}, r"features\[1\] must be a text; got 3"),
        ({"features": ("",)}, r"features\[0\] must not be empty"),
        ({"features": {"x"}}, "features must be a list; got"),
        ({"features": ("x", "x")}, "features has 'x' twice"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings: dict[str, Any], words: str):
    with pytest.raises(ConfigError, match=words):
        FrontierConfig(**settings)


def test_the_evidence_for_mastery_is_four_plays_or_what_the_half_life_holds():
    assert FrontierConfig().evidence == 4.0
    # Results that count half after one more play add up to 2 at most.
    assert FrontierConfig(halflife_episodes=1.0, mastery=0.8).evidence == pytest.approx(1.8)


def test_features_that_tasks_lack_are_refused_when_it_is_built():
    with pytest.raises(ConfigError, match="task 'task0' lacks a feature"):
        Frontier(NumberedSource(3), features=("x",))
    with pytest.raises(ConfigError, match="4 slots and more tasks outside"):
        Frontier(NumberedSource(9), capacity=4, features=("x",))
