"""The course of stages and phases: where a run was when, and why it went on or back."""

from collections.abc import Mapping
from typing import Any

from stepladder.dashboard.queries.labels import stage_labels
from stepladder.dashboard.queries.places import names_of
from stepladder.dashboard.queries.standing import curriculum_of, kind_of_curriculum
from stepladder.files import parsed_json
from stepladder.runs import RunReader
from stepladder.runs.database import text_of

CHANGE_KINDS = ("stage_advanced", "stage_demoted", "stage_set", "phase_changed")
MOST_CHANGES = 1_000
"""Changes that are shown: the latest ones."""

_TRACK_OF = {"staged": "stage", "phased": "phase"}


def timeline(reader: RunReader, params: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a track for phases and one for stages, each with its segments and changes."""
    places = ", ".join("?" * len(CHANGE_KINDS))
    with reader.database() as database:
        rows = database.execute(
            f"SELECT step, time, kind, text, data FROM events WHERE kind IN ({places})"
            " ORDER BY id DESC LIMIT ?",
            (*CHANGE_KINDS, MOST_CHANGES),
        ).fetchall()[::-1]
        end = database.execute(
            "SELECT max(ifnull((SELECT max(step) FROM steps), 0),"
            " ifnull((SELECT max(step) FROM events), 0))"
        ).fetchone()[0]
    tracks: dict[tuple[str, str], list[dict[str, Any]]] = {}
    limits = _limits(reader)
    for step, time, kind, text, data in rows:
        parsed = parsed_json(data) if isinstance(data, str) else {}
        numbers = parsed if isinstance(parsed, dict) else {}
        of = "phase" if kind == "phase_changed" else "stage"
        begun, reached = numbers.get(f"from_{of}"), numbers.get(f"to_{of}")
        if not isinstance(begun, str) or not isinstance(reached, str):
            continue
        tracks.setdefault((of, str(numbers.get("within", ""))), []).append(
            {"step": step, "time": time, "kind": kind, "from": begun, "to": reached}
            | {"text": text_of(text), "why": _why(kind, numbers, limits)}
        )
    kind = kind_of_curriculum(reader.config)
    # A run has its track even if nothing has changed yet.
    if kind in _TRACK_OF and _order(reader, _TRACK_OF[kind]):
        tracks.setdefault((_TRACK_OF[kind], ""), [])
    return [
        _track(of, within, changes, end, _order(reader, of))
        for (of, within), changes in tracks.items()
    ]


def _order(reader: RunReader, of: str) -> list[str]:
    if of == "phase":
        return names_of(curriculum_of(reader.config).get("phases"))
    return [name for name, _ in stage_labels(reader.config)]


def _track(
    of: str, within: str, changes: list[dict[str, Any]], end: int, order: list[str]
) -> dict[str, Any]:
    names = list(dict.fromkeys([*order, *(n for c in changes for n in (c["from"], c["to"]))]))
    begun = changes[0]["from"] if changes else names[0] if names else ""
    segments: list[dict[str, Any]] = []
    start = 0
    for change in changes:
        segments.append({"name": begun, "start": start, "end": change["step"]})
        begun, start = change["to"], change["step"]
    segments.append({"name": begun, "start": start, "end": max(end, start)})
    return {"of": of, "within": within, "names": names, "segments": segments, "changes": changes}


def _limits(reader: RunReader) -> dict[str, Mapping[str, Any]]:
    """Return the settings of the outermost phases by name: what ends them stands there."""
    phases = curriculum_of(reader.config).get("phases")
    found = phases if isinstance(phases, list) else []
    return {str(one.get("name")): one for one in found if isinstance(one, Mapping)}


def _why(kind: str, numbers: Mapping[str, Any], limits: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the reason of a change in a few words; empty if its numbers do not say."""
    success, episodes = numbers.get("success"), numbers.get("episodes")
    if not isinstance(success, int | float) or not isinstance(episodes, int):
        return ""
    told = f"success {success:.2f} after {episodes:,} episodes"
    if kind == "phase_changed":
        rule = str(numbers.get("rule"))
        limit = limits.get(str(numbers.get("from_phase")), {}).get(rule)
        if not isinstance(limit, int | float) or isinstance(limit, bool):
            return f"{told} (its limit of {rule} was reached)"
        asked = f"success of {limit:.2f}" if rule == "success" else f"{limit:,.0f} {rule}"
        return f"{told} (the phase ends at {asked})"
    rules, needs = numbers.get("rules"), numbers.get("needs")
    asked = [
        f"{rule} rule: {'below' if rule == 'demotion' else 'at least'} {need[0]:.2f}"
        for rule, need in (needs.items() if isinstance(needs, Mapping) else ())
        if isinstance(need, list) and need and isinstance(need[0], int | float)
    ]
    if not asked and isinstance(rules, list):
        asked = [f"rule: {', '.join(map(str, rules))}"]
    return f"{told} ({'; '.join(asked)})" if asked else told
