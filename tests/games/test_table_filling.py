"""Tasks are built by several threads, and some of them before anybody draws them."""

from threading import Event
from time import sleep

import pytest

from stepladder import Task, Uniform
from stepladder.errors import TaskError
from stepladder.games.table_filling import Held, TableFiller


@pytest.mark.timeout(60)
def test_threads_with_nothing_left_to_do_build_what_may_be_drawn_later() -> None:
    curriculum = Uniform([Task(f"task {n}") for n in range(10)], seed=0)
    built: list[tuple[str, int]] = []
    is_ahead = Event()

    def build(task: Task, slot: int) -> None:
        if slot == 4:  # Drawn; takes until another thread has built all others.
            assert is_ahead.wait(30)
        if slot == 7:
            raise TaskError("never")
        built.append((task.name, slot))
        if len(built) == 8:
            is_ahead.set()

    filler = TableFiller(build, curriculum)
    filler.fill({4: Held(0, 4)}, num_threads=2)
    assert sorted(built) == [(f"task {n}", n) for n in range(10) if n != 7]
    assert [slot for slot in range(10) if filler.known[slot] < 0] == [7]
    built.clear()
    # What failed ahead is tried again when it is drawn, and a later generation replaces a task.
    filler.fill({7: Held(0, 7), 3: Held(1, 9)}, num_threads=2)
    assert built == [("task 9", 3)]
    assert filler.known[7] == -1
    assert filler.known[3] == 1


@pytest.mark.timeout(60)
def test_after_an_error_no_thread_begins_another_task() -> None:
    curriculum = Uniform([Task(f"task {n}") for n in range(200)], seed=0)
    built: list[int] = []
    has_failed = Event()

    def build(task: Task, slot: int) -> None:
        if slot == 0:
            has_failed.set()
            raise ZeroDivisionError("a mistake in the game")
        assert has_failed.wait(30)
        built.append(slot)
        sleep(0.01)

    filler = TableFiller(build, curriculum)
    with pytest.raises(ZeroDivisionError, match="a mistake in the game"):
        filler.fill({slot: Held(0, slot) for slot in range(200)}, num_threads=2)
    assert len(built) < 100
