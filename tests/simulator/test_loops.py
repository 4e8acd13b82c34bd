"""Which curricula run in compiled code. That they take the same course is in `test_engines`."""

from stepladder.curricula import Curriculum, Frontier, LearningProgress, Staged, Uniform
from stepladder.simulator import TaskGraph
from stepladder.simulator.loops import LOOPS, has_compiled_form


class Own(Uniform):
    """A curriculum of somebody's own, whose Python code a compiled loop would pass over."""


def test_curricula_and_their_classes_are_asked_alike():
    source = TaskGraph.chain(3).source()
    assert has_compiled_form(Frontier)
    assert has_compiled_form(LearningProgress(source))
    assert not has_compiled_form(Staged)


def test_a_subclass_has_no_compiled_form_of_its_own():
    assert not has_compiled_form(Own)
    assert not has_compiled_form(Own(TaskGraph.chain(3).source()))


def test_every_loop_has_a_curriculum_that_can_tell_its_state():
    for kind in LOOPS:
        assert kind.kernel_state is not Curriculum.kernel_state
