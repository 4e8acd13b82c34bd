"""What a training looks like while it goes on: a live picture, or a line now and then.

Between `train` and whoever looks on; knows what a training tells of an epoch and nothing else.
"""

import time
from collections import deque
from collections.abc import Mapping
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.status import Status
from rich.table import Table
from rich.text import Text

from stepladder.stats.names import OTHER
from stepladder.training.evaluation.scores import Evaluation
from stepladder.visible import visible

if TYPE_CHECKING:
    from stepladder.training.results import Progress

LINE_EVERY_S, LINE_EVERY_SHARE = 30.0, 0.05
"""Where nobody watches live, there is a line after so many seconds or so much of the budget."""

NUM_NEWS = 3
"""News that stay in the picture."""

MOST_LABELS = 12
"""Labels that have a row in the picture."""

BAR_WIDTH = 10
"""Of the success of a label."""

SUCCESS = "env_curriculum_stats/per_label_success/"
SAMPLES = "env_curriculum_stats/per_label_samples/"


class TrainingView:
    """Shows every epoch.

    Args:
        title: What is being trained.
        config: Settings of the training, as JSON.
        console: Where to show it; None shows nothing.
    """

    def __init__(self, title: str, config: Mapping[str, Any], console: Console | None):
        self._title, self._console = title, console
        self._places = places(config)
        self._most_episodes: int | None = config.get("total_episodes")
        self._news: deque[str] = deque(maxlen=NUM_NEWS)
        self._success: dict[str, float] = {}
        self._evaluation: Evaluation | None = None
        self._evaluated_at = 0
        self._has_title = False
        self._line_at_s, self._line_at_share = time.monotonic(), 0.0
        self._status: Status | None = None
        self._live: Live | None = None
        if console is not None and console.is_terminal:
            self._status = console.status(Text(f"{title}: starting"))
            self._live = Live(console=console, refresh_per_second=4)

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._status is not None:
            self._status.stop()
        if self._live is not None:
            self._live.stop()

    def __call__(self, progress: "Progress") -> None:
        """Show an epoch that has ended."""
        self._note(progress)
        if self._live is not None and self._status is not None:
            self._status.stop()
            self._live.start()
            self._live.update(self._picture(progress, self._live.console.width))
        elif self._console is not None and self._is_due(progress):
            self._print_lines(progress, self._console)

    def _note(self, progress: "Progress") -> None:
        """Remember what stays true until something newer is known."""
        self._news.extend(" ".join(text.split()) for text in progress.news)
        self._success.update(by_label(progress.logged, SUCCESS))
        if progress.evaluation is not None:
            self._evaluation, self._evaluated_at = progress.evaluation, progress.num_steps

    # Lines.

    def _is_due(self, progress: "Progress") -> bool:
        now, share = time.monotonic(), share_done(progress)
        is_due = (
            progress.evaluation is not None
            or bool(progress.news)
            or now - self._line_at_s >= LINE_EVERY_S
            or share - self._line_at_share >= LINE_EVERY_SHARE
            or share >= 1.0
        )
        if is_due:
            self._line_at_s, self._line_at_share = now, share
        return is_due

    def _print_lines(self, progress: "Progress", console: Console) -> None:
        if not self._has_title:
            console.print(self._title, soft_wrap=True)
            self._has_title = True
        standing = ", ".join(filter(None, (self._whereabouts(progress), *figures(progress))))
        console.print(
            f"{progress.num_steps:>{len(f'{progress.total_steps:,}')},} steps "
            f"({share_done(progress):.0%})  {standing}  {speed(progress)}, "
            f"{duration(progress.left_s)} left",
            soft_wrap=True,
            markup=False,
        )
        for text in progress.news:
            console.print(f"  {' '.join(text.split())}", soft_wrap=True, markup=False)
        if progress.evaluation is not None:
            console.print(f"  held out, {progress.evaluation}", soft_wrap=True, markup=False)

    def _whereabouts(self, progress: "Progress") -> str:
        here = [
            f"{word} {name}"
            for word, name in (("phase", progress.phase), ("stage", progress.stage))
            if name is not None
        ]
        return ", ".join(here)

    # The picture.

    def _picture(self, progress: "Progress", width: int) -> RenderableType:
        share = share_done(progress)
        head = Table.grid(padding=(0, 2, 0, 0))
        head.add_row(
            ProgressBar(total=1.0, completed=share, width=max(10, min(40, width - 60))),
            f"{share:.0%}",
            f"{progress.num_steps:,} of {progress.total_steps:,} steps",
            f"{duration(progress.left_s)} left" if share < 1.0 else "evaluating at the end",
        )
        most = "" if self._most_episodes is None else f" of {self._most_episodes:,}"
        examined = progress.evaluation_steps
        counts = (
            *((f"{examined:,} steps in evaluations",) if examined else ()),
            f"{progress.num_episodes:,}{most} episodes",
            f"{progress.num_updates:,} updates",
            *figures(progress),
        )
        parts: list[RenderableType] = [
            Text(self._title, style="bold"),
            head,
            Text(speed(progress), style="dim"),
            Text(", ".join(counts)),
        ]
        rows = self._rows(progress)
        if rows.row_count:
            parts.append(rows)
        if self._evaluation is not None:
            parts.append(
                Text(f"held out, at {self._evaluated_at:,} steps: {self._evaluation.total}")
            )
        parts += [Text(text, style="yellow") for text in self._news]
        return Group(*parts)

    def _rows(self, progress: "Progress") -> Table:
        """Return a row for each stage or label, with the place where the training is marked."""
        groups = () if self._evaluation is None else self._evaluation.groups
        held_out = {group.name: group for group in groups}
        samples = by_label(progress.logged, SAMPLES)
        total = sum(samples.values())
        here = {progress.stage, progress.phase}
        names = list(dict.fromkeys((*self._places, *samples, *held_out)))
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for column in ("", "", "success", "", "practised", "held out"):
            table.add_column(column, justify="right" if column else "left", no_wrap=True)
        for name in names[:MOST_LABELS]:
            success = self._success.get(name)
            rate = held_out[name].rate if name in held_out else None
            table.add_row(
                "▶" if name in here else "",
                Text(visible(name)),
                "" if success is None else f"{success:.2f}",
                "" if success is None else ProgressBar(1.0, success, width=BAR_WIDTH),
                f"{samples[name] / total:.0%}" if samples.get(name) else "",
                "" if rate is None else f"{rate.value:.2f}",
                style="" if name in here or not self._places else "dim",
            )
        if len(names) > MOST_LABELS:
            table.add_row("", f"and {len(names) - MOST_LABELS} more", style="dim")
        return table


def places(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the stages or phases of a training, in order; none if it has none."""
    curriculum = config.get("curriculum") or {}
    return tuple(
        str(place["name"]) for kind in ("phases", "stages") for place in curriculum.get(kind) or ()
    )


def by_label(logged: Mapping[str, float], prefix: str) -> dict[str, float]:
    """Return a metric label by label; what is logged of the others together is left out."""
    return {
        name.removeprefix(prefix): value
        for name, value in logged.items()
        if name.startswith(prefix) and name != f"{prefix}{OTHER}"
    }


def share_done(progress: "Progress") -> float:
    """Return how much of the budget is used, in [0, 1]; evaluations have their part in it."""
    return min(1.0, (progress.num_steps + progress.evaluation_steps) / progress.total_steps)


def speed(progress: "Progress") -> str:
    """Return the speed, and which share of the time went where."""
    seconds = progress.seconds
    total = max(1e-9, seconds.env + seconds.act + seconds.learn)
    return (
        f"{progress.steps_per_second:,.0f} steps/s (env {seconds.env / total:.0%}, "
        f"act {seconds.act / total:.0%}, learn {seconds.learn / total:.0%})"
    )


def figures(progress: "Progress") -> list[str]:
    """Return what has come of the episodes of an epoch, where any has ended."""
    known = (("success", progress.success), ("return", progress.mean_return))
    return [f"{word} {value:.2f}" for word, value in known if value is not None]


def duration(seconds: float) -> str:
    """Return a time to read.

    Example:
        >>> duration(7.0), duration(3_700.0)
        ('0:00:07', '1:01:40')
    """
    return str(timedelta(seconds=round(seconds)))
