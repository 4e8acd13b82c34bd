"""Settings per episode: drawn values, ramps, and what they depend on."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from stepladder.curricula import Mixed, Ramp
from stepladder.curricula.phased.settings import resolve
from stepladder.errors import ConfigError

ALMOST_ONE = 1.0 - 2.0**-53


def test_a_mixed_value_is_chosen_by_where_the_number_falls():
    mixed = Mixed(("a", "b", "c"), (1.0, 0.0, 3.0))
    assert [mixed.at(u) for u in (0.0, 0.2499, 0.25, 0.5, ALMOST_ONE)] == ["a", "a", "c", "c", "c"]


def test_without_weights_all_values_are_alike():
    mixed = Mixed(("a", "b"))
    assert [mixed.at(u) for u in (0.0, 0.4999, 0.5, ALMOST_ONE)] == ["a", "a", "b", "b"]


def test_a_value_without_weight_is_never_chosen():
    mixed = Mixed(("first", "a", "b", "last"), (0.0, 0.1, 0.2, 0.0))
    assert {mixed.at(u) for u in np.linspace(0, ALMOST_ONE, 1001)} == {"a", "b"}


@pytest.mark.parametrize(
    ("values", "weights", "words"),
    [
        ((), (), "values must not be empty"),
        (("a", "b"), (1.0,), "1 weights for 2 values"),
        (("a", "b"), (1.0, -1.0), r"weights\[1\] must be finite and at least 0; got -1"),
        (("a", "b"), (0.0, 0.0), "sum above 0"),
        (("a", "b"), (1.0, np.nan), "at least 0; got nan"),
        (("a", "b"), (1.0, np.inf), "at least 0; got inf"),
    ],
)
def test_mixtures_that_are_none_are_refused(values: Any, weights: Any, words: str):
    with pytest.raises(ConfigError, match=words):
        Mixed(values, weights)


def test_a_ramp_holds_then_rises_then_holds():
    ramp = Ramp(start=1.0, end=3.0, hold_episodes=10, ramp_episodes=4)
    expected = {0: 1.0, 10: 1.0, 11: 1.5, 12: 2.0, 13: 2.5, 14: 3.0, 1000: 3.0}
    assert {episode: ramp.at(episode) for episode in expected} == expected


def test_a_ramp_may_fall_and_start_at_once():
    ramp = Ramp(start=1.0, end=0.0, ramp_episodes=2)
    assert [ramp.at(episode) for episode in (0, 1, 2)] == [1.0, 0.5, 0.0]


def test_a_ramp_ends_exactly_at_its_end():
    ramp = Ramp(start=0.1, end=0.7, ramp_episodes=3)
    assert (ramp.at(0), ramp.at(3)) == (0.1, 0.7)


@pytest.mark.parametrize(
    "settings",
    [
        {"start": np.nan, "end": 1.0},
        {"start": 0.0, "end": np.inf},
        {"start": 0.0, "end": 1.0, "hold_episodes": -1},
        {"start": 0.0, "end": 1.0, "ramp_episodes": 0},
        {"start": 0.0, "end": 1.0, "ramp_episodes": 1.5},
    ],
)
def test_ramps_that_are_none_are_refused(settings: dict[str, Any]):
    with pytest.raises(
        ConfigError, match=list(settings)[-1] if len(settings) > 2 else "must be a finite"
    ):
        Ramp(**settings)


SETTINGS = {
    "opponent": Mixed(("weak", "strong")),
    "puck.speed": Ramp(start=0.0, end=1.0, ramp_episodes=10),
    "mode": "duel",
    "side": Mixed(("left", "right"), (1.0, 3.0)),
}


def test_each_setting_is_resolved_in_its_own_way():
    values = resolve(SETTINGS, 5.0, 0, 0, 0)
    assert sorted(values) == sorted(SETTINGS)
    assert (values["mode"], values["puck.speed"]) == ("duel", 0.5)
    assert values["opponent"] in ("weak", "strong")


def test_the_same_episode_has_the_same_settings_whoever_asks():
    assert resolve(SETTINGS, 5.0, 7, 3, 11) == resolve(SETTINGS, 5.0, 7, 3, 11)
    backwards = dict(reversed(SETTINGS.items()))
    assert resolve(SETTINGS, 5.0, 7, 3, 11) == resolve(backwards, 5.0, 7, 3, 11)


@pytest.mark.parametrize("vary", ["seed", "env", "episode"])
def test_settings_differ_between_seeds_envs_and_episodes(vary: str):
    rows = []
    for number in range(2000):
        at = {"seed": 0, "env": 0, "episode": 0, vary: number}
        rows.append(resolve(SETTINGS, 0.0, at["seed"], at["env"], at["episode"]))
    opponents = Counter(row["opponent"] for row in rows)
    sides = Counter(row["side"] for row in rows)
    # 2000 fair coins: ± 22; three to one: ± 19. Both together: independent.
    assert abs(opponents["weak"] - 1000) < 100
    assert abs(sides["left"] - 500) < 90
    both = Counter((row["opponent"], row["side"]) for row in rows)
    assert abs(both["weak", "left"] - 250) < 70


def test_settings_from_other_streams_are_independent():
    one = [resolve(SETTINGS, 0.0, 0, 0, i)["opponent"] for i in range(2000)]
    two = [resolve(SETTINGS, 0.0, 0, 0, i, first_stream=999)["opponent"] for i in range(2000)]
    agreeing = sum(a == b for a, b in zip(one, two, strict=True))
    assert abs(agreeing - 1000) < 100
