"""The presets have the tables of the curricula they are named after."""

import pytest

from curricula.fake_learner import live
from stepladder.curricula import SEVEN_STAGES, SEVEN_STAGES_LENIENT, Staged, StagedConfig
from stepladder.tasks import ListSource, Task

# Threshold, minimum of episodes and demotion threshold per stage, from the ancestor's versions.
RISING = {
    "simplest": (0.60, 50, 0.20),
    "simpler": (0.65, 60, 0.30),
    "simple": (0.70, 80, 0.30),
    "medium": (0.70, 100, 0.25),
    "complex": (0.75, 120, 0.20),
    "exploration": (0.80, 150, 0.15),
    "mine_heavy": (0.80, 150, 0.15),
}
FALLING = {
    "simplest": (0.70, 50, 0.20),
    "simpler": (0.60, 50, 0.30),
    "simple": (0.50, 75, 0.30),
    "medium": (0.45, 100, 0.25),
    "complex": (0.40, 150, 0.20),
    "exploration": (0.35, 150, 0.15),
    "mine_heavy": (0.30, 200, 0.15),
}


@pytest.mark.parametrize(
    ("preset", "table"), [(SEVEN_STAGES, RISING), (SEVEN_STAGES_LENIENT, FALLING)]
)
def test_presets_have_the_ancestors_tables(
    preset: StagedConfig, table: dict[str, tuple[float, int, float]]
):
    assert {
        stage.name: (
            preset.threshold_of(index),
            preset.min_episodes_of(index),
            preset.demotion_threshold_of(index),
        )
        for index, stage in enumerate(preset.stages)
    } == table


@pytest.mark.parametrize("preset", [SEVEN_STAGES, SEVEN_STAGES_LENIENT])
def test_presets_have_the_ancestors_rules(preset: StagedConfig):
    assert preset.window_episodes == 50
    assert preset.check_interval_episodes == 10
    assert preset.early is not None
    assert (preset.early.success, preset.early.min_episodes) == (0.90, 30)
    assert preset.trend is not None
    assert (preset.trend.min_trend, preset.trend.min_results) == (0.15, 20)
    assert (preset.trend.episodes_factor, preset.trend.slack) == (0.8, 0.05)
    assert preset.mixing is not None
    assert preset.mixing.source == "previous"
    assert preset.mixing.base_ratio == 0.20
    assert preset.mixing.table == ((0.50, 0.40), (0.65, 0.25), (0.80, 0.15))
    assert (preset.mixing.otherwise, preset.mixing.min_results) == (0.05, 5)
    assert preset.demotion is not None
    assert (preset.demotion.threshold, preset.demotion.min_episodes) == (0.20, 200)


@pytest.mark.parametrize("preset", [SEVEN_STAGES, SEVEN_STAGES_LENIENT])
def test_a_learner_gets_through_all_seven_stages(preset: StagedConfig):
    tasks = ListSource(Task(f"{name}{i}", name) for name in RISING for i in range(3))
    curriculum = Staged(tasks, preset)
    live(curriculum, 1200)
    assert curriculum.current_stage == "mine_heavy"
    assert [change.from_stage for change in curriculum.history] == list(RISING)[:6]
