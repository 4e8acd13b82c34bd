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
        ({"name": ""}, "a phase needs a name"),
        ({"name": "p", "mixture": {"a": 1.0}, "curriculum": UniformConfig()}, "give one"),
        ({"name": "p", "episodes": 0}, "episodes of phase 'p' must be a whole number"),
        ({"name": "p", "episodes": 1e3}, "episodes of phase 'p' must be a whole number"),
        ({"name": "p", "steps": -1}, "steps of phase 'p' must be a whole number"),
        ({"name": "p", "success": 1.5}, "success of phase 'p' must lie in"),
        ({"name": "p", "min_episodes": 0}, "min_episodes of phase 'p'"),
        ({"name": "p", "window_episodes": 0}, "window_episodes of phase 'p'"),
        ({"name": "p", "settings": {"x": object()}}, "setting 'x' of phase 'p' has type object"),
        ({"name": "p", "settings": {"x": [np.nan]}}, r"setting 'x' of phase 'p'\.0 is nan"),
        (
            {"name": "p", "settings": {"x": Mixed((1, {2}))}},
            "setting 'x' of phase 'p' has type set",
        ),
    ],
)
def test_phases_that_cannot_be_meant_are_refused(settings: dict[str, Any], words: str):
    with pytest.raises(ConfigError, match=words):
        Phase(**settings)


@pytest.mark.parametrize(
    ("phases", "words"),
    [
        ((), "phases is empty"),
        ((Phase(name="p", episodes=1), Phase(name="p")), "phase 'p' is named twice"),
        ((Phase(name="p"), Phase(name="q")), "phase 'p' has no limit"),
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
