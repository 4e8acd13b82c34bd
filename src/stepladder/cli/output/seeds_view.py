"""Several seeds of a training while they run: a row for each in a terminal, lines elsewhere.

Used by `train` with ``--seeds``; `views` shows a single training.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.text import Text

from stepladder.cli.output.console import plain_table
from stepladder.cli.output.views import TrainingView, View, duration, share_done
from stepladder.visible import visible

if TYPE_CHECKING:
    from stepladder.training.results import Progress
    from stepladder.training.seeds import TrainingEnd

BAR_WIDTH = 12
"""Columns of the bar that shows how far a seed is."""


class SeedsView(View):
    """Shows every epoch of every seed.

    Args:
        title: What is being trained.
        config: Settings of the training, as JSON.
        seeds: All of them.
        console: Where to show it; None shows nothing.
    """

    def __init__(
        self,
        title: str,
        config: Mapping[str, Any],
        seeds: Sequence[int],
        console: Console | None,
    ):
        super().__init__(title, console, refresh_per_second=4)
        self._lock = threading.Lock()
        self._seeds = tuple(seeds)
        self._standing: dict[int, Progress] = {}
        self._held_out: dict[int, str] = {}
        self._ends: dict[int, TrainingEnd] = {}
        self._lines: dict[int, _SeedLines] = {}
        if console is not None and self._live is None:
            self._lines = {seed: _SeedLines(seed, config, self._print) for seed in seeds}

    def __call__(self, seed: int, progress: "Progress") -> None:
        """Show an epoch of a seed that has ended."""
        with self._lock:
            self._standing[seed] = progress
            if progress.evaluation is not None:
                self._held_out[seed] = f"{progress.evaluation.total.headline[1].value:.2f}"
            if seed in self._lines:
                self._lines[seed](progress)
            self._refresh()

    def end(self, seed: int, outcome: "TrainingEnd") -> None:
        """Show that a seed has ended, and how."""
        with self._lock:
            self._ends[seed] = outcome
            if seed in self._lines:
                reason = f": {outcome.reason}" if outcome.reason else ""
                self._print(f"seed {seed}: {outcome.how}{reason}")
            self._refresh()

    def _refresh(self) -> None:
        if self._live is not None:
            # Not before something is known: an error before it is shown without a picture.
            self._live.start()
            self._live.update(self._picture())

    def _picture(self) -> RenderableType:
        numbers = ("steps", "success", "return", "held out", "steps/s", "left")
        table = plain_table("", "", "", numbers=numbers)
        for seed in self._seeds:
            table.add_row(f"seed {seed}", *self._cells(seed))
        failed = [
            Text(f"seed {seed} {end.how}: {visible(end.reason)}", style="red")
            for seed, end in self._ends.items()
            if end.reason
        ]
        return Group(Text(self._title, style="bold"), table, *failed)

    def _cells(self, seed: int) -> tuple[RenderableType, ...]:
        progress, end = self._standing.get(seed), self._ends.get(seed)
        if progress is None:
            return ("", "not begun" if end is None else end.how)
        where = progress.phase or progress.stage or ""
        left = duration(progress.left_s) if share_done(progress) < 1.0 else "evaluating"
        return (
            ProgressBar(total=1.0, completed=share_done(progress), width=BAR_WIDTH),
            Text(visible(where) if end is None else end.how),
            f"{progress.num_steps:,}",
            "" if progress.success is None else f"{progress.success:.2f}",
            "" if progress.mean_return is None else f"{progress.mean_return:.2f}",
            self._held_out.get(seed, ""),
            f"{progress.steps_per_second:,.0f}" if end is None else "",
            left if end is None else "",
        )


class _SeedLines(TrainingView):
    """Lines of one seed, each with its name before it."""

    def __init__(self, seed: int, config: Mapping[str, Any], tell: Callable[[str], None]):
        super().__init__("", config, None)
        self._seed, self._tell = seed, tell

    def _print(self, *lines: str) -> None:
        for line in lines:
            self._tell(f"seed {self._seed}: {line.strip()}")
