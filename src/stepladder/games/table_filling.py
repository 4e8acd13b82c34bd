"""Builds the tasks that kernels look up in a table, with as many threads as step the envs.

Between `curriculum_link`, which knows what envs have drawn, and the game, which writes a task in
the form that kernels read. A level of Ledge takes up to ninety milliseconds to make, most of them
in kernels, which other threads need not wait for.
"""

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from stepladder.arrays import Words
from stepladder.curricula.base import Curriculum
from stepladder.errors import StepladderError
from stepladder.tasks import Task

MOST_AHEAD = 16
"""Tasks per thread that one call may build although nobody has drawn them."""


class Held(NamedTuple):
    """What a slot holds or held."""

    generation: int
    task_id: int


class TableFiller:
    """Fills the table of a batch of envs.

    Args:
        build: Writes a task into a row of the table, and raises a `StepladderError` if it cannot be
            built. Several threads may each write another row.
        curriculum: Its plan says what the slots hold.
    """

    def __init__(self, build: Callable[[Task, int], None], curriculum: Curriculum):
        self._build, self._plan = build, curriculum.plan
        self._source = curriculum.pool.source
        self.known: Words = np.full(self._plan.num_slots, -1, dtype=np.int64)
        """The generation of the task in each row, or -1; kernels read it."""
        self._next_slot = 0

    def put(self, slot: int, generation: int, task: Task) -> None:
        """Put a task into the table unless it is there."""
        if self.known[slot] != generation:
            self.known[slot] = -1
            self._build(task, slot)
            self.known[slot] = generation

    def fill(self, drawn: Mapping[int, Held], num_threads: int) -> None:
        """Put tasks that are not there into the table; one that cannot be built is left out.

        A thread with nothing left to do builds tasks that may be drawn later, until the others are
        done: else step after step would wait for the few tasks that are new in it.
        """
        missing = {
            slot: held for slot, held in drawn.items() if self.known[slot] != held.generation
        }
        if not missing:
            return
        later = self._later(MOST_AHEAD * num_threads, drawn)
        waiting, unfinished = deque(missing), set(missing)

        def work() -> None:
            while unfinished:
                try:
                    slot = (waiting or later).popleft()
                except IndexError:
                    return
                generation, task_id = missing.get(slot) or self._held(slot)
                with suppress(StepladderError):
                    self.put(slot, generation, self._source.get(task_id))
                unfinished.discard(slot)

        # A new one each time: a pool that lasts would be missing its threads after a fork.
        pool = ThreadPoolExecutor(num_threads)
        try:
            for thread in [pool.submit(work) for _ in range(num_threads)]:
                thread.result()
        finally:
            # After Ctrl-C or an error, no thread begins another task.
            unfinished.clear()
            pool.shutdown()
        # What was not taken is offered again.
        self._next_slot = later[0] if later else self._next_slot

    def _later(self, most: int, drawn: Mapping[int, Held]) -> deque[int]:
        """Return slots with unknown tasks; over all calls every slot is looked at once."""
        first, later = self._next_slot, deque[int]()
        for slot in range(first, self._plan.num_slots):
            if len(later) == most:
                break
            self._next_slot = slot + 1
            if self.known[slot] < 0 and slot not in drawn:
                later.append(slot)
        return later

    def _held(self, slot: int) -> Held:
        return Held(*(int(part[slot]) for part in (self._plan.generations, self._plan.task_ids)))
