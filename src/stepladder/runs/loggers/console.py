"""One line per log in plain text, with a chosen few metrics.

Called by `forwarder`; for a terminal or a file.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import TextIO

from stepladder.visible import visible

EXPLANATION = "explanation"
"""The kind of event in which a curriculum explains itself."""

MOST_UNCHOSEN = 6
"""Metrics shown on a line when none are chosen."""


class ConsoleLogger:
    """Writes lines such as ``step 12,000  overview/reward 0.713``.

    Args:
        metrics: Names of the metrics to show, in this order. Those that a log does not have are
            left out; a log that has none of them gives no line. Empty: the first six of each log.
        stream: Where to write. Standard error by default, as standard output may carry results.
    """

    def __init__(self, metrics: Sequence[str] = (), stream: TextIO | None = None):
        self._metrics = tuple(metrics)
        self._stream = sys.stderr if stream is None else stream

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write one line."""
        chosen = self._metrics or list(metrics)[:MOST_UNCHOSEN]
        shown = [f"{name} {metrics[name]:.4g}" for name in chosen if name in metrics]
        if shown:
            self._write(step, "  ".join(shown))

    def event(self, step: int, kind: str, text: str) -> None:
        """Write one line, but no explanation of the whole curriculum: it takes many."""
        if kind == EXPLANATION:
            return
        self._write(step, f"{kind}: {' '.join(text.split())}")

    def close(self) -> None:
        """Leave the stream open: it belongs to the caller."""

    def _write(self, step: int, text: str) -> None:
        self._stream.write(f"step {step:,}  {visible(text)}\n")
        self._stream.flush()
