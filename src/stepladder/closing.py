"""What a ``with`` block closes at its end.

At the bottom of the package, below everything that holds files, processes or shared memory.
"""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closing(ABC):
    """Closed at the end of a ``with`` block; what that means after an error is up to the class."""

    @abstractmethod
    def _end_block(self, error: BaseException | None) -> None:
        """Close, given the exception that came out of the block, if any."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end_block(error)
