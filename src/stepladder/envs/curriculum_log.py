"""What a curriculum did over a vector env, line by line in the log.

Told by `tracker` after every collection that found something. Lines begin with ``[VecEnv]``; each
advancement is logged with its reason.
"""

import logging
from typing import Any

from stepladder.curricula.base import Curriculum
from stepladder.curricula.staged.report import StageChange, StagedExplanation
from stepladder.curricula.staged.staged import Staged
from stepladder.plans.record import Record, RecordArray
from stepladder.visible import visible

logger = logging.getLogger("stepladder.envs")


class CurriculumLog:
    """Logs what a curriculum does from now on."""

    def __init__(self, curriculum: Curriculum, num_envs: int):
        self._curriculum = curriculum
        self._num_envs = num_envs
        self._num_finished = 0
        self._num_changes = len(history_of(curriculum))
        self._next_check = 0

    def catch_up(self, num_finished: int = 0) -> None:
        """Log from here on what the curriculum does, not what it has done before.

        Args:
            num_finished: Episodes observed before.
        """
        self._num_finished = num_finished
        self._num_changes = len(history_of(self._curriculum))
        if isinstance(self._curriculum, Staged):
            self._next_check = next_check(self._curriculum)
        self._log_sync()

    def tell(self, records: RecordArray) -> None:
        """Log what has just been observed and what the curriculum made of it."""
        if logger.isEnabledFor(logging.DEBUG):
            self._log_episodes(records)
        changes = history_of(self._curriculum)[self._num_changes :]
        if isinstance(self._curriculum, Staged) and logger.isEnabledFor(logging.INFO):
            self._log_checks(self._curriculum, changes)
        for change in changes:
            logger.info(
                "[VecEnv] Curriculum %s (syncing to all %d environments): %s",
                headline(change),
                self._num_envs,
                visible(change),
            )
        if changes:
            self._log_sync()
        # Last: after an interrupt it is told again, and had better say something twice than never.
        self._num_changes += len(changes)
        self._num_finished += len(records)

    def _log_episodes(self, records: RecordArray) -> None:
        pool, legend = self._curriculum.pool, self._curriculum.legend()
        first = self._num_finished + 1
        for number, row in enumerate(records.tolist(), start=first):
            record = Record(*row)
            label = pool.label_names[int(pool.label_indices[record.slot])]
            stage = legend.stage_of(label, self._curriculum.plan.dials)
            if record.generation != int(pool.generations[record.slot]):
                stage = "(replaced)"
            logger.debug(
                "[VecEnv] Env %d completed episode %d: stage=%s, success=%s, total_episodes=%d",
                record.env_index,
                record.episode_index + 1,
                visible(stage),
                bool(record.success >= 0.5),
                number,
            )

    def _log_checks(self, curriculum: Staged, changes: list[Any]) -> None:
        """Log each check that moved the curriculum as it was, before it moved; else the last."""
        line = (
            "[VecEnv] Advancement check at %d episodes: stage=%s, success_rate=%.2f%%, "
            "episodes=%d, can_advance=%s"
        )
        for change in changes:
            if change.rules != ("manual",):
                advanced = change.rules != ("demotion",)
                rate = 100 * change.success
                logger.info(
                    line,
                    change.episode,
                    visible(change.from_stage),
                    rate,
                    change.episodes,
                    advanced,
                )
        done = curriculum.num_observed
        if done >= self._next_check:
            self._next_check = next_check(curriculum)
            if not changes:
                report = curriculum.stage_report()
                rate = 100 * report.success_rate
                stage = visible(report.stage)
                logger.info(line, done, stage, rate, report.episodes, report.can_advance)

    def _log_sync(self) -> None:
        if isinstance(self._curriculum, Staged):
            logger.info(
                "[VecEnv] Synced stage %r (mixing: %.1f%%) to all %d environments",
                self._curriculum.current_stage,
                100 * self._curriculum.mixing_ratio(),
                self._num_envs,
            )


def history_of(curriculum: Curriculum) -> list[Any]:
    """Return the changes of stage or phase that a curriculum has made."""
    return getattr(curriculum, "history", [])


def next_check(curriculum: Staged) -> int:
    """Return the number of episodes at which advancement will be considered next."""
    explanation = curriculum.explain()
    assert isinstance(explanation, StagedExplanation)
    return curriculum.num_observed + explanation.episodes_to_next_check


def headline(change: Any) -> str:
    """Say in a few words where a change of stage or phase has led."""
    if not isinstance(change, StageChange):
        return f"moved to: {change.to_phase}"
    verbs = {"demotion": "fell back", "manual": "moved"}
    return f"{verbs.get(change.rules[0], 'advanced')} to: {change.to_stage}"
