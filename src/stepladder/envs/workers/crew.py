"""All workers of a vector env: started, given orders, waited for, replaced, ended.

The parent's side of `control`. Knows processes and lanes, and nothing of what rows mean: that is
`ensemble` and, when a worker has died, `revival`.
"""

import logging
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing import util
from multiprocessing.context import BaseContext
from typing import Any

from gymnasium.vector import AutoresetMode

from stepladder.compiled import direct
from stepladder.envs.workers import control
from stepladder.envs.workers.faults import Fault, unpack_fault
from stepladder.envs.workers.hand import LOOK_S, Hand, WorkerGoneError
from stepladder.envs.workers.memory import Memory
from stepladder.envs.workers.messages import Message, read_messages
from stepladder.envs.workers.shares import Shares
from stepladder.envs.workers.spinning import Patience
from stepladder.envs.workers.starting import (
    await_envs,
    died_early,
    killed_before_it_began,
    killed_over,
    start_worker,
)
from stepladder.envs.workers.watch import ProgressClock
from stepladder.envs.workers.worker import Assignment, Attachment, EnvFunctions
from stepladder.errors import EnvTimeoutError, WorkerDiedError
from stepladder.sync.segment import Ticket

logger = logging.getLogger("stepladder.envs")

CLOSE_S = 5.0
"""How long all workers together may take to end by themselves."""


class Crew:
    """The worker processes of one vector env.

    Args:
        env_functions: One per row of the vector env.
        shares: Which rows each worker has.
        mode: When an env that has ended is reset.
        start_method: How processes are made; None is the platform's way.
        may_spin: Whether there is a core for each of those who might spin.
        timeout_s: How long one env may take over a step or reset.
    """

    def __init__(
        self,
        env_functions: Sequence[Callable[[], Any]],
        shares: Shares,
        *,
        mode: AutoresetMode,
        start_method: str | None,
        may_spin: bool,
        timeout_s: float | None,
    ):
        self.shares = shares
        self.timeout_s = timeout_s
        self._env_functions = env_functions
        self.mode = mode
        self._may_spin = may_spin
        self._context: BaseContext = multiprocessing.get_context(start_method)
        self._patience = Patience(may_spin)
        self._number = 0
        self.hands: list[Hand] = []
        # Also if nobody closes us, and before Python waits for processes that nobody has ended.
        self._end = util.Finalize(self, _end_all, args=(self.hands,), exitpriority=10)

    # Starting.

    def start(self) -> None:
        """Start all workers; whatever comes of it, `close` or `abandon` ends them."""
        if self.shares.num_workers:
            # Here and not once more in every worker.
            control.prepare()
        for worker in range(self.shares.num_workers):
            self.hands.append(Hand(worker))
            self._start(self.hands[worker])

    def _start(self, hand: Hand) -> None:
        worker = hand.worker_index
        rows = [self.shares.of_worker(worker, batch) for batch in range(self.shares.num_batches)]
        start_worker(
            hand,
            self._context,
            Assignment(
                worker_index=worker,
                env_functions=EnvFunctions(
                    [self._env_functions[row] for part in rows for row in part]
                ),
                first_rows=tuple(part.start for part in rows),
                sizes=tuple(len(part) for part in rows),
                mode=self.mode,
                may_spin=self._may_spin,
                parent_pid=os.getpid(),
                made_by_main_thread=threading.current_thread() is threading.main_thread(),
            ),
            self.timeout_s,
        )

    def descriptions(self, worker: int) -> list[dict[str, Any]]:
        """Return what a worker has found its envs to be; waits until they are built.

        Raises:
            WorkerDiedError: It has died over it.
        """
        hand, rows = self.hands[worker], self.shares.all_of_worker(worker)
        try:
            return await_envs(hand, rows, self.timeout_s)
        except WorkerGoneError:
            raise died_early(hand, rows) from None

    def attach(self, memory: Memory, ticket: Ticket) -> None:
        """Show all workers where the memory is."""
        self.memory = memory
        self._ticket = ticket
        words = memory.words
        self._give = direct(control.give, words, 0, 0, 0, 0)
        self._have_spoken = direct(control.have_spoken, words, 0, 0, 0)
        self._await_done = direct(control.await_done, words, 0, 0, 0, 0)
        for hand in self.hands:
            try:
                self._attach_one(hand)
                hand.is_ready = True
            except WorkerGoneError as error:
                raise WorkerDiedError(
                    f"worker {hand.worker_index} ended before it was asked for anything "
                    f"({hand.exit_reason}); its error output may say why. Make a new vector env."
                ) from error

    def _attach_one(self, hand: Hand) -> None:
        hand.send(Attachment(self._ticket, self.memory.layout))

    def replace(self, worker: int) -> None:
        """Start a worker anew in the place of one that has died; its lanes are empty then.

        Raises:
            WorkerGoneError: It has died over making its envs.
        """
        self.hands[worker].end()
        for batch in range(self.shares.num_batches):
            lane = self.lane(worker, batch)
            self.memory.words[lane : lane + control.LANE_WORDS] = 0
            self.memory.words[lane + control.PROGRESS] = control.NOT_BEGUN
        # Known before it is started: Ctrl-C must not leave a worker that nobody ends.
        hand = self.hands[worker] = Hand(worker)
        self._start(hand)
        await_envs(hand, self.shares.all_of_worker(worker), self.timeout_s)
        self._attach_one(hand)

    # Orders.

    def lane(self, worker: int, batch: int) -> int:
        """Return where the words of a lane begin."""
        return (worker * self.shares.num_batches + batch) * control.LANE_WORDS

    def give(self, kind: int, batch: int, objects: list[Any] | None = None) -> None:
        """Give an order to all workers.

        Args:
            kind: What to do.
            batch: With which rows.
            objects: Per worker what belongs to the order and lies in no array, if anything does.
        """
        self._number += 1
        order = self._number * control.KINDS + kind
        shares = self.shares
        together = [] if objects is None else zip(self.hands, objects, strict=True)
        parts = [hand.packed(order, values) for hand, values in together]
        for hand in self.hands[: len(parts)]:
            hand.is_cut_off = True
        asleep = self._give(self.memory.words, shares.num_workers, shares.num_batches, batch, order)
        if objects is not None:
            for hand, part in zip(self.hands, parts, strict=True):
                self._try(hand.send_bytes, part)
        elif asleep:
            for hand in self.hands:
                if self.memory.words[self.lane(hand.worker_index, 0) + control.WORKER_SLEEPS]:
                    self._try(hand.ring)

    @staticmethod
    def _try(send: Callable[..., None], *values: Any) -> None:
        """Send to a worker that may be gone: whoever waits for it will notice."""
        try:
            send(*values)
        except WorkerGoneError as gone:
            logger.debug("worker %d is gone", gone.worker_index)

    def is_done(self, worker: int, batch: int) -> bool:
        """Whether a worker has no order of this batch left."""
        lane, words = self.lane(worker, batch), self.memory.words
        return bool(words[lane + control.DONE] == words[lane + control.ORDER])

    def wait(self, batch: int) -> None:
        """Wait until all workers have carried out their order.

        Raises:
            WorkerGoneError: One has died before it had.
            EnvTimeoutError: An env hangs; its worker has been killed.
        """
        words, shares, patience = self.memory.words, self.shares, self._patience
        num_workers, num_batches = shares.num_workers, shares.num_batches
        patience.begin()
        while True:
            worker = self._await_done(words, num_workers, num_batches, batch, patience.spins)
            if worker == control.NOBODY:
                return
            if not patience.go_on():
                self._sleep_until_done(self.hands[worker], batch)

    def _sleep_until_done(self, hand: Hand, batch: int) -> None:
        """Wait in the kernel until a worker has carried out its order."""
        words, lane = self.memory.words, self.lane(hand.worker_index, batch)
        clock = self._clock(hand.worker_index, batch)
        control.say_asleep(words, lane + control.PARENT_SLEEPS, 1)
        try:
            while not self.is_done(hand.worker_index, batch):
                if not hand.pump(LOOK_S) and clock.is_over():
                    raise self._give_up(hand, batch)
        finally:
            control.say_asleep(words, lane + control.PARENT_SLEEPS, 0)

    def _clock(self, worker: int, batch: int) -> ProgressClock:
        lane, words = self.lane(worker, batch), self.memory.words
        return ProgressClock(self.timeout_s, lambda: int(words[lane + control.PROGRESS]))

    def _give_up(self, hand: Hand, batch: int) -> EnvTimeoutError:
        """Kill a worker whose env hangs; return what to say about it."""
        assert self.timeout_s is not None
        progress = int(self.memory.words[self.lane(hand.worker_index, batch) + control.PROGRESS])
        rows = self.shares.of_worker(hand.worker_index, batch)
        if progress == control.NOT_BEGUN:
            return killed_before_it_began(hand, rows, self.timeout_s)
        return killed_over(hand, rows.start + progress, self.timeout_s)

    def have_spoken(self, batch: int) -> bool:
        """Whether there is anything to gather from any worker."""
        shares = self.shares
        return self._have_spoken(self.memory.words, shares.num_workers, shares.num_batches, batch)

    def gather(self, worker: int, batch: int) -> list[Message]:
        """Return what a worker has said while it carried out its order.

        Also that of a worker that has died: what it has said is still there.
        """
        hand, lane, words = self.hands[worker], self.lane(worker, batch), self.memory.words
        number = worker * self.shares.num_batches + batch
        num_bytes = int(words[lane + control.MESSAGE_BYTES])
        num_overflows = int(words[lane + control.NUM_OVERFLOWS])
        messages = list(read_messages(self.memory.messages[number], num_bytes))
        if num_overflows:
            messages += hand.overflows(int(words[lane + control.ORDER]), num_overflows)
            messages.sort(key=lambda message: message[1])
        return messages

    def forget_messages(self, worker: int, batch: int) -> None:
        """Do not let what has been gathered be gathered again."""
        lane = self.lane(worker, batch)
        self.memory.words[lane + control.MESSAGE_BYTES] = 0
        self.memory.words[lane + control.NUM_OVERFLOWS] = 0

    def fault(self, worker: int, batch: int) -> Exception | None:
        """Return what an env has raised, if one has."""
        if not self.memory.words[self.lane(worker, batch) + control.HAS_FAILED]:
            return None
        return unpack_fault(self._reply(worker, batch), self.hands[worker].pid)

    # Commands.

    def tell(self, worker: int, batch: int, name: str, *arguments: Any) -> None:
        """Give one worker a command; `answer` takes what comes back."""
        self._number += 1
        order = self._number * control.KINDS + control.ASK
        # First, for it may fail; and an order without its command leaves a worker waiting.
        hand = self.hands[worker]
        command = hand.packed(order, (name, *arguments))
        hand.is_cut_off = True
        control.give_one(self.memory.words, self.lane(worker, batch), order)
        hand.send_bytes(command)

    def answer(self, worker: int, batch: int) -> Any:
        """Return the answer to a command.

        Raises:
            WorkerGoneError: The worker has died over it.
            EnvTimeoutError: It has taken too long; it has been killed.
            Exception: Whatever an env has raised.
        """
        reply, hand = self._reply(worker, batch), self.hands[worker]
        if isinstance(reply, Fault):
            self.memory.words[self.lane(worker, batch) + control.HAS_FAILED] = 0
            raise unpack_fault(reply, hand.pid)
        return reply

    def _reply(self, worker: int, batch: int) -> Any:
        """Wait for the reply to the present order of a lane, as long as there is progress."""
        hand = self.hands[worker]
        order = int(self.memory.words[self.lane(worker, batch) + control.ORDER])
        clock = self._clock(worker, batch)
        while not hand.has_replied(order):
            if not hand.pump(LOOK_S) and clock.is_over():
                raise self._give_up(hand, batch)
        return hand.take_reply(order)

    def ask(self, worker: int, batch: int, name: str, *arguments: Any) -> Any:
        """Give one worker a command and return its answer."""
        self.tell(worker, batch, name, *arguments)
        return self.answer(worker, batch)

    def use_mode(self, mode: AutoresetMode) -> None:
        """Have all workers, those started later too, reset their envs in another way."""
        self.mode = mode
        for hand in self.hands:
            self.ask(hand.worker_index, 0, "use_mode", mode)

    def settle(self) -> None:
        """Wait for what was begun and never waited for, and forget it."""
        for batch in range(self.shares.num_batches):
            for hand in self.hands:
                if hand.is_alive() and not self.is_done(hand.worker_index, batch):
                    try:
                        # Whoever was interrupted may not have come to wake it.
                        hand.ring()
                        self._sleep_until_done(hand, batch)
                    except WorkerGoneError:
                        logger.debug("worker %d is gone", hand.worker_index)
        for hand in self.hands:
            hand.forget()

    # The end.

    def close(self, timeout_s: float = CLOSE_S) -> list[Exception]:
        """End all workers, whatever they do; return what their envs raised while they were closed.

        Args:
            timeout_s: How long they may take to end by themselves, all together.
        """
        deadline = time.monotonic() + timeout_s
        errors: list[Exception] = []
        # One that Ctrl-C has kept from getting ready would not understand it.
        ready = [hand for hand in self.hands if hand.is_ready and hand.is_alive()]
        told = [hand for hand in ready if self._tell_to_close(hand)]
        for hand in told:
            faults = self._last_reply(hand, deadline)
            errors += [unpack_fault(fault, hand.pid) for fault in faults]
        for hand in told:
            hand.process.join(timeout=max(0.1, deadline - time.monotonic()))
        self.abandon()
        return errors

    def _last_reply(self, hand: Hand, deadline: float) -> list[Fault]:
        """Return what a worker's envs raised while they were closed, if it says so in time."""
        order = int(self.memory.words[self.lane(hand.worker_index, 0) + control.ORDER])
        try:
            while not hand.has_replied(order):
                left = deadline - time.monotonic()
                if not hand.pump(max(0.0, min(LOOK_S, left))) and left <= 0:
                    logger.warning(
                        "[VecEnv] Worker %d did not close its envs in time and is killed.",
                        hand.worker_index,
                    )
                    return []
        except WorkerGoneError:
            return []
        return hand.take_reply(order)

    def abandon(self) -> None:
        """End all workers at once; may be called again, if Ctrl-C has broken it off."""
        _end_all(self.hands)
        self._end.cancel()

    def _tell_to_close(self, hand: Hand) -> bool:
        hand.forget()
        try:
            self.tell(hand.worker_index, 0, "close")
        except WorkerGoneError:
            return False
        return True


def _end_all(hands: list[Hand]) -> None:
    """End all processes that are left, and let go of them and of their pipes."""
    for hand in hands:
        if hand.pid is not None:
            hand.process.kill()
    for hand in hands:
        hand.end()
