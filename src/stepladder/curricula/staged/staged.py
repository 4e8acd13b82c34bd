"""Ordered stages: practise one until it is mastered, then the next.

Gets records from `sync`, gives shares of stages back. All records count, whichever env they come
from, and stage and mixing ratio are written into the plan together: no env can be on another
stage than the rest.

The rules, tables and defaults are those of the staged curriculum for N++ agents described in
docs/staged.md, without its defects: counts since entry decide (a re-entered stage proves itself
again), the trend is read in order of time, a demotion makes the next one harder to come by.

Use it when the order of difficulty is known. Do not use it when it is not: a stage that cannot
be passed stops everything behind it, and `LearningProgress` needs no order.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from stepladder.compiled import direct
from stepladder.curricula.base import Curriculum
from stepladder.curricula.staged import kernels as rules
from stepladder.curricula.staged.config import StagedConfig
from stepladder.curricula.staged.groups import StageGroups
from stepladder.curricula.staged.kernels import Constants, State
from stepladder.curricula.staged.report import StageChange, StagedExplanation, StageReport
from stepladder.errors import BuildError, ConfigError, SnapshotError
from stepladder.plans.legend import StagedLegend
from stepladder.plans.plan import Grouping, aligned_words
from stepladder.plans.record import HOST_ENV, TERMINATED, Record, RecordArray
from stepladder.plans.status import STAGE_DUE
from stepladder.records import zeros
from stepladder.saving.saved_array import Part
from stepladder.saving.saved_fields import read_list


class Staged(Curriculum):
    """Ordered stages over labels; advances when the current one is mastered.

    Every label of the tasks must belong to a stage. Stages may be given by name alone:
    ``Staged(tasks, stages=("a", "b"))``.
    """

    Config = StagedConfig
    groups_by_label = True
    config: StagedConfig  # pyright: ignore[reportIncompatibleVariableOverride]

    def _set_up(self) -> None:
        config = self.config
        self.history: list[StageChange] = []
        """Every change of stage so far, oldest first."""
        groups = StageGroups.of(self.pool, config)
        self._grouping, self._stage_of_group = groups.grouping, groups.stage_of_group
        self._group_names = groups.names
        grouping = self._grouping
        state = zeros(
            State,
            stages=len(config.stages),
            groups=grouping.num_groups,
            windows=(len(config.stages), config.window_episodes),
        )
        start = 0 if config.starting_stage is None else config.index_of(config.starting_stage)
        state.method["current"] = start
        state.method["until_check"] = config.check_interval_episodes
        state.stages["ratio"] = config.mixing.base_ratio if config.mixing else 0.0
        self._keep_state(state)
        self._constants = rules.constants_of(config, grouping.group_of_slot, self._stage_of_group)
        self._entering: tuple[int, StageChange, int] | None = None
        self._observe_kernel = direct(
            rules.observe, *(aligned_words(1), 0, 0, state, self._constants), self._scratch, 0
        )

    # The contract.

    def _groupings(self) -> list[Grouping]:
        return [self._grouping]

    def _dials(self) -> list[Part]:
        stages = self.config.stages
        ratios = (Part.share(f"mixing_ratio/{stage.name}") for stage in stages)
        return [Part.count("stage", high=len(stages) - 1), *ratios]

    def legend(self) -> StagedLegend:
        """Return what a client must know to read the plan."""
        names = tuple(stage.name for stage in self.config.stages)
        return StagedLegend(
            needs_success=True,
            stage_of_label={
                label: stage.name for stage in self.config.stages for label in stage.task_labels
            },
            stages=names,
            first_dial=self._first_dial,
        )

    def _publish(self) -> None:
        assert self._plan is not None
        self._fill_weights(self.pool.base_weights)
        rules.write_shares(
            self._plan.block, self._table, self._first_dial, *self._state_and_constants()
        )

    def _state_and_constants(self) -> tuple[State, Constants]:
        return self._state, self._constants

    def _update(self, records: RecordArray, num_done: int) -> int:
        block = (self._plan or self.plan).block
        if self._entering is not None:
            self._carry_out_entry()
        # Due already only if this is called again.
        if num_done and self._constants.due["event"][0] != rules.KEEP_STAGE:
            self._leave()
        while True:
            status, num_done = self._observe_kernel(
                block,
                self._table,
                self._first_dial,
                self._state,
                self._constants,
                records,
                num_done,
            )
            if status != STAGE_DUE:
                return status
            self._leave()

    def _leave(self) -> None:
        if self._constants.due["event"][0] == rules.DEMOTE:
            self._enter(self.stage_index - 1, ("demotion",))
            return
        verdict = self._judge(self.stage_index)
        held = {"standard": verdict.standard, "early": verdict.early, "trend": verdict.bonus}
        self._enter(self.stage_index + 1, tuple(name for name in held if held[name]))

    def _enter(self, index: int, held: tuple[str, ...]) -> None:
        """Make another stage the current one."""
        change = self._change_to(index, held)
        self._constants.due["is_entering"] = 1
        # From here on it is carried out, if need be by the next call.
        self._entering = index, change, len(self.history)
        self._carry_out_entry()

    def _change_to(self, index: int, held: tuple[str, ...]) -> StageChange:
        """Say why, and on what evidence, another stage becomes the current one now."""
        old = self.stage_index
        verdict, stages = self._judge(old), self._state.stages
        evidence = rules.demotion_episodes(*self._state_and_constants(), old)
        asked = self.config.needs_of(old, self._num_envs, evidence)
        return StageChange(
            episode=self.num_observed,
            step=self.num_steps,
            plan_version=self.plan.version + 1,
            from_stage=self.config.stages[old].name,
            to_stage=self.config.stages[index].name,
            rules=held,
            success=verdict.plain,
            judged_success=verdict.judged,
            episodes=int(stages["since_entry"][old]),
            needs={rule: need for rule, need in asked.items() if rule in held},
            threshold=self.config.threshold_of(old),
            min_episodes=self.config.min_episodes_of(old),
            trend=verdict.trend,
            mixing_ratio=float(stages["ratio"][old]),
        )

    def _carry_out_entry(self) -> None:
        assert self._entering is not None
        index, change, num_before = self._entering
        rules.enter(
            self.plan.block, self._table, self._first_dial, *self._state_and_constants(), index
        )
        if len(self.history) == num_before:
            self.history.append(change)
        self._entering = None

    def _replacement_label(self, slot: int) -> str | None:
        if self.config.balance_by is not None:
            raise ConfigError(
                "a task cannot be replaced while balance_by splits the stages: its successor might "
                "belong to another sub-group. Use a source that fits into the pool."
            )
        return super()._replacement_label(slot)

    def _expect_envs(self, num_envs: int) -> None:
        self._state.method["num_envs"] = num_envs

    def _can_replace(self) -> bool:
        return super()._can_replace() and self.config.balance_by is None

    def _slot_lost(self, slot: int, reason: str) -> None:
        # A stage that was passed is played again only if there is a way back.
        stage = int(self._stage_of_group[self._grouping.group_of_slot[slot]])
        if stage >= self.stage_index or self.config.demotion is not None:
            self._require_tasks(stage, f" (last: {reason})")

    def _require_tasks(self, stage: int, cause: str = "") -> None:
        if stage not in self._stage_of_group[self._grouping.group_of_slot[self.plan.active]]:
            raise BuildError(
                f"no task of stage {self.config.stages[stage].name!r} is left: envs could not "
                f"build any of them{cause}. Fix the tasks, or leave the stage out."
            )

    # What a user asks of it.

    @property
    def stage_index(self) -> int:
        """Position of the current stage."""
        return int(self._state.method["current"][0])

    @property
    def _num_envs(self) -> int:
        return int(self._state.method["num_envs"][0])

    @property
    def current_stage(self) -> str:
        """Name of the current stage."""
        return self.config.stages[self.stage_index].name

    def set_check_interval_episodes(self, episodes: int) -> None:
        """Consider advancement after every so many episodes, counted from now."""
        config = replace(self.config, check_interval_episodes=episodes)
        self.config = config  # pyright: ignore[reportIncompatibleVariableOverride]
        self._constants.settings["check_interval_episodes"] = episodes
        self._state.method["until_check"] = episodes

    def mixing_ratio(self, stage: str | None = None) -> float:
        """Return the share of earlier tasks in a stage; by default the current one."""
        index = self.stage_index if stage is None else self.config.index_of(stage)
        return float(self._state.stages["ratio"][index])

    def record_episode(
        self, stage: str, success: bool | float, *, episode_return: float = 0.0, length: int = 1
    ) -> None:
        """Observe a result that did not come from an env, for some task of a stage."""
        index = self.config.index_of(stage)
        group = int(np.flatnonzero(self._stage_of_group == index)[0])
        slot = int(np.flatnonzero(self._grouping.group_of_slot == group)[0])
        self.observe(
            Record(
                slot,
                int(self.pool.generations[slot]),
                self.plan.version,
                self.plan.tick,
                HOST_ENV,
                0,
                episode_return,
                length,
                float(success),
                TERMINATED,
            )
        )

    def go_to(self, stage: str) -> None:
        """Make a stage the current one by hand; the history says so."""
        self.finish()
        index = self.config.index_of(stage)
        self._require_tasks(index)
        self._begin_work()
        self._enter(index, ("manual",))
        self._end_work()

    def stage_report(self, stage: str | None = None) -> StageReport:
        """Return where a stage stands; by default the current one."""
        index = self.stage_index if stage is None else self.config.index_of(stage)
        verdict: rules.StageVerdict = self._judge(index)
        evidence: Any = self._state.stages[index]
        status = ("completed", "current", "locked")[
            (index >= self.stage_index) + (index > self.stage_index)
        ]
        groups, results = np.flatnonzero(self._stage_of_group == index), self._state.groups
        is_last = index == len(self.config.stages) - 1
        return StageReport(
            stage=self.config.stages[index].name,
            status=status,
            success_rate=verdict.plain,
            judged_success=verdict.judged,
            passed_at=self._passed_at(self.config.stages[index].name),
            episodes=int(evidence["since_entry"]),
            lifetime_episodes=int(evidence["lifetime"]),
            recent_episodes=int(evidence["fill"]),
            can_advance=(verdict.standard or verdict.early or verdict.bonus) and not is_last,
            can_early_advance=verdict.early,
            trend_bonus=verdict.bonus,
            advancement_threshold=self.config.threshold_of(index),
            min_episodes=max(self.config.min_episodes_of(index), self._num_envs),
            trend=verdict.trend,
            adaptive_mixing_ratio=float(evidence["ratio"]),
            groups={
                self._group_names[group]: (
                    int(results["num_episodes"][group]),
                    float(results["successes"][group] / max(1, results["num_episodes"][group])),
                )
                for group in groups.tolist()
                if self._group_names[group]
            },
        )

    def _passed_at(self, stage: str) -> float | None:
        """Return the success with which a stage was last left upwards by a rule."""
        passed = (
            change.success
            for change in reversed(self.history)
            if change.from_stage == stage and change.kind == "stage_advanced"
        )
        return next(passed, None)

    @property
    def next_check(self) -> int:
        """Number of observed records at which advancement is considered next."""
        return self.num_observed + int(self._state.method["until_check"][0])

    def _judge(self, stage: int) -> rules.StageVerdict:
        return rules.judge(*self._state_and_constants(), stage)

    def changes(self) -> list[StageChange]:
        """Return every change of stage so far, oldest first."""
        return self.history

    def state_metrics(self) -> dict[str, float]:
        """Return the index of the current stage."""
        return {"stage": float(self.stage_index)}

    def _explain(self) -> StagedExplanation:
        index = self.stage_index
        can_fall = self.config.demotion is not None and index > 0
        return StagedExplanation(
            **self._overview_fields(),
            stage=self.current_stage,
            stage_index=index,
            num_stages=len(self.config.stages),
            is_last=index == len(self.config.stages) - 1,
            stages=tuple(self.stage_report(stage.name) for stage in self.config.stages),
            last_change=self.history[-1] if self.history else None,
            episodes_to_next_check=int(self._state.method["until_check"][0]),
            standard_rule=self.config.standard,
            demotion_below=self.config.demotion_threshold_of(index) if can_fall else None,
            demotion_episodes=(
                round(rules.demotion_episodes(*self._state_and_constants(), index))
                if can_fall
                else None
            ),
        )

    def _reason(self, slot: int) -> tuple[str, dict[str, float]]:
        group = int(self._grouping.group_of_slot[slot])
        index = int(self._stage_of_group[group])
        report = self.stage_report(self.config.stages[index].name)
        name = report.stage
        numbers = {
            "stage_success": report.success_rate,
            "stage_episodes": float(report.lifetime_episodes),
        }
        if index == self.stage_index:
            return f"its stage {name!r} is the current one", numbers
        if index > self.stage_index:
            return f"its stage {name!r} is locked until {self.current_stage!r} is passed", numbers
        share = self.plan.shares(self._table)[group]
        if share > 0:
            return f"its stage {name!r} is passed and mixed in", numbers
        return f"its stage {name!r} is passed and not mixed in", numbers

    def _saved_limits(self) -> dict[str, tuple[Any, Any]]:
        window = self.config.window_episodes
        return {
            "method.current": (0, len(self.config.stages) - 1),
            "method.until_check": (0, self.config.check_interval_episodes),
            "stages.fill": (0, window),
            "stages.head": (0, window - 1),
        }

    def _save_state(self) -> dict[str, Any]:
        return {
            "history": [change.to_json() for change in self.history],
            "check_interval_episodes": self.config.check_interval_episodes,
        }

    def _load_state(self, state: Mapping[str, Any], place: str) -> None:
        saved, present = state.get("check_interval_episodes"), self.config.check_interval_episodes
        if saved != present:
            raise SnapshotError(
                f"check_interval_episodes was {saved!r} and is now {present}. Set it first."
            )
        self.history = read_list(StageChange, state.get("history"), f"history of {place}")

    def _check_loaded(self, place: str) -> None:
        self._keep_subgroups()

    def _keep_subgroups(self) -> None:
        if self.config.balance_by is None:
            return
        found, mine = StageGroups.of(self.pool, self.config), self._grouping.group_of_slot
        same_slots = np.array_equal(found.grouping.group_of_slot, mine)
        if not same_slots or found.names != self._group_names:
            raise SnapshotError(
                f"the tasks of the snapshot differ from those here in {self.config.balance_by!r}, "
                "by which stages are split. Build the curriculum over a pool with the same seed."
            )
