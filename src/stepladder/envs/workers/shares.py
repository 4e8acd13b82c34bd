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
        rows = self.batches[batch]
        if not self.num_workers:
            return range(rows.start, rows.stop)
        size = (rows.stop - rows.start) // (self.num_workers + 1) if self.parent_steps else 0
        return range(rows.start, rows.start + size)

    def of_worker(self, worker: int, batch: int) -> range:
        """Return a worker's rows of a batch."""
        first, last = self.of_parent(batch).stop, self.batches[batch].stop
        bounds = _bounds(last - first, self.num_workers)
        return range(first + bounds[worker], first + bounds[worker + 1])

    def all_of_worker(self, worker: int) -> list[int]:
        """Return a worker's rows of all batches."""
        return [row for batch in range(self.num_batches) for row in self.of_worker(worker, batch)]


def _bounds(total: int, num_parts: int) -> list[int]:
    """Return where parts of nearly equal size begin and end; the first ones are the larger."""
    size, rest = divmod(total, num_parts)
    return [part * size + min(part, rest) for part in range(num_parts + 1)]
