"""Checks of what a run has learned: never, no longer, less than before.

Success is compared with its noise. Held-out success counts if there is any, for what is practised
changes while an agent learns; else the success of each label in practice.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from stepladder.diagnosis.finding import Told, check, error, warning
from stepladder.diagnosis.record_of_run import LabelCurve, RunEvidence

SURE = 3.0
"""Standard deviations from which a difference between two given parts is no chance."""

CHANCE_OF_BEST = 3.4
"""Standard deviations that the last part may lie below what it should be, in any of ten labels."""

LARGE_DROP = 0.25
LOST_SHARE = 0.5
"""Share of its best success up to which a label counts as lost."""

HIGH_SUCCESS = 0.8
"""Success above which nothing has to rise any more."""

DISTINCT = 16.0
"""Held-out games of a label that count at most: fixed levels are played again and again."""

BLOCK, MOST_BLOCKS = 60.0, 20.0
"""Episodes of practice that are judged together at least, and parts of a run at most."""

FEW_EVALUATIONS = 5

LEVEL_RISE, LEVEL_GAIN = 0.1, 0.02
"""Rise within the second half, and gain over the best before, up to which success is level."""


class Block(NamedTuple):
    """Success over a part of a run."""

    step: float
    rate: float
    num_episodes: float


def blocks_of(curve: LabelCurve, is_held_out: bool) -> list[Block]:
    """Return success over parts of a run that have enough episodes each."""
    if is_held_out:
        count = 2.0 * min(float(curve.counts[-1]), DISTINCT if curve.label else 4.0 * DISTINCT)
        return [
            Block(float(step), float(rate), count)
            for step, rate in zip(curve.steps[1:], _pairs(curve.success), strict=True)
        ]
    found: list[Block] = []
    won = played = 0.0
    enough = max(BLOCK, float(curve.counts.sum()) / MOST_BLOCKS)
    for step, rate, count in zip(curve.steps, curve.success, curve.counts, strict=True):
        won, played = won + rate * count, played + count
        if played >= enough:
            found.append(Block(float(step), won / played, played))
            won = played = 0.0
    return found


def _pairs(values: np.ndarray) -> np.ndarray:
    return (values[1:] + values[:-1]) / 2.0


def deviations(one: Block, other: Block) -> float:
    """Return by how many standard deviations the success of one part is above another's."""
    # Half a success and half a failure more: no rate is certain.
    noise = 0.0
    for rate, count in ((one.rate, one.num_episodes), (other.rate, other.num_episodes)):
        safe = (rate * count + 0.5) / (count + 1.0)
        noise += safe * (1.0 - safe) / count
    return (one.rate - other.rate) / math.sqrt(noise)


def sure_of_fall(num_blocks: int) -> float:
    """Return the standard deviations by which the last part must lie below the best of so many.

    The best of many parts is above their mean by chance, the more the longer a run is.
    """
    return max(SURE, (math.sqrt(2.0 * math.log(num_blocks)) + CHANCE_OF_BEST) / math.sqrt(2.0))


def dropped(blocks: Sequence[Block]) -> tuple[Block, Block] | None:
    """Return the best part and the last one, if success has fallen clearly; else None."""
    if len(blocks) < 3:
        return None
    best, last = max(blocks[:-1], key=lambda block: block.rate), blocks[-1]
    is_sure = deviations(best, last) >= sure_of_fall(len(blocks))
    has_fallen = best.rate - last.rate >= LARGE_DROP and is_sure
    return (best, last) if has_fallen else None


class Fall(NamedTuple):
    """A label whose success has fallen; the label "" is all together."""

    label: str
    best: Block
    last: Block


def falls(run: RunEvidence) -> tuple[list[Fall], bool, str]:
    """Return what has fallen, whether it is nearly everything, and on which games."""
    held_out = run.held_out()
    is_held_out = bool(held_out) and len(held_out[0].steps) >= FEW_EVALUATIONS
    if not is_held_out and run.last("env_curriculum_stats/num_edits") > 0:
        # Levels become harder by edits.
        return [], False, ""
    curves = held_out if is_held_out else run.practice(settled=True)
    judged = {curve.label: blocks_of(curve, is_held_out) for curve in curves}
    found: list[Fall] = []
    for label, blocks in judged.items():
        fallen = dropped(blocks)
        if fallen is not None:
            found.append(Fall(label, *fallen))
    of_labels = [fall for fall in found if fall.label]
    known = [label for label, blocks in judged.items() if label and len(blocks) >= 3]
    is_all = any(not fall.label for fall in found)
    is_all = is_all or (bool(known) and 2 * len(of_labels) > len(known) and not is_held_out)
    return found, is_all, "held-out" if is_held_out else "practised"


@check("collapsed", "run")
def collapsed(run: RunEvidence) -> Iterator[Told]:
    """Success was there and has fallen, everywhere."""
    found, is_all, where = falls(run)
    if found and is_all:
        worst = max(found, key=lambda fall: (not fall.label, fall.best.rate - fall.last.rate))
        what = f" of {worst.label!r}" if worst.label else ""
        best = run.config.get("checkpoints") is not None
        yield error(
            f"{where} success{what} fell from {worst.best.rate:.2f} at step {worst.best.step:,.0f} "
            f"to {worst.last.rate:.2f} at step {worst.last.step:,.0f}; expected it to stay",
            "Go on from the best checkpoint (eval --checkpoint best shows it) with a lower "
            "learning_rate, or fewer epochs per update."
            if best
            else "Go on from an earlier checkpoint with a lower learning rate.",
        )


@check("forgot", "run")
def forgot(run: RunEvidence) -> Iterator[Told]:
    """Success of a label was there and has fallen, while others stayed."""
    found, is_all, where = falls(run)
    if is_all:
        return
    for fall in found:
        # A label that still has most of its success is practised again before it is gone.
        tell = error if fall.last.rate <= LOST_SHARE * fall.best.rate else warning
        yield tell(
            f"{where} success of {fall.label!r} fell from {fall.best.rate:.2f} at step "
            f"{fall.best.step:,.0f} to {fall.last.rate:.2f} at step {fall.last.step:,.0f}, while "
            "others stayed",
            "Practise it along: mixing of all earlier stages (staged), exploration above 0, or "
            "frontier, which tests what was mastered.",
        )


@check("never-learned", "run")
def never_learned(run: RunEvidence) -> Iterator[Told]:
    """The agent is no better than random play, though much of the training is over."""
    held_out, total = run.held_out(), run.total_steps
    if not held_out or total is None or run.num_steps < total / 2 or run.kind != "training":
        return
    overall, random = held_out[0], run.last("evaluation/random/success")
    if len(overall.steps) < FEW_EVALUATIONS or math.isnan(random):
        return
    blocks = blocks_of(overall, is_held_out=True)
    count = blocks[-1].num_episodes
    best = max(blocks, key=lambda block: block.rate)
    is_random = deviations(best, Block(0.0, random, count)) < 1.0
    if (
        best.rate < HIGH_SUCCESS
        and is_random
        and not any(map(has_risen, run.practice(settled=True)))
    ):
        yield error(
            f"held-out success is at most {best.rate:.2f} after {run.num_steps:,} steps; random "
            f"play has {random:.2f}, and in practice no label has risen",
            "Try an easier first task, look at rewards and observations (doctor on the env), then "
            "at learning_rate and entropy.",
        )


def has_risen(curve: LabelCurve) -> bool:
    """Whether success of a label is clearly higher in its last part than in its first."""
    blocks = blocks_of(curve, is_held_out=False)
    return len(blocks) > 1 and deviations(blocks[-1], blocks[0]) >= SURE


@check("stopped-learning", "run")
def stopped(run: RunEvidence) -> Iterator[Told]:
    """Success has not risen in the second half of the run, and is not high."""
    held_out = run.held_out()
    if not held_out or len(held_out[0].steps) < 2 * FEW_EVALUATIONS or falls(run)[0]:
        return
    blocks = blocks_of(held_out[0], is_held_out=True)
    middle = run.num_steps / 2
    early = [block for block in blocks if block.step <= middle]
    late = [block for block in blocks if block.step > middle]
    if len(early) < FEW_EVALUATIONS - 1 or len(late) < FEW_EVALUATIONS - 1:
        return
    # The slope over the second half, against its own noise.
    steps = np.array([block.step for block in late])
    rates = np.array([block.rate for block in late])
    rise = float(np.polyfit((steps - steps[0]) / (steps[-1] - steps[0]), rates, 1)[0])
    best_early = max(block.rate for block in early)
    level = float(rates.mean())
    risen = level - early[0].rate >= 0.05
    if risen and level < HIGH_SUCCESS and rise < LEVEL_RISE and level - best_early < LEVEL_GAIN:
        yield warning(
            f"held-out success has stayed at {level:.2f} since step {middle:,.0f}: it was "
            f"{best_early:.2f} before, and changed by {rise:+.2f} in the second half",
            "Look at what is practised (stepladder explain); try a lower learning rate, a larger "
            "network, or another curriculum on a copy (stepladder calibrate).",
        )


CHECKS = (collapsed, forgot, never_learned, stopped)
