from dataclasses import replace
from pathlib import Path

import pytest

from stepladder.errors import ConfigError
from stepladder.training.config import TrainingConfig, load_config
from stepladder.training.contradictions import neural_opponents
from stepladder.training.presets import PRESETS
from stepladder.training.starting import changed


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_found_by_name_and_its_curriculum_can_be_built(name):
    config = load_config(name)
    assert config is PRESETS[name]
    assert TrainingConfig.from_json(config.to_json()) == config
    config.curriculum.make(config.task_source())


def test_a_preset_that_does_not_exist_is_refused_with_the_one_that_was_meant():
    with pytest.raises(ConfigError, match=r"the presets are ledge, .* Did you mean 'hockey-sac'\?"):
        load_config("hokey-sac")


def test_the_ledge_is_the_default():
    assert changed(None) is PRESETS["ledge"]
    assert changed(None, seed=3) == replace(PRESETS["ledge"], seed=3)


def test_the_target_alone_is_two_stages_drawn_alike():
    config = PRESETS["ledge-target"]
    assert config.source["stages"] == ["medium", "complex"]
    assert config.agent == PRESETS["ledge"].agent == PRESETS["ledge-uniform"].agent
    assert config.total_steps == PRESETS["ledge"].total_steps


def test_self_play_meets_the_newest_and_past_selves():
    neural = neural_opponents(PRESETS["hockey-self-play"])
    assert neural == ("caller:newest", "caller:pool")
    assert neural_opponents(PRESETS["hockey-sac"]) == ()


CONFIGS = Path(__file__).parents[2] / "examples" / "configs"


def test_the_file_of_the_hockey_result_is_the_preset():
    assert load_config(CONFIGS / "hockey_sac.json") == PRESETS["hockey-sac"]


def test_the_example_in_the_schema_of_the_published_trainer_is_read():
    config = load_config(CONFIGS / "curriculum_simple.json")
    assert config.agent.kind == "DDDQN"
    assert config.total_episodes == 16_000
