"""Turn an epoch into what a run keeps: the one way in which simulation and training report.

Between the simulator's engines or a training loop and `Run`: takes what the infos
contained, adds what the curriculum is doing, and logs it all under the names of docs/metrics.md,
with the curriculum's decisions as events and now and then a table of all tasks.
"""

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from stepladder.configs.checks import require_integer
from stepladder.curricula.base import Curriculum
from stepladder.curricula.reporting.events import CurriculumEvent, EventCursor, curriculum_events
from stepladder.curricula.reporting.meter import CurriculumMeter, task_table
from stepladder.runs.run_writer import RunWriter
from stepladder.saving.saved_fields import read_count
from stepladder.saving.snapshot import Snapshot
from stepladder.stats.names import MetricNames
from stepladder.stats.rollout import payload, process_training_stats

STANDING_S, MOST_OF_TIME = 1.0, 0.01
"""Seconds between two notes of where the curriculum stands, and the share of time they may take."""


class EpochReporter:
    """Reports a run epoch by epoch.

    Args:
        curriculum: The curriculum that is being practised.
        run: Where to keep everything; None to only compute it.
        meter: What has been counting the curriculum's episodes; by default one that begins now.
        table_epochs: Epochs between two tables of all tasks; the last one is always kept.
    """

    def __init__(
        self,
        curriculum: Curriculum,
        run: RunWriter | None = None,
        *,
        meter: CurriculumMeter | None = None,
        table_epochs: int = 10,
    ):
        require_integer("table_epochs", table_epochs, 1)
        self.curriculum = curriculum
        self.run = run
        self.meter = meter or CurriculumMeter(curriculum)
        self.table_epochs = table_epochs
        self.num_epochs = 0
        """Epochs reported so far."""
        self.last_payload: dict[str, float] = {}
        """What was logged last."""
        self.last_events: tuple[CurriculumEvent, ...] = ()
        """What the curriculum has decided in the last epoch."""
        self.names = MetricNames()
        """Names that metrics were logged under."""
        # What a restored curriculum decided before was reported then.
        self.cursor = EventCursor.at_end(curriculum)
        """What was reported of the curriculum's decisions."""
        self._began = time.monotonic()
        self.last_step = 0
        """Env steps at the end of the last epoch reported; of a resumed training, before it."""
        self._has_table = False
        self._explained_at = -1
        self._standing_due = 0.0

    def end_epoch(
        self,
        agent_step: int,
        raw_stats: Mapping[str, Any] | None = None,
        *,
        losses: Mapping[str, Any] | None = None,
        experience: Any = None,
        trainer_config: Any = None,
        extra: Mapping[str, Any] | None = None,
        total_time_s: float | None = None,
        steps_per_second: float | None = None,
    ) -> dict[str, float]:
        """Log one epoch and begin the next.

        Args:
            agent_step: Env steps so far, those of every env counted.
            raw_stats: What `accumulate_rollout_stats` collected in this epoch.
            losses: By name, if there is a learner.
            experience: The learner's memory, if there is one.
            trainer_config: The learner's settings, if there are any.
            extra: Further values by name.
            total_time_s: Seconds of the run so far; by default since this reporter was made.
            steps_per_second: As measured; by default over all of that time.

        Returns:
            Everything that was logged.
        """
        processed = process_training_stats(
            raw_stats or {}, losses, experience, trainer_config, names=self.names
        )
        self.num_epochs += 1
        self.last_step = agent_step
        logged = payload(
            processed,
            agent_step,
            self.num_epochs,
            total_time_s=time.monotonic() - self._began if total_time_s is None else total_time_s,
            steps_per_second=steps_per_second,
            extra={**self.meter.metrics(), **(extra or {})},
            names=self.names,
        )
        self.last_events = tuple(curriculum_events(self.curriculum, self.cursor))
        if self.run is not None:
            self.run.log(agent_step, logged)
            if processed.undeclared:
                names = ", ".join(processed.undeclared)
                text = f"not declared, so reduced by their mean: {names}"
                self.run.event(agent_step, "undeclared_metrics", text, None)
            for event in self.last_events:
                self.run.event(agent_step, event.kind, event.text, event.data)
            self._has_table = self.num_epochs % self.table_epochs == 0
            if self._has_table:
                self.run.log_tasks(agent_step, task_table(self.meter))
            self._keep_standing()
        self.meter.end_epoch()
        self.last_payload = logged
        return logged

    def _keep_standing(self, is_due: bool = False) -> None:
        """Keep where the curriculum stands, about once a second: watchers want it soon."""
        began = time.monotonic()
        if self.run is None or (began < self._standing_due and not is_due):
            return
        explanation = self.curriculum.explain()
        self.run.keep_standing(self.last_step, {**explanation.to_json(), "text": str(explanation)})
        # A curriculum that takes long to explain is asked less often.
        now = time.monotonic()
        self._standing_due = now + max(STANDING_S, (now - began) / MOST_OF_TIME)

    def keep_explanation(self) -> None:
        """Keep a table of all tasks and the curriculum's own words, as they are now."""
        if self.run is None or self._explained_at == self.num_epochs:
            return
        if not self._has_table:
            self.run.log_tasks(self.last_step, task_table(self.meter))
            self._has_table = True
        self.run.event(self.last_step, "explanation", str(self.curriculum.explain()), None)
        self._keep_standing(is_due=True)
        self._explained_at = self.num_epochs

    def close(self) -> None:
        """Keep the last table of all tasks and the curriculum's own words; stop counting."""
        self.keep_explanation()
        self.meter.close()

    # Saving.

    def snapshot(self) -> Snapshot:
        """Return everything needed to go on reporting, between two epochs."""
        own = {
            "num_epochs": self.num_epochs,
            "last_step": self.last_step,
            "cursor": asdict(self.cursor),
            "names": self.names.state(),
        }
        return Snapshot.of_parts(own, meter=self.meter.snapshot())

    def restore(self, snapshot: Snapshot) -> None:
        """Go on reporting where a snapshot was made.

        Raises:
            SnapshotError: It is damaged. Then nothing but the meter and the names has changed.
        """
        own, place = snapshot.state, snapshot.place
        num_epochs, last_step = (
            read_count(own.get(name), f"{name} of {place}") for name in ("num_epochs", "last_step")
        )
        cursor = EventCursor.from_json(own.get("cursor"))
        names = own.get("names")
        self.names.restore(names if isinstance(names, dict) else {})
        self.meter.restore(snapshot.part("meter"))
        self.num_epochs, self.last_step, self.cursor = num_epochs, last_step, cursor
