"""What a curriculum decided, with its reasons, each decision once: for the log of a run.

Reads the histories that the methods keep; whoever writes a run asks once per epoch.
"""

from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, cast

from stepladder.curricula.base import Curriculum
from stepladder.curricula.explanation import TaskExplanation
from stepladder.curricula.frontier.frontier import Frontier
from stepladder.curricula.owner import Quarantined
from stepladder.curricula.phased.nested import all_methods
from stepladder.curricula.phased.phased import Phased
from stepladder.curricula.phased.report import PhaseChange
from stepladder.curricula.staged.report import StageChange
from stepladder.curricula.staged.staged import Staged

STAGE_KINDS = {"demotion": "stage_demoted", "manual": "stage_set"}
"""Kind of a change of stage by the rule that made it; any other rule is an advancement."""


MOST_MOVES = 20
"""Changes of single tasks that are told one by one, each time somebody asks."""


class CurriculumEvent(NamedTuple):
    """One decision."""

    kind: str
    """stage_advanced, stage_demoted, stage_set, phase_changed, quarantined, replaced, or, for a
    task that a `Frontier` sees in another state than before, task_probed, task_zone or
    task_mastered; tasks_moved for those too many to tell."""

    text: str
    """What happened and why, in a line."""

    data: dict[str, Any]
    """All its numbers, as plain JSON. ``within`` names the phases around it, if there are any."""


@dataclass
class EventCursor:
    """How much of a curriculum's histories has been read; `curriculum_events` moves it on."""

    positions: dict[str, int] = field(default_factory=dict[str, int])
    """Entries read, by history."""

    states: dict[str, list[tuple[int, str]]] = field(
        default_factory=dict[str, list[tuple[int, str]]]
    )
    """Generation and state of every slot when it was last looked at, by method."""

    @classmethod
    def at_end(cls, curriculum: Curriculum) -> "EventCursor":
        """Begin with what happens from now on, such as after a restore."""
        cursor = cls()
        curriculum_events(curriculum, cursor)
        return cursor


def curriculum_events(curriculum: Curriculum, since: EventCursor) -> list[CurriculumEvent]:
    """Return what was decided since the last call with this cursor, and move the cursor on.

    Changes of stage and phase come in the order of the plans they made, those inside phases
    included; then the tasks that were quarantined, replaced, or seen in another state.
    After the restore of an older snapshot the cursor continues from there.
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
    return [
        *(event for _, event in changes),
        *map(_quarantine_event, lost),
        *(
            event
            for path, method in all_methods(curriculum)
            for event in _moves(method, path, since)
        ),
    ]


def _moves(method: Curriculum, path: str, since: EventCursor) -> list[CurriculumEvent]:
    """Return which tasks a method sees elsewhere than before, and how many it has replaced."""
    events: list[CurriculumEvent] = []
    evicted = int(getattr(method, "num_evicted", 0))
    before = since.positions.get(f"evicted by {path!r}", 0)
    since.positions[f"evicted by {path!r}"] = evicted
    if evicted > before:
        text = f"{evicted - before} tasks made room for others; {evicted} so far"
        numbers = {"num_replaced": evicted - before, "num_evicted": evicted, **_within(path)}
        events.append(CurriculumEvent("replaced", text, numbers))
    if isinstance(method, Frontier):
        events += _state_changes(method, path, since)
    return events


def _state_changes(method: Frontier, path: str, since: EventCursor) -> list[CurriculumEvent]:
    now = list(zip(method.pool.generations.tolist(), method.states(), strict=True))
    before = since.states.get(path) or [(generation, "probed") for generation, _ in now]
    since.states[path] = now
    # A task that has just come into its slot has not changed its state.
    moved = [
        slot
        for slot, (old, new) in enumerate(zip(before, now, strict=True))
        if old[0] == new[0] and old[1] != new[1]
    ]
    events: list[CurriculumEvent] = []
    for slot in moved[:MOST_MOVES]:
        told = cast("TaskExplanation", method.explain(slot))
        text = f"task {told.name!r} went from {before[slot][1]} to {now[slot][1]}: {told.reason}"
        data = {"task": told.name, "slot": slot, **told.numbers, **_within(path)}
        events.append(CurriculumEvent(f"task_{now[slot][1]}", text, data))
    if len(moved) > MOST_MOVES:
        rest = len(moved) - MOST_MOVES
        text = f"{rest} more tasks changed their state; the table of tasks has them all"
        events.append(CurriculumEvent("tasks_moved", text, {"num_tasks": rest, **_within(path)}))
    return events


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
