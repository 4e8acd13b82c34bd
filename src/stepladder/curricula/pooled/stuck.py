"""Whether practice still changes anything: a test that separates chance from something to learn.

Used by the kernels of methods. A task, or all tasks of a label, is watched in trials. A trial whose
success rate differs from that of the trial before by no more than chance explains says that nothing
has changed; each such trial halves what the task is worth, and makes the next trial twice as long.
So trials find the length in which the learner at hand changes, whether that is fifty plays or a
million: no length has to be set.
"""

from typing import Annotated

import numpy as np

from stepladder.compiled import inlined
from stepladder.records import Count, Fields, Limits, Share
from stepladder.saving.saved_array import MAX_COUNT

FIRST_TRIAL = 32
"""Plays of the first trial."""

CHANGED_Z = 2.0
"""Standard errors by which two trials must differ."""

LOW, HIGH = 0.1, 0.9
"""What hardly ever succeeds, or nearly always, is not called stuck: it changes when others do."""

LEAST_VARIANCE = 0.01
"""Of a single play: no success is believed to be steadier than one in a hundred."""

MAX_STUCK = 10
"""Trials in a row without a change that are counted."""


class Trial(Fields):
    """How long a task has shown no change."""

    plays: Count
    """Of the present trial."""
    successes: Annotated[float, Limits(0.0, MAX_COUNT)]
    level: Share
    """Success rate of the last trial."""
    num_doublings: Annotated[int, Limits(0, 40)]
    """How often the length of a trial was doubled."""
    num_trials: Count
    num_stuck: Annotated[int, Limits(0, MAX_STUCK)]
    """Trials in a row without a change."""


@inlined
def watch(trial: Trial, value: float) -> None:
    """Take in one result; at the end of a trial, judge whether anything has changed."""
    trial.plays += 1
    trial.successes += value
    if trial.plays < FIRST_TRIAL << trial.num_doublings:
        return
    rate = trial.successes / trial.plays
    if trial.num_trials > 0:
        # Of the difference of two rates; the trial before was as long, or half as long.
        variance = 2.5 * max(rate * (1.0 - rate), LEAST_VARIANCE) / trial.plays
        if abs(rate - trial.level) > CHANGED_Z * np.sqrt(variance):
            trial.num_stuck = 0
        elif LOW < rate < HIGH:
            trial.num_stuck = min(trial.num_stuck + 1, MAX_STUCK)
            trial.num_doublings = min(trial.num_doublings + 1, 40)
    trial.level = rate
    trial.num_trials += 1
    trial.plays = 0
    trial.successes = 0.0


@inlined
def changes(trial: Trial) -> bool:
    """Whether the last trials say that practice still changes something, or say nothing yet."""
    return trial.num_stuck == 0


@inlined
def worth(trial: Trial) -> float:
    """Return what is left of a task's worth: a half for every trial without a change."""
    return 1.0 / (1 << trial.num_stuck)
