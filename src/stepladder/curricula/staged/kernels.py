"""Compiled rules of the staged curriculum: judge a stage, mix in earlier ones, learn from records.

Called by `staged`, which owns the arrays. `observe` runs through a batch at compiled speed and
comes back to Python only when a stage is to be left; `judge` is also what `explain` reads, so
that what is decided and what is said can never differ.
"""
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportReturnType=false, reportArgumentType=false
# Reason: NumPy's stubs do not know that an element of an integer array is an integer.

from typing import Annotated, NamedTuple

import numpy as np

from stepladder.arrays import Floats, Words
from stepladder.compiled import bare, compiled, inlined
from stepladder.curricula.batch_rule import Totals, count_record
from stepladder.curricula.staged.config import (
    DemotionRule,
    EarlyRule,
    Mixing,
    StagedConfig,
    TrendRule,
)
from stepladder.plans.kernels import begin_write, end_write
from stepladder.plans.layout import group_of, header_of
from stepladder.plans.record import TRUNCATED, RecordFields, first_bad_record
from stepladder.plans.status import DONE, STAGE_DUE
from stepladder.records import Count, Fields, Limits, Records, Share, settings_record
from stepladder.saving.saved_array import MAX_COUNT
from stepladder.stats.interval import wilson_lower
from stepladder.stats.window import mean, push, trend

KEEP_STAGE, ADVANCE, DEMOTE = 0, 1, 2
"""What is due."""

MAX_EPISODES = 2.0**53
"""More than any run has."""


class Method(Fields):
    """Where the curriculum is."""

    totals: Totals
    current: int
    """Position of the current stage."""
    entry_version: Count
    """Version of the plan with which it was entered."""
    until_check: int
    """Episodes until advancement is considered again."""
    num_envs: Annotated[int, Limits(0, 2**31)]


class StageEvidence(Fields):
    """What is known of a stage."""

    fill: int
    """Results in its window."""
    head: int
    """Where in the window the next one goes."""
    since_entry: Count
    lifetime: Count
    num_demotions: Count
    ratio: Share
    """Share of earlier tasks that are mixed in."""


class GroupResults(Fields):
    """What came of a stage's sub-group, or of the whole stage where it is not split."""

    num_episodes: Count
    successes: Annotated[float, Limits(0.0, MAX_COUNT)]


class State(NamedTuple):
    """Everything that the method learns."""

    method: Records[Method]
    stages: Records[StageEvidence]
    groups: Records[GroupResults]
    windows: Annotated[Floats, Limits(0.0, 1.0 + 1e-9)]
    """The latest results of each stage; shape ``(num_stages, window_episodes)``."""


class StageLimits(Fields):
    """What a stage asks for."""

    threshold: float
    min_episodes: int
    demotion_threshold: float


class EarlySettings(EarlyRule):
    """A rule as kernels read it."""

    is_set: bool


class TrendSettings(TrendRule):
    """See `EarlySettings`."""

    is_set: bool


class DemotionSettings(DemotionRule):
    """See `EarlySettings`."""

    is_set: bool


class MixingSettings(Mixing):
    """See `EarlySettings`."""

    is_set: bool


class Settings(StagedConfig):
    """The config as kernels read it, with what follows from it."""

    early: EarlySettings
    trend: TrendSettings
    demotion: DemotionSettings
    mixing: MixingSettings
    confidence_z: float
    trend_results: int
    mixes_all_earlier: bool


class StageDue(Fields):
    """What is due, between the kernel that finds it and the one that does it."""

    event: int
    is_entering: int
    """Whether an entry is still to be written."""


class Constants(NamedTuple):
    """What stays the same, and what is due."""

    settings: Records[Settings]
    limits: Records[StageLimits]
    mixing_table: Floats
    """Rows of a success below which a ratio holds, and the ratio."""
    group_of_slot: Words
    stage_of_group: Words
    due: Records[StageDue]


class StageVerdict(NamedTuple):
    """What the rules say about a stage."""

    plain: float
    """Success."""
    judged: float
    """Success as judged: a lower bound if asked for."""
    trend: float
    standard: bool
    early: bool
    bonus: bool
    demote: bool


@compiled
def judge(state: State, constants: Constants, stage: int) -> StageVerdict:
    """Apply every rule to one stage.

    No rule decides before each env has had time for one episode: with many envs the first
    results are those of the shortest episodes, which are not a fair sample.
    """
    settings, limits = constants.settings[0], constants.limits[stage]
    own, window = state.stages[stage], state.windows[stage]
    plain = mean(window, own.fill)
    judged = plain
    if settings.confidence_z > 0.0:
        judged = wilson_lower(plain, own.fill, settings.confidence_z)
    rising = trend(window, own.fill, own.head, settings.trend_results)
    episodes = own.since_entry
    enough = episodes >= state.method[0].num_envs
    standard = (
        settings.standard
        and enough
        and episodes >= limits.min_episodes
        and judged >= limits.threshold
    )
    early = (
        settings.early.is_set
        and enough
        and episodes >= settings.early.min_episodes
        and judged >= settings.early.success
    )
    bonus = (
        settings.trend.is_set
        and enough
        and rising > settings.trend.min_trend
        and episodes >= settings.trend.episodes_factor * limits.min_episodes
        and judged >= limits.threshold - settings.trend.slack
    )
    demote = (
        settings.demotion.is_set
        and stage > 0
        and enough
        and episodes >= demotion_episodes(state, constants, stage)
        and plain < limits.demotion_threshold
    )
    return StageVerdict(plain, judged, rising, standard, early, bonus, demote)


@inlined
def demotion_episodes(state: State, constants: Constants, stage: int) -> float:
    """Return the evidence that the next demotion out of a stage needs; always finite."""
    demotion = constants.settings[0].demotion
    needed = demotion.min_episodes * demotion.backoff ** state.stages[stage].num_demotions
    return min(needed, MAX_EPISODES)


@inlined
def ratio_of(success: float, num_results: int, constants: Constants) -> float:
    """Return the share of earlier tasks for a given success of the present stage."""
    mixing = constants.settings[0].mixing
    if not mixing.adaptive or num_results < mixing.min_results:
        return mixing.base_ratio
    for row in range(len(constants.mixing_table)):
        if success < constants.mixing_table[row, 0]:
            return constants.mixing_table[row, 1]
    return mixing.otherwise


@inlined
def write_shares(
    block: Words, table: int, first_dial: int, state: State, constants: Constants
) -> None:
    """Write stage and mixing ratios together. Call between begin and end."""
    settings, stage_of_group = constants.settings[0], constants.stage_of_group
    dials, values = header_of(block).dials_at + first_dial, block.view(np.float64)
    current = state.method[0].current
    values[dials] = current
    for stage in range(len(state.stages)):
        values[dials + 1 + stage] = state.stages[stage].ratio
    ratio = state.stages[current].ratio if current > 0 and settings.mixing.is_set else 0.0
    for group in range(len(stage_of_group)):
        stage = stage_of_group[group]
        share = 0.0
        if stage == current:
            share = 1.0 - ratio
        elif stage < current and settings.mixes_all_earlier:
            share = ratio / current
        elif stage == current - 1:
            share = ratio
        num_groups = 0
        for other in range(len(stage_of_group)):
            num_groups += stage_of_group[other] == stage
        group_of(block, table, group).share = share / num_groups


@inlined
def _observe_one(state: State, constants: Constants, record: RecordFields) -> int:
    """Count one result for its stage and its sub-group; return the stage."""
    group = constants.group_of_slot[record.slot]
    stage = constants.stage_of_group[group]
    method, own = state.method[0], state.stages[stage]
    state.groups[group].num_episodes += 1
    state.groups[group].successes += record.success
    own.lifetime += 1
    is_cut = record.outcome == TRUNCATED and record.success < 1.0
    is_ignored = constants.settings[0].ignore_truncated and is_cut
    # An episode drawn before the stage was entered says nothing about this stay in it.
    is_old = stage == method.current and record.plan_version < method.entry_version
    if not is_ignored and not is_old:
        own.fill, own.head = push(state.windows[stage], own.fill, own.head, record.success)
        if stage == method.current:
            own.since_entry += 1
    return stage


@bare
def observe(
    block: Words,
    table: int,
    first_dial: int,
    state: State,
    constants: Constants,
    records: Records[RecordFields],
    start: int,
) -> tuple[int, int]:
    """Learn from records until one of them moves the curriculum to another stage.

    Returns:
        `DONE` and the number of records; `STAGE_DUE` and the index of the next record; or, with
        nothing changed, the index of an impossible record and 0.
    """
    if start == 0:
        bad = first_bad_record(records, len(constants.group_of_slot), True)
        if bad >= 0:
            return bad, 0
    method, settings = state.method[0], constants.settings[0]
    for index in range(start, len(records)):
        record = records[index]
        method.num_envs = max(method.num_envs, record.env_index + 1)
        slot, success = record.slot, record.success
        if count_record(
            block, table, method.totals, slot, record.generation, record.length, success
        ):
            stage = _observe_one(state, constants, record)
            own = state.stages[stage]
            if stage == method.current:
                ratio = ratio_of(mean(state.windows[stage], own.fill), own.fill, constants)
                if ratio != own.ratio:
                    own.ratio = ratio
                    begin_write(block)
                    write_shares(block, table, first_dial, state, constants)
                    end_write(block)
        method.until_check -= 1
        if method.until_check <= 0:
            method.until_check = settings.check_interval_episodes
            verdict = judge(state, constants, method.current)
            if verdict.demote:
                constants.due[0].event = DEMOTE
                return STAGE_DUE, index + 1
            advances = verdict.standard or verdict.early or verdict.bonus
            if advances and method.current < len(state.stages) - 1:
                constants.due[0].event = ADVANCE
                return STAGE_DUE, index + 1
    return DONE, len(records)


@compiled
def enter(
    block: Words, table: int, first_dial: int, state: State, constants: Constants, stage: int
) -> None:
    """Make another stage the current one: evidence starts afresh, shares follow.

    Nothing is changed unless an entry is due, and none is due afterwards.
    """
    method, own, due = state.method[0], state.stages[stage], constants.due[0]
    if due.is_entering == 0:
        return
    begin_write(block)
    if due.event == DEMOTE:
        state.stages[method.current].num_demotions += 1
    method.current = stage
    # The version that readers will see when this write has ended.
    method.entry_version = (header_of(block).sequence + 1) >> 1
    own.fill = 0
    own.head = 0
    own.since_entry = 0
    own.ratio = constants.settings[0].mixing.base_ratio
    write_shares(block, table, first_dial, state, constants)
    end_write(block)
    due.event = KEEP_STAGE
    due.is_entering = 0


def constants_of(config: StagedConfig, group_of_slot: Words, stage_of_group: Words) -> Constants:
    """Write a config as the numbers that the kernels read."""
    mixing = config.mixing
    settings = settings_record(
        config,
        confidence_z=float(config.confidence_z or 0.0),
        trend_results=20 if config.trend is None else config.trend.min_results,
        mixes_all_earlier=mixing is not None and mixing.source == "all_earlier",
    )
    limits = StageLimits.zeros(len(config.stages))
    for index in range(len(config.stages)):
        limits["threshold"][index] = config.threshold_of(index)
        limits["min_episodes"][index] = config.min_episodes_of(index)
        limits["demotion_threshold"][index] = config.demotion_threshold_of(index)
    table = np.array(() if mixing is None else mixing.table, dtype=np.float64).reshape(-1, 2)
    return Constants(settings, limits, table, group_of_slot, stage_of_group, StageDue.zeros())
