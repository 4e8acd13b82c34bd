"""What came out, in words: how the curriculum did beside uniform and the oracle, and why.

Last step of the playground: courses in, sentences out.
"""

from stepladder.simulator.base import Scenario
from stepladder.simulator.playground.course import PlayedCourse


def in_words(
    place: Scenario, name: str, chosen: PlayedCourse, uniform: PlayedCourse, oracle: PlayedCourse
) -> str:
    """Return one sentence on how a curriculum did beside the two others."""
    unit = place.measure.partition(" until ")[0]
    if chosen.is_cut:
        return (
            f"the time for an answer was over after {chosen.samples[-1]:,} {unit}: a smaller "
            "scenario or a smaller budget is answered to its end"
        )
    if chosen.done_at is None:
        text = f"{name} is not done after {chosen.samples[-1]:,} {unit}"
        text += f" ({chosen.progress[-1]:.0%} of the way)"
        if uniform.done_at is not None:
            return f"{text}; uniform is after {uniform.done_at:,}"
        if uniform.is_cut:
            return text
        ahead = "further than" if uniform.progress[-1] < chosen.progress[-1] else "no further than"
        return f"{text}, {ahead} uniform ({uniform.progress[-1]:.0%})"
    if chosen.done_at == 0:
        return "everything is learned from the start: nothing is left to compare"
    text = f"{name} is done after {chosen.done_at:,} {unit}"
    parts: list[str] = []
    if oracle.done_at:
        ratio = chosen.done_at / oracle.done_at
        parts.append(f"{ratio:.1f} times what the oracle needs ({oracle.done_at:,})")
    if uniform.done_at:
        parts.append(_beside_uniform(chosen.done_at, uniform.done_at))
    elif not uniform.is_cut:
        parts.append(f"uniform is not within {uniform.samples[-1]:,}")
    return f"{text}: {'; '.join(parts)}" if parts else text


def _beside_uniform(own: int, other: int) -> str:
    ratio = other / own
    if ratio >= 1.05:
        return f"{ratio:.1f} times as fast as uniform ({other:,})"
    if ratio <= 1.0 / 1.05:
        return f"{1.0 / ratio:.1f} times as slow as uniform ({other:,})"
    return f"about as fast as uniform ({other:,})"
