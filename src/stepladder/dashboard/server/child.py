"""The dashboard beside a command: a process of its own that ends when the command does.

The command opens the socket, so that it knows the address at once, and starts this module with
the socket's number. It cannot slow or break what the command does: it reads files, at a low
priority, and its end is that of the pipe that it has from the command.
"""

import os
import socket
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from stepladder.dashboard.server.serving import DashboardServer

LOW_PRIORITY = 10


def main(argv: Sequence[str]) -> None:
    """Serve folders at the socket with a number, until standard input ends."""
    number, *folders = argv
    os.nice(LOW_PRIORITY)
    server = DashboardServer(
        [Path(folder) for folder in folders],
        listener=socket.socket(fileno=int(number)),
        missing_ok=True,
    )

    def await_end() -> None:
        sys.stdin.buffer.read()
        server.stop()

    threading.Thread(target=await_end, daemon=True).start()
    server.serve()


if __name__ == "__main__":
    main(sys.argv[1:])
