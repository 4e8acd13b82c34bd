"""Which process this is, and whether another one still runs.

Used by `segment`, `client` and `host` to notice deaths without waiting.
"""

import multiprocessing
import os
from pathlib import Path

_pid = [os.getpid()]
os.register_at_fork(after_in_child=lambda: _pid.__setitem__(0, os.getpid()))


def current_pid() -> int:
    """Return this process's id, without a system call."""
    return _pid[0]


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has died and not been waited for does not."""
    if pid == _pid[0]:
        return True
    # Waits for children of our own that have died, so that they no longer look alive.
    multiprocessing.active_children()
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return not Path("/proc/self/stat").exists()
    # The state follows the command, which stands in parentheses and may contain any bytes.
    return text.rpartition(b")")[2].split()[0] not in (b"Z", b"X")
