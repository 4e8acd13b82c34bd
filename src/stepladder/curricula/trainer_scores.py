"""Curricula that learn from what a trainer measures: scores of episodes, beside their records.

Between `base` and the methods (`LevelReplay`, `AdvantageBandit`). A trainer with a value
function knows by how much an episode went otherwise than expected; `envs.score_reporter` makes one
score per episode of it and calls `report_scores`. A config says which score it wants
(`trainer_score`), so that a training that cannot give it is refused before it starts.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from stepladder.arrays import Floats, Words
from stepladder.compiled import inlined
from stepladder.curricula.base import Curriculum
from stepladder.errors import ConfigError, RecordError
from stepladder.plans.kernels import begin_write, end_write
from stepladder.plans.layout import slot_of

PRIOR_MEAN = 0.5
"""What a task's running mean starts from, where deviations are the scores; it counts as one
play."""


@inlined
def note_deviation(task: Any, value: float, least_weight: float) -> float:
    """Move a task's running mean by a result; return how far the result lay from it.

    Without a trainer, that is the score of an episode. `task` has a ``mean`` and ``num_plays``,
    this one included; the newest result weighs at least `least_weight`.
    """
    deviation = abs(value - task.mean)
    task.mean += max(least_weight, 1.0 / (task.num_plays + 1.0)) * (value - task.mean)
    return deviation


@inlined
def take_scores(
    take_score: Callable[..., None],
    block: Words,
    table: int,
    state: Any,
    constants: Any,
    slots: Words,
    generations: Words,
    scores: Floats,
) -> None:
    """Let a rule learn from every valid score that a trainer gives, in one write.

    Args:
        take_score: The rule; called with block, table, state, constants, slot and score.
        block: The plan.
        table: The method's weight table in it.
        state: The method's arrays. Changed in place.
        constants: Its settings and tables.
        slots: Slot of each episode.
        generations: Its generation; a score of a task that was replaced is only counted.
        scores: What each episode scored.
    """
    begin_write(block)
    for index in range(len(slots)):
        slot = slots[index]
        if generations[index] == slot_of(block, slot).generation:
            take_score(block, table, state, constants, slot, scores[index])
        else:
            state.method[0].num_orphaned_scores += 1
    end_write(block)


class TrainerScored(Curriculum):
    """A curriculum that takes scores from a trainer.

    ``method`` of its state has a count ``num_orphaned_scores``.
    """

    @abstractmethod
    def _take_scores(self, slots: Words, generations: Words, scores: Floats) -> None:
        """Learn from valid scores, in one compiled call that no interrupt divides."""

    def report_scores(
        self, slots: npt.ArrayLike, generations: npt.ArrayLike, scores: npt.ArrayLike
    ) -> None:
        """Take the scores of finished episodes from a trainer; changes the plan in place.

        `stats.level_scores` has the papers' scores. A score for a task that has been replaced
        since is counted (`num_orphaned_scores`) and credited to no task.

        Args:
            slots: Slot of each episode, or a single one.
            generations: Generation of each episode, from its draw or its info.
            scores: What each episode scored; a score below 0 counts as 0.

        Raises:
            ConfigError: The config says that scores come from elsewhere.
            RecordError: A number is impossible, or there are not as many of each. Then nothing
                was taken.
        """
        if not self.config.trainer_score:
            raise ConfigError(
                f"scores are reported, but scored_by is {getattr(self.config, 'scored_by', '')!r}. "
                "Build the curriculum with a scored_by that a trainer gives."
            )
        self.finish()
        slot_list, generation_list = self._integers(slots, generations)
        try:
            score_list = np.atleast_1d(np.asarray(scores, dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise RecordError(f"a score is not a number ({error}). Give floats.") from error
        if score_list.shape != slot_list.shape:
            raise RecordError(
                f"there are {score_list.size} scores for {slot_list.size} slots. Give one for each."
            )
        bad = np.flatnonzero(~np.isfinite(score_list))
        if len(bad):
            raise RecordError(
                f"score {int(bad[0])} of {len(score_list)} is {score_list[bad[0]]}; expected a "
                "finite number. Nothing was taken; correct it and send all again."
            )
        self._begin_work()
        self._take_scores(slot_list, generation_list, score_list)
        self._end_work()

    @property
    def num_orphaned_scores(self) -> int:
        """Scores of tasks that were replaced before they arrived; credited to no task."""
        return int(self._state.method["num_orphaned_scores"][0])

    def _integers(self, slots: npt.ArrayLike, *others: npt.ArrayLike) -> list[Words]:
        """Return arrays of slots that exist, and of as many other integers."""
        arrays = [np.atleast_1d(np.asarray(numbers)) for numbers in (slots, *others)]
        for array in arrays:
            if array.dtype.kind not in "iu" or array.ndim != 1 or array.shape != arrays[0].shape:
                raise RecordError(
                    "slots, generations and versions must be integers, as many of each; got "
                    f"{array.dtype}{list(array.shape)} for {len(arrays[0])} slots. "
                    "Take them from the draws or the infos."
                )
        whole = [array.astype(np.int64) for array in arrays]
        outside = np.flatnonzero((whole[0] < 0) | (whole[0] >= self.pool.num_slots))
        if len(outside):
            self._check_slot(int(whole[0][outside[0]]))
        return whole
