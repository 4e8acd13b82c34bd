"""What a simulation looks like while it runs: a live picture, or a line now and then.

Between `simulate` and whoever looks on; knows the metrics of an epoch and nothing else.
"""

from collections.abc import Mapping
from itertools import pairwise
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from stepladder.stats.names import OTHER

BLOCKS = " ▁▂▃▄▅▆▇█"
"""From nothing to full."""

NUM_LINES = 10
"""Lines of a simulation that nobody watches live."""

LEARNER = "env_task_dependency"
SKILLS = f"{LEARNER}/per_label_performance/"
SAMPLES = "env_curriculum_stats/per_label_samples/"


class Watch:
    """Shows every epoch.

    Args:
        title: What is being simulated.
        num_epochs: Epochs in all.
        console: Where to show it; None shows nothing.
    """

    def __init__(self, title: str, num_epochs: int, console: Console | None):
        self._title = title
        self._num_epochs = num_epochs
        self._console = console
        self._has_title = False
        self._live: Live | None = None
        if console is not None and console.is_terminal:
            self._live = Live(console=console, refresh_per_second=12, transient=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, epoch: int, logged: Mapping[str, float]) -> None:
        """Show an epoch that has ended."""
        done = epoch + 1
        if self._live is not None:
            # Only now: what goes wrong before the first epoch shall stand alone.
            self._live.start()
            self._live.update(self._picture(done, logged, self._live.console.width))
        elif self._console is not None and self._is_due(done):
            if not self._has_title:
                self._console.print(self._title)
                self._has_title = True
            self._console.print(
                f"epoch {done:>{len(str(self._num_epochs))}}/{self._num_epochs}  "
                f"{_count(logged, 'metric/agent_step'):>9} plays  {_standing(logged)}"
            )

    def _is_due(self, done: int) -> bool:
        every = max(1, self._num_epochs // NUM_LINES)
        return done % every == 0 or done == self._num_epochs

    def _picture(self, done: int, logged: Mapping[str, float], width: int) -> RenderableType:
        head = Table.grid(padding=(0, 1))
        head.add_row(
            f"epoch {done}/{self._num_epochs}",
            ProgressBar(total=self._num_epochs, completed=done, width=max(10, min(40, width - 50))),
            f"{_count(logged, 'metric/agent_step')} plays",
            Text(f"{logged.get('overview/steps_per_second', 0.0):,.0f}/s", style="dim"),
        )
        room = max(10, width - 12)
        skills, samples = _by_task(logged, SKILLS), _by_task(logged, SAMPLES)
        most = max(samples, default=0.0)
        rows = Table.grid(padding=(0, 1))
        rows.add_row("skill", Text(blocks(skills, room), style="green"))
        rows.add_row(
            "practice",
            Text(blocks([count / most if most else 0.0 for count in samples], room), style="cyan"),
        )
        wasted = Text(_wasted(logged), style="dim")
        return Group(Text(self._title, style="bold"), head, _standing(logged), rows, wasted)


def blocks(shares: list[float], room: int) -> str:
    """Draw numbers in [0, 1] as a row of blocks, several in one where there is no room."""
    if len(shares) > room:
        bounds = [round(place * len(shares) / room) for place in range(room + 1)]
        shares = [sum(shares[left:right]) / (right - left) for left, right in pairwise(bounds)]
    top = len(BLOCKS) - 1
    # Anything above nothing is seen.
    return "".join(BLOCKS[min(top, max(share > 0.0, round(share * top)))] for share in shares)


def _by_task(logged: Mapping[str, float], prefix: str) -> list[float]:
    """Return a metric task by task; what is logged of the others together is left out."""
    return [
        value
        for name, value in logged.items()
        if name.startswith(prefix) and name != f"{prefix}{OTHER}"
    ]


def _standing(logged: Mapping[str, float]) -> str:
    learnable = logged.get(f"{LEARNER}/num_learnable", 0.0)
    mastered = round(logged.get("overview/mastered_fraction", 0.0) * learnable)
    return (
        f"mastered {mastered:>{len(f'{learnable:.0f}')}}/{learnable:.0f}  "
        f"mean skill {logged.get('overview/mean_performance', 0.0):.2f}  "
        f"success {logged.get(f'{LEARNER}/success', 0.0):.2f}"
    )


def _wasted(logged: Mapping[str, float]) -> str:
    shares = {
        kind: logged.get(f"{LEARNER}/share_{kind}", 0.0)
        for kind in ("mastered", "locked", "impossible")
    }
    return "wasted on tasks " + ", ".join(f"{kind} {share:.0%}" for kind, share in shares.items())


def _count(logged: Mapping[str, float], name: str) -> str:
    return f"{logged.get(name, 0.0):,.0f}"
