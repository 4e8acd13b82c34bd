"""Words of the headline: what each method says of itself in half a sentence, names, durations."""

from collections.abc import Mapping
from typing import Any

MOST_LETTERS = 60


def told(name: Any) -> str:
    """Return a name from a run between quotation marks, shortened."""
    text = str(name)
    shown = text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"
    return f"\N{LEFT SINGLE QUOTATION MARK}{shown}\N{RIGHT SINGLE QUOTATION MARK}"


def duration(seconds: float) -> str:
    """Return a duration as people say it."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5_400:
        return f"{round(seconds / 60)} minutes"
    if seconds < 36 * 3_600:
        return f"{seconds / 3_600:.1f} hours"
    return f"{seconds / 86_400:.1f} days"


def about_method(said: Mapping[str, Any]) -> str:
    """Return what a method that has no stages is doing; empty if it has them, or is not known."""
    method = _METHODS.get(str(said.get("curriculum")))
    return method(said) if method else ""


def _count(said: Mapping[str, Any], name: str) -> int:
    value = said.get(name)
    return value if isinstance(value, int) else 0


def _frontier(said: Mapping[str, Any]) -> str:
    zone, mastered, probed = (_count(said, f"num_{n}") for n in ("in_zone", "mastered", "probed"))
    total = _count(said, "num_tasks")
    text = f"{zone:,} of {total:,} tasks are learnable now, {mastered:,} mastered"
    text += f", {probed:,} tried now and then"
    barren = _count(said, "num_barren_rounds")
    if barren >= 5 and zone == 0:
        text += f"; nothing new in {barren} rounds of probing"
    return text


def _learnability(said: Mapping[str, Any]) -> str:
    mean = said.get("mean_learnability")
    text = f"mean learnability {mean:.2f} of 0.25" if isinstance(mean, float) else "learnability"
    untried = _count(said, "num_untried")
    return (
        f"{text}, {untried:,} of {_count(said, 'num_tasks'):,} tasks untried" if untried else text
    )


def _progress(said: Mapping[str, Any]) -> str:
    labels = _rows(said, "labels")
    if labels:
        best = max(labels, key=lambda row: row[2])
        return f"success changes most in {told(best[0])}, which gets {best[2]:.0%} of the draws"
    moving, total = _count(said, "num_progressing"), _count(said, "num_tasks")
    return f"the success of {moving:,} of {total:,} tasks is changing"


def _bandit(said: Mapping[str, Any]) -> str:
    labels = _rows(said, "labels")
    if not labels:
        return ""
    best = max(labels, key=lambda row: row[3] if len(row) > 3 else 0.0)
    score = said.get("scored_by", "score")
    return f"{told(best[0])} has the largest {score} and {best[-1]:.0%} of the draws"


def _replay(said: Mapping[str, Any]) -> str:
    seen, total, prob = _count(said, "num_seen"), _count(said, "num_tasks"), said.get("replay_prob")
    text = f"{seen:,} of {total:,} tasks have a score"
    return (
        f"{text}; the next draw is a replay with probability {prob:.2f}"
        if isinstance(prob, float)
        else text
    )


def _uniform(said: Mapping[str, Any]) -> str:
    count = _count(said, "num_tasks")
    return f"all {count:,} tasks are drawn alike" if count > 1 else ""


def _rows(said: Mapping[str, Any], name: str) -> list[list[Any]]:
    """Return a table of an explanation: rows of a name and numbers; rows of anything else go."""
    rows = said.get(name)
    return [
        row
        for row in (rows if isinstance(rows, list) else [])
        if isinstance(row, list)
        and len(row) >= 3
        and all(isinstance(x, int | float) for x in row[1:])
    ]


_METHODS = {
    "Uniform": _uniform,
    "Frontier": _frontier,
    "Learnability": _learnability,
    "LearningProgress": _progress,
    "AdvantageBandit": _bandit,
    "LevelReplay": _replay,
}
