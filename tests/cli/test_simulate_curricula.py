"""The curricula to choose from, and what a choice means in a scenario."""

import json
from pathlib import Path

import pytest

from stepladder.cli.simulate import ChosenCurriculum, from_file, read_arguments
from stepladder.curricula import FrontierConfig, StagedConfig, UniformConfig
from stepladder.curricula.registry import curriculum_variants
from stepladder.errors import ConfigError
from stepladder.simulator.scenarios import scenario

GRID = scenario("grid-2x2")


def chosen(*words: str) -> ChosenCurriculum:
    """Return what a command line with these words chooses in a small grid."""
    choice, options = read_arguments(["--scenario", "grid-2x2", *words])
    assert options.simulation.scenario == "grid-2x2"
    return choice


@pytest.mark.parametrize("name", curriculum_variants(can_edit=False))
def test_every_curriculum_can_be_chosen_and_means_the_same_as_its_name(name: str) -> None:
    assert chosen(name) == ChosenCurriculum(name, GRID.curriculum_config(name))


def test_learning_progress_is_chosen_unless_another_is_named() -> None:
    assert chosen() == chosen("learning-progress")


def test_features_can_be_named() -> None:
    choice = chosen("frontier-features", "--features", "x", "--probing", "0.5")
    assert choice.config == FrontierConfig(features=("x",), probing=0.5)


def test_stages_follow_the_scenario_and_the_flags() -> None:
    flags = ("--threshold", "0.6", "--window-episodes", "20", "--exploration", "0.1")
    config = chosen("staged", *flags, "--demotion.threshold", "0.1").config
    assert isinstance(config, StagedConfig)
    assert [stage.name for stage in config.stages] == [f"taskclass{n}" for n in GRID.graph.order]
    assert (config.threshold, config.window_episodes, config.exploration) == (0.6, 20, 0.1)
    assert config.demotion is not None
    assert config.demotion.threshold == 0.1


def test_stages_are_left_at_what_the_scenario_calls_mastered(tmp_path: Path) -> None:
    def threshold(*words: str) -> float:
        config = read_arguments([*words, "staged"])[0].config
        assert isinstance(config, StagedConfig)
        return config.threshold

    assert threshold("--scenario", "chain-3") == 0.9
    assert threshold("--recipe", "large-chain") == 0.9


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--threshold", "2.0"), "threshold must lie in"),
        (("--min-episodes", "0"), "--min-episodes must be an integer"),
    ],
)
def test_a_wrong_flag_of_stages_is_refused(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        chosen("staged", *words)


def test_settings_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "even.json"
    path.write_text(json.dumps({"type": "uniform", "exploration": 0.5}))
    assert chosen("from-file", str(path)) == ChosenCurriculum(
        "even", UniformConfig(exploration=0.5)
    )


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
            from_file(path)
