"""Simulations and trainings while they run: a live picture in a terminal, lines elsewhere.

Used by `simulate` and `train`, which call a view at the end of every epoch.
"""

import time
from collections import deque
from collections.abc import Mapping
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.status import Status
from rich.table import Table
from rich.text import Text

from stepladder.cli.output.console import plain_table
from stepladder.stats.names import OTHER_NAMES
from stepladder.training.evaluation.scores import WAYS_IN_WORDS, Evaluation, Score
from stepladder.visible import visible

if TYPE_CHECKING:
    from stepladder.training.results import Progress

BLOCKS = " ▁▂▃▄▅▆▇█"
"""From nothing to full."""

NUM_LINES = 10
"""Lines of a whole simulation without a terminal."""

LINE_EVERY_S, LINE_EVERY_SHARE = 30.0, 0.05
"""A training without a terminal has a line after this time or this share of its budget."""

NUM_NEWS = 3
"""News that stay in the picture of a training."""

MOST_LABELS = 12
"""Labels that have a row in the picture of a training."""

BAR_WIDTH = 10
"""Columns of the bar that shows the success of a label."""

LEARNER = "env_task_dependency"
HELD_OUT = "overview/held_out_success"
SKILLS = f"{LEARNER}/per_label_performance/"
SUCCESS = "env_curriculum_stats/per_label_success/"
SAMPLES = "env_curriculum_stats/per_label_samples/"


class View:
    """Base of both views: a title, and either a live picture or lines.

    Args:
        title: What is running.
        console: Where to show it; None shows nothing.
        refresh_per_second: Of the live picture.
    """

    def __init__(self, title: str, console: Console | None, refresh_per_second: float):
        self._title, self._console, self._has_title = title, console, False
        self._live: Live | None = None
        if console is not None and console.is_terminal:
            self._live = Live(console=console, refresh_per_second=refresh_per_second)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def _print(self, *lines: str) -> None:
        """Print lines, the first time below the title."""
        if self._console is not None:
            for line in lines if self._has_title else (self._title, *lines):
                self._console.print(line, soft_wrap=True, markup=False)
            self._has_title = True


class SimulationView(View):
    """Shows every epoch of a simulation.

    Args:
        title: What is being simulated.
        num_epochs: Epochs in all.
        console: Where to show it; None shows nothing.
    """

    def __init__(self, title: str, num_epochs: int, console: Console | None):
        super().__init__(title, console, refresh_per_second=12)
        self._num_epochs = num_epochs

    def __call__(self, epoch: int, logged: Mapping[str, float]) -> None:
        """Show an epoch that has ended."""
        done, total = epoch + 1, self._num_epochs
        plays = f"{logged.get('metric/agent_step', 0.0):,.0f}"
        learnable = logged.get(f"{LEARNER}/num_learnable", 0.0)
        mastered = round(logged.get("overview/mastered_fraction", 0.0) * learnable)
        standing = (
            f"mastered {mastered:>{len(f'{learnable:.0f}')}}/{learnable:.0f}  "
            f"mean skill {logged.get('overview/mean_performance', 0.0):.2f}  "
            f"success {logged.get(f'{LEARNER}/success', 0.0):.2f}"
        )
        unit = "plays"
        if HELD_OUT in logged:
            unit, standing = "steps", f"{standing}  held-out {logged[HELD_OUT]:.2f}"
        if self._live is not None:
            # Not before the first epoch: an error before it is shown without a picture.
            self._live.start()
            amount = f"{plays} {unit}"
            picture = self._picture(done, logged, amount, standing, self._live.console.width)
            self._live.update(picture)
        elif done % max(1, total // NUM_LINES) == 0 or done == total:
            self._print(f"epoch {done:>{len(str(total))}}/{total}  {plays:>9} {unit}  {standing}")

    def _picture(
        self, done: int, logged: Mapping[str, float], amount: str, standing: str, width: int
    ) -> RenderableType:
        total, room = self._num_epochs, max(10, width - 12)
        head, rows = Table.grid(padding=(0, 1)), Table.grid(padding=(0, 1))
        head.add_row(
            f"epoch {done}/{total}",
            ProgressBar(total=total, completed=done, width=max(10, min(40, width - 50))),
            amount,
            Text(f"{logged.get('overview/steps_per_second', 0.0):,.0f}/s", style="dim"),
        )
        skills, samples = (list(by_label(logged, prefix).values()) for prefix in (SKILLS, SAMPLES))
        most = max(samples, default=0.0) or 1.0
        practice = blocks([count / most for count in samples], room)
        rows.add_row("skill", Text(blocks(skills, room), style="green"))
        rows.add_row("practice", Text(practice, style="cyan"))
        shares = (
            f"{kind} {logged.get(f'{LEARNER}/share_{kind}', 0.0):.0%}"
            for kind in ("mastered", "locked", "impossible")
        )
        wasted = Text(f"wasted on tasks {', '.join(shares)}", style="dim")
        return Group(Text(self._title, style="bold"), head, standing, rows, wasted)


class TrainingView(View):
    """Shows every epoch of a training.

    Args:
        title: What is being trained.
        config: Settings of the training, as JSON.
        console: Where to show it; None shows nothing.
    """

    def __init__(self, title: str, config: Mapping[str, Any], console: Console | None):
        super().__init__(title, console, refresh_per_second=4)
        self._places = places(config)
        self._most_episodes: int | None = config.get("total_episodes")
        self._news: deque[str] = deque(maxlen=NUM_NEWS)
        self._success: dict[str, float] = {}
        self._evaluation: Evaluation | None = None
        self._baseline: Evaluation | None = None
        self._evaluated_at = 0
        self._line_at_s, self._line_at_share = time.monotonic(), 0.0
        self._status: Status | None = None
        if console is not None and self._live is not None:
            self._status = console.status(Text(f"{title}: starting"))

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._status is not None:
            self._status.stop()
        super().__exit__(*error)

    def __call__(self, progress: "Progress") -> None:
        """Show an epoch that has ended."""
        news = [" ".join(text.split()) for text in progress.news]
        # These stay in the picture until something newer is known.
        self._news.extend(news)
        self._success.update(by_label(progress.logged, SUCCESS))
        if progress.evaluation is not None:
            self._evaluation, self._evaluated_at = progress.evaluation, progress.num_steps
        is_first = self._baseline is None and progress.baseline is not None
        self._baseline = progress.baseline
        if self._live is not None and self._status is not None:
            self._status.stop()
            self._live.start()
            self._live.update(self._picture(progress, self._live.console.width))
        elif self._is_due(progress):
            held_out = progress.evaluation
            self._print(
                self._line(progress),
                *(f"  {text}" for text in news),
                *((f"  held out, {progress.baseline}",) if is_first else ()),
                *(() if held_out is None else (f"  held out, {held_out}",)),
            )

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

    def _line(self, progress: "Progress") -> str:
        places = (("phase", progress.phase), ("stage", progress.stage))
        here = [f"{word} {name}" for word, name in places if name is not None]
        return (
            f"{progress.num_steps:>{len(f'{progress.total_steps:,}')},} steps "
            f"({share_done(progress):.0%})  {', '.join((*here, *figures(progress)))}  "
            f"{speed(progress)}, {duration(progress.left_s)} left"
        )

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
            *((f"{examined:,} more steps in evaluations",) if examined else ()),
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
            where = (
                f"held out, at {self._evaluated_at:,} steps, {WAYS_IN_WORDS[self._evaluation.way]}"
            )
            parts.append(Text(f"{where}: {self._evaluation.total}{self._beside()}"))
        parts += [Text(text, style="yellow") for text in self._news]
        return Group(*parts)

    def _beside(self) -> str:
        """Return the figure of random play, as an addition."""
        if self._baseline is None:
            return ""
        return f"; random play {self._baseline.total.headline[1].value:.2f}"

    def _rows(self, progress: "Progress") -> Table:
        """Return a row for each stage or label; an arrow marks the present one."""
        held_out, at_random = _groups(self._evaluation), _groups(self._baseline)
        samples = by_label(progress.logged, SAMPLES)
        total = sum(samples.values())
        here = {progress.stage, progress.phase}
        names = list(dict.fromkeys((*self._places, *samples, *held_out)))
        table = plain_table()
        columns = ["", "", "success", "", "practised", "held out", "random"]
        for column in columns if at_random else columns[:-1]:
            table.add_column(column, justify="right" if column else "left", no_wrap=True)
        for name in names[:MOST_LABELS]:
            success = self._success.get(name)
            table.add_row(
                "▶" if name in here else "",
                Text(visible(name)),
                "" if success is None else f"{success:.2f}",
                "" if success is None else ProgressBar(1.0, success, width=BAR_WIDTH),
                f"{samples[name] / total:.0%}" if samples.get(name) else "",
                _rate(held_out.get(name)),
                *([_rate(at_random.get(name))] if at_random else []),
                style="" if name in here or not self._places else "dim",
            )
        if len(names) > MOST_LABELS:
            table.add_row("", f"and {len(names) - MOST_LABELS} more", style="dim")
        return table


def _groups(evaluation: Evaluation | None) -> dict[str, Score]:
    return {} if evaluation is None else {group.name: group for group in evaluation.groups}


def _rate(score: Score | None) -> str:
    return "" if score is None or score.rate is None else f"{score.rate.value:.2f}"


def blocks(shares: list[float], room: int) -> str:
    """Draw numbers in [0, 1] as a row of blocks, several in one where there is no room."""
    if len(shares) > room:
        bounds = [round(place * len(shares) / room) for place in range(room + 1)]
        shares = [sum(shares[left:right]) / (right - left) for left, right in pairwise(bounds)]
    top = len(BLOCKS) - 1
    # The smallest share above 0 is visible.
    return "".join(BLOCKS[min(top, max(share > 0.0, round(share * top)))] for share in shares)


def places(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the stages or phases of a training, in order; none if it has none."""
    curriculum = config.get("curriculum") or {}
    return tuple(
        str(place["name"]) for kind in ("phases", "stages") for place in curriculum.get(kind) or ()
    )


def by_label(logged: Mapping[str, float], prefix: str) -> dict[str, float]:
    """Return a metric label by label, without the one for all further labels together."""
    return {
        name.removeprefix(prefix): value
        for name, value in logged.items()
        if name.startswith(prefix) and name != f"{prefix}{OTHER_NAMES}"
    }


def share_done(progress: "Progress") -> float:
    """Return the share of the budget that is used, in [0, 1]."""
    return min(1.0, progress.num_steps / progress.total_steps)


def speed(progress: "Progress") -> str:
    """Return the speed, and the shares of the time in env, agent and updates."""
    seconds = progress.seconds
    total = max(1e-9, seconds.env + seconds.act + seconds.learn)
    return (
        f"{progress.steps_per_second:,.0f} steps/s (env {seconds.env / total:.0%}, "
        f"act {seconds.act / total:.0%}, learn {seconds.learn / total:.0%})"
    )


def figures(progress: "Progress") -> list[str]:
    """Return success and return of an epoch, where an episode has ended in it."""
    known = (("success", progress.success), ("return", progress.mean_return))
    return [f"{word} {value:.2f}" for word, value in known if value is not None]


def duration(seconds: float) -> str:
    """Return a duration as text.

    Example:
        >>> duration(7.0), duration(3_700.0)
        ('0:00:07', '1:01:40')
    """
    return str(timedelta(seconds=round(seconds)))
