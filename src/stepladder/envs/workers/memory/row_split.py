"""Which process steps which rows: how envs are divided between the parent and its workers.

Made once, by `vector_env`. A batch is a run of neighbouring rows; within a batch the parent's
rows come first, then each worker's, so that gathering in that order is gathering in env order.
"""

from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class RowSplit:
    """The division of `num_envs` rows."""

    num_envs: int
    num_workers: int
    num_batches: int = 1
    parent_steps: bool = True
    """Whether the parent steps envs too, while its workers step theirs."""

    @property
    def batches(self) -> tuple[slice, ...]:
        """Rows of each batch."""
        # The first ones are the larger.
        size, rest = divmod(self.num_envs, self.num_batches)
        bounds = [batch * size + min(batch, rest) for batch in range(self.num_batches + 1)]
        return tuple(slice(start, stop) for start, stop in pairwise(bounds))

    def of_parent(self, batch: int) -> range:
        """Return the parent's rows of a batch; one fewer where the division leaves a rest."""
        start = self.batches[batch].start
        return range(start, start + self._sizes(batch)[-1])

    def of_worker(self, worker: int, batch: int) -> range:
        """Return a worker's rows of a batch."""
        sizes = self._sizes(batch)
        start = self.of_parent(batch).stop + sum(sizes[:worker])
        return range(start, start + sizes[worker])

    def _sizes(self, batch: int) -> list[int]:
        """Return how many rows of a batch each worker has and, as the last, the parent.

        The rest of a division goes to the processes after those that had the rest of the batch
        before, so that over all batches no process has two rows more than another.
        """
        num_processes = self.num_workers + (self.parent_steps or not self.num_workers)
        rows = [part.stop - part.start for part in self.batches]
        size, rest = divmod(rows[batch], num_processes)
        begin = sum(count % num_processes for count in rows[:batch])
        sizes = [size] * num_processes
        for extra in range(rest):
            sizes[(begin + extra) % num_processes] += 1
        return sizes if num_processes > self.num_workers else [*sizes, 0]

    def all_of_worker(self, worker: int) -> list[int]:
        """Return a worker's rows of all batches."""
        return [row for batch in range(self.num_batches) for row in self.of_worker(worker, batch)]
