"""End a worker when its parent ends.

Started by `worker`, because nothing else would end a worker whose parent was killed.
"""

import ctypes
import os
import signal
import sys
import threading
import time
from multiprocessing import connection, parent_process

from stepladder.sync.process import is_alive

PARENT_CHECK_S = 0.5
"""Interval of checks whether the parent runs, where no signal reports its end."""

SET_PARENT_DEATH_SIGNAL = 1
"""Linux: the number of that option of ``prctl``."""


def end_with_parent(parent_pid: int, made_by_main_thread: bool) -> None:
    """End this process when its parent ends, even if killed, even while an env hangs."""
    if sys.platform == "linux" and made_by_main_thread:
        # The signal comes when the thread that made this process ends: use it for the main thread.
        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    threading.Thread(
        target=_end_when_gone, args=(parent_pid,), name="stepladder-parent", daemon=True
    ).start()


def _end_when_gone(parent_pid: int) -> None:
    parent = parent_process()
    sentinels = [] if parent is None else [parent.sentinel]
    while is_alive(parent_pid):
        if connection.wait(sentinels, timeout=PARENT_CHECK_S):
            # It is ending, but still listed.
            time.sleep(0.01)
    os._exit(1)
