"""Serve the dashboard: an address that is free, a server that ends at Ctrl-C.

Between the command and the app. The socket is opened here, before anything is served, so that an
address that cannot be had is an error in one line.
"""

import secrets
import socket
import threading
from collections.abc import Sequence
from pathlib import Path

import uvicorn

from stepladder.dashboard.run_index import RunIndex
from stepladder.dashboard.server.app import make_app
from stepladder.dashboard.server.guard import LOOPBACK, Access
from stepladder.errors import ConfigError

USUAL_PORT, NUM_TRIED = 7717, 20
"""The first port that is tried unless one is asked for, and how many."""

_ANY = ("0.0.0.0", "::", "")
_LOCAL = ("127.0.0.1", "localhost", "::1")


def open_socket(host: str, port: int | None) -> socket.socket:
    """Listen at an address; without a port, at the first that is free.

    Raises:
        ConfigError: The host is unknown, or the port is taken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    ports = [port] if port is not None else [*range(USUAL_PORT, USUAL_PORT + NUM_TRIED), 0]
    reason = ""
    for tried in ports:
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, tried))
            listener.listen(128)
        except (OSError, UnicodeError) as error:
            listener.close()
            reason = getattr(error, "strerror", None) or str(error)
        else:
            listener.setblocking(False)
            return listener
    where = f"{host}:{port}" if port is not None else host
    fix = "--host" if port is None else "--port, or leave it out"
    raise ConfigError(f"the dashboard cannot listen at {where} ({reason}). Choose another {fix}.")


class DashboardServer:
    """A dashboard at an address.

    Args:
        folders: Folders of runs, and folders that hold runs.
        host: The address of this machine to listen at. Others than loopback need a token, which is
            made here and is part of `address`.
        port: The port; None takes one that is free.
        listener: A socket that listens already, in place of host and port.
        missing_ok: Whether folders may come later.
    """

    def __init__(
        self,
        folders: Sequence[Path | str],
        host: str = "127.0.0.1",
        port: int | None = None,
        listener: socket.socket | None = None,
        missing_ok: bool = False,
    ):
        is_local = host in _LOCAL
        self.index = RunIndex(folders, missing_ok)
        self.listener = listener or open_socket(host, port)
        self.token = None if is_local else secrets.token_urlsafe(16)
        self._stopping = threading.Event()
        shown = f"[{host}]" if ":" in host else host
        if is_local:
            hosts = LOOPBACK
        else:
            hosts = () if host in _ANY else (shown.lower(),)
            shown = socket.gethostname() if host in _ANY else shown
        number = self.listener.getsockname()[1]
        self.address = f"http://{shown}:{number}/"
        """Where to open it."""
        if self.token:
            self.address += f"?token={self.token}"
        app = make_app(self.index, Access(hosts=hosts, token=self.token), self._stopping)
        config = uvicorn.Config(
            app,
            log_level="error",
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)

    def serve(self) -> None:
        """Answer until `stop` is called, or a signal ends it.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed; everything is closed.
        """
        watcher = threading.Thread(target=self._await_stop, daemon=True)
        watcher.start()
        try:
            self._server.run(sockets=[self.listener])
        finally:
            self._stopping.set()
            self.listener.close()

    def stop(self) -> None:
        """Let `serve` return soon. May be called from any thread."""
        self._stopping.set()

    def _await_stop(self) -> None:
        # uvicorn notes a signal in `should_exit`; streams have to hear of it as well.
        while not self._stopping.wait(0.1):
            if self._server.should_exit:
                self._stopping.set()
        self._server.should_exit = True
