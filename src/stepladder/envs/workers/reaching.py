"""Methods and attributes of single envs, wherever they live.

Part of `ensemble`: sorts rows by who has their envs, asks all workers at once, and puts the answers
back in order.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium as gym

from stepladder.envs.workers.calls import call_env, set_env_attr
from stepladder.envs.workers.crew import Crew
from stepladder.envs.workers.hand import WorkerGoneError


class Reaching:
    """Reaches the envs of all rows.

    Args:
        own_envs: Those of this process, by row.
        crew: Has the others.
    """

    def __init__(self, own_envs: Mapping[int, gym.Env[Any, Any]], crew: Crew):
        self._own_envs = own_envs
        self._crew = crew
        shares = crew.shares
        self._owners: dict[int, int] = {
            row: worker
            for worker in range(shares.num_workers)
            for row in shares.all_of_worker(worker)
        }

    def call(
        self, rows: Sequence[int], name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> list[Any]:
        """Call a method of some envs, or read an attribute; return one result per row."""
        results = self._reach(
            rows,
            lambda theirs: ("call", theirs, name, arguments, keywords),
            lambda row: call_env(self._own_envs[row], row, name, arguments, keywords),
        )
        return [results[row] for row in rows]

    def set_attr(self, rows: Sequence[int], name: str, values: Sequence[Any]) -> None:
        """Set an attribute of some envs, one value per row."""
        value_of = dict(zip(rows, values, strict=True))
        self._reach(
            rows,
            lambda theirs: ("set_attr", theirs, name, [value_of[row] for row in theirs]),
            lambda row: set_env_attr(self._own_envs[row], row, name, value_of[row]),
        )

    def _reach(
        self,
        rows: Sequence[int],
        command: Callable[[list[int]], tuple[Any, ...]],
        do_here: Callable[[int], Any],
    ) -> dict[int, Any]:
        """Have something done for each row by whoever has its env; return the results by row.

        Raises:
            Exception: The first thing that went wrong, when all have answered: the next command
                must not find an answer that nobody has taken.
        """
        errors: list[Exception] = []
        told = self._tell_workers(rows, command, errors)
        results: dict[int, Any] = {}
        try:
            results.update((row, do_here(row)) for row in rows if row in self._own_envs)
        except Exception as error:  # raised again below
            errors.append(error)
        for worker, theirs in told.items():
            try:
                results.update(zip(theirs, self._crew.answer(worker, 0), strict=True))
            except Exception as error:  # raised again below
                errors.append(error)
        if errors:
            raise errors[0]
        return results

    def _tell_workers(
        self,
        rows: Sequence[int],
        command: Callable[[list[int]], tuple[Any, ...]],
        errors: list[Exception],
    ) -> dict[int, list[int]]:
        """Give each worker its command; return those that will answer, with their rows."""
        told: dict[int, list[int]] = {}
        for row in rows:
            if row in self._owners:
                told.setdefault(self._owners[row], []).append(row)
        for worker, theirs in list(told.items()):
            try:
                self._crew.tell(worker, 0, *command(theirs))
            except WorkerGoneError as error:
                errors.append(error)
                del told[worker]
        return told
