"""All envs of a vector env over one memory: this process's own groups, and the crew's.

Below `vector_env`, which knows Gymnasium's interface; above `group` and `crew`, which step. Gives
an order to the workers, carries it out for its own rows meanwhile, waits, and gathers what was
said. When a worker has died, it decides with `revival` what its rows are in, and goes on.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from stepladder.envs.workers import control, revival
from stepladder.envs.workers.arguments import batched_spaces
from stepladder.envs.workers.cores import usable_cores
from stepladder.envs.workers.crew import Crew
from stepladder.envs.workers.faults import noted
from stepladder.envs.workers.group import EnvGroup
from stepladder.envs.workers.hand import WorkerGoneError
from stepladder.envs.workers.infos import NumberedInfo
from stepladder.envs.workers.memory import Layout, Memory, fast_view
from stepladder.envs.workers.messages import INFO, Message
from stepladder.envs.workers.shares import Shares
from stepladder.envs.workers.spaces import leaves_of
from stepladder.envs.workers.watch import HangWatch
from stepladder.envs.workers.worker import call_env, describe, set_env_attr
from stepladder.errors import EnvTimeoutError, WorkerDiedError
from stepladder.sync.segment import Segment

logger = logging.getLogger("stepladder.envs")

OnDeath = Literal["restart", "raise"]
"""What to do when a worker has died."""

MAX_DEATHS = 3
"""Times a worker may die in a row, without having carried out an order in between."""


class Ensemble:
    """Steps and resets rows, wherever their envs live."""

    def __init__(
        self,
        env_functions: Sequence[Callable[[], gym.Env[Any, Any]]],
        shares: Shares,
        *,
        mode: AutoresetMode,
        start_method: str | None,
        timeout_s: float | None,
        on_death: OnDeath,
        observation_mode: str,
    ):
        self.shares = shares
        self.mode = mode
        self.on_restart: list[Callable[[list[int]], None]] = []
        """Called with the rows of a worker that was restarted, before they are played again."""
        self.is_reviving = False
        self._on_death: OnDeath = on_death
        self._segment: Segment | None = None
        self._own_envs: dict[int, gym.Env[Any, Any]] = {}
        self._crew = Crew(
            env_functions,
            shares,
            mode=mode,
            start_method=start_method,
            may_spin=shares.num_workers < usable_cores(),
            timeout_s=timeout_s,
        )
        try:
            self._build(env_functions, observation_mode, timeout_s)
        except BaseException:
            self._crew.abandon()
            self._close_own()
            raise

    def _build(
        self,
        env_functions: Sequence[Callable[[], gym.Env[Any, Any]]],
        observation_mode: str,
        timeout_s: float | None,
    ) -> None:
        shares = self.shares
        for batch in range(shares.num_batches):
            for row in shares.of_parent(batch):
                with _naming(row):
                    self._own_envs[row] = env_functions[row]()
        described = {row: describe(env) for row, env in self._own_envs.items()}
        for worker in range(shares.num_workers):
            rows = shares.all_of_worker(worker)
            described.update(zip(rows, self._crew.descriptions(worker), strict=True))
        descriptions = [described[row] for row in range(shares.num_envs)]
        self.description = descriptions[0]
        self.observation_space, self.action_space = batched_spaces(descriptions, observation_mode)
        self._lay_out()
        self._own_progress = fast_view(np.zeros(1, dtype=np.int64))
        self._infos: list[NumberedInfo] = []
        self._groups = [self._own_group(batch) for batch in range(shares.num_batches)]
        self._stepping = self._groups[0]
        self._watch = None if timeout_s is None else HangWatch(timeout_s, self._position)
        self._ended: npt.NDArray[np.bool_] = np.ones(shares.num_envs, dtype=np.bool_)
        self._ended_rows = [self._ended[rows] for rows in shares.batches]
        flags = self.memory.terminated, self.memory.truncated
        self._flags = [tuple(flag[rows] for flag in flags) for rows in shares.batches]
        self._pending: dict[int, revival.Order] = {}
        self._salvaged: dict[int, list[Message]] = {}
        self._late_errors: dict[int, Exception] = {}
        self._deaths = [0] * shares.num_workers

    def _lay_out(self) -> None:
        layout = Layout(
            self.shares.num_envs,
            self.shares.num_workers,
            self.shares.num_batches,
            leaves_of(self.description["observation_space"]),
            leaves_of(self.description["action_space"]),
        )
        if not self.shares.num_workers:
            self.memory = Memory(layout)
            return
        self._segment = Segment.create(layout.num_words)
        self.memory = Memory(layout, self._segment.words)
        self._crew.attach(self.memory, self._segment.ticket)

    def _own_group(self, batch: int) -> EnvGroup:
        rows = self.shares.of_parent(batch)
        return EnvGroup(
            [self._own_envs[row] for row in rows],
            rows.start,
            self.memory,
            self.mode,
            tell_info=lambda row, info: self._infos.append((row, info)),
            tell_objects=None,
            progress=self._own_progress,
        )

    def _position(self) -> int:
        """Return the row that this process is stepping."""
        return self._stepping.rows.start + self._own_progress[0]

    # Stepping and resetting.

    def begin_step(self, batch: int) -> None:
        """Have the workers step their rows of a batch, with the actions that lie in memory."""
        self._pending[batch] = revival.Order(control.STEP)
        if self.shares.num_workers:
            self._crew.give(control.STEP, batch, self._loose_actions(batch))

    def _loose_actions(self, batch: int) -> list[Any] | None:
        """Return per worker the leaves of its actions that are no arrays, if there are any."""
        loose = [column for column in self.memory.actions if isinstance(column, list)]
        if not loose:
            return None
        parts = [self.shares.of_worker(worker, batch) for worker in range(self.shares.num_workers)]
        return [[column[part.start : part.stop] for column in loose] for part in parts]

    def finish_step(self, batch: int) -> list[NumberedInfo]:
        """Step this process's own rows of a batch and wait for the others; return the infos."""
        error = self._do_own(batch, self._groups[batch].step)
        self._wait(batch)
        return self._gather(batch, error)

    def reset(
        self,
        batch: int,
        mask: npt.NDArray[np.bool_],
        seeds: list[int | None] | None,
        options: dict[str, Any] | None,
    ) -> list[NumberedInfo]:
        """Reset the rows of a batch that are in the mask; return the infos."""
        self._pending[batch] = revival.Order(control.RESET, seeds, options)
        self.memory.reset_mask[:] = mask
        group = self._groups[batch]
        if seeds is None and not options:
            # What autoreset does by hand, perhaps at every step: it needs no pipe.
            if self.shares.num_workers:
                self._crew.give(control.RESET, batch)
            error = self._do_own(batch, group.reset)
            self._wait(batch)
        else:
            workers = range(self.shares.num_workers)
            told = [self._tell(worker, batch, "reset", seeds, options) for worker in workers]
            error = self._do_own(batch, lambda: group.reset(seeds, options))
            for worker in workers:
                error = self._take_answer(worker, batch, told[worker], error)
        return self._gather(batch, error)

    def _do_own(self, batch: int, work: Callable[[], None]) -> Exception | None:
        """Carry an order out for this process's own rows; return what an env has raised."""
        if not self._groups[batch].envs:
            return None
        self._stepping = self._groups[batch]
        try:
            if self._watch is None:
                work()
            else:
                self._watch.run(work)
        except EnvTimeoutError:
            raise
        except Exception as error:  # raised again when the workers are done
            row = self._position()
            return noted(error, row, f"raised by env {row}, in this process")
        return None

    def _wait(self, batch: int) -> None:
        if not self.shares.num_workers:
            return
        while True:
            try:
                self._crew.wait(batch)
                return
            except WorkerGoneError as gone:
                self._revive(gone.worker_index)

    def _gather(self, batch: int, error: Exception | None) -> list[NumberedInfo]:
        """Return the infos of an order that all have carried out, in env order.

        Raises:
            Exception: Whatever an env has raised; that of the first one.
        """
        infos, self._infos = self._infos, []
        error = error or self._late_errors.pop(batch, None)
        # Before anything is raised: what a worker has said must be taken from it.
        for worker in range(self.shares.num_workers):
            messages = self._crew.gather(worker, batch)
            fault = self._crew.fault(worker, batch)
            error = error or fault
            infos += self._sort_out(messages)
            self._deaths[worker] = 0
        if self._salvaged:
            infos += self._sort_out(self._salvaged.pop(batch, []))
            infos.sort(key=lambda info: info[0])
        del self._pending[batch]
        if error is not None:
            raise error
        if self.shares.num_workers:
            # Kept, because a worker that dies may do so while it writes the next ones.
            np.logical_or(*self._flags[batch], out=self._ended_rows[batch])
        return infos

    def _sort_out(self, messages: list[Message]) -> list[NumberedInfo]:
        """Put leaves that are no arrays into memory; return the rest, which are infos."""
        infos: list[NumberedInfo] = []
        loose = [column for column in self.memory.observations if isinstance(column, list)]
        for kind, row, value in messages:
            if kind == INFO:
                infos.append((row, value))
            else:
                for column, part in zip(loose, value, strict=True):
                    column[row] = part
        return infos

    def settle(self) -> None:
        """Wait for orders that were given and never gathered, and forget them."""
        if self._pending:
            self._crew.settle()
        self._pending.clear()
        self._salvaged.clear()
        self._late_errors.clear()
        self._infos = []

    def _tell(self, worker: int, batch: int, *command: Any) -> bool:
        """Give a worker a command; return whether an answer will come.

        One that turns out to be gone is revived, and has carried out what is pending then.
        """
        try:
            self._crew.tell(worker, batch, *command)
        except WorkerGoneError:
            self._revive(worker)
            return False
        return True

    def _take_answer(
        self, worker: int, batch: int, was_told: bool, error: Exception | None
    ) -> Exception | None:
        """Wait for a worker's answer; return the first thing that an env has raised so far."""
        if not was_told:
            return error
        try:
            self._crew.answer(worker, batch)
        except WorkerGoneError:
            self._revive(worker)
        except EnvTimeoutError:
            raise
        except Exception as fault:  # raised again when all have answered
            return error or fault
        return error

    # Deaths.

    def ensure_alive(self) -> None:
        """Revive workers that have died since the last order."""
        for hand in list(self._crew.hands):
            if not hand.is_alive():
                self._revive(hand.worker_index)

    def _revive(self, worker: int) -> None:
        """Start a worker anew in the place of one that has died, and let it go on there.

        Raises:
            WorkerDiedError: The user wants to know, or it dies again and again.
        """
        hand = self._crew.hands[worker]
        hand.kill()
        rows = self.shares.all_of_worker(worker)
        self._deaths[worker] += 1
        died = f"the worker of env {_listed(rows)} died ({hand.exit_reason})"
        if self._on_death == "raise" or self._deaths[worker] > MAX_DEATHS:
            raise self._given_up(died, rows)
        logger.warning(
            "[VecEnv] %s. It is restarted; episodes that it had not finished end as truncated.",
            died[0].upper() + died[1:],
        )
        states, unfinished = self._salvage(worker)
        self.is_reviving = True
        try:
            self._crew.replace(worker)
            for restarted in self.on_restart:
                restarted(rows)
            objects = [column for column in self.memory.observations if isinstance(column, list)]
            self._crew.ask(worker, 0, "adopt", states, objects)
            for batch, num_done in unfinished:
                self._repeat(worker, batch, num_done)
        except WorkerGoneError:
            self._revive(worker)
        finally:
            self.is_reviving = False

    def _given_up(self, died: str, rows: list[int]) -> WorkerDiedError:
        again = f", {MAX_DEATHS + 1} times in a row" if self._on_death == "restart" else ""
        error = WorkerDiedError(
            f"{died}{again}. What it died of stands on its error output. Mend the env; then close "
            "this vector env and make a new one."
        )
        error.env_indices = rows
        return error

    def _salvage(self, worker: int) -> tuple[list[list[int]], list[tuple[int, int]]]:
        """Take what a dead worker has left.

        Returns:
            Per batch what its rows are in; and each batch whose order it had not carried out, with
            the number of rows that it had.
        """
        crew, memory = self._crew, self.memory
        states: list[list[int]] = []
        unfinished: list[tuple[int, int]] = []
        ended_now = memory.terminated | memory.truncated
        for batch in range(self.shares.num_batches):
            rows = self.shares.of_worker(worker, batch)
            order = self._pending.get(batch)
            is_done = crew.is_done(worker, batch)
            progress = int(memory.words[crew.lane(worker, batch) + control.PROGRESS])
            num_done = revival.num_rows_done(order, is_done, progress, len(rows))
            states.append(
                revival.states_after_death(
                    rows,
                    num_done,
                    mode=self.mode,
                    ended_before=self._ended,
                    ended_now=ended_now,
                )
            )
            if order is None:
                continue
            self._salvaged.setdefault(batch, []).extend(crew.gather(worker, batch))
            with suppress(WorkerGoneError):
                fault = crew.fault(worker, batch)
                if fault is not None:
                    self._late_errors.setdefault(batch, fault)
            if not is_done:
                unfinished.append((batch, num_done))
        return states, unfinished

    def _repeat(self, worker: int, batch: int, num_done: int) -> None:
        """Have a new worker carry out the rest of an order that its predecessor died over."""
        order = self._pending[batch]
        if order.kind == control.STEP:
            loose = self._loose_actions(batch)
            command = ("step_from", num_done, None if loose is None else loose[worker])
        else:
            command = ("reset", order.seeds, order.options)
        try:
            self._crew.ask(worker, batch, *command)
        except (WorkerGoneError, EnvTimeoutError):
            raise
        except Exception as error:  # raised again when all workers are done
            self._late_errors.setdefault(batch, error)
        self._salvaged.setdefault(batch, []).extend(self._crew.gather(worker, batch))
        self._crew.forget_messages(worker, batch)

    # Reaching single envs.

    def _owner(self, row: int) -> int | None:
        """Return the worker that has a row; None if it is this process's own."""
        if row in self._own_envs:
            return None
        return next(
            worker
            for worker in range(self.shares.num_workers)
            if row in self.shares.all_of_worker(worker)
        )

    def call(
        self, rows: Sequence[int], name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> list[Any]:
        """Call a method of some envs, or read an attribute; return one result per row."""
        by_owner = self._by_owner(rows)
        for worker, theirs in by_owner.items():
            if worker is not None:
                self._crew.tell(worker, 0, "call", theirs, name, arguments, keywords)
        results: dict[int, Any] = {}
        error: Exception | None = None
        for worker, theirs in by_owner.items():
            try:
                if worker is None:
                    for row in theirs:
                        env = self._own_envs[row]
                        results[row] = call_env(env, row, name, arguments, keywords)
                else:
                    results.update(zip(theirs, self._crew.answer(worker, 0), strict=True))
            except (WorkerGoneError, EnvTimeoutError):
                raise
            except Exception as raised:  # raised again when all have answered
                error = error or raised
        if error is not None:
            raise error
        return [results[row] for row in rows]

    def set_attr(self, rows: Sequence[int], name: str, values: Sequence[Any]) -> None:
        """Set an attribute of some envs, one value per row."""
        value_of = dict(zip(rows, values, strict=True))
        for worker, theirs in self._by_owner(rows).items():
            if worker is None:
                for row in theirs:
                    set_env_attr(self._own_envs[row], row, name, value_of[row])
            else:
                self._crew.ask(worker, 0, "set_attr", theirs, name, [value_of[r] for r in theirs])

    def _by_owner(self, rows: Sequence[int]) -> dict[int | None, list[int]]:
        owners: dict[int | None, list[int]] = {}
        for row in rows:
            owners.setdefault(self._owner(row), []).append(row)
        return owners

    def use_mode(self, mode: AutoresetMode) -> None:
        """Reset envs in another way from now on; for a vector env that nobody has reset yet."""
        self.mode = mode
        self._crew.use_mode(mode)
        for group in self._groups:
            group.mode = mode

    # The end.

    def close(self, timeout_s: float) -> None:
        """Close all envs and end all workers, whatever they do."""
        if self._watch is not None:
            self._watch.close()
        errors = self._crew.close(timeout_s)
        errors += self._close_own()
        if self._segment is not None:
            self._segment.close()
        for error in errors:
            logger.error("[VecEnv] An env raised while it was closed", exc_info=error)

    def _close_own(self) -> list[Exception]:
        errors: list[Exception] = []
        for row, env in self._own_envs.items():
            try:
                env.close()
            except Exception as error:  # logged when all are closed
                errors.append(noted(error, row, f"raised by env {row}, in this process"))
        return errors


@contextmanager
def _naming(row: int) -> Iterator[None]:
    """Say of what is raised inside which env it was."""
    try:
        yield
    except Exception as error:  # goes on as it is, and says whose it is
        noted(error, row, f"raised while env {row} was made, in this process")
        raise


def _listed(rows: Sequence[int]) -> str:
    return ", ".join(map(str, rows))
