"""Curricula inside phases are found."""

from curricula.two_labels import REST, TASKS, make, play
from stepladder.curricula import Phase, PhasedConfig, Staged, StagedConfig, Uniform

STAGED = StagedConfig(stages=("a", "b"))
SCHOOL = PhasedConfig(
    phases=(Phase(name="first", episodes=1), Phase(name="then", curriculum=STAGED))
)


def test_a_curriculum_without_phases_stands_for_itself():
    curriculum = Uniform(TASKS)
    assert curriculum.in_force() is curriculum
    assert list(curriculum.all_methods()) == [("", curriculum)]


def test_the_method_in_force_is_that_of_the_innermost_phase():
    curriculum = make(Phase(name="school", curriculum=SCHOOL, episodes=2), REST)
    school = curriculum.inner[0]
    assert curriculum.in_force() is school.inner[0]
    play(curriculum, 1.0)
    assert isinstance(curriculum.in_force(), Staged)
    play(curriculum, 1.0)
    assert curriculum.in_force() is curriculum.inner[1]


def test_all_methods_come_with_the_way_to_them():
    curriculum = make(Phase(name="school", curriculum=SCHOOL, episodes=2), REST)
    paths = {path: method for path, method in curriculum.all_methods()}
    assert list(paths) == ["", "school", "school/first", "school/then", "rest"]
    assert paths["school/then"] is curriculum.inner[0].inner[1]
