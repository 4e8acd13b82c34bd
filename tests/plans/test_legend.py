"""Legends: how a client reads the dials of a plan."""

import pickle

import numpy as np
import pytest

from stepladder.curricula import Legend, Phase, Phased, Staged, StagedConfig, Uniform
from stepladder.errors import ConfigError
from stepladder.plans.legend import Legend as PlainLegend
from stepladder.tasks import Task

TASKS = [Task("a0", "a"), Task("a1", "aa"), Task("b0", "b")]
STAGES = StagedConfig(
    stages=("b", "rest"),
).with_stage("rest", labels=("a", "aa"))


def test_without_stages_every_label_is_its_own():
    legend, dials = Uniform(TASKS).legend(), np.zeros(0)
    assert legend == PlainLegend(needs_success=False)
    assert legend.stage_of("a", dials) == "a"
    assert legend.current_stage(dials) is None
    assert legend.current_phase(dials) is None
    assert legend.settings(dials, 0, 0, 0) == {}
    with pytest.raises(ConfigError, match="no mixing ratio for stage 'a'"):
        legend.mixing_ratio("a", dials)


def test_the_dials_of_stages_are_the_stage_and_its_ratios():
    curriculum = Staged(TASKS, STAGES)
    curriculum.go_to("rest")
    legend, dials = curriculum.legend(), curriculum.plan.dials
    assert dials.tolist() == [1.0, 0.2, 0.2]
    assert legend.current_stage(dials) == "rest"
    assert legend.stage_of("aa", dials) == "rest"
    assert legend.mixing_ratio("rest", dials) == 0.2
    with pytest.raises(ConfigError, match=r"unknown stage 'x'; the stages are \['b', 'rest'\]"):
        legend.mixing_ratio("x", dials)


def test_stages_inside_a_phase_have_dials_of_their_own():
    curriculum = Phased(
        TASKS,
        phases=(
            Phase(name="first", episodes=1),
            Phase(name="second", curriculum=STAGES, settings={"speed": 2}),
        ),
    )
    legend, dials = curriculum.legend(), curriculum.plan.dials
    assert (legend.current_phase(dials), legend.current_stage(dials)) == ("first", None)
    assert legend.stage_of("a", dials) == "a"
    staged = curriculum.inner[1]
    assert isinstance(staged, Staged)
    staged.go_to("rest")
    curriculum._enter(1, "episodes")
    assert dials.tolist() == [1.0, 0.0, 1.0, 0.2, 0.2]
    assert (legend.current_phase(dials), legend.current_stage(dials)) == ("second", "rest")
    assert legend.stage_of("a", dials) == "rest"
    assert legend.mixing_ratio("b", dials) == 0.2
    assert legend.settings(dials, 0, 0, 0) == {"speed": 2}


@pytest.mark.parametrize(
    "curriculum",
    [Uniform(TASKS), Staged(TASKS, STAGES), Phased(TASKS, phases=(Phase(name="p"),))],
)
def test_a_legend_travels(curriculum: Uniform | Staged | Phased):
    legend = curriculum.legend()
    assert isinstance(legend, Legend)
    assert pickle.loads(pickle.dumps(legend)) == legend
