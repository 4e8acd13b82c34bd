"""Log what a curriculum does over a vector env.

Called by `tracker` after every collection that found something. Lines begin with ``[VecEnv]``; each
advancement is logged with its reason.
"""

import logging
from collections.abc import Sequence

from stepladder.curricula.base import Curriculum
from stepladder.curricula.reporting.explanation import Change
from stepladder.plans.record import Record, RecordArray
from stepladder.visible import visible

logger = logging.getLogger("stepladder.envs")


class CurriculumLog:
    """Logs what a curriculum does from now on."""

    def __init__(self, curriculum: Curriculum, num_envs: int):
        self._curriculum = curriculum
        self._num_envs = num_envs
        self._num_finished = 0
        self._num_changes = len(curriculum.changes())
        self._next_check = 0

    def catch_up(self, num_finished: int = 0) -> None:
        """Log what the curriculum does from here on.

        Args:
            num_finished: Episodes observed before.
        """
        self._num_finished = num_finished
        self._num_changes = len(self._curriculum.changes())
        self._next_check = self._curriculum.next_check
        self._log_sync()

    def count(self, records: RecordArray) -> None:
        """Log what has just been observed and what the curriculum made of it."""
        if logger.isEnabledFor(logging.INFO):
            self._log_batch(records)
        else:
            self._num_changes = len(self._curriculum.changes())
        # Last: after an interrupt this is called again; a line may come twice, but none is lost.
        self._num_finished += len(records)

    def _log_batch(self, records: RecordArray) -> None:
        if logger.isEnabledFor(logging.DEBUG):
            self._log_episodes(records)
        changes = self._curriculum.changes()[self._num_changes :]
        self._log_checks(changes)
        for change in changes:
            logger.info(
                "[VecEnv] Curriculum %s (syncing to all %d environments): %s",
                visible(change.headline),
                self._num_envs,
                visible(change),
            )
        if changes:
            self._log_sync()
        self._num_changes += len(changes)

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

    def _log_checks(self, changes: Sequence[Change]) -> None:
        """Log each check that moved the curriculum as it was, before it moved; else the last."""
        line = (
            "[VecEnv] Advancement check at %d episodes: stage=%s, success_rate=%.2f%%, "
            "episodes=%d, can_advance=%s"
        )
        for change in changes:
            if change.kind in ("stage_advanced", "stage_demoted"):
                numbers = change.to_json()
                stage, rate = visible(numbers["from_stage"]), 100 * numbers["success"]
                advanced = change.kind == "stage_advanced"
                logger.info(line, change.episode, stage, rate, numbers["episodes"], advanced)
        done = self._curriculum.num_observed
        if done >= self._next_check:
            self._next_check = self._curriculum.next_check
            report = self._curriculum.stage_report()
            if report is not None and not changes:
                rate, stage = 100 * report.success_rate, visible(report.stage)
                logger.info(line, done, stage, rate, report.episodes, report.can_advance)

    def _log_sync(self) -> None:
        report = self._curriculum.stage_report()
        if report is not None:
            logger.info(
                "[VecEnv] Synced stage %r (mixing: %.1f%%) to all %d environments",
                report.stage,
                100 * report.adaptive_mixing_ratio,
                self._num_envs,
            )
