"""The dashboard beside a running command: its address before, how to open it again afterwards."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from stepladder.cli.inputs.parsing import command_line
from stepladder.errors import ConfigError

PATIENCE_S = 3.0
"""Longest wait for the dashboard's process to end before it is killed."""


def needing_server() -> ModuleType:
    """Return the module that serves the dashboard.

    Raises:
        ConfigError: A package that it needs is not installed.
    """
    try:
        from stepladder.dashboard.server import serving
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("starlette", "uvicorn", "anyio"):
            raise
        raise ConfigError(
            f"the dashboard needs the package {package}, which is not installed. "
            "Install it with: pip install 'stepladder[dashboard]'"
        ) from error
    return serving


@contextmanager
def dashboard_beside(folder: Path | None, is_wanted: bool) -> Iterator[None]:
    """Serve a folder while the block runs, if wanted, and print the address to standard error."""
    if not is_wanted or folder is None:
        yield
        return
    serving = needing_server()
    with serving.open_socket("127.0.0.1", None) as listener:
        number = listener.fileno()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        child = subprocess.Popen(
            [sys.executable, "-m", "stepladder.dashboard.server.child", str(number), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(number,),
            # Ctrl-C in the terminal is for the command, which then ends this process.
            start_new_session=True,
        )
    print(f"dashboard: {address}", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        _end(child)
        again = command_line("dashboard", folder)
        print(f"the dashboard has ended; open it again: {again}", file=sys.stderr, flush=True)


def _end(child: "subprocess.Popen[bytes]") -> None:
    assert child.stdin is not None
    child.stdin.close()
    try:
        child.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
