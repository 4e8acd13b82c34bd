"""Compiled rules of the staged curriculum: judge a stage, mix in earlier ones, absorb records.

Called by `staged`, which owns the arrays. `absorb` runs through a batch at compiled speed and
comes back to Python only when a stage is to be left; `judge` is also what `explain` reads, so
that what is decided and what is said can never differ.
"""
# pyright: reportReturnType=false, reportArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# Reason: NumPy's stubs do not know that an element of an integer array is an integer.

import numpy as np

from stepladder.compiled import compiled
from stepladder.curricula.staged.config import Mixing, StagedConfig
from stepladder.plans.kernels import (
    H_DIALS,
    H_ROWS,
    H_SEQUENCE,
    T_SHARES,
    Floats,
    Words,
    begin_write,
    end_write,
)
from stepladder.plans.record import TRUNCATED, RecordArray, first_bad_record
from stepladder.saving.saved_array import MAX_COUNT, Part, SavedArray
from stepladder.stats.interval import wilson_lower
from stepladder.stats.window import mean, push, trend

# Columns of the counts per stage.
FILL, HEAD, SINCE_ENTRY, LIFETIME, DEMOTIONS = 0, 1, 2, 3, 4
NUM_COUNTS = 5

# Columns of the limits per stage.
THRESHOLD, MIN_EPISODES, DEMOTION_THRESHOLD, RATIO = 0, 1, 2, 3
NUM_LIMITS = 4

# The curriculum's own state.
CURRENT, ENTRY_VERSION, UNTIL_CHECK, NUM_ENVS = 0, 1, 2, 3

# The rules, one number each; a rule that is off has its first number at 0.
R_STANDARD, R_EARLY, R_EARLY_SUCCESS, R_EARLY_EPISODES = 0, 1, 2, 3
R_TREND, R_TREND_MIN, R_TREND_FACTOR, R_TREND_SLACK, R_TREND_RESULTS = 4, 5, 6, 7, 8
R_DEMOTION, R_DEMOTION_EPISODES, R_BACKOFF, R_Z, R_CHECK = 9, 10, 11, 12, 13
R_MIXING, R_BASE_RATIO, R_ADAPTIVE, R_MIXING_RESULTS, R_ALL_EARLIER = 14, 15, 16, 17, 18
R_IGNORE_TRUNCATED, R_TABLE = 19, 20

NOTHING, ADVANCE, DEMOTE = 0, 1, 2

MAX_EPISODES = 2.0**53
"""More than anybody plays."""

# Behind the state, what is due: one of the above, and whether an entry is still to be written.
EVENT, ENTRY = 4, 5
NUM_STATE = 4
NUM_WORDS = 6


@compiled
def judge(
    stage: int, windows: Floats, counts: Words, limits: Floats, rules: Floats, num_envs: int
) -> tuple[float, float, float, bool, bool, bool, bool]:
    """Apply every rule to one stage.

    No rule decides before each env has had time for one episode: with many envs the first
    results are those of the shortest episodes, which are not a fair sample.

    Returns:
        Plain success, success as judged (a lower bound if asked for), trend, and whether the
        standard, early and trend rules and the demotion rule hold.
    """
    fill, episodes = counts[stage, FILL], counts[stage, SINCE_ENTRY]
    plain = mean(windows[stage], fill)
    judged = wilson_lower(plain, fill, rules[R_Z]) if rules[R_Z] > 0.0 else plain
    rising = trend(windows[stage], fill, counts[stage, HEAD], int(rules[R_TREND_RESULTS]))
    threshold, minimum = limits[stage, THRESHOLD], limits[stage, MIN_EPISODES]
    enough = episodes >= num_envs
    standard = rules[R_STANDARD] > 0.0 and enough and episodes >= minimum and judged >= threshold
    early = (
        rules[R_EARLY] > 0.0
        and enough
        and episodes >= rules[R_EARLY_EPISODES]
        and judged >= rules[R_EARLY_SUCCESS]
    )
    bonus = (
        rules[R_TREND] > 0.0
        and enough
        and rising > rules[R_TREND_MIN]
        and episodes >= rules[R_TREND_FACTOR] * minimum
        and judged >= threshold - rules[R_TREND_SLACK]
    )
    demote = (
        rules[R_DEMOTION] > 0.0
        and stage > 0
        and enough
        and episodes >= demotion_episodes(stage, counts, rules)
        and plain < limits[stage, DEMOTION_THRESHOLD]
    )
    return plain, judged, rising, standard, early, bonus, demote


@compiled
def demotion_episodes(stage: int, counts: Words, rules: Floats) -> float:
    """Return the evidence that the next demotion out of a stage needs; always finite."""
    needed = rules[R_DEMOTION_EPISODES] * rules[R_BACKOFF] ** counts[stage, DEMOTIONS]
    return min(needed, MAX_EPISODES)


@compiled
def ratio_of(success: float, results: int, rules: Floats) -> float:
    """Return the share of earlier tasks for a given success of the present stage."""
    if rules[R_ADAPTIVE] == 0.0 or results < rules[R_MIXING_RESULTS]:
        return rules[R_BASE_RATIO]
    entry = R_TABLE
    while entry < len(rules) - 1:
        if success < rules[entry]:
            return rules[entry + 1]
        entry += 2
    return rules[len(rules) - 1]


@compiled
def write_shares(
    block: Words,
    table: int,
    first_dial: int,
    stage_of_group: Words,
    limits: Floats,
    rules: Floats,
    state: Words,
) -> None:
    """Write stage and mixing ratios together. Call between begin and end."""
    values = block.view(np.float64)
    current = state[CURRENT]
    values[block[H_DIALS] + first_dial] = current
    for stage in range(len(limits)):
        values[block[H_DIALS] + first_dial + 1 + stage] = limits[stage, RATIO]
    ratio = limits[current, RATIO] if current > 0 and rules[R_MIXING] > 0.0 else 0.0
    for group in range(len(stage_of_group)):
        stage = stage_of_group[group]
        share = 0.0
        if stage == current:
            share = 1.0 - ratio
        elif stage < current and rules[R_ALL_EARLIER] > 0.0:
            share = ratio / current
        elif stage == current - 1:
            share = ratio
        num_groups = np.sum(stage_of_group == stage)
        values[block[table + T_SHARES] + group] = share / num_groups


@compiled
def _absorb_one(
    index: int,
    records: RecordArray,
    group: int,
    stage: int,
    windows: Floats,
    counts: Words,
    rules: Floats,
    state: Words,
    results: Floats,
) -> None:
    """Count one result for its stage and its sub-group."""
    record = records[index]
    results[group, 0] += 1.0
    results[group, 1] += record.success
    counts[stage, LIFETIME] += 1
    if rules[R_IGNORE_TRUNCATED] > 0.0 and record.outcome == TRUNCATED and record.success < 1.0:
        return
    # An episode drawn before the stage was entered is no evidence about this stay in it.
    if stage == state[CURRENT] and record.plan_version < state[ENTRY_VERSION]:
        return
    counts[stage, FILL], counts[stage, HEAD] = push(
        windows[stage], counts[stage, FILL], counts[stage, HEAD], record.success
    )
    if stage == state[CURRENT]:
        counts[stage, SINCE_ENTRY] += 1


@compiled
def absorb(
    block: Words,
    table: int,
    first_dial: int,
    records: RecordArray,
    start: int,
    group_of_slot: Words,
    stage_of_group: Words,
    windows: Floats,
    counts: Words,
    limits: Floats,
    rules: Floats,
    state: Words,
    results: Floats,
    counters: Words,
) -> tuple[int, int]:
    """Learn from records until one of them moves the curriculum to another stage.

    Returns:
        Index of the next record and `NOTHING`, `ADVANCE` or `DEMOTE`, which is noted as due; or,
        with nothing changed, minus one minus the index of a bad record.
    """
    if start == 0:
        bad = first_bad_record(records, len(group_of_slot), True)
        if bad >= 0:
            return -1 - bad, NOTHING
    for index in range(start, len(records)):
        slot = records[index].slot
        counters[0] += 1
        counters[1] += records[index].length
        state[NUM_ENVS] = max(state[NUM_ENVS], records[index].env_index + 1)
        if records[index].generation == block[block[H_ROWS] + 2 * slot + 1]:
            group = group_of_slot[slot]
            stage = stage_of_group[group]
            _absorb_one(index, records, group, stage, windows, counts, rules, state, results)
            if stage == state[CURRENT]:
                fill = counts[stage, FILL]
                ratio = ratio_of(mean(windows[stage], fill), fill, rules)
                if ratio != limits[stage, RATIO]:
                    limits[stage, RATIO] = ratio
                    begin_write(block)
                    write_shares(block, table, first_dial, stage_of_group, limits, rules, state)
                    end_write(block)
        else:
            counters[2] += 1
        state[UNTIL_CHECK] -= 1
        if state[UNTIL_CHECK] <= 0:
            state[UNTIL_CHECK] = int(rules[R_CHECK])
            current = state[CURRENT]
            verdict = judge(current, windows, counts, limits, rules, state[NUM_ENVS])
            if verdict[6]:
                state[EVENT] = DEMOTE
                return index + 1, DEMOTE
            if (verdict[3] or verdict[4] or verdict[5]) and current < len(limits) - 1:
                state[EVENT] = ADVANCE
                return index + 1, ADVANCE
    return len(records), NOTHING


@compiled
def enter(
    block: Words,
    table: int,
    first_dial: int,
    stage_of_group: Words,
    counts: Words,
    limits: Floats,
    rules: Floats,
    state: Words,
    index: int,
) -> None:
    """Make another stage the current one: evidence starts afresh, shares follow.

    Nothing is changed unless an entry is due, and none is due afterwards.
    """
    if state[ENTRY] == 0:
        return
    begin_write(block)
    if state[EVENT] == DEMOTE:
        counts[state[CURRENT], DEMOTIONS] += 1
    state[CURRENT] = index
    # The version that readers will see when this write has ended.
    state[ENTRY_VERSION] = (block[H_SEQUENCE] + 1) >> 1
    counts[index, FILL : SINCE_ENTRY + 1] = 0
    limits[index, RATIO] = rules[R_BASE_RATIO]
    write_shares(block, table, first_dial, stage_of_group, limits, rules, state)
    end_write(block)
    state[EVENT] = NOTHING
    state[ENTRY] = 0


def rule_numbers(config: StagedConfig) -> Floats:
    """Write the rules as the numbers that the kernels read."""
    mixing = config.mixing or Mixing(base_ratio=0.0, adaptive=False)
    table = [number for pair in mixing.table for number in pair]
    numbers = np.zeros(R_TABLE)
    numbers[R_STANDARD] = config.standard
    if config.early is not None:
        numbers[R_EARLY] = 1
        numbers[R_EARLY_SUCCESS] = config.early.success
        numbers[R_EARLY_EPISODES] = config.early.min_episodes
    numbers[R_TREND_RESULTS] = 20
    if config.trend is not None:
        numbers[R_TREND] = 1
        numbers[R_TREND_MIN] = config.trend.min_trend
        numbers[R_TREND_FACTOR] = config.trend.episodes_factor
        numbers[R_TREND_SLACK] = config.trend.slack
        numbers[R_TREND_RESULTS] = config.trend.min_results
    if config.demotion is not None:
        numbers[R_DEMOTION] = 1
        numbers[R_DEMOTION_EPISODES] = config.demotion.min_episodes
        numbers[R_BACKOFF] = config.demotion.backoff
    numbers[R_Z] = config.confidence_z or 0.0
    numbers[R_CHECK] = config.check_interval_episodes
    numbers[R_MIXING] = config.mixing is not None
    numbers[R_BASE_RATIO] = mixing.base_ratio
    numbers[R_ADAPTIVE] = mixing.adaptive
    numbers[R_MIXING_RESULTS] = mixing.min_results
    numbers[R_ALL_EARLIER] = mixing.source == "all_earlier"
    numbers[R_IGNORE_TRUNCATED] = config.ignore_truncated
    return np.concatenate([numbers, table, [mixing.otherwise]])


def limit_numbers(config: StagedConfig) -> Floats:
    """Write the limits of every stage as the numbers that the kernels read."""
    limits = np.zeros((len(config.stages), NUM_LIMITS))
    for index in range(len(config.stages)):
        limits[index, THRESHOLD] = config.threshold_of(index)
        limits[index, MIN_EPISODES] = config.min_episodes_of(index)
        limits[index, DEMOTION_THRESHOLD] = config.demotion_threshold_of(index)
        limits[index, RATIO] = config.mixing.base_ratio if config.mixing else 0.0
    return limits


def saved_arrays(
    config: StagedConfig,
    windows: Floats,
    counts: Words,
    limits: Floats,
    results: Floats,
    state: Words,
) -> list[SavedArray]:
    """Describe what is saved of the evidence and the state; the arguments are those of `absorb`."""
    window, fixed = config.window_episodes, limits[:, :RATIO].copy()
    windows_of_stages = (
        Part.count("counts"),
        Part.count("results in the window", np.s_[:, FILL], window),
        Part.count("place in the window", np.s_[:, HEAD], window - 1),
    )
    limits_of_stages = (
        # The first ones follow from the config, which is the same.
        Part("limits", np.s_[:, :RATIO], fixed, fixed),
        Part.share("mixing ratio", np.s_[:, RATIO]),
    )
    own = (
        Part.count("stage", np.s_[CURRENT], len(config.stages) - 1),
        Part.count("version at entry", np.s_[ENTRY_VERSION]),
        Part.count("episodes until a check", np.s_[UNTIL_CHECK], config.check_interval_episodes),
        Part.count("number of envs", np.s_[NUM_ENVS], 2**31),
    )
    return [
        SavedArray("windows", windows, (Part.share("success"),)),
        SavedArray("counts", counts, windows_of_stages),
        SavedArray("limits", limits, limits_of_stages),
        SavedArray("results", results, (Part("results", low=0.0, high=MAX_COUNT),)),
        SavedArray("state", state, own),
    ]
