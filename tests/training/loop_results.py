"""What the run of a loop leaves behind, to be compared."""

from pathlib import Path
from typing import Any

from stepladder.runs import RunReader
from training.training_scenes import metrics, of_snapshot


def left_behind(folder: Path) -> dict[str, Any]:
    """Return what a run holds and no clock decides."""
    reader = RunReader(folder)
    events = [(event.step, event.kind, event.text) for event in reader.events()]
    return {
        "metrics": metrics(folder),
        "events": [event for event in events if event[1] not in ("resumed", "explanation")],
        "checkpoint": of_snapshot(reader.checkpoint()),
        "tasks": {name: repr(list(column)) for name, column in reader.tasks().items()},
    }
