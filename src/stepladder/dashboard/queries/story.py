"""The headline of a run in words: where its curriculum stands, how good it is, what comes next.

Built from what the curriculum said of itself last (`RunReader.curriculum_standing`), and from
metrics and settings where a run does not keep that.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from stepladder.dashboard.queries.held_out import ends_of_whole, random_play
from stepladder.dashboard.queries.pace import Pace, pace_of_labels
from stepladder.dashboard.queries.places import place
from stepladder.dashboard.queries.standing import (
    RunStanding,
    kind_of_curriculum,
    last_value,
    standing,
    subject,
)
from stepladder.dashboard.queries.timeline import timeline
from stepladder.dashboard.queries.wording import about_method, duration, told
from stepladder.runs import RunReader


def story(reader: RunReader, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the headline's sentences, what the curriculum says, and where the run stands."""
    stands = standing(reader)
    said = reader.curriculum_standing()
    inner = innermost(said)
    where = place(reader)
    sentences = [*_where(reader, where, inner), *_how_good(reader), *_next(reader, inner, stands)]
    return {
        "headline": [sentence for sentence in sentences if sentence],
        "said": _text(reader, said),
        "said_at": said.get("step"),
        "standing": asdict(stands),
        "needed": _needed(inner),
        "kind": reader.kind,
        "subject": subject(reader.config),
        "curriculum": kind_of_curriculum(reader.config),
        "place": where,
        "seed": reader.seed,
        "created": reader.info.created,
        "version": reader.info.version,
    }


def innermost(said: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the curriculum inside phases, or the one that was chosen, says of itself."""
    for _ in range(20):
        inner = said.get("inner")
        if not isinstance(inner, Mapping):
            break
        said = inner
    return said


def _where(
    reader: RunReader, where: Mapping[str, Any] | None, inner: Mapping[str, Any]
) -> list[str]:
    found: list[str] = []
    if where is not None:
        name = f": {told(where['name'])}" if where["name"] else ""
        of = f" of {where['count']}" if where["count"] else ""
        found.append(f"{where['kind'].capitalize()} {where['index'] + 1}{of}{name}")
    method = about_method(inner)
    if method:
        found.append(method)
    with reader.database() as database:
        mastered = last_value(database, "overview/mastered_fraction")
        if mastered is not None:
            found.append(f"{mastered:.0%} of what can be learned is mastered")
        if not found:
            played = last_value(database, "env_curriculum_stats/num_active_tasks")
            name = kind_of_curriculum(reader.config)
            if name:
                tasks = "" if played is None else f" over {played:,.0f} tasks"
                found.append(f"{name.capitalize()} curriculum{tasks}")
    return found


def _how_good(reader: RunReader) -> list[str]:
    measured = ends_of_whole(reader)
    if not measured:
        with reader.database() as database:
            success = last_value(database, "env_info/curriculum_success")
        return [] if success is None else [f"success in training {success:.2f}"]
    (_, (value, low, high), figure), random = measured[-1], random_play(reader)
    if value is None:
        return []
    what = "held-out return" if "return" in figure else "held-out"
    text = f"{what} {value:.2f}"
    if low is not None and high is not None:
        text += f" ({low:.2f} to {high:.2f})"
    first = measured[0][1][0]
    if len(measured) > 1 and first is not None:
        change = value - first
        if abs(change) < 0.005:
            text += ", as at the first evaluation"
        else:
            text += (
                f", {'up' if change > 0 else 'down'} {abs(change):.2f} since the first evaluation"
            )
    if random is not None:
        text += f"; random play {random:.2f}"
    return [text]


def _next(reader: RunReader, inner: Mapping[str, Any], stands: RunStanding) -> list[str]:
    """Return what ends the present stage or phase, and when at this pace."""
    found: list[str] = []
    outer = reader.curriculum_standing()
    if isinstance(outer.get("limits"), Mapping) and isinstance(outer.get("phase"), str):
        found.append(_phase_end(outer, stands))
    if isinstance(inner.get("stages"), list) and isinstance(inner.get("stage_index"), int):
        found.append(_stage_end(reader, inner, stands))
    if stands.status == "running" and stands.seconds_left is not None:
        found.append(f"about {duration(stands.seconds_left)} to the end of its budget")
    elif stands.status != "running":
        ended = {"finished": "finished", "crashed": "crashed", "stopped": "stopped"}
        word = ended.get(stands.status, "silent for a while,")
        detail = f": {stands.detail}" if stands.detail and stands.status == "crashed" else ""
        found.append(f"{word} after {stands.step:,} steps in {duration(stands.seconds)}{detail}")
    return found


def _stage_end(reader: RunReader, said: Mapping[str, Any], stands: RunStanding) -> str:
    reports = [one for one in said["stages"] if isinstance(one, Mapping)]
    index = said["stage_index"]
    if not 0 <= index < len(reports):
        return ""
    now = reports[index]
    name, success = now.get("stage"), now.get("judged_success")
    needed, episodes = now.get("advancement_threshold"), now.get("min_episodes")
    if said.get("is_last"):
        if isinstance(success, float):
            return f"{told(name)} is the last stage, success now {success:.2f}"
        return f"{told(name)} is the last stage"
    if not isinstance(needed, int | float) or not isinstance(success, int | float):
        return ""
    text = f"{told(name)} advances at {needed:.2f}, now {success:.2f}"
    lacking = 0
    if isinstance(episodes, int) and isinstance(now.get("episodes"), int):
        lacking = max(0, episodes - now["episodes"])
        if lacking:
            text += f" and {lacking:,} more episodes to play"
    if stands.status != "running":
        return text
    return f"{text}, {_when(reader, name, needed - success, lacking, stands)}"


def _needed(said: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the current stage and the success that it asks for; None without stages."""
    reports, index = said.get("stages"), said.get("stage_index")
    if not isinstance(reports, list) or not isinstance(index, int) or said.get("is_last"):
        return None
    now = reports[index] if 0 <= index < len(reports) else None
    if not isinstance(now, Mapping):
        return None
    return {"stage": str(now.get("stage")), "at_least": now.get("advancement_threshold")}


def _when(reader: RunReader, stage: Any, missing: float, lacking: int, stands: RunStanding) -> str:
    """Say when a stage is left if its success goes on rising as it has since it was entered."""
    tracks = [track for track in timeline(reader, {}) if track["of"] == "stage"]
    entered = tracks[0]["segments"][-1]["start"] if tracks else 0
    pace: Pace | None = pace_of_labels(reader, str(stage), entered)
    seconds = 0.0
    if missing > 0:
        if pace is None:
            return "too new to tell when"
        if pace.per_second <= 0:
            return "and not rising at present"
        if not pace.is_clear:
            return "rising too unevenly to tell when"
        seconds = missing / pace.per_second
    if lacking and stands.episodes and stands.seconds:
        seconds = max(seconds, lacking * stands.seconds / stands.episodes)
    if missing <= 0 and not lacking:
        return "due at the next check"
    return f"about {duration(seconds)} at this pace"


def _phase_end(said: Mapping[str, Any], stands: RunStanding) -> str:
    played = {
        "episodes": said.get("phase_episodes"),
        "steps": said.get("phase_steps"),
        "success": said.get("phase_success"),
    }
    parts: list[str] = []
    for name, limit in said["limits"].items():
        now = played.get(name)
        if not isinstance(limit, int | float) or not isinstance(now, int | float):
            continue
        shown = "{:.2f}" if name == "success" else "{:,.0f}"
        parts.append(f"{shown.format(limit)} {name} (now {shown.format(now)})")
    if not parts:
        return f"{told(said['phase'])} goes on to the end of the run"
    return f"{told(said['phase'])} ends at {' or '.join(parts)}"


def _text(reader: RunReader, said: Mapping[str, Any]) -> str:
    """Return what the curriculum says in words; of older runs, what they said at their end."""
    text = said.get("text")
    if isinstance(text, str):
        return text
    with reader.database() as database:
        row = database.execute(
            "SELECT text FROM events WHERE kind = 'explanation' ORDER BY id DESC LIMIT 1"
        ).fetchone()
    return row[0] if row and isinstance(row[0], str) else ""
