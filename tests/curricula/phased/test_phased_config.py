"""Settings of phases: what is refused, and what they ask of records."""

from typing import Any

import numpy as np
import pytest

from curricula.two_labels import REST, make, settings_of
from stepladder.curricula import (
    Mixed,
    Phase,
    PhasedConfig,
    StagedConfig,
    UniformConfig,
)
from stepladder.errors import ConfigError


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"name": ""}, "name must not be empty; got ''"),
        (
            {"name": "p", "mixture": {"a": 1.0}, "curriculum": UniformConfig()},
            "in addition to mixture",
        ),
        ({"name": "p", "episodes": 0}, "episodes must be an integer"),
        ({"name": "p", "episodes": 1e3}, "episodes must be an integer"),
        ({"name": "p", "steps": -1}, "steps must be an integer"),
        ({"name": "p", "success": 1.5}, "success must lie in"),
        ({"name": "p", "min_episodes": 0}, "min_episodes must"),
        ({"name": "p", "window_episodes": 0}, "window_episodes must"),
        ({"name": "p", "settings": {"x": object()}}, r"settings\.x has type object"),
        ({"name": "p", "settings": {"x": [np.nan]}}, r"settings\.x\[0\] is nan"),
        (
            {"name": "p", "settings": {"x": {"values": [1, {2}], "weights": []}}},
            r"settings\.x\.values\[1\] has type set",
        ),
        ({"name": "p", "settings": {"x": {}, "x.y": 1}}, "has both 'x' and 'x.y'"),
    ],
)
def test_phases_that_cannot_be_meant_are_refused(settings: dict[str, Any], words: str):
    with pytest.raises(ConfigError, match=words):
        Phase(**settings)


@pytest.mark.parametrize(
    ("phases", "words"),
    [
        ((), "phases must not be empty"),
        (
            (Phase(name="p", episodes=1), Phase(name="p")),
            r"\[1\]\.name is 'p', as of an earlier",
        ),
        ((Phase(name="p"), Phase(name="q")), r"phases\[0\] has no limit"),
    ],
)
def test_lists_of_phases_that_cannot_be_meant_are_refused(phases: Any, words: str):
    with pytest.raises(ConfigError, match=words):
        PhasedConfig(phases=phases)


def test_the_error_of_an_inner_curriculum_names_its_cause():
    with pytest.raises(ConfigError, match="no task has label 'z'"):
        make(Phase(name="p", mixture={"z": 1.0}))


def test_numbers_of_numpy_are_settings_like_any_other(tmp_path: Any):
    curriculum = make(Phase(name="p", settings={"x": np.int64(3), "y": Mixed((np.float32(0.5),))}))
    curriculum.snapshot().save(tmp_path / "state.npz")
    assert settings_of(curriculum) == {"x": 3, "y": 0.5}


def test_success_is_needed_if_any_phase_needs_it():
    assert not make(Phase(name="first", episodes=1), REST).needs_success
    assert make(Phase(name="first", success=0.5), REST).needs_success
    staged = Phase(name="late", curriculum=StagedConfig(stages=("a", "b")))
    assert make(Phase(name="first", episodes=1), staged).needs_success
