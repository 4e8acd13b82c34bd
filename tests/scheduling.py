"""Which process of pytest-xdist runs which files of tests, also after one of them has died.

A test that exceeds its time limit ends its process. pytest-xdist then starts another one, but gives
it one unit of work and waits: a worker begins its last test only when it is told what follows, so a
unit with a single test hangs for ever, and the test that ended the process would run again.
"""

from collections.abc import Callable
from typing import Any

from xdist.scheduler import LoadScopeScheduling

FEW = 2
"""With so many tests left a worker gets more, so that it never waits for what follows."""


class FromBothEnds(LoadScopeScheduling):
    """Hands out files from both ends of the list; no test is run twice, and none waited for.

    Args:
        config: pytest's.
        log: Where xdist writes what it does.
        scope_of: What a test, named by its id, shares a process with.
    """

    def __init__(self, config: Any, log: Any, scope_of: Callable[[str], str]):
        super().__init__(config, log)
        self._scope_of = scope_of
        self._is_removing = False

    def _split_scope(self, nodeid: str) -> str:
        return self._scope_of(nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        if node is not self.nodes[0]:
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)

    def remove_node(self, node: Any) -> str | None:
        """Take over the work of a process that has ended; return the test that ended it."""
        self._is_removing = True
        crashed = super().remove_node(node)
        self._is_removing = False
        for scope, unit in list(self.workqueue.items()):
            unit.update({nodeid: True for nodeid in unit if nodeid == crashed})
            if all(unit.values()):
                del self.workqueue[scope]
        for other in self.assigned_work:
            self._reschedule(other)
        return crashed

    def _reschedule(self, node: Any) -> None:
        # A process that has just been started still looks for its tests.
        if self._is_removing or node.shutting_down or node not in self.registered_collections:
            return
        while self.workqueue and self._pending_of(self.assigned_work[node]) <= FEW:
            self._assign_work_unit(node)
        if not self.workqueue:
            node.shutdown()
