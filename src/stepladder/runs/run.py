"""What a run holds, for scripts and notebooks: tables, a picture, a summary.

Over `reader`, which the commands and the dashboard use; writing is `run_writer`'s.
"""

import math
import os
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stepladder.errors import RunError
from stepladder.pictures import require_matplotlib
from stepladder.runs.evaluation_events import WAYS, ends_of, figure_of, scores_by_way
from stepladder.runs.lock import RunLock
from stepladder.runs.loggers.base import Logger
from stepladder.runs.reader import RunReader
from stepladder.runs.run_table import RunTable, escaped, objects
from stepladder.runs.run_writer import RunWriter

if TYPE_CHECKING:
    from stepladder.pictures.figure import Figure

SHARES, SUCCESS = (f"env_curriculum_stats/per_label_{what}/" for what in ("probs", "success"))
"""Metrics of each label: how likely it is drawn, and what succeeded."""

CHANGES = {
    "stage_advanced": "to_stage",
    "stage_demoted": "to_stage",
    "stage_set": "to_stage",
    "phase_changed": "to_phase",
}
"""Kinds of events that a picture marks, and which entry names what began."""

RANDOM, *_ = WAYS


class Run:
    """What a run has left so far, also while it is being written.

    All tables are read anew when they are asked for. ``Run.create`` and ``Run.resume`` write one.

    Args:
        folder: The folder of a run.

    Raises:
        RunError: The folder has no run, or a damaged one, or one of a newer version.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        self.reader = RunReader(folder)
        """Everything that is stored, as it is stored."""

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        *,
        kind: str,
        config: Mapping[str, Any] | None = None,
        seed: int | Sequence[int] | None = None,
        overwrite: bool = False,
        loggers: Sequence[Logger] = (),
    ) -> RunWriter:
        """Begin to write a run; see `RunWriter.create`."""
        kept = {"kind": kind, "config": config, "seed": seed}
        return RunWriter.create(folder, **kept, overwrite=overwrite, loggers=loggers)

    @classmethod
    def resume(
        cls,
        folder: str | os.PathLike[str],
        *,
        checkpoint: str | None = None,
        loggers: Sequence[Logger] = (),
        lock: RunLock | None = None,
    ) -> RunWriter:
        """Go on writing a run; see `RunWriter.resume`."""
        return RunWriter.resume(folder, checkpoint=checkpoint, loggers=loggers, lock=lock)

    def __repr__(self) -> str:
        about = f"{self.kind}, {self.status}, {self.last_step:,} steps"
        return f"{type(self).__name__}({self.name!r}: {about})"

    @property
    def folder(self) -> Path:
        """Where the run is."""
        return self.reader.folder

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.reader.name

    @property
    def kind(self) -> str:
        """``"simulation"``, ``"training"`` or another word."""
        return self.reader.kind

    @property
    def status(self) -> str:
        """How the run stands: ``"running"``, ``"finished"`` and others; see `RunReader.status`."""
        return self.reader.status

    @property
    def config(self) -> dict[str, Any]:
        """The settings of the run."""
        return self.reader.config

    @property
    def last_step(self) -> int:
        """The last step at which something was logged; 0 if nothing was."""
        steps, _ = self.reader.times()
        return int(steps[-1]) if len(steps) else 0

    def metrics(self, *patterns: str) -> RunTable:
        """Return metrics: a column of steps, and one for each metric.

        Where a metric was not logged at a step, it is NaN.

        Args:
            *patterns: Names, or patterns with * and ?, such as ``"evaluation/*"``; all by default.

        Raises:
            RunError: A pattern fits no metric of the run.
        """
        names = self.reader.metric_names()
        chosen = {name for name in names if not patterns}
        for pattern in patterns:
            found = {name for name in names if name == pattern or fnmatchcase(name, pattern)}
            if not found:
                # Says which names are similar.
                self.reader.metric(pattern)
            chosen |= found
        series = {name: self.reader.metric(name) for name in names if name in chosen}
        every = [steps for steps, _ in series.values()]
        steps = np.unique(np.concatenate([np.zeros(0, np.int64), *every]))
        columns: dict[str, Any] = {"step": steps}
        for name, (where, values) in series.items():
            columns[name] = np.full(len(steps), math.nan)
            columns[name][np.searchsorted(steps, where)] = values
        return RunTable(columns)

    def events(self, kind: str | None = None) -> RunTable:
        """Return what happened, and why, as it was logged.

        The columns are ``step``, ``time`` (seconds since 1970), ``kind``, ``text`` and ``data``.

        Args:
            kind: Such as ``"stage_advanced"``; all kinds by default.
        """
        events = self.reader.events(kind)
        return RunTable(
            {
                "step": np.array([event.step for event in events], np.int64),
                "time": np.array([event.time for event in events], np.float64),
                "kind": objects([event.kind for event in events]),
                "text": objects([event.text for event in events]),
                "data": objects([event.data for event in events]),
            }
        )

    def tasks(self, step: int | None = None) -> RunTable:
        """Return a row per task: its label, how likely it is drawn, how it went, and why.

        Args:
            step: One of ``reader.task_steps()``; the latest by default.

        Raises:
            RunError: Nothing about tasks was kept at this step.
        """
        columns = self.reader.tasks(step)
        return RunTable(
            {
                name: objects(column) if isinstance(column, list) else np.asarray(column)
                for name, column in columns.items()
            }
        )

    def evaluations(self) -> RunTable:
        """Return what every evaluation measured: a row per step, way of acting and group.

        The columns are ``step``, ``way`` (random, drawn or best), ``is_own`` (whether the agent is
        meant to act in this way), ``group`` (a label, an opponent or all), ``value``, and ``low``
        and ``high``, the ends of its interval of 95 %. The value is the share of episodes that
        were solved or won, else the mean return.
        """
        rows = [
            (event.step, way, way == next(iter(found)), group, *ends_of(score))
            for event in self.reader.events()
            if event.kind in ("baseline", "evaluation")
            for found in [scores_by_way(event.data)]
            for way, scores in found.items()
            for group, score in scores.items()
        ]
        names = ("step", "way", "is_own", "group", "value", "low", "high")
        columns = dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else {}
        kinds = {"step": np.int64, "is_own": np.bool_, "way": object, "group": object}
        return RunTable(
            {
                name: np.array(columns.get(name, ()), dtype=kinds.get(name, np.float64))
                for name in names
            }
        )

    def plot(self) -> "Figure":
        """Return a picture of what was practised and what succeeded, over the steps.

        A notebook shows it; ``.save("course.svg")`` writes it. Needs matplotlib.

        Raises:
            ConfigError: Matplotlib is not installed.
            RunError: The run has kept neither shares nor success of labels.
        """
        require_matplotlib()
        # Imported here: a run can be read without matplotlib.
        from stepladder.pictures.course import course_figure

        names = self.reader.metric_names()
        shares, success = self._by_label(names, SHARES), self._by_label(names, SUCCESS)
        if not shares and not success:
            raise RunError(
                f"{self.folder} has kept neither shares nor success of labels, so there is nothing "
                "to draw. It has metrics(), events() and tasks()."
            )
        changes = [
            (event.step, str(event.data.get(CHANGES[event.kind], "")))
            for event in self.reader.events()
            if event.kind in CHANGES
        ]
        return course_figure(shares, success, title=self.name, changes=changes)

    def _by_label(self, names: Sequence[str], family: str) -> dict[str, Any]:
        """Return the metrics of a family by label, in the order in which labels first came."""
        own = [name for name in names if name.startswith(family)]
        return {name.removeprefix(family): self.reader.metric(name) for name in own}

    def _repr_html_(self) -> str:
        """Return what a notebook shows: a headline, what was learnt, changes, a picture."""
        steps = f"{self.last_step:,} steps"
        env = self.config.get("env")
        about = [self.kind, env if isinstance(env, str) else "", self.status, steps]
        parts = [f"<p><b>{escaped(self.name)}</b>: {escaped(', '.join(filter(None, about)))}</p>"]
        parts += [self._held_out_html(), self._changes_html()]
        has_labels = any(name.startswith((SHARES, SUCCESS)) for name in self.reader.metric_names())
        if has_labels and find_spec("matplotlib") is not None:
            _, start, picture = self.plot().encoded(".svg").decode().partition("<svg")
            parts.append(start + picture)
        return "".join(parts)

    def _held_out_html(self) -> str:
        """Return the last evaluation, random play beside it; empty if there was none."""
        step, measured = 0, dict[str, Any]()
        for event in self.reader.events():
            found = scores_by_way(event.data) if event.kind in ("baseline", "evaluation") else {}
            if found:
                step = event.step
                measured = {way: measured[way] for way in measured if way == RANDOM} | found
        ways = [way for way in WAYS if way in measured]
        if not ways:
            return ""
        last = measured[ways[-1]]
        rows = "".join(
            f"<tr><th>{escaped(group)}</th>"
            + "".join(f"<td>{_figure(measured[way].get(group, {}))}</td>" for way in ways)
            + "</tr>"
            for group in last
        )
        head = "".join(f"<th>{way}</th>" for way in ways)
        title = f"{figure_of(last)}, at step {step:,}"
        return f"<table><caption>{title}</caption><tr><th></th>{head}</tr>{rows}</table>"

    def _changes_html(self) -> str:
        events = [event for event in self.reader.events() if event.kind in CHANGES][-3:]
        items = (f"<li>step {event.step:,}: {escaped(event.text)}</li>" for event in events)
        return f"<ul>{''.join(items)}</ul>" if events else ""


def _figure(score: Mapping[str, Any]) -> str:
    """Return a figure with its interval."""
    value, low, high = ends_of(score)
    if math.isnan(value):
        return ""
    interval = "" if math.isnan(low) else f" ({low:.2f} to {high:.2f})"
    return f"{value:.2f}{interval}"
