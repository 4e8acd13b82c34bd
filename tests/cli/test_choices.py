"""The curricula to choose from, and what a choice means in a scenario."""

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from stepladder.cli.choices import (
    CurriculumChoice,
    FromFile,
    FrontierWithFeatures,
    StagedInOrder,
    config_of,
    name_of,
)
from stepladder.curricula import FrontierConfig, StagedConfig, UniformConfig
from stepladder.curricula.config import CurriculumConfig
from stepladder.errors import ConfigError
from stepladder.simulator.contestants import CONTESTANTS
from stepladder.simulator.scenarios import scenario

GRID = scenario("grid-2x2")


def choices() -> dict[str, object]:
    """Every choice by the name of its subcommand, as the command line makes it by default."""
    made: dict[str, object] = {}
    for entry in get_args(CurriculumChoice):
        kind, subcommand = get_args(entry)
        if kind is not FromFile:
            is_given = isinstance(subcommand.default, CurriculumConfig)
            made[subcommand.name] = subcommand.default if is_given else kind()
    return made


def test_every_contestant_can_be_chosen_and_means_the_same() -> None:
    assert set(choices()) == set(CONTESTANTS)
    for name, choice in choices().items():
        assert name_of(choice) == name  # pyright: ignore[reportArgumentType]
        config = config_of(choice, GRID)  # pyright: ignore[reportArgumentType]
        assert config == CONTESTANTS[name](GRID)
        assert type(config) is type(CONTESTANTS[name](GRID))


def test_features_can_be_named() -> None:
    chosen = FrontierWithFeatures(features=("x",), probing=0.5)
    assert config_of(chosen, GRID) == FrontierConfig(features=("x",), probing=0.5)


def test_stages_follow_the_scenario_and_the_flags() -> None:
    config = config_of(StagedInOrder(threshold=0.6, window_episodes=20, exploration=0.1), GRID)
    assert isinstance(config, StagedConfig)
    assert [stage.name for stage in config.stages] == [f"taskclass{n}" for n in GRID.graph.order]
    assert (config.threshold, config.window_episodes, config.exploration) == (0.6, 20, 0.1)
    strict = replace(GRID, dynamics=replace(GRID.dynamics, mastery=0.75))
    default = config_of(StagedInOrder(), strict)
    assert isinstance(default, StagedConfig)
    assert default.threshold == 0.75


def test_a_wrong_flag_of_stages_is_refused() -> None:
    with pytest.raises(ConfigError, match="threshold must lie in"):
        StagedInOrder(threshold=2.0)
    with pytest.raises(ConfigError, match="min_episodes must be a whole number"):
        StagedInOrder(min_episodes=0)


def test_settings_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "even.json"
    path.write_text('{"config": "UniformConfig", "exploration": 0.5}')
    chosen = FromFile(file=path)
    assert config_of(chosen, GRID) == UniformConfig(exploration=0.5)
    assert name_of(chosen) == "even"


def test_a_file_that_holds_no_settings_is_named(tmp_path: Path) -> None:
    missing, broken, foreign = (tmp_path / name for name in ("no.json", "broken.json", "list.json"))
    broken.write_text("{")
    foreign.write_text("[]")
    for path, words in (
        (missing, "no.json cannot be read: No such file"),
        (broken, "broken.json is not JSON: Expecting"),
        (foreign, "list.json; nothing was started: must be of type CurriculumConfig"),
    ):
        with pytest.raises(ConfigError, match=words):
            FromFile(file=path).config()
