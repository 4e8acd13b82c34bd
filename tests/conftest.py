"""What every test may rely on, and the command that those of the commands ask for."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.command_line import CommandLine


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


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> CommandLine:
    """Give commands to run, in an empty folder and a terminal of 80 columns that is none."""
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
