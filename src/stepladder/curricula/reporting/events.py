"""What a curriculum decided, with its reasons, each decision once: for the log of a run.

Reads the histories and states that the methods keep; `runs.reporter` asks once per epoch.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, TypeVar, cast

from stepladder.curricula.base import Curriculum
from stepladder.curricula.owner import Quarantined
from stepladder.curricula.reporting.explanation import TaskExplanation
from stepladder.errors import SnapshotError, counted

MOST_MOVES = 20
"""Changes of single tasks that each call lists one by one."""


Entry = TypeVar("Entry")


class CurriculumEvent(NamedTuple):
    """One decision."""

    kind: str
    """What a method calls its change (stage_advanced, stage_demoted, stage_set, phase_changed),
    quarantined, replaced, or, for a task in another state than before, task_STATE, such as
    task_mastered; tasks_moved for those too many to list."""

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

    @classmethod
    def from_json(cls, saved: Any) -> "EventCursor":
        """Return the cursor of which `asdict` and JSON made this; JSON has no tuples.

        Raises:
            SnapshotError: It is damaged.
        """
        try:
            states = {
                name: [(int(generation), str(state)) for generation, state in slots]
                for name, slots in saved["states"].items()
            }
            positions = {name: int(position) for name, position in saved["positions"].items()}
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise SnapshotError(
                f"what was reported of the curriculum's decisions is damaged ({error!r})."
            ) from error
        return cls(positions, states)


def curriculum_events(curriculum: Curriculum, since: EventCursor) -> list[CurriculumEvent]:
    """Return what was decided since the last call with this cursor, and move the cursor on.

    Changes of stage and phase come in the order of the plans they made, those inside phases
    included; then the tasks that were quarantined, replaced, or seen in another state.
    After the restore of an older snapshot the cursor continues from there.
    """
    methods = list(curriculum.all_methods())
    changes = [
        (change, path)
        for path, method in methods
        for change in _unread(since, f"changes of {path!r}", method.changes())
    ]
    changes.sort(key=lambda entry: entry[0].plan_version)
    lost = _unread(since, "quarantined", curriculum.quarantined)
    return [
        *(
            CurriculumEvent(change.kind, str(change), {**change.to_json(), **_within(path)})
            for change, path in changes
        ),
        *map(_quarantine_event, lost),
        *(event for path, method in methods for event in _moves(method, path, since)),
    ]


def _moves(method: Curriculum, path: str, since: EventCursor) -> list[CurriculumEvent]:
    """Return which tasks a method sees elsewhere than before, and how many it has replaced."""
    events: list[CurriculumEvent] = []
    evicted = method.num_evicted
    before = since.positions.get(f"evicted by {path!r}", 0)
    since.positions[f"evicted by {path!r}"] = evicted
    if evicted > before:
        text = f"{counted(evicted - before, 'task')} made room for others; {evicted} so far"
        numbers = {"num_replaced": evicted - before, "num_evicted": evicted, **_within(path)}
        events.append(CurriculumEvent("replaced", text, numbers))
    states = method.states()
    return events + _state_changes(method, states, path, since) if states else events


def _state_changes(
    method: Curriculum, states: list[str], path: str, since: EventCursor
) -> list[CurriculumEvent]:
    now = list(zip(method.pool.generations.tolist(), states, strict=True))
    first = method.initial_state
    before = since.states.get(path) or [(generation, first) for generation, _ in now]
    since.states[path] = now
    # A task that has just come into its slot has not changed its state.
    moved = [
        slot
        for slot, (old, new) in enumerate(zip(before, now, strict=True))
        if old[0] == new[0] and old[1] != new[1]
    ]
    events: list[CurriculumEvent] = []
    for slot in moved[:MOST_MOVES]:
        explained = cast("TaskExplanation", method.explain(slot))
        change = f"went from {before[slot][1]} to {now[slot][1]}"
        text = f"task {explained.name!r} {change}: {explained.reason}"
        data = {"task": explained.name, "slot": slot, **explained.numbers, **_within(path)}
        events.append(CurriculumEvent(f"task_{now[slot][1]}", text, data))
    if len(moved) > MOST_MOVES:
        rest = len(moved) - MOST_MOVES
        text = f"{rest} more tasks changed their state; the table of tasks has them all"
        events.append(CurriculumEvent("tasks_moved", text, {"num_tasks": rest, **_within(path)}))
    return events


def _unread(since: EventCursor, name: str, history: Sequence[Entry]) -> Sequence[Entry]:
    position = since.positions.get(name, 0)
    since.positions[name] = len(history)
    return history[position:]


def _quarantine_event(entry: Quarantined) -> CurriculumEvent:
    text = f"task {entry.task!r} of label {entry.label!r} could not be built: {entry.reason}"
    if entry.replaced:
        text += "; another task took its slot"
    return CurriculumEvent("quarantined", text, asdict(entry))


def _within(path: str) -> dict[str, str]:
    return {"within": path} if path else {}
