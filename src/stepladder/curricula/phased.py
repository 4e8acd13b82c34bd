"""Time slices of a run, each with its own curriculum, mixture and settings.

Gets records from `sync` and hands each to the curriculum of the phase it was drawn in, also when
it ends after the phase. Each phase has its own weight table in the plan; a switch is one number,
written together with the phase's dials after a whole batch, so no env is ever between phases.

Use it for training that changes its nature over time (first shooting, then defending, then the
whole game). Do not use it to order tasks by difficulty; `Staged` goes by success and can go back.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from stepladder.compiled import compiled
from stepladder.curricula import kernels
from stepladder.curricula.base import Curriculum
from stepladder.curricula.config import (
    CurriculumConfig,
    Tasks,
    require_share,
    require_whole,
    settle,
)
from stepladder.curricula.explanation import Explanation
from stepladder.curricula.kernels import Floats, Words
from stepladder.curricula.legend import Legend
from stepladder.curricula.mixture import MixtureConfig
from stepladder.curricula.owner import PlanOwner
from stepladder.curricula.phase_settings import Mixed, Ramp, resolve
from stepladder.curricula.philox import SETTING_STREAM
from stepladder.curricula.plan import Grouping, Plan
from stepladder.curricula.record import RecordArray, first_bad_record
from stepladder.curricula.snapshot import Snapshot, matching
from stepladder.curricula.uniform import UniformConfig
from stepladder.errors import ConfigError, SnapshotError, TaskError
from stepladder.stats.window import mean, push
from stepladder.tasks.plain import to_plain, whole_number

# Dials, from the first one of this curriculum.
D_PHASE, D_EPISODES = 0, 1

# Columns of the counts per phase.
EPISODES, STEPS, ENTRY_VERSION, FILL, HEAD = 0, 1, 2, 3, 4
NUM_COUNTS = 5
NOT_ENTERED = 2**62

MAX_SETTINGS = 2**16
"""Streams set apart for the settings of each phased curriculum in a plan."""


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A time slice of a run. It ends at the first limit that is reached."""

    name: str
    """How the phase is called."""

    mixture: dict[str, float] | None = None
    """Weight per label; or give a `curriculum`; with neither, every task is drawn alike."""

    curriculum: CurriculumConfig | None = None
    """The curriculum inside the phase."""

    episodes: int | None = None
    """Ends after so many episodes drawn in the phase."""

    steps: int | None = None
    """Ends after so many env steps in such episodes."""

    success: float | None = None
    """Ends when the mean success of the latest `window_episodes` reaches this."""

    min_episodes: int = 50
    """Episodes that `success` needs at least."""

    window_episodes: int = 50
    """Episodes over which success is averaged."""

    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    """Values that override the task's params by dotted path: plain ones, `Mixed` or `Ramp`."""

    def __post_init__(self) -> None:
        where = f"of phase {self.name!r}"
        if not self.name:
            raise ConfigError("a phase needs a name; got an empty one.")
        if self.mixture is not None and self.curriculum is not None:
            raise ConfigError(f"phase {self.name!r} has a mixture and a curriculum; give one.")
        if self.episodes is not None:
            require_whole(f"episodes {where}", self.episodes, 1)
        if self.steps is not None:
            require_whole(f"steps {where}", self.steps, 1)
        if self.success is not None:
            require_share(f"success {where}", self.success)
        require_whole(f"min_episodes {where}", self.min_episodes, 1)
        require_whole(f"window_episodes {where}", self.window_episodes, 1)
        self._check_settings()

    def _check_settings(self) -> None:
        for path, setting in self.settings.items():
            values = setting.values if isinstance(setting, Mixed) else (setting,)
            try:
                for value in () if isinstance(setting, Ramp) else values:
                    to_plain(value, f"setting {path!r} of phase {self.name!r}")
            except TaskError as error:
                raise ConfigError(str(error)) from error

    @property
    def has_limit(self) -> bool:
        """Whether the phase can end."""
        return not (self.episodes is None and self.steps is None and self.success is None)

    def inner(self) -> CurriculumConfig:
        """Return the config of the curriculum inside the phase."""
        if self.curriculum is not None:
            return self.curriculum
        return UniformConfig() if self.mixture is None else MixtureConfig(weights=self.mixture)


@dataclass(frozen=True, kw_only=True)
class PhasedConfig(CurriculumConfig):
    """A list of phases, played one after the other; the last one goes on for ever."""

    phases: tuple[Phase, ...]
    """The phases in order."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "phases", tuple(self.phases))
        if not self.phases:
            raise ConfigError("phases is empty; expected at least one phase.")
        names = [phase.name for phase in self.phases]
        for index, phase in enumerate(self.phases):
            if names.count(phase.name) > 1:
                raise ConfigError(f"phase {phase.name!r} is named twice; names must differ.")
            if index < len(self.phases) - 1 and not phase.has_limit:
                raise ConfigError(
                    f"phase {phase.name!r} has no limit, so what follows it would never come. "
                    "Give it episodes, steps or success."
                )

    def make(self, tasks: Tasks, *, seed: int = 0) -> "Phased":
        """Build the curriculum that this config describes."""
        return Phased(tasks, self, seed=seed)

    def to_json(self) -> dict[str, Any]:
        """Return the settings as plain JSON, inner curricula by the name of their class."""
        plain = super().to_json()
        for entry, phase in zip(plain["phases"], self.phases, strict=True):
            entry["curriculum"] = phase.inner().to_json()
        return plain


@dataclass(frozen=True, kw_only=True)
class PhaseChange:
    """One change of phase, with all numbers that decided it."""

    episode: int
    step: int
    plan_version: int
    from_phase: str
    to_phase: str
    rule: str
    """Which limit was reached: episodes, steps or success."""

    episodes: int
    """Episodes drawn in the old phase."""

    steps: int
    success: float

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


@dataclass(frozen=True, kw_only=True)
class PhasedLegend(Legend):
    """A plan with phases: the first dial is the phase, the second its episodes so far."""

    first_dial: int
    names: tuple[str, ...]
    legends: tuple[Legend, ...]
    phase_settings: tuple[dict[str, Any], ...]

    @property
    def has_settings(self) -> bool:
        """Whether any phase has settings."""
        inner = any(legend.has_settings for legend in self.legends)
        return inner or any(self.phase_settings)

    def _phase(self, dials: Floats) -> int:
        return int(dials[self.first_dial + D_PHASE])

    def stage_of(self, label: str, dials: Floats) -> str:
        """Return the stage of a label, as the curriculum inside the phase sees it."""
        return self.legends[self._phase(dials)].stage_of(label, dials)

    def current_stage(self, dials: Floats) -> str | None:
        """Return the stage in force, if the phase has stages."""
        return self.legends[self._phase(dials)].current_stage(dials)

    def current_phase(self, dials: Floats) -> str | None:
        """Return the phase in force."""
        return self.names[self._phase(dials)]

    def mixing_ratio(self, stage: str, dials: Floats) -> float:
        """Return the mixing ratio of a stage, if the phase has stages."""
        return self.legends[self._phase(dials)].mixing_ratio(stage, dials)

    def settings(self, dials: Floats, seed: int, env_index: int, episode: int) -> dict[str, Any]:
        """Return the settings of one episode, those of the inner curriculum included."""
        phase = self._phase(dials)
        inner = self.legends[phase].settings(dials, seed, env_index, episode)
        done = float(dials[self.first_dial + D_EPISODES])
        # Nested curricula have other dials, and so other streams: no two settings go together.
        stream = SETTING_STREAM + MAX_SETTINGS * self.first_dial
        own = resolve(self.phase_settings[phase], done, seed, env_index, episode, stream)
        return {**inner, **own}


@compiled
def oldest_version(records: RecordArray) -> int:
    """Return the lowest plan version in a batch."""
    oldest = NOT_ENTERED
    for index in range(len(records)):
        oldest = min(oldest, records[index].plan_version)
    return oldest


@compiled
def count_phase(records: RecordArray, counts: Words, window: Floats, counters: Words) -> None:
    """Count the episodes of one phase."""
    for index in range(len(records)):
        counters[0] += 1
        counters[1] += records[index].length
        counts[EPISODES] += 1
        counts[STEPS] += records[index].length
        if records[index].success == records[index].success:
            counts[FILL], counts[HEAD] = push(
                window, counts[FILL], counts[HEAD], records[index].success
            )


class Phased(Curriculum):
    """Plays its phases one after the other.

    Args:
        tasks: A source, a pool or a list of tasks; every phase draws from the same ones.
        config: The settings; or give them as keywords: ``Phased(tasks, phases=(…))``.
        seed: Seed of all draws.
        capacity: Number of slots, for sources with more tasks than should be active.
        **settings: Fields of `PhasedConfig`.
    """

    config: PhasedConfig  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(
        self,
        tasks: Tasks,
        config: PhasedConfig | None = None,
        *,
        seed: int = 0,
        capacity: int | None = None,
        **settings: Any,
    ):
        config = settle(PhasedConfig, config, settings)
        super().__init__(tasks, config, seed=seed, capacity=capacity)
        self.inner = [phase.inner().make(self.pool, seed=seed) for phase in config.phases]
        """The curriculum of each phase."""
        self.needs_success = any(inner.needs_success for inner in self.inner) or any(
            phase.success is not None for phase in config.phases
        )
        self.phase_index = 0
        self.history: list[PhaseChange] = []
        """Every change of phase so far, oldest first."""
        self._counts: Words = np.zeros((len(config.phases), NUM_COUNTS), dtype=np.int64)
        self._counts[1:, ENTRY_VERSION] = NOT_ENTERED
        self._windows = [np.zeros(phase.window_episodes) for phase in config.phases]

    @property
    def current_phase(self) -> str:
        """Name of the current phase."""
        return self.config.phases[self.phase_index].name

    def _groupings(self) -> list[Grouping]:
        return [grouping for inner in self.inner for grouping in inner._groupings()]

    def _dial_names(self) -> list[str]:
        names = ["phase", "phase_episodes"]
        for phase, inner in zip(self.config.phases, self.inner, strict=True):
            names += [f"{phase.name}/{name}" for name in inner._dial_names()]
        return names

    def _attach(self, plan: Plan, tables: list[int], first_dial: int, root: PlanOwner) -> None:
        self._plan, self._root, self._first_dial = plan, root, first_dial
        next_dial = first_dial + 2
        for inner in self.inner:
            given = tables.copy()
            inner._attach(plan, tables, next_dial, root)
            next_dial += len(inner._dial_names())
            for table in given[: len(given) - len(tables)]:
                own = plan.block.view(np.float64)[table + kernels.T_EXPLORATION]
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
        dials = self._plan.dials
        dials[self._first_dial + D_PHASE] = self.phase_index
        dials[self._first_dial + D_EPISODES] = self._counts[self.phase_index, EPISODES]

    def _update(self, records: RecordArray) -> int:
        bad = first_bad_record(records, self.pool.num_slots, self.needs_success)
        if bad >= 0 or not len(records):
            return bad
        if oldest_version(records) >= self._counts[self.phase_index, ENTRY_VERSION]:
            self._hand_on(self.phase_index, records)
        else:
            entries = self._counts[: self.phase_index + 1, ENTRY_VERSION]
            owners = np.searchsorted(entries, records["plan_version"], side="right") - 1
            owners = np.maximum(owners, 0)
            for phase in np.unique(owners).tolist():
                self._hand_on(phase, records[owners == phase])
        phase = self.config.phases[self.phase_index]
        if any(isinstance(setting, Ramp) for setting in phase.settings.values()):
            with self.plan.writing():
                self._publish()
        rule = self._limit_reached()
        if rule is not None and self.phase_index < len(self.inner) - 1:
            self._enter(self.phase_index + 1, rule)
        return -1

    def _hand_on(self, phase: int, records: RecordArray) -> None:
        inner = self.inner[phase]
        orphans = inner.num_orphaned
        inner._update(records)
        self.counters[2] += inner.num_orphaned - orphans
        count_phase(records, self._counts[phase], self._windows[phase], self.counters)

    def _limit_reached(self) -> str | None:
        phase, counts = self.config.phases[self.phase_index], self._counts[self.phase_index]
        if phase.episodes is not None and counts[EPISODES] >= phase.episodes:
            return "episodes"
        if phase.steps is not None and counts[STEPS] >= phase.steps:
            return "steps"
        enough = counts[EPISODES] >= phase.min_episodes
        if phase.success is not None and enough and self._success() >= phase.success:
            return "success"
        return None

    def _success(self) -> float:
        return mean(self._windows[self.phase_index], int(self._counts[self.phase_index, FILL]))

    def _enter(self, index: int, rule: str) -> None:
        """Switch phases: weights, phase and settings change in one write."""
        old, plan = self.phase_index, self.plan
        success = self._success()
        self.phase_index = index
        self._counts[index, ENTRY_VERSION] = plan.version + 1
        with plan.writing() as block:
            self._publish()
            block[kernels.H_TABLE] = self._root._active_table()
        self.history.append(
            PhaseChange(
                episode=self.num_observed,
                step=self.num_steps,
                plan_version=plan.version,
                from_phase=self.config.phases[old].name,
                to_phase=self.current_phase,
                rule=rule,
                episodes=int(self._counts[old, EPISODES]),
                steps=int(self._counts[old, STEPS]),
                success=success,
            )
        )

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

    def _explain(self) -> PhasedExplanation:
        phase, counts = self.config.phases[self.phase_index], self._counts[self.phase_index]
        given = {"episodes": phase.episodes, "steps": phase.steps, "success": phase.success}
        return PhasedExplanation(
            **self._overview_fields(),
            phase=phase.name,
            phase_index=self.phase_index,
            num_phases=len(self.inner),
            phase_episodes=int(counts[EPISODES]),
            phase_steps=int(counts[STEPS]),
            phase_success=self._success(),
            limits={name: float(limit) for name, limit in given.items() if limit is not None},
            inner=self.inner[self.phase_index]._explain(),
        )

    def _reason(self, slot: int) -> tuple[str, dict[str, float]]:
        reason, numbers = self.inner[self.phase_index]._reason(slot)
        return f"in phase {self.current_phase!r}, {reason}", numbers

    def _save(self) -> Snapshot:
        arrays = {f"window{index}": window.copy() for index, window in enumerate(self._windows)}
        own = Snapshot(
            {
                "phase_index": self.phase_index,
                "history": [asdict(change) for change in self.history],
            },
            {"counts": self._counts.copy(), **arrays},
        )
        parts = {f"phase{index}": inner._save_all() for index, inner in enumerate(self.inner)}
        nested = Snapshot.of_parts(own.state, **parts)
        return Snapshot(nested.state, {**own.arrays, **nested.arrays})

    def _load(self, snapshot: Snapshot) -> None:
        last = len(self.inner) - 1
        self.phase_index = whole_number(
            snapshot.state["phase_index"], "The snapshot's phase", 0, last, SnapshotError
        )
        self.history = [PhaseChange(**change) for change in snapshot.state["history"]]
        self._counts[:] = matching(snapshot.arrays, "counts", self._counts)
        for index, (inner, window) in enumerate(zip(self.inner, self._windows, strict=True)):
            window[:] = matching(snapshot.arrays, f"window{index}", window)
            inner._load_all(snapshot.part(f"phase{index}"))
