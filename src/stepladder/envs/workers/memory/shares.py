"""Who steps which rows: how the envs are divided between the parent and its workers.

Settled once, by `vector_env`. A batch is a run of neighbouring rows; within a batch the parent's
rows come first, then each worker's, so that gathering in that order is gathering in env order.
"""

from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Shares:
    """The division of `num_envs` rows."""

    num_envs: int
    num_workers: int
    num_batches: int = 1
    parent_steps: bool = True
    """Whether the parent steps envs too, while its workers step theirs."""

    @property
    def batches(self) -> tuple[slice, ...]:
        """Rows of each batch."""
        bounds = _bounds(self.num_envs, self.num_batches)
        return tuple(slice(start, stop) for start, stop in pairwise(bounds))

    def of_parent(self, batch: int) -> range:
        """Return the parent's rows of a batch; it takes fewer where it does not come out even."""
        start = self.batches[batch].start
        return range(start, start + self._sizes(batch)[-1])

    def of_worker(self, worker: int, batch: int) -> range:
        """Return a worker's rows of a batch."""
        sizes = self._sizes(batch)
        start = self.of_parent(batch).stop + sum(sizes[:worker])
        return range(start, start + sizes[worker])

    def _sizes(self, batch: int) -> list[int]:
        """Return how many rows of a batch each worker has and, as the last, the parent.

        What does not come out even in one batch goes on where it stopped in the one before, so
        that over all batches no process has two rows more than another.
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


def _bounds(total: int, num_parts: int) -> list[int]:
    """Return where parts of nearly equal size begin and end; the first ones are the larger."""
    size, rest = divmod(total, num_parts)
    return [part * size + min(part, rest) for part in range(num_parts + 1)]
