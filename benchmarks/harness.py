"""How every benchmark measures and reports: arms in turn, medians, ratios, one line per figure.

Product and peer run interleaved in one process, round after round, so that whatever else the
machine does hits both alike. A figure is a median over rounds; its ratio is what counts.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

Arm = Callable[[], float]
"""Runs for a moment and returns its measurement."""


@dataclass(frozen=True)
class Figure:
    """One measured number beside its peer's."""

    name: str
    value: float
    unit: str
    peer: float | None = None
    """The peer's number in the same unit and the same run."""

    ratio: float | None = None
    """Value by peer."""

    bar: str | None = None
    """What the ratio, or the value, must satisfy."""

    holds: bool | None = None

    def __str__(self) -> str:
        peer = "" if self.peer is None else f"  peer {self.peer:>12,.3f}"
        ratio = "" if self.ratio is None else f"  ratio {self.ratio:7.3f}"
        bar = "" if self.bar is None else f"  bar {self.bar}: {'holds' if self.holds else 'MISSED'}"
        return f"{self.name:<52} {self.value:>12,.3f} {self.unit:<11}{peer}{ratio}{bar}"


class Report:
    """Prints figures as they come, as text or as JSON lines."""

    def __init__(self, title: str, *, as_json: bool):
        self.as_json = as_json
        self.figures: list[Figure] = []
        if not as_json:
            print(title, flush=True)

    def note(self, text: str) -> None:
        """Say something that is no figure; nothing in JSON lines."""
        if not self.as_json:
            print(text, flush=True)

    def add(
        self,
        name: str,
        value: float,
        unit: str,
        *,
        peer: float | None = None,
        at_most: float | None = None,
        at_least: float | None = None,
    ) -> None:
        """Report one figure; a limit is on the ratio where there is a peer, else on the value."""
        ratio = None if peer is None else value / peer
        judged = value if ratio is None else ratio
        bar, holds = None, None
        if at_most is not None:
            bar, holds = f"<= {at_most:g}", judged <= at_most
        elif at_least is not None:
            bar, holds = f">= {at_least:g}", judged >= at_least
        figure = Figure(name, value, unit, peer, ratio, bar, holds)
        self.figures.append(figure)
        print(json.dumps(asdict(figure)) if self.as_json else str(figure), flush=True)


def interleave(arms: Mapping[str, Arm], rounds: int) -> dict[str, float]:
    """Run all arms in turn, `rounds` times after one unmeasured round; return medians."""
    for arm in arms.values():
        arm()
    results: dict[str, list[float]] = {name: [] for name in arms}
    for _ in range(rounds):
        for name, arm in arms.items():
            results[name].append(arm())
    return {name: statistics.median(values) for name, values in results.items()}


def microseconds_each(work: Callable[[int], object], count: int) -> Arm:
    """Make an arm of ``work(count)`` that measures microseconds per item."""

    def arm() -> float:
        began = time.perf_counter()
        work(count)
        return (time.perf_counter() - began) / count * 1e6

    return arm


def parser(description: str) -> argparse.ArgumentParser:
    """Make the command line that all benchmarks share."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--quick", action="store_true", help="all figures, rougher, in 50 seconds")
    made.add_argument("--json", action="store_true", help="one JSON object per line")
    return made
