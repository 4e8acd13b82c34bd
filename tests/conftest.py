"""What every test may rely on, and the command that those of the commands ask for."""

import compileall
import gc
import logging
import math
import multiprocessing
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import stepladder

if TYPE_CHECKING:
    from cli.command_line import CommandLine

# Read by PyTorch when it is imported, also in processes that tests start. Over networks as small as
# theirs more threads only wait for each other, which on two cores took longer than the rest.
os.environ.setdefault("OMP_NUM_THREADS", "1")


pytest_plugins = ("cluster.ray_cluster",)
"""A fixture of one folder, which is no conftest of it: two of that name cannot be doctested."""

SEES_THE_MACHINE = (
    "tests/envs/workers/test_worker_faults.py",
    "tests/envs/workers/test_worker_resources.py",
    "tests/envs/workers/test_worker_soak.py",
    "tests/sync/test_segment.py",
)
"""Files that look at what the whole machine shares: shared memory with a name, who holds it."""

OVER_RAY = (
    "tests/cluster/test_ray_channel.py",
    "tests/cluster/test_ray_trainings.py",
    "tests/cluster/test_rllib.py",
)
"""Files that each start a cluster, one after the other: Ray keeps one address per machine."""

COMPILES_FIRST = ("tests/contracts/test_curriculum_contract.py", "tests/sync/test_host.py")
"""Files whose kernels the others need: ten workers would compile one of them ten times at once."""

SECONDS = {"soak": 15.0, "ray": 12.0, "slow": 1.0, "processes": 0.8, "browser": 0.8}
"""About how long a test with a marker takes; others take a hundredth of a second."""

LONG_FILES = {
    "tests/fuzz/test_fuzz.py": 12.0,
    "tests/sync/test_interrupted_collection.py": 2.0,
    "tests/test_invariants.py": 2.0,
}
"""About how long a test takes in files whose tests take longer than their markers say."""


def scope_of(nodeid: str) -> str:
    """Return what a test shares a process of pytest-xdist with: fixtures and kernels of its file.

    Files that would disturb each other are kept together in the same way.
    """
    file = nodeid.partition("::")[0]
    if file in OVER_RAY:
        return "a cluster"
    return "the machine" if file in SEES_THE_MACHINE else file


def pytest_configure() -> None:
    """Keep the files of tests in memory where there is room: thousands wait for the disk else."""
    memory = Path("/dev/shm")
    if memory.is_dir() and os.access(memory, os.W_OK | os.X_OK):
        room = os.statvfs(memory)
        if room.f_bavail * room.f_frsize >= 4 * 2**30:
            os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let one process begin with the first file and all others with the last.

    The first ones, after some that compile, are those whose tests start processes, so those rarely
    run two at a time. Where they meet only short files are left: all end at about the same time.
    """
    from scheduling import FromBothEnds

    config.option.loadscopereorder = False
    return FromBothEnds(config, log, scope_of)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order files for pytest-xdist: long ones at both ends, those with processes at the first."""
    if not hasattr(config, "workerinput"):
        return
    with_processes: Counter[str] = Counter()
    without: Counter[str] = Counter()
    for item in items:
        names = {mark.name for mark in item.iter_markers()}
        usual = max([SECONDS.get(name, 0.01) for name in names], default=0.01)
        seconds = LONG_FILES.get(scope_of(item.nodeid), usual)
        one_of = with_processes if names & {"processes", "browser", "ray"} else without
        one_of[scope_of(item.nodeid)] += seconds

    def place(item: pytest.Item) -> tuple[float, str]:
        scope = scope_of(item.nodeid)
        if scope in COMPILES_FIRST:
            return -math.inf, scope
        length = with_processes[scope] + without[scope]
        return -length if with_processes[scope] > without[scope] else length, scope

    items.sort(key=place)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect tests without looking for cycles: that takes a third of the time, and finds none."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Make processes cheap to start: by now some hundred megabytes have been imported.

    What the collector no longer visits stays shared with forked workers. The server that forks
    workers imports once what each of them would import by itself. Where Python may not write
    bytecode, each of some hundred processes would compile the library again.
    """
    # pytest adds its handlers to every logger that passes nothing on, six times per test.
    for name, logger in logging.root.manager.loggerDict.items():
        if name.startswith("torch") and isinstance(logger, logging.Logger):
            logger.propagate = True
    compileall.compile_dir(Path(stepladder.__file__).parent, quiet=2)
    gc.collect()
    gc.freeze()
    # Looking for cycles takes a tenth of the time to compile a kernel.
    gc.set_threshold(20_000, 20, 20)
    loaded = [name for name in ("stable_baselines3", "stepladder.envs") if name in sys.modules]
    multiprocessing.set_forkserver_preload(["__main__", *loaded])


@pytest.fixture(autouse=True)
def ctrl_c_works() -> Iterator[None]:
    """Heed Ctrl-C, also when the suite runs in the background, where shells switch it off.

    Processes that a test starts inherit this.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def no_unasked_workers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``num_workers="auto"`` find one core, except in tests that are marked ``processes``.

    Otherwise each small training would first start workers, only to find that they do not pay.
    """
    if request.node.get_closest_marker("processes") is None:
        monkeypatch.setattr("stepladder.envs.workers.worker_count.usable_cores", lambda: 1)


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> "CommandLine":
    """Give commands to run, in an empty folder and a terminal of 80 columns that is none."""
    from cli.command_line import CommandLine

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return CommandLine(capsys)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Let torch compute in one thread: networks of tests are too small for more.

    Where other processes want the cores too, threads that wait for each other take far longer.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
