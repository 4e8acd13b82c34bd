"""Checks of what an env returns: spaces, types, numbers, ends, and Gymnasium's own checker."""

from collections.abc import Iterator

from stepladder.diagnosis.evidence import EnvEvidence
from stepladder.diagnosis.finding import Told, check, error, note, warning
from stepladder.diagnosis.probes.playing import GIVEN_UP_AFTER

HARMLESS = (
    "space minimum value is -infinity",
    "space maximum value is infinity",
    "we recommend using a symmetric and normalized space",
    "Casting input x to numpy array",
    "is different from the unwrapped version",
    "The environment is being initialised with render_mode",
    "has no 'render_fps'",
)
"""Warnings of Gymnasium's checker about what works well with the agents here, or about the checker
itself."""

TOLD_ELSEWHERE = (
    "is not within the observation space",
    "was expecting numpy array dtype",
    "is non-deterministic",
    "not equivalent",
    "not equal although similar",
    "does not call `super().reset(seed=seed)`",
    "nan",
    "inf",
)
"""Of the same, what the other checks find with a value."""


@check("gymnasium", "env")
def gymnasium(env: EnvEvidence) -> Iterator[Told]:
    """Gymnasium's own checker (`gymnasium.utils.env_checker.check_env`) objects."""
    found = env.conformity
    if found is None:
        return
    fix = "See the contract at https://gymnasium.farama.org/api/env/, and fix the env."
    if found.failure is not None and not _is_told_elsewhere(env, found.failure):
        yield error(f"Gymnasium's checker stops: {found.failure}", fix)
    for text in found.warnings:
        if any(part in text for part in HARMLESS):
            yield note(f"Gymnasium's checker says: {text}", "Nothing, unless it surprises you.")
        elif not _is_told_elsewhere(env, text):
            yield warning(f"Gymnasium's checker says: {text}", fix)


def _is_told_elsewhere(env: EnvEvidence, text: str) -> bool:
    play, repeats = env.play, env.repeats
    is_known = play is not None and (play.not_finite or play.outside or play.cast)
    is_known = is_known or (repeats is not None and repeats.again_differs_at is not None)
    return bool(is_known) and any(part in text for part in TOLD_ELSEWHERE)


@check("outside-space", "env")
def outside_space(env: EnvEvidence) -> Iterator[Told]:
    """Observations have another shape or type than their space, or lie outside it."""
    if env.play is None:
        return
    for text in env.play.outside:
        yield error(text, "Correct observation_space, or clip or reshape what the env returns.")
    for text in env.play.cast:
        yield warning(
            f"{text}; it is converted, which takes time",
            "Return it with .astype(self.observation_space.dtype).",
        )


@check("spaces-unsupported", "env")
def unsupported(env: EnvEvidence) -> Iterator[Told]:
    """The agents here cannot learn in a space of the env."""
    if env.made is not None:
        for text in env.made.unsupported:
            yield warning(
                text, "Give --wrappers module:name that leave it out or turn it into numbers."
            )


@check("not-finite", "env")
def not_finite(env: EnvEvidence) -> Iterator[Told]:
    """Observations or rewards are NaN or infinite, or a reward is no number."""
    if env.play is not None:
        for text in env.play.not_finite:
            yield error(
                f"{text}; expected finite numbers",
                "Fix the env: no agent can learn from this, and a training stops there.",
            )


@check("endless-episodes", "env")
def endless(env: EnvEvidence) -> Iterator[Told]:
    """No episode ends."""
    played = () if env.play is None else env.play.episodes
    longest = max((one.length for one in played), default=0)
    if played and longest >= GIVEN_UP_AFTER and not any(one.has_ended for one in played):
        yield error(
            f"no episode of {len(played)} has ended within {longest:,} steps; the curriculum "
            "learns from episodes that end",
            "Let the env end, or cut episodes off: --max-episode-steps 1000.",
        )


CHECKS = (gymnasium, outside_space, unsupported, not_finite, endless)
