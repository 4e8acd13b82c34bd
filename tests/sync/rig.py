"""Hosts and clients wired up in every way there is, for the tests of `sync`.

A rig has a host in this process and one client per env: here, or in worker processes that do what
they are told over a pipe. `play` drives any rig by the same script and checks every collection
against a plain model, so that a backend is right if it passes, and all are alike if their traces
are.
"""

import multiprocessing
import os
import pickle
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np

from stepladder.curricula import Mixing, Staged, Uniform
from stepladder.curricula.base import Curriculum
from stepladder.errors import StepladderError
from stepladder.plans.record import Draw, Record
from stepladder.saving.snapshot import Snapshot
from stepladder.sync import Client, EpisodeCounts, Host, PushedHost
from stepladder.sync.registry import BACKENDS as HOSTS
from stepladder.tasks import ListSource, Task

TIMEOUT_S = 30.0
"""How long a worker may take for one answer."""

IN_PROCESS = ("local", "shared", "pushed")
IN_WORKERS = ("shared-fork", "shared-forkserver", "shared-spawn", "pushed-fork")
BACKENDS = IN_PROCESS + IN_WORKERS

STAGES = ("easy", "medium", "hard")


# Curricula.


def make_staged(seed: int = 3, **settings: Any) -> Staged:
    """Three stages that are passed quickly; one task of each stage cannot be built."""
    tasks = [
        Task(f"{stage}/{index}", stage, {"broken": index == 3})
        for stage in STAGES
        for index in range(4)
    ]
    quick: dict[str, Any] = {
        "check_interval_episodes": 3,
        "early": None,
        "min_episodes": 6,
        "mixing": Mixing(min_results=2),
        "threshold": 0.4,
        "window_episodes": 6,
    }
    return Staged(tasks, seed=seed, stages=STAGES, **{**quick, **settings})


def make_crowded(seed: int = 3) -> Uniform:
    """Few slots and many tasks: those that cannot be built are replaced."""
    tasks = [Task(f"task{index}", params={"broken": index % 5 == 0}) for index in range(60)]
    return Uniform(tasks, seed=seed, capacity=8)


CURRICULA: dict[str, Callable[[], Curriculum]] = {"staged": make_staged, "crowded": make_crowded}


def numbered(count: int, seed: int = 3) -> Uniform:
    """Return a uniform curriculum over so many tasks."""
    return Uniform(ListSource.numbered(count), seed=seed)


# Worker processes.


def serve(pipe: Connection, clients: Sequence[Client] = ()) -> None:
    """Do with some clients what the pipe says, until nobody is there to say anything."""
    parent = os.getppid()
    while True:
        while not pipe.poll(0.25):
            if os.getppid() != parent:
                return
        try:
            kind, *request = pipe.recv()
        except EOFError:
            return
        if kind == "connect":
            clients = request[0]
            pipe.send(("done", None))
            continue
        try:
            pipe.send(("done", _answer(clients, kind, *request)))
        except StepladderError as error:
            pipe.send(("raised", error))


def _answer(clients: Sequence[Client], kind: str, *request: Any) -> Any:
    if kind == "call":
        index, method, args, settings = request
        return getattr(clients[index], method)(*args, **settings)
    if kind == "all":
        method, args = request
        return [getattr(client, method)(*args) for client in clients]
    function, args = request
    return function(clients, *args)


class Workers:
    """Processes that run `serve`, each with a pipe to it."""

    def __init__(self, method: str, shares: Sequence[Sequence[Client]]):
        context: Any = multiprocessing.get_context(method)
        if method == "forkserver":
            context.set_forkserver_preload(["stepladder.sync"])
        self.pipes: list[Connection] = []
        self.processes: list[BaseProcess] = []
        try:
            for clients in shares:
                here, there = context.Pipe()
                process = context.Process(target=serve, args=(there, clients), daemon=True)
                process.start()
                there.close()
                self.pipes.append(here)
                self.processes.append(process)
        except BaseException:
            self.close()
            raise

    def tell(self, worker: int, *request: Any) -> None:
        self.pipes[worker].send(request)

    def has_answer(self, worker: int) -> bool:
        return self.pipes[worker].poll(0)

    def answer(self, worker: int) -> Any:
        if not self.pipes[worker].poll(TIMEOUT_S):
            raise AssertionError(f"worker {worker} has not answered for {TIMEOUT_S} s")
        outcome, value = self.pipes[worker].recv()
        if outcome == "raised":
            raise value
        return value

    def ask(self, worker: int, *request: Any) -> Any:
        self.tell(worker, *request)
        return self.answer(worker)

    def call_all(self, method: str, *args: Any) -> list[Any]:
        for worker in range(len(self.pipes)):
            self.tell(worker, "all", method, args)
        return [answer for worker in range(len(self.pipes)) for answer in self.answer(worker)]

    def close(self) -> None:
        for process in self.processes:
            end(process)
        for pipe in self.pipes:
            pipe.close()


class RemoteClient:
    """Looks like a client; the real one is in a worker."""

    def __init__(self, workers: Workers, worker: int, index: int):
        self._workers, self._worker, self._index = workers, worker, index

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def call(*args: Any, **settings: Any) -> Any:
            return self._workers.ask(self._worker, "call", self._index, method, args, settings)

        return call


def end(process: BaseProcess) -> None:
    """Kill a process and wait for it."""
    if process.pid is not None:
        process.kill()
        process.join(TIMEOUT_S)


@contextmanager
def forked(target: Callable[..., None], *args: Any) -> Iterator[tuple[BaseProcess, Connection]]:
    """Run a function in a forked process for the length of a ``with`` block.

    It gets one end of a pipe and the arguments; the block gets the process and the other end.
    """
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    # Not a daemon: it may have workers of its own.
    process = context.Process(target=target, args=(there, *args))
    process.start()
    there.close()
    try:
        yield process, here
    finally:
        end(process)
        here.close()


def receive(pipe: Connection) -> Any:
    """Return what comes out of a pipe, or fail."""
    assert pipe.poll(TIMEOUT_S), f"nothing has come for {TIMEOUT_S} s"
    return pipe.recv()


def patiently() -> Iterator[None]:
    """Let a loop go on for a while, then fail."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        yield
    raise AssertionError(f"a loop has not come to an end in {TIMEOUT_S} s")


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    """Wait until something is so, or fail."""
    deadline = time.monotonic() + TIMEOUT_S
    while not is_so():
        assert time.monotonic() < deadline, f"{what} has not come about in {TIMEOUT_S} s"
        time.sleep(1e-3)


def kill_self() -> None:
    """Die as by ``kill -9``."""
    os.kill(os.getpid(), signal.SIGKILL)


# What workers are told to run.


def play_freely(clients: Sequence[Client], num_episodes: int, seed: int) -> list[list[Any]]:
    """Play without waiting for anybody; return per env what became of each draw."""
    rng = np.random.default_rng([seed, clients[0].env_index])
    lives: list[list[Any]] = [[] for _ in clients]
    for _ in range(num_episodes):
        for client, life in zip(clients, lives, strict=True):
            draw, chance = client.draw(), rng.random()
            if chance < 0.1:
                life.append(("left", draw))
            elif chance < 0.15:
                client.fail(f"{draw.env_index}/{draw.episode_index}")
                life.append(("failed", draw))
            else:
                client.finish(success=chance, episode_return=float(draw.seed % 1000))
                life.append(("finished", draw))
    return lives


def watch(
    clients: Sequence[Client], num_draws: int, num_versions: int
) -> tuple[set[Any], set[Any], int]:
    """Draw and read while the plan is being changed; return each different thing seen.

    Goes on for at least so many draws, and until so many versions were met; on a busy machine the
    two sides may long take turns instead of running side by side.
    """
    drawn: set[Any] = set()
    read: set[Any] = set()
    versions: set[int] = set()
    deadline = time.monotonic() + TIMEOUT_S / 5
    number, last_version = 0, -1
    while number < num_draws or (len(versions) < num_versions and time.monotonic() < deadline):
        client = clients[number % len(clients)]
        number += 1
        draw = client.draw()
        if number % 100 == 0:
            if draw.plan_version == last_version:
                # Perhaps the writer waits for this very core.
                time.sleep(1e-5)
            last_version = draw.plan_version
        versions.add(draw.plan_version)
        drawn.add((draw.plan_version, tuple(client._dials.tolist()), draw.slot))
        if number % 3 == 0:
            version, dials = client._read()
            read.add((version, tuple(dials.tolist())))
    return drawn, read, number


# Rigs.


@dataclass
class Rig:
    """A host and one client per env."""

    host: Host
    clients: list[Any]
    workers: Workers | None = None


@contextmanager
def rig(
    backend: str,
    curriculum: Curriculum,
    num_envs: int,
    *,
    num_workers: int = 2,
    max_failed_share: float = 1.0,
) -> Iterator[Rig]:
    """Connect a curriculum to clients by one of `BACKENDS`; all is gone at the end."""
    kind, _, method = backend.partition("-")
    with HOSTS[kind](curriculum, num_envs, max_failed_share=max_failed_share) as host:
        clients: list[Any] = host.clients()
        if not method:
            if isinstance(host, PushedHost):
                clients = [through_pickle(client) for client in clients]
                host.call = calling(clients)
            yield Rig(host, clients)
            return
        bounds = np.linspace(0, num_envs, num_workers + 1).astype(int)
        shares = [clients[a:b] for a, b in pairwise(bounds)]
        with _staffed(method, shares) as workers:
            if isinstance(host, PushedHost):
                host.call = workers.call_all
            try:
                yield Rig(host, remote_clients(workers, shares), workers)
                if not host.is_closed:
                    host.close()
            finally:
                if isinstance(host, PushedHost):
                    host.call = None


def remote_clients(workers: Workers, shares: Sequence[Sequence[Client]]) -> list[Any]:
    """Return a stand-in for every client, in env order."""
    return [
        RemoteClient(workers, worker, index)
        for worker, share in enumerate(shares)
        for index in range(len(share))
    ]


_standing: dict[tuple[str, int], Workers] = {}
"""Workers that take a second to start are kept for the next rig."""


@contextmanager
def _staffed(method: str, shares: Sequence[Sequence[Client]]) -> Iterator[Workers]:
    if method == "fork":
        # Each rig has its own: what a fork inherits is what is to be tested.
        workers = Workers(method, shares)
        try:
            yield workers
        finally:
            workers.close()
        return
    key = (method, len(shares))
    if key not in _standing:
        _standing[key] = Workers(method, [()] * len(shares))
    workers = _standing[key]
    try:
        for worker, clients in enumerate(shares):
            workers.ask(worker, "connect", list(clients))
        yield workers
    except BaseException:
        # An answer may still be under way to somebody who no longer waits for it.
        _standing.pop(key).close()
        raise


def dismiss() -> None:
    """End all workers that were kept."""
    while _standing:
        _standing.popitem()[1].close()


def calling(clients: Sequence[Any]) -> Callable[..., list[Any]]:
    """Return what a vector env's ``env_method`` is: everything travels as bytes."""

    def call(method: str, *args: Any) -> list[Any]:
        return [
            through_pickle(getattr(client, method)(*through_pickle(args))) for client in clients
        ]

    return call


def through_pickle(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


# Playing.


@dataclass
class Trace:
    """All that was drawn and all that was collected, in order."""

    draws: list[Draw] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    counts: EpisodeCounts | None = None
    lags: tuple[int, ...] = ()


@dataclass
class Script:
    """Plays all envs in lock-step by chance, and says what the host must find.

    Every env has an episode or none. What it does in a step depends on the script's seed, the step
    and the env, not on when the episode began, so that a script can be taken up in the middle.
    """

    curriculum: Curriculum
    seed: int
    num_envs: int
    trace: Trace = field(default_factory=Trace)

    def __post_init__(self) -> None:
        self.playing: list[Draw | None] = [None] * self.num_envs
        self.posted: list[list[Record]] = [[] for _ in range(self.num_envs)]
        self.observed_before = self.curriculum.num_observed
        self.started = self.finished = self.aborted = self.failed = 0
        self.reported_failures = 0

    def step(self, rig: Rig, number: int) -> None:
        """Let every env do something, then perhaps collect."""
        rng = np.random.default_rng([self.seed, number])
        chances = rng.random((self.num_envs, 2))
        for env_index, (what, how) in enumerate(chances.tolist()):
            self._act(rig.clients[env_index], env_index, what, how)
        if rng.random() < 0.8:
            self.collect(rig.host)

    def _act(self, client: Any, env_index: int, what: float, how: float) -> None:
        draw = self.playing[env_index]
        if draw is None or what < 0.1:
            self._begin(client, env_index, how)
        elif what < 0.5:
            numbers = {
                "success": draw.seed % 3 / 2,
                "episode_return": how,
                "length": 1 + int(9 * how),
            }
            client.finish(**numbers, truncated=how < 0.3)
            self.posted[env_index].append(Record.of(draw, **numbers, truncated=how < 0.3))
            self.playing[env_index] = None
        elif what < 0.55:
            client.abort()
            self.aborted += 1
            self.playing[env_index] = None

    def _begin(self, client: Any, env_index: int, how: float) -> None:
        self.aborted += self.playing[env_index] is not None
        draw = client.draw()
        self.trace.draws.append(draw)
        self.started += 1
        self.playing[env_index] = draw
        if self.curriculum.pool.source.get(draw.task_id).params.get("broken"):
            client.fail(f"env {env_index} cannot build task {draw.task_id}")
            self.reported_failures += 1
            self.playing[env_index] = None
        elif how < 0.05:
            client.skip()
            self.started -= 1
            self.playing[env_index] = None

    def collect(self, host: Host) -> None:
        """Collect, and compare with what was reported since the last time."""
        expected = [record for posted in self.posted for record in posted]
        collected = [Record(*row) for row in host.collect().tolist()]
        assert collected == expected
        self.trace.records += collected
        self.finished += len(expected)
        self.failed, self.reported_failures = self.failed + self.reported_failures, 0
        self.posted = [[] for _ in range(self.num_envs)]
        counts = host.counts
        num_playing = sum(draw is not None for draw in self.playing)
        assert counts == EpisodeCounts(
            self.started, self.finished, self.aborted, self.failed, num_playing
        )
        assert counts.started == counts.finished + counts.aborted + counts.failed + counts.in_flight
        assert self.curriculum.num_observed == self.observed_before + self.finished
        self.trace.counts, self.trace.lags = counts, host.staleness.draws_by_lag


def play(rig: Rig, curriculum: Curriculum, num_steps: int, seed: int = 11) -> Trace:
    """Play all envs of a rig by a script; return what came of it."""
    script = Script(curriculum, seed, len(rig.clients))
    for number in range(num_steps):
        script.step(rig, number)
    script.collect(rig.host)
    return script.trace


# Comparing.


def assert_same_snapshot(first: Snapshot, second: Snapshot) -> None:
    """Fail unless two snapshots are alike bit for bit."""
    assert first.state == second.state
    assert first.arrays.keys() == second.arrays.keys()
    for name, array in first.arrays.items():
        assert array.dtype == second.arrays[name].dtype
        np.testing.assert_array_equal(array, second.arrays[name], err_msg=name)


def open_descriptors() -> int:
    """Return how many file descriptors this process has."""
    return len(list(Path("/proc/self/fd").iterdir()))


def num_mapped() -> int:
    """Return how many of our segments this process maps."""
    return Path("/proc/self/maps").read_text().count("memfd:stepladder")
