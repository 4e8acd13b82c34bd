"""What a curriculum decided, with its reasons, each decision once: for the log of a run.

Reads the histories that the methods keep; whoever writes a run asks once per epoch.
"""

from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from stepladder.curricula.base import Curriculum
from stepladder.curricula.nested import all_methods
from stepladder.curricula.owner import Quarantined
from stepladder.curricula.phased import Phased
from stepladder.curricula.phased_report import PhaseChange
from stepladder.curricula.staged import Staged
from stepladder.curricula.staged_report import StageChange

STAGE_KINDS = {"demotion": "stage_demoted", "manual": "stage_set"}
"""Kind of a change of stage by the rule that made it; any other rule is an advancement."""


class CurriculumEvent(NamedTuple):
    """One decision."""

    kind: str
    """stage_advanced, stage_demoted, stage_set, phase_changed or quarantined."""

    text: str
    """What happened and why, in a line."""

    data: dict[str, Any]
    """All its numbers, as plain JSON. ``within`` names the phases around it, if there are any."""


@dataclass
class EventCursor:
    """How much of a curriculum's histories has been read; `curriculum_events` moves it on."""

    positions: dict[str, int] = field(default_factory=dict[str, int])
    """Entries read, by history."""

    @classmethod
    def at_end(cls, curriculum: Curriculum) -> "EventCursor":
        """Begin with what happens from now on, such as after a restore."""
        cursor = cls()
        curriculum_events(curriculum, cursor)
        return cursor


def curriculum_events(curriculum: Curriculum, since: EventCursor) -> list[CurriculumEvent]:
    """Return what was decided since the last call with this cursor, and move the cursor on.

    Changes of stage and phase come in the order of the plans they made, those inside phases
    included; then the tasks that were quarantined. After the restore of an older snapshot the
    cursor continues from there.
    """
    changes: list[tuple[int, CurriculumEvent]] = []
    for path, method in all_methods(curriculum):
        if isinstance(method, Staged):
            for change in _unread(since, f"stages of {path!r}", method.history):
                changes.append((change.plan_version, _stage_event(change, path)))
        elif isinstance(method, Phased):
            for change in _unread(since, f"phases of {path!r}", method.history):
                changes.append((change.plan_version, _phase_event(change, path)))
    changes.sort(key=lambda entry: entry[0])
    lost = _unread(since, "quarantined", curriculum.quarantined)
    return [*(event for _, event in changes), *map(_quarantine_event, lost)]


def _unread(since: EventCursor, name: str, history: list[Any]) -> list[Any]:
    position = since.positions.get(name, 0)
    since.positions[name] = len(history)
    return history[position:]


def _stage_event(change: StageChange, path: str) -> CurriculumEvent:
    kind = STAGE_KINDS.get(change.rules[0] if change.rules else "", "stage_advanced")
    return CurriculumEvent(kind, str(change), {**change.to_json(), **_within(path)})


def _phase_event(change: PhaseChange, path: str) -> CurriculumEvent:
    return CurriculumEvent("phase_changed", str(change), {**asdict(change), **_within(path)})


def _quarantine_event(entry: Quarantined) -> CurriculumEvent:
    text = f"task {entry.task!r} of label {entry.label!r} could not be built: {entry.reason}"
    if entry.replaced:
        text += "; another task took its slot"
    return CurriculumEvent("quarantined", text, asdict(entry))


def _within(path: str) -> dict[str, str]:
    return {"within": path} if path else {}
