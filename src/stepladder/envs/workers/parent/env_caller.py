"""Call a function on single envs, in whichever process they are.

Part of `coordinator`: finds the process of each row, asks all workers at once, and returns the
results in the order of the rows.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stepladder.envs.types import GymEnv
from stepladder.envs.workers.env_functions import apply_to
from stepladder.envs.workers.faults import noted
from stepladder.envs.workers.parent.worker_handle import WorkerGoneError
from stepladder.envs.workers.parent.worker_pool import WorkerPool


class EnvCaller:
    """Reaches the envs of all rows.

    Args:
        own_envs: Those of this process, by row.
        pool: Has the others.
    """

    def __init__(self, own_envs: Mapping[int, GymEnv], pool: WorkerPool):
        self._own_envs = own_envs
        self._pool = pool
        split = pool.split
        self._rows = [set(split.all_of_worker(worker)) for worker in range(split.num_workers)]

    def begin(
        self, rows: Sequence[int], function: Callable[..., Any], arguments: Sequence[Sequence[Any]]
    ) -> Callable[[], list[Any]]:
        """Have the workers call a function of each of their envs.

        Args:
            rows: Of which envs.
            function: Called with the env and its arguments.
            arguments: Per row.

        Returns:
            A function that makes the calls of this process's own envs, waits for the workers, and
            returns one result per row. It raises the first error, when all have answered: the next
            command must not find an old answer.
        """
        errors: list[Exception] = []
        results: dict[int, Any] = {}
        arguments_of = dict(zip(rows, arguments, strict=True))
        asked: dict[int, list[int]] = {}
        for worker, owned in enumerate(self._rows):
            theirs = [row for row in arguments_of if row in owned]
            if theirs:
                given = [arguments_of[row] for row in theirs]
                try:
                    self._pool.send(worker, 0, "apply", theirs, function, given)
                    asked[worker] = theirs
                except WorkerGoneError as error:
                    errors.append(error)

        def finish() -> list[Any]:
            try:
                own = {row: self._own_envs[row] for row in rows if row in self._own_envs}
                for row, env in own.items():
                    results[row] = apply_to(env, row, function, arguments_of[row])
            except Exception as error:  # raised again below
                row = getattr(error, "env_index", rows[0])
                errors.append(noted(error, row, f"raised by env {row}, in this process"))
            for worker, theirs in asked.items():
                try:
                    results.update(zip(theirs, self._pool.answer(worker, 0), strict=True))
                except Exception as error:  # raised again below
                    errors.append(error)
            if errors:
                raise errors[0]
            return [results[row] for row in rows]

        return finish
