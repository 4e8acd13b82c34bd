"""Copies of a curriculum in other processes: they refuse, and say what to do."""

import copy
import multiprocessing
import os
import pickle
from typing import Any

import pytest

from stepladder.curricula import Phase, Phased, Snapshot, Staged, Uniform
from stepladder.curricula.foreign import REFUSAL, ForeignCurriculum
from stepladder.errors import ChannelError, StepladderError, WrongProcessError
from stepladder.tasks import Task

TASKS = [Task("one", "a"), Task("two", "b")]

forking = [
    pytest.mark.processes,
    pytest.mark.timeout(60),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


def in_a_fork(work: Any) -> Any:
    """Return what a function returns in a forked child, or the name of what it raises."""
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()

    def run() -> None:
        try:
            answers.put(work())
        except StepladderError as error:
            answers.put(f"{type(error).__name__}: {error}")

    child = context.Process(target=run)
    child.start()
    child.join(timeout=50)
    assert child.exitcode == 0
    return answers.get()


def test_a_marker_refuses_everything_and_says_what_to_do():
    marker = ForeignCurriculum("Staged")
    assert marker.is_foreign
    assert marker.kind == "Staged"
    for name in ("draw", "observe", "plan", "current_stage", "pool"):
        with pytest.raises(WrongProcessError, match="enable_local_tracking=False"):
            getattr(marker, name)
    assert "restore its snapshot" in REFUSAL


def test_a_marker_can_travel_further():
    marker = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(Uniform(TASKS)))))
    assert isinstance(marker, ForeignCurriculum)
    assert marker.kind == "Uniform"
    assert isinstance(copy.deepcopy(marker), ForeignCurriculum)
    assert not hasattr(marker, "__len__")


class TestFork:
    pytestmark = forking

    def test_the_child_refuses_and_the_parent_goes_on(self):
        curriculum = Uniform(TASKS)
        before = curriculum.draw(3)
        assert in_a_fork(lambda: curriculum.draw(1)) == f"WrongProcessError: {REFUSAL}"
        assert in_a_fork(lambda: curriculum.is_foreign)
        assert not curriculum.is_foreign
        assert curriculum.draw(1)[0].episode_index == len(before)

    def test_a_curriculum_whose_plan_was_never_asked_for_refuses_too(self):
        curriculum = Uniform(TASKS)
        assert in_a_fork(lambda: curriculum.draw(1)).startswith("WrongProcessError")
        assert len(curriculum.draw(1)) == 1

    def test_what_is_inside_a_phase_refuses_too(self):
        curriculum = Phased(TASKS, phases=(Phase(name="only"),))
        curriculum.draw(1)
        assert in_a_fork(lambda: curriculum.inner[0].probs()).startswith("WrongProcessError")

    def test_stages_cannot_be_changed_by_a_child(self):
        curriculum = Staged(TASKS, stages=("a", "b"))
        curriculum.draw(1)
        for change in (
            lambda: curriculum.go_to("b"),
            lambda: curriculum.set_check_interval_episodes(3),
            lambda: curriculum.record_episode("a", True),
        ):
            assert in_a_fork(change).startswith("WrongProcessError")

    def test_a_fitting_snapshot_cannot_be_restored_in_a_child(self):
        curriculum = Uniform(TASKS)
        snapshot = curriculum.snapshot()
        assert in_a_fork(lambda: curriculum.restore(snapshot)).startswith("WrongProcessError")

    def test_a_child_may_build_its_own_and_continue_there(self):
        curriculum = Uniform(TASKS)
        curriculum.draw(5)
        state, arrays = curriculum.snapshot().state, curriculum.snapshot().arrays

        def continue_there() -> list[tuple[int, ...]]:
            own = Uniform(TASKS)
            own.restore(Snapshot(state, arrays))
            return [tuple(draw) for draw in own.draw(5)]

        assert in_a_fork(continue_there) == [tuple(draw) for draw in curriculum.draw(5)]

    def test_a_grandchild_refuses_what_its_parent_built(self):
        def build_and_fork() -> Any:
            own = Uniform(TASKS)
            own.draw(1)
            if os.fork() == 0:
                try:
                    own.draw(1)
                except WrongProcessError:
                    os._exit(7)
                os._exit(0)
            return os.waitstatus_to_exitcode(os.wait()[1])

        assert in_a_fork(build_and_fork) == 7


def test_only_one_channel_carries_a_curriculum():
    curriculum, first, second = Uniform(TASKS), object(), object()
    curriculum.claim(first)
    with pytest.raises(ChannelError, match="already carried"):
        curriculum.claim(second)
    curriculum.release(second)
    with pytest.raises(ChannelError, match="already carried"):
        curriculum.claim(second)
    curriculum.release(first)
    curriculum.claim(second)
