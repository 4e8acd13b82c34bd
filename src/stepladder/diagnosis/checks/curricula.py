"""Checks of the settings of a curriculum: what is refused, never drawn, or never reached."""

import math
from collections.abc import Iterator

from stepladder.curricula.staged.config import StagedConfig
from stepladder.diagnosis.evidence import Drawing
from stepladder.diagnosis.finding import Told, check, error, warning
from stepladder.diagnosis.settings import (
    LEAVING_TRIALS,
    PLAUSIBLE,
    Leaving,
    SettingsEvidence,
    leaving,
    staged_parts,
)

ENOUGH_DRAWS = 50
"""Draws per label, if all were drawn alike, that are needed to call one never drawn."""

MUCH_LATER = 20.0
"""Times its minimum of episodes that a stage may last until luck helps."""

MANY_NAMED = 5


@check("config-refused", "config")
def refused(settings: SettingsEvidence) -> Iterator[Told]:
    """A training refuses the settings."""
    for path, text in settings.problems:
        # Most texts end with what to do; it stays part of the text, which is known to be right.
        yield error(f"{path}: {text}" if path else text, "Correct this setting.")


@check("labels-never-drawn", "config")
def never_drawn(settings: SettingsEvidence) -> Iterator[Told]:
    """A label is never drawn, even if nearly every episode succeeds."""
    drawing = settings.drawing
    if drawing is None or drawing.num_episodes < ENOUGH_DRAWS * len(drawing.by_label):
        return
    missing = [label for label, count in drawing.by_label.items() if not count]
    if not missing:
        return
    if _may_follow(settings, drawing):
        yield warning(
            f"{_names(missing)} not drawn in {drawing.num_episodes:,} episodes of an agent that "
            f"succeeds in {drawing.success:.0%} of them, which may be too few to tell",
            "Look at the thresholds and limits of the stages or phases before them.",
        )
        return
    yield error(
        f"{_names(missing)} never drawn in {drawing.num_episodes:,} episodes, though the agent "
        f"succeeds in {drawing.success:.0%} of them; expected draws of all "
        f"{len(drawing.by_label)} labels",
        "Give the label a weight, a stage or a phase that is reached, or remove its tasks.",
    )


def _may_follow(settings: SettingsEvidence, drawing: Drawing) -> bool:
    """Whether what comes later could bring the label, and the drawing ended too early to see."""
    comes_later = settings.curriculum.all_phases() or any(staged_parts(settings.curriculum))
    return bool(comes_later) and not drawing.is_complete


def _names(labels: list[str]) -> str:
    rest = f" and {len(labels) - MANY_NAMED} more" if len(labels) > MANY_NAMED else ""
    return (
        f"{', '.join(map(repr, labels[:MANY_NAMED]))}{rest} {'is' if len(labels) == 1 else 'are'}"
    )


@check("threshold-out-of-reach", "config")
def out_of_reach(settings: SettingsEvidence) -> Iterator[Told]:
    """A stage or a phase asks for more success than noise leaves to a good agent."""
    for path, config in staged_parts(settings.curriculum):
        for index in range(len(config.stages) - 1):
            found = leaving(config, index, PLAUSIBLE, settings.num_envs, settings.num_episodes)
            yield from _about_stage(f"{path}.stages[{index}]", config, index, found)
    for index, phase in enumerate(settings.curriculum.all_phases()[:-1]):
        ends_anyway = phase.episodes is not None or phase.steps is not None
        if phase.success is not None and phase.success > PLAUSIBLE and not ends_anyway:
            share = chance_of_window(phase.success, phase.window_episodes, PLAUSIBLE)
            yield (error if share < 0.01 else warning)(
                f"curriculum.phases[{index}] ({phase.name!r}) ends at success {phase.success:g} "
                f"over {phase.window_episodes} episodes; an agent that succeeds in {PLAUSIBLE:.0%} "
                f"has that in {share:.3g} of all windows",
                f"Lower success to {PLAUSIBLE:g} or less, or give the phase a limit of episodes.",
            )


def _about_stage(path: str, config: StagedConfig, index: int, found: Leaving) -> Iterator[Told]:
    window, threshold = config.window_episodes, found.threshold
    if found.share >= 0.5 and threshold <= PLAUSIBLE:
        return
    least = config.min_episodes_of(index)
    needed = math.ceil(threshold * window - 1e-9)
    where = (
        f"{path} ({found.stage!r}) advances at {threshold:g} over {window} episodes, which is "
        f"{needed} of {window}: an agent that succeeds in {PLAUSIBLE:.0%} "
    )
    fix = f"Lower the threshold to about {PLAUSIBLE - 0.1:.2f}, below what a good agent reaches."
    chance = chance_of_window(threshold, window, PLAUSIBLE)
    if found.share < 0.5:
        yield error(
            f"{where}has that in {chance:.2g} of all windows, and leaves the stage within "
            f"{found.num_tried:,} episodes in {found.share:.0%} of {LEAVING_TRIALS} trials",
            fix,
        )
    else:
        tell = error if found.median_episodes > MUCH_LATER * least else warning
        yield tell(
            f"{where}has that in {chance:.2g} of all "
            f"windows, so the stage is left by luck, after {found.median_episodes:,.0f} episodes "
            f"in the median (minimum {least})",
            fix,
        )


def chance_of_window(threshold: float, window: int, success: float) -> float:
    """Return the probability that a full window of episodes reaches a threshold.

    Args:
        threshold: Mean success that is needed.
        window: Episodes in the window.
        success: Probability that an episode succeeds, above 0 and below 1.

    Example:
        >>> round(chance_of_window(0.98, 20, 0.95), 3)
        0.358
    """
    least = math.ceil(threshold * window - 1e-9)
    log = math.lgamma
    terms = (
        log(window + 1)
        - log(won + 1)
        - log(window - won + 1)
        + won * math.log(success)
        + (window - won) * math.log1p(-success)
        for won in range(least, window + 1)
    )
    return min(1.0, math.fsum(map(math.exp, terms)))


CHECKS = (refused, never_drawn, out_of_reach)
