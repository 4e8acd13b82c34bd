"""Checks of the signals that a curriculum learns from: success and returns."""

from collections.abc import Iterator

from stepladder.curricula.config import SignalConfig
from stepladder.diagnosis.evidence import EnvEvidence, PlayedEpisode
from stepladder.diagnosis.finding import Told, check, error, note, warning
from stepladder.training.config import UNCHOSEN

FEW = 6
"""Episodes with fewer of which nothing is said about what never happens."""

MANY = 20
"""Episodes that random play rarely solves all of, unless nothing has to be learned."""

RULE_OF_THREE = 3.0
"""What never happened in n episodes has a probability below 3/n, with 95 % confidence."""

STANDS_OUT = 1.5
"""Factor by which a last reward is larger than all others if it is for solving the task."""

MANY_OUTSIDE, SOME_OUTSIDE = 0.5, 0.1
"""Shares of returns outside a range from which it is an error, and a warning."""


def _ended(env: EnvEvidence) -> list[PlayedEpisode]:
    return [] if env.play is None else [one for one in env.play.episodes if one.has_ended]


@check("success-missing", "env")
def missing(env: EnvEvidence) -> Iterator[Told]:
    """Success cannot be read at the end of episodes, and is needed or named."""
    ended = _ended(env)
    if ended and all(one.success is None and not one.success_trouble for one in ended):
        keys = ", ".join(ended[0].info_keys) or "nothing"
        made = env.made
        is_choice = made is not None and made.has_tasks and made.num_tasks != 1
        # Who names a curriculum that needs no success has decided so.
        tell = warning if is_choice and env.config.curriculum == UNCHOSEN else note
        yield tell(
            f"none of {len(ended)} episodes says whether it succeeded, and the curriculum here "
            f"does not need it; the last info has: {keys}",
            "Add is_success to the last info, or give --success-key NAME or --return-threshold X: "
            "most curricula need it.",
        )
    bad = [one for one in ended if one.success_trouble]
    if not bad:
        return
    if len(bad) == len(ended):
        keys = ", ".join(bad[0].info_keys) or "nothing"
        yield error(
            f"none of {len(ended)} episodes says whether it succeeded: {bad[0].success_trouble} "
            f"The last info has: {keys}",
            "Add is_success to the last info, or give --success-key NAME or --return-threshold X.",
        )
    else:
        yield error(
            f"{len(bad)} of {len(ended)} episodes do not say whether they succeeded: "
            f"{bad[0].success_trouble}",
            "Set the key at the end of every episode, or give --missing-success-is-failure if it "
            "is there on success only.",
        )


@check("success-never", "env")
def never(env: EnvEvidence) -> Iterator[Told]:
    """Success is never reported, though episodes end well."""
    known = [one for one in _ended(env) if one.success is not None]
    if len(known) < FEW or any(one.success for one in known):
        return
    # A last reward that is larger than any other one says that a task was solved.
    usual = max(0.0, max(one.best_before for one in known))
    good = [one for one in known if one.terminated and one.last_reward > STANDS_OUT * usual]
    good = [one for one in good if one.last_reward > 0.0]
    if good and len(good) < len(known):
        yield error(
            f"success is 0 in all of {len(known)} episodes, also in {len(good)} that ended with a "
            f"last reward of {good[0].last_reward:g}, and no other step got more than {usual:g}; "
            "expected success in those",
            "Set is_success where the env gives its final reward; look at its type and its key.",
        )
        return
    yield note(
        f"success is 0 in all of {len(known)} episodes of random play (below "
        f"{RULE_OF_THREE / len(known):.2f} with 95 % confidence)",
        "Nothing if the tasks are hard; an easier one beside them gives learning a beginning.",
    )


@check("success-always", "env")
def always(env: EnvEvidence) -> Iterator[Told]:
    """Every episode of random play counts as a success."""
    known = [one for one in _ended(env) if one.success is not None]
    if len(known) < FEW or not all(one.success == 1.0 for one in known):
        return
    fix = (
        "Set is_success only where the task is solved; raise --return-threshold; or give harder "
        "tasks."
    )
    cut_off = [one for one in known if one.truncated and not one.terminated]
    floor = -STANDS_OUT * max(abs(one.best_before) for one in known)
    punished = [one for one in known if one.last_reward < min(0.0, floor)]
    text = f"all of {len(known)} episodes of random play count as successes"
    if punished or 0 < len(cut_off) < len(known):
        which = (
            f"{len(punished)} that ended with a last reward of {punished[0].last_reward:g}"
            if (punished)
            else f"{len(cut_off)} that were cut off while others ended"
        )
        yield error(f"{text}, also {which}; expected some failures: every stage is passed", fix)
    elif len(known) >= MANY:
        yield warning(f"{text}; expected some failures, or nothing is left to learn", fix)


@check("returns-outside-range", "env")
def outside_range(env: EnvEvidence) -> Iterator[Told]:
    """Returns lie outside the range that the curriculum is told to expect."""
    config, ended = env.config.curriculum, _ended(env)
    if not isinstance(config, SignalConfig) or config.signal != "return" or len(ended) < FEW:
        return
    expected = config.return_range
    if expected is None:
        return
    low, high = expected
    returns = [one.total for one in ended]
    share = sum(not low <= one <= high for one in returns) / len(returns)
    text = (
        f"{share:.0%} of {len(returns)} returns of random play lie outside {low:g} to {high:g}, "
        f"which the curriculum is told to expect: they go from {min(returns):g} to "
        f"{max(returns):g}, and count as 0 or 1"
    )
    fix = "Set curriculum.return_low and return_high to what the env gives, or leave both out."
    if share >= MANY_OUTSIDE:
        yield error(text, fix)
    elif share >= SOME_OUTSIDE:
        yield warning(text, fix)


CHECKS = (missing, never, always, outside_range)
