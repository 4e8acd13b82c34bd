"""Time slices of a run, each with its own curriculum, mixture and settings.

Gets records from `sync` and hands each to the curriculum of the phase it was drawn in, also when
it ends after the phase. Each phase has its own weight table in the plan; a switch is one number,
written together with the phase's dials after a whole batch, so no env is ever between phases.

Use it for training that changes its nature over time (first shooting, then defending, then the
whole game). Do not use it to order tasks by difficulty; `Staged` goes by success and can go back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.curricula.base import Curriculum
from stepladder.curricula.owner import PlanOwner
from stepladder.curricula.phased import kernels
from stepladder.curricula.phased.config import PhasedConfig
from stepladder.curricula.phased.kernels import NOT_ENTERED, PhaseDue, State
from stepladder.curricula.phased.settings import PhaseDials, PhasedLegend, Ramp, dials_from
from stepladder.curricula.reporting.explanation import Change, Explanation
from stepladder.errors import SnapshotError
from stepladder.plans.plan import Grouping, Plan
from stepladder.plans.record import RecordArray, first_bad_record
from stepladder.plans.status import DONE
from stepladder.records import zeros
from stepladder.saving.saved_array import Part
from stepladder.saving.saved_fields import read_list
from stepladder.saving.snapshot import Snapshot
from stepladder.stats.window import mean
from stepladder.tasks.plain import checked_integer


@dataclass(frozen=True, kw_only=True)
class PhaseChange(Change):
    """One change of phase, with all numbers that decided it."""

    from_phase: str
    to_phase: str
    rule: str
    """Which limit was reached: episodes, steps or success."""

    episodes: int
    """Episodes drawn in the old phase."""

    steps: int
    success: float

    @property
    def kind(self) -> str:
        """What happened."""
        return "phase_changed"

    @property
    def headline(self) -> str:
        """Where it has led."""
        return f"moved to: {self.to_phase}"

    def __str__(self) -> str:
        return (
            f"{self.from_phase} -> {self.to_phase} at episode {self.episode} ({self.rule}: "
            f"{self.episodes} episodes, {self.steps} steps, success {self.success:.2f})"
        )


@dataclass(frozen=True, kw_only=True)
class PhasedExplanation(Explanation):
    """Where a run stands in its phases."""

    phase: str
    phase_index: int
    num_phases: int
    phase_episodes: int
    phase_steps: int
    phase_success: float
    limits: dict[str, float]
    """What ends the phase; empty for the last one without a limit."""

    inner: Explanation
    """What the curriculum inside the phase says."""

    def lines(self) -> list[str]:
        """Return the text, line by line."""
        limits = ", ".join(f"{name} {value:g}" for name, value in self.limits.items())
        return [
            *super().lines(),
            f"Phase {self.phase_index + 1} of {self.num_phases}: {self.phase!r}, "
            f"{self.phase_episodes} episodes, {self.phase_steps} steps, success "
            f"{self.phase_success:.2f}; "
            + (f"ends at {limits}." if limits else "goes on to the end of the run."),
            *(f"  {line}" for line in self.inner.lines()),
        ]


class Phased(Curriculum):
    """Plays its phases one after the other; every phase draws from the same tasks."""

    Config = PhasedConfig
    config: PhasedConfig  # pyright: ignore[reportIncompatibleVariableOverride]

    def _set_up(self) -> None:
        config = self.config
        self.inner = [inner.make(self.pool, seed=self.seed) for inner in config.inner()]
        """The curriculum of each phase."""
        self.needs_success = any(inner.needs_success for inner in self.inner) or any(
            phase.success is not None for phase in config.phases
        )
        self.phase_index = 0
        self.history: list[PhaseChange] = []
        """Every change of phase so far, oldest first."""
        self._window_sizes: Words = np.array([phase.window_episodes for phase in config.phases])
        num_phases = len(config.phases)
        state = zeros(State, phases=num_phases, windows=(num_phases, self._window_sizes.max()))
        state.phases["entry_version"][1:] = NOT_ENTERED
        self._keep_state(state)
        self._due_now = PhaseDue.zeros()
        self._passing: tuple[int, int, int] | None = None
        """Records observed before the group being passed on; and, of the curriculum that gets
        it, records and orphans before that."""
        self._entering: tuple[int, PhaseChange, int] | None = None

    @property
    def _evidence(self) -> Any:
        """What is known of the current phase: a `PhaseEvidence`."""
        return self._state.phases[self.phase_index]

    @property
    def current_phase(self) -> str:
        """Name of the current phase."""
        return self.config.phases[self.phase_index].name

    def _groupings(self) -> list[Grouping]:
        return [grouping for inner in self.inner for grouping in inner._tables()]

    def _tables(self) -> list[Grouping]:
        return self._groupings()

    def _dials(self) -> list[Part]:
        dials = [Part.count("phase", high=len(self.inner) - 1), Part.count("phase_episodes")]
        for phase, inner in zip(self.config.phases, self.inner, strict=True):
            dials += [replace(dial, name=f"{phase.name}/{dial.name}") for dial in inner._dials()]
        return dials

    def _attach(self, plan: Plan, tables: list[int], first_dial: int, root: PlanOwner) -> None:
        self._plan, self._root, self._first_dial = plan, root, first_dial
        next_dial = first_dial + PhaseDials.num_words
        for inner in self.inner:
            given = tables.copy()
            inner._attach(plan, tables, next_dial, root)
            next_dial += len(inner._dials())
            for table in given[: len(given) - len(tables)]:
                own = plan.table(table)["exploration"]
                plan.set_exploration(table, max(float(own), self.config.exploration))
        self._publish()

    def _active_table(self) -> int:
        return self.inner[self.phase_index]._active_table()

    def legend(self) -> PhasedLegend:
        """Return what a client must know to read the plan."""
        _ = self.plan  # Dials are dealt out to the phases when it is built.
        return PhasedLegend(
            needs_success=self.needs_success,
            first_dial=self._first_dial,
            names=tuple(phase.name for phase in self.config.phases),
            legends=tuple(inner.legend() for inner in self.inner),
            phase_settings=tuple(phase.settings for phase in self.config.phases),
        )

    def _publish(self) -> None:
        assert self._plan is not None
        dials = dials_from(self._plan.dials, self._first_dial)
        dials["phase"] = self.phase_index
        dials["num_episodes"] = self._evidence["num_episodes"]

    def _update(self, records: RecordArray, num_done: int) -> int:
        bad = first_bad_record(records, self.pool.num_slots, self.needs_success)
        if bad >= 0:
            return bad
        if num_done < len(records):
            _ = self.plan  # The curricula inside use it, and must not make their own.
            self._distribute(records, num_done)
        self._follow_up()
        return DONE

    def _distribute(self, records: RecordArray, num_done: int) -> None:
        """Give each record to the curriculum of the phase that it was drawn in."""
        if kernels.oldest_version(records) >= self._evidence["entry_version"]:
            self._pass_on(self.phase_index, records)
            return
        entries = self._state.phases["entry_version"][: self.phase_index + 1]
        owners = np.searchsorted(entries, records["plan_version"], side="right") - 1
        owners = np.maximum(owners, 0)
        for phase in np.unique(owners).tolist():
            group = records[owners == phase]
            # Groups are counted one by one, each as a whole.
            if num_done <= 0:
                self._pass_on(phase, group)
            num_done -= len(group)

    def _pass_on(self, phase: int, records: RecordArray) -> None:
        inner, observed = self.inner[phase], self._num_observed.item(0)
        if self._passing is None or self._passing[0] != observed:
            self._passing = observed, inner.num_observed, inner.num_orphaned
        _, observed_before, orphaned_before = self._passing
        inner._update(records, inner.num_observed - observed_before)
        kernels.count_phase(
            records,
            self._state,
            phase,
            int(self._window_sizes[phase]),
            inner.num_orphaned - orphaned_before,
            self._due_now,
        )

    def _follow_up(self) -> None:
        """Do what is due after a batch."""
        due: Any = self._due_now[0]
        self._passing = None
        if self._entering is not None:
            self._carry_out_entry()
        if due["ramps"]:
            index = self.phase_index
            settings = self.config.phases[index].settings.values()
            if any(isinstance(setting, Ramp) for setting in settings):
                first_dial = self._first_dial
                kernels.publish(self.plan.block, first_dial, self._state, index, self._due_now)
            due["ramps"] = 0
        if due["switch"]:
            rule = self._limit_reached()
            if rule is not None and self.phase_index < len(self.inner) - 1:
                self._enter(self.phase_index + 1, rule)
            due["switch"] = 0

    def _limit_reached(self) -> str | None:
        phase, evidence = self.config.phases[self.phase_index], self._evidence
        if phase.episodes is not None and evidence["num_episodes"] >= phase.episodes:
            return "episodes"
        if phase.steps is not None and evidence["num_steps"] >= phase.steps:
            return "steps"
        enough = evidence["num_episodes"] >= phase.min_episodes
        if phase.success is not None and enough and self._success() >= phase.success:
            return "success"
        return None

    def _success(self) -> float:
        return mean(self._state.windows[self.phase_index], int(self._evidence["fill"]))

    def _enter(self, index: int, rule: str) -> None:
        """Make another phase the current one."""
        old = self.phase_index
        change = PhaseChange(
            episode=self.num_observed,
            step=self.num_steps,
            plan_version=self.plan.version + 1,
            from_phase=self.config.phases[old].name,
            to_phase=self.config.phases[index].name,
            rule=rule,
            episodes=int(self._evidence["num_episodes"]),
            steps=int(self._evidence["num_steps"]),
            success=self._success(),
        )
        self._due_now["switch"] = 1
        # From here on it is carried out, if need be by the next call.
        self._entering = index, change, len(self.history)
        self._carry_out_entry()

    def _carry_out_entry(self) -> None:
        assert self._entering is not None
        index, change, num_before = self._entering
        # First: it decides which table is in force.
        self.phase_index = index
        table = self._root._active_table()
        due = self._due_now
        kernels.enter(self.plan.block, self._first_dial, self._state, due, index, table)
        if len(self.history) == num_before:
            self.history.append(change)
        self._entering = None

    def _publish_target(self) -> None:
        for inner in self.inner:
            inner._publish_target()

    def _renew_target(self, slot: int) -> None:
        for inner in self.inner:
            inner._renew_target(slot)

    def _slot_replaced(self, slot: int) -> None:
        for inner in self.inner:
            inner._slot_replaced(slot)

    def _expect_envs(self, num_envs: int) -> None:
        for inner in self.inner:
            inner._expect_envs(num_envs)

    def _can_replace(self) -> bool:
        return all(inner._can_replace() for inner in self.inner)

    def _slot_lost(self, slot: int, reason: str) -> None:
        for inner in self.inner[self.phase_index :]:
            inner._slot_lost(slot, reason)

    def _replacement_label(self, slot: int) -> str | None:
        labels = [inner._replacement_label(slot) for inner in self.inner]
        return next((label for label in labels if label is not None), None)

    def inner_curricula(self) -> dict[str, Curriculum]:
        """Return the curriculum of each phase, by the name of the phase."""
        names = [phase.name for phase in self.config.phases]
        return dict(zip(names, self.inner, strict=True))

    def in_force(self) -> Curriculum:
        """Return the method that makes the weights of the current phase."""
        return self.inner[self.phase_index].in_force()

    def changes(self) -> list[PhaseChange]:
        """Return every change of phase so far, oldest first."""
        return self.history

    def state_metrics(self) -> dict[str, float]:
        """Return the index of the current phase, and the metrics of its curriculum."""
        inner = self.inner[self.phase_index].state_metrics()
        return {**inner, "phase": float(self.phase_index)}

    def scores(self) -> Floats:
        """Return the scores of the curriculum of the current phase."""
        _ = self.plan
        return self.inner[self.phase_index].scores()

    def _explain(self) -> PhasedExplanation:
        phase, evidence = self.config.phases[self.phase_index], self._evidence
        given = {"episodes": phase.episodes, "steps": phase.steps, "success": phase.success}
        return PhasedExplanation(
            **self._overview_fields(),
            phase=phase.name,
            phase_index=self.phase_index,
            num_phases=len(self.inner),
            phase_episodes=int(evidence["num_episodes"]),
            phase_steps=int(evidence["num_steps"]),
            phase_success=self._success(),
            limits={name: float(limit) for name, limit in given.items() if limit is not None},
            inner=self.inner[self.phase_index]._explain(),
        )

    def _reason(self, slot: int) -> tuple[str, dict[str, float]]:
        reason, numbers = self.inner[self.phase_index]._reason(slot)
        return f"in phase {self.current_phase!r}, {reason}", numbers

    def _saved_limits(self) -> dict[str, tuple[Any, Any]]:
        sizes = self._window_sizes
        return {"phases.fill": (0, sizes), "phases.head": (0, sizes - 1)}

    def _save_state(self) -> dict[str, Any]:
        history = [change.to_json() for change in self.history]
        return {"phase_index": self.phase_index, "history": history}

    def _load_state(self, state: Mapping[str, Any], place: str) -> None:
        last = len(self.inner) - 1
        self.phase_index = checked_integer(
            state.get("phase_index"), "The snapshot's phase", 0, last, SnapshotError
        )
        self.history = read_list(PhaseChange, state.get("history"), f"history of {place}")

    def _save_all(self) -> Snapshot:
        own = super()._save_all()
        parts = {f"phase{index}": inner._save_all() for index, inner in enumerate(self.inner)}
        nested = Snapshot.of_parts(own.state, **parts)
        return Snapshot(nested.state, {**own.arrays, **nested.arrays})

    def _load_all(self, snapshot: Snapshot) -> None:
        super()._load_all(snapshot)
        for index, inner in enumerate(self.inner):
            inner._load_all(snapshot.part(f"phase{index}"))
