"""What phases tell: changes and explanations, in numbers and in words."""

import pytest

from curricula.two_labels import REST, make, play
from stepladder.curricula import (
    Phase,
    PhaseChange,
    PhasedExplanation,
    StagedConfig,
)


def test_a_change_keeps_every_number_that_decided_it():
    curriculum = make(Phase(name="first", episodes=3), REST)
    play(curriculum, 1, 0, 1, length=5)
    assert curriculum.history == [
        PhaseChange(
            episode=3,
            step=15,
            plan_version=curriculum.plan.version,
            from_phase="first",
            to_phase="rest",
            rule="episodes",
            episodes=3,
            steps=15,
            success=pytest.approx(2 / 3),  # type: ignore[arg-type]
        )
    ]
    assert str(curriculum.history[0]) == (
        "first -> rest at episode 3 (episodes: 3 episodes, 15 steps, success 0.67)"
    )


def test_where_a_run_stands_is_said_in_numbers_and_words():
    staged = StagedConfig(stages=("a", "b"))
    curriculum = make(Phase(name="first", curriculum=staged, episodes=9, success=0.9), REST)
    play(curriculum, 1, 0, length=4)
    told = curriculum.explain()
    assert isinstance(told, PhasedExplanation)
    assert (told.phase, told.phase_index, told.num_phases) == ("first", 0, 2)
    assert (told.phase_episodes, told.phase_steps, told.phase_success) == (2, 8, 0.5)
    assert told.limits == {"episodes": 9.0, "success": 0.9}
    assert told.inner == curriculum.inner[0].explain()
    lines = told.lines()
    assert lines[1] == (
        "Phase 1 of 2: 'first', 2 episodes, 8 steps, success 0.50; ends at episodes 9, success 0.9."
    )
    assert lines[2].startswith("  Staged: 4 tasks")
    assert curriculum.explain(0).reason == "in phase 'first', its stage 'a' is the current one"


def test_the_last_phase_goes_on_to_the_end_of_the_run():
    assert "goes on to the end of the run" in str(make(REST).explain())
