"""Settings of stages: what is refused, and what overrides what."""

from typing import Any

import numpy as np
import pytest

from curricula.three_stages import STAGES
from stepladder.curricula import (
    DemotionRule,
    EarlyRule,
    Mixing,
    Stage,
    StagedConfig,
    TrendRule,
)
from stepladder.errors import ConfigError


def test_a_string_stands_for_a_stage_of_that_name():
    config = StagedConfig(stages=("a", Stage(name="b")))
    assert config.stages == (Stage(name="a"), Stage(name="b"))
    assert config.stages[0].task_labels == ("a",)


def test_what_a_stage_sets_holds_for_it_alone_and_the_rest_takes_the_general_value():
    config = StagedConfig(
        stages=(
            Stage(name="a", threshold=0.9),
            Stage(name="b", min_episodes=7),
            Stage(name="c", demotion_threshold=0.05),
        ),
        threshold=0.6,
        min_episodes=40,
        demotion=DemotionRule(threshold=0.1),
    )
    assert [config.threshold_of(i) for i in range(3)] == [0.9, 0.6, 0.6]
    assert [config.min_episodes_of(i) for i in range(3)] == [40, 7, 40]
    assert [config.demotion_threshold_of(i) for i in range(3)] == [0.1, 0.1, 0.05]


def test_one_stage_can_be_set_differently_afterwards():
    config = StagedConfig(stages=STAGES).with_stage("b", threshold=0.5, min_episodes=3)
    assert [config.threshold_of(i) for i in range(3)] == [0.7, 0.5, 0.7]
    assert config.min_episodes_of(1) == 3
    with pytest.raises(ConfigError, match="unknown stage 'd'"):
        config.with_stage("d", threshold=0.5)


def test_without_demotion_there_is_no_demotion_threshold():
    config = StagedConfig(stages=("a", Stage(name="b", demotion_threshold=0.3)), demotion=None)
    assert config.demotion_threshold_of(1) == 0.0


@pytest.mark.parametrize("share", [-0.1, 1.1, np.nan])
@pytest.mark.parametrize(
    "make_config",
    [
        lambda share: Stage(name="a", threshold=share),
        lambda share: Stage(name="a", demotion_threshold=share),
        lambda share: StagedConfig(stages=STAGES, threshold=share),
        lambda share: EarlyRule(success=share),
        lambda share: TrendRule(min_trend=share),
        lambda share: TrendRule(episodes_factor=share),
        lambda share: TrendRule(slack=share),
        lambda share: DemotionRule(threshold=share),
        lambda share: Mixing(base_ratio=share),
        lambda share: Mixing(otherwise=share),
        lambda share: Mixing(table=((share, 0.5),)),
        lambda share: Mixing(table=((0.5, share),)),
    ],
)
def test_shares_outside_0_and_1_are_refused(make_config: Any, share: float):
    with pytest.raises(ConfigError, match=r"must lie in \[0, 1\]"):
        make_config(share)


@pytest.mark.parametrize("number", [0, -1, 1.5, 10.0, True])
@pytest.mark.parametrize(
    "make_config",
    [
        lambda number: Stage(name="a", min_episodes=number),
        lambda number: StagedConfig(stages=STAGES, min_episodes=number),
        lambda number: StagedConfig(stages=STAGES, window_episodes=number),
        lambda number: StagedConfig(stages=STAGES, check_interval_episodes=number),
        lambda number: EarlyRule(min_episodes=number),
        lambda number: TrendRule(min_results=number),
        lambda number: DemotionRule(min_episodes=number),
        lambda number: Mixing(min_results=number),
    ],
)
def test_numbers_that_are_no_counts_are_refused(make_config: Any, number: float):
    with pytest.raises(ConfigError, match="must be an integer of at least"):
        make_config(number)


@pytest.mark.parametrize("backoff", [1.0, 0.5, np.nan, np.inf, 1001.0])
def test_a_backoff_that_would_not_end_the_turns_is_refused(backoff: float):
    with pytest.raises(ConfigError, match="backoff"):
        DemotionRule(backoff=backoff)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"stages": ()}, "stages must not be empty"),
        ({"stages": ("a", "b", "a")}, r"stages\[2\]\.name is 'a', as of an earlier stage"),
        (
            {"stages": ("a", Stage(name="b", labels=("c", "a")))},
            r"stages\[1\]\.labels has 'a', which belongs to stage 'a' too",
        ),
        ({"stages": STAGES, "starting_stage": "d"}, "unknown stage 'd'"),
        ({"stages": STAGES, "confidence_z": 0.0}, r"confidence_z must lie in \(0, 100\]; got 0"),
        (
            {"stages": STAGES, "confidence_z": np.inf},
            r"_z must lie in \(0, 100\]; got inf",
        ),
        (
            {"stages": STAGES, "standard": False, "early": None, "trend": None},
            "standard is off, and so are early and trend",
        ),
        (
            {"stages": STAGES, "threshold": 0.2},
            r"stages\[1\]: demotes below 0.2 and adv",
        ),
        (
            {"stages": ("a", "b", Stage(name="c", demotion_threshold=0.7))},
            r"stages\[2\]: demotes below 0.7 and advances from 0.7",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings: dict[str, Any], words: str):
    with pytest.raises(ConfigError, match=words):
        StagedConfig(**settings)


def test_the_first_stage_needs_no_room_below_and_without_demotion_none_does():
    StagedConfig(stages=(Stage(name="a", threshold=0.0), "b"))
    StagedConfig(stages=STAGES, threshold=0.1, demotion=None)


def test_a_stage_needs_a_name():
    with pytest.raises(ConfigError, match="name must not be empty; got ''"):
        Stage(name="")


@pytest.mark.parametrize("table", [((0.8, 0.1), (0.5, 0.4)), ((0.5, 0.1), (0.5, 0.4))])
def test_a_mixing_table_must_rise(table: Any):
    with pytest.raises(ConfigError, match="table must rise in success"):
        Mixing(table=table)


def test_an_unknown_source_of_mixing_is_refused():
    with pytest.raises(ConfigError, match="'previous' or 'all_earlier'; got 'future'"):
        Mixing(source="future")  # type: ignore[arg-type]
