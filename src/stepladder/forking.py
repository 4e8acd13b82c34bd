"""What must be idle while this process is forked, so that the copy can work.

A fork copies the locks of all threads but only the one thread that forks: a lock that another
thread holds at that moment stays locked in the copy for good, and what it guards may be half
changed. So a fork (by `envs.workers`, Gymnasium's `AsyncVectorEnv` or `multiprocessing` itself)
first takes the locks that are listed here, and releases them on both sides. `compiled` lists those
of numba and LLVM. Python does the same for `logging` and for its own thread tables.

Imports are waited for rather than locked out: a module that another thread is importing is half
made in the copy.

No deadlock can come of it. The locks are taken in one order, `WORKER_START` first, and no thread
asks for an earlier one while it holds a later one: no code of a user runs under a compiler's lock,
and nothing there starts a worker. No lock is held while an import is waited for, except
`WORKER_START` by a thread that starts a worker. And no wait is without a limit: after it, the fork
is made all the same, and the copy gets fresh locks.
"""

import importlib
import os
import threading
import time
from collections import deque
from contextlib import suppress
from operator import methodcaller
from typing import Any, Protocol

LOCK_PATIENCE_S = 300.0
"""Longest wait for one lock; the longest that compiling a function may take."""

IMPORT_PATIENCE_S = 10.0
"""Longest wait for imports of other threads; one that takes longer is not waited for again."""

IMPORT_CHECK_S = 0.002
"""Time between two looks at the imports of other threads."""


class Lock(Protocol):
    """A lock as `threading` makes them."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock."""
        ...

    def release(self) -> None:
        """Give the lock back."""
        ...


WORKER_START: Any = threading.RLock()
"""Held while a worker is started, so that no other fork copies the ends of its pipes."""

_locks: list[Any] = [WORKER_START]
_held = threading.local()
_given_up: set[tuple[str, int]] = set()


def hold_during_forks(lock: Lock) -> None:
    """Have a lock held whenever this process is forked.

    Args:
        lock: Must be reentrant: the thread that forks may hold it already.
    """
    if not any(known is lock for known in _locks):
        _locks.append(lock)


def _before() -> None:
    deadline = time.monotonic() + IMPORT_PATIENCE_S
    while True:
        held: list[Any] = []
        _held.locks = held
        # In compiled code alone, so that no Ctrl-C comes between a lock and the note of it: Python
        # ignores exceptions in hooks of forks, and the lock would stay taken for good.
        held.extend(filter(methodcaller("acquire", True, LOCK_PATIENCE_S), list(_locks)))
        imports = _imports_elsewhere() - _given_up
        if not imports:
            return
        if time.monotonic() >= deadline:
            _given_up.update(imports)
            return
        # Not while the locks are held: an import may need them, as when it compiles something.
        _release()
        time.sleep(IMPORT_CHECK_S)


def _release() -> None:
    held: list[Any] = getattr(_held, "locks", [])
    with suppress(IndexError):  # by which `pop` says that there are no more
        deque(map(methodcaller("release"), iter(held.pop, None)), maxlen=0)


def _after_in_child() -> None:
    held = getattr(_held, "locks", [])
    for lock in _locks:
        if not any(lock is mine for mine in held):
            # Its owner is not here and cannot release it.
            lock._at_fork_reinit()
    _release()
    locks = _module_locks()
    for name, _ in _imports_elsewhere():
        # An import here gets the half-made module, as in a circular import.
        locks.pop(name, None)


def _imports_elsewhere() -> set[tuple[str, int]]:
    """Return the modules that other threads are importing, and by which thread."""
    me = threading.get_ident()
    found: set[tuple[str, int]] = set()
    for name, reference in list(_module_locks().items()):
        lock = reference()
        owner = None if lock is None else lock.owner
        if owner not in (None, me):
            found.add((name, owner))
    return found


def _module_locks() -> dict[str, Any]:
    """Return Python's locks of modules that are being imported, by name; weak references."""
    return getattr(getattr(importlib, "_bootstrap", None), "_module_locks", {})


os.register_at_fork(before=_before, after_in_parent=_release, after_in_child=_after_in_child)
# Again, should Ctrl-C have come as the first call began.
os.register_at_fork(after_in_parent=_release)
