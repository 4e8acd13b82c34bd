"""From infos to what is logged: nothing guessed, nothing prefixed twice, nothing without bound."""

import logging
import math
from collections import OrderedDict, defaultdict
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from stepladder.errors import ConfigError
from stepladder.stats import (
    Metric,
    MetricNames,
    Reduction,
    accumulate_rollout_stats,
    declare,
    metrics,
    payload,
    process_training_stats,
    rollout,
)
from stepladder.stats.names import MAX_PER_FAMILY

CURRICULUM = "curriculum_stats"


@pytest.fixture(autouse=True)
def own_state(monkeypatch):
    """What a process knows about names stays inside a test."""
    monkeypatch.setattr(metrics, "_declared", dict(metrics._declared))
    monkeypatch.setattr(rollout, "_process_names", MetricNames())


def collected(*steps):
    stats = defaultdict(list)
    for infos in steps:
        accumulate_rollout_stats(infos, stats)
    return dict(stats)


# Accumulating.


def test_every_env_adds_to_the_list_of_its_key_in_order():
    stats = collected(
        [{"hockey": {"goals": 1}}, {"hockey": {"goals": 2}, "won": True}],
        [{}, {"hockey": {"goals": 3}, "name": "x"}],
    )
    assert stats == {"hockey/goals": [1.0, 2.0, 3.0], "won": [1.0]}


def test_any_mutable_mapping_will_do_and_is_changed_in_place():
    stats = OrderedDict(kept=[0.5])
    assert accumulate_rollout_stats([{"kept": 1, "new": 2}], stats) is None
    assert stats == {"kept": [0.5, 1.0], "new": [2.0]}


def test_a_vector_info_means_the_same_alone_and_in_a_list():
    info = {"score": np.array([1.0, 2.0]), "_score": np.array([True, False])}
    assert collected(info) == collected([info]) == {"score": [1.0]}


def test_a_vector_env_may_leave_out_its_masks_and_a_single_env_means_one_value():
    info = {"score": np.array([1.0, 2.0])}
    assert collected(info) == {"score": [1.0, 2.0]}
    assert collected([info, {"score": 3.0}]) == {"score": [3.0]}


def test_envs_that_say_nothing_are_no_problem():
    assert collected([None, {}, 3], [], {}, iter([{"x": 1}])) == {"x": [1.0]}


class Counting(gym.Env):
    """Ends after as many steps as it was given, and tells of each step and of its end."""

    observation_space = gym.spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, length):
        self.length = length

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return np.zeros(1, np.float32), {"began": True}

    def step(self, action):
        self.steps += 1
        info = {"play": {"step": self.steps, "who": "me"}}
        if self.steps == self.length:
            info["play"]["total"] = self.steps
        return np.zeros(1, np.float32), 2.0, self.steps == self.length, False, info


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_a_real_vector_env_is_read_to_the_last_number(mode):
    # Envs of 1 and 2 steps, 4 vector steps. A reset takes a step of its own with next-step
    # autoreset: env 0 plays in steps 0 and 2, env 1 in steps 0, 1 and 3. Otherwise all play.
    envs = SyncVectorEnv([lambda: Counting(1), lambda: Counting(2)], autoreset_mode=mode)
    envs = RecordEpisodeStatistics(envs)
    envs.reset()
    stats = defaultdict(list)
    for _ in range(4):
        accumulate_rollout_stats(envs.step(np.zeros(2, dtype=int))[4], stats)
    envs.close()
    del stats["episode/t"]
    if mode is AutoresetMode.NEXT_STEP:
        assert stats == {
            "play/step": [1.0, 1.0, 2.0, 1.0, 1.0],
            "play/total": [1.0, 2.0, 1.0],
            "began": [1.0] * 3,
            "episode/r": [2.0, 4.0, 2.0],
            "episode/l": [1.0, 2.0, 1.0],
        }
    else:
        ends = [1.0, 1.0, 2.0, 1.0, 1.0, 2.0]
        assert stats["play/total"] == ends
        assert sorted(stats["play/step"]) == [1.0] * 6 + [2.0] * 2
        assert stats["episode/l"] == ends
        assert stats["episode/r"] == [2 * length for length in ends]


# Processing.


def test_values_are_reduced_as_declared():
    stats = {
        f"{CURRICULUM}/per_label_samples/a": [1.0, 1.0, 1.0],
        f"{CURRICULUM}/num_evicted": [3.0, 5.0],
        "task_dependency/performance": [0.25, 0.75],
        "hockey/longest": [2.0, 9.0, 4.0],
    }
    declare(Metric(name="hockey/longest", reduction=Reduction.MAX, meaning="longest rally"))
    processed = process_training_stats(stats)
    assert processed.environment_stats == {
        "env_curriculum_stats/per_label_samples/a": 3.0,
        "env_curriculum_stats/num_evicted": 5.0,
        "env_task_dependency/performance": 0.5,
        "env_hockey/longest": 9.0,
    }
    assert processed.mean_stats == {
        f"{CURRICULUM}/per_label_samples/a": 3.0,
        f"{CURRICULUM}/num_evicted": 5.0,
        "task_dependency/performance": 0.5,
        "hockey/longest": 9.0,
    }
    assert processed.undeclared == ()


def test_a_name_that_sounds_like_a_sum_is_a_mean_until_it_is_declared():
    processed = process_training_stats({"my_per_label_samples/total": [1.0, 3.0]})
    assert processed.environment_stats == {"env_my_per_label_samples/total": 2.0}


def test_both_forms_of_a_key_are_one_metric():
    stats = {"hockey/goals": [1.0], "env_hockey/goals": [3.0, 5.0]}
    assert process_training_stats(stats).environment_stats == {"env_hockey/goals": 3.0}


def test_undeclared_metrics_are_listed_once_per_run(caplog):
    names, stats = MetricNames(), {"hockey/goals": [1.0], "score": [1.0], "reward": [1.0]}
    with caplog.at_level(logging.INFO, logger="stepladder.stats"):
        first = process_training_stats(stats, names=names)
        second = process_training_stats(stats, names=names)
    assert first.undeclared == ("env_hockey/goals", "env_info/score")
    assert second.undeclared == ()
    assert [record.message for record in caplog.records] == [
        "Undeclared metrics, reduced by their mean: env_hockey/goals, env_info/score."
    ]
    assert process_training_stats(stats, names=MetricNames()).undeclared == first.undeclared


def test_without_names_of_its_own_a_process_lists_them_once():
    assert process_training_stats({"a/b": [1.0]}).undeclared == ("env_a/b",)
    assert process_training_stats({"a/b": [1.0], "a/c": [1.0]}).undeclared == ("env_a/c",)


def test_labels_beyond_the_limit_are_reduced_together_by_the_reduction_of_the_family():
    names = MetricNames()
    samples = {f"{CURRICULUM}/per_label_samples/l{i}": [1.0, 1.0] for i in range(MAX_PER_FAMILY)}
    process_training_stats(samples, names=names)
    processed = process_training_stats(
        {
            f"{CURRICULUM}/per_label_samples/x": [1.0, 1.0],
            f"{CURRICULUM}/per_label_samples/y": [4.0],
            f"{CURRICULUM}/per_label_samples/l7": [1.0],
        },
        names=names,
    )
    prefix = "env_curriculum_stats/per_label_samples"
    assert processed.environment_stats == {f"{prefix}/other": 6.0, f"{prefix}/l7": 1.0}


def test_values_per_task_cannot_flood_a_run():
    names = MetricNames()
    logged = set()
    for epoch in range(30):
        stats = {f"maze/task{100 * epoch + i}": [1.0] for i in range(100)}
        stats |= {f"task{100 * epoch + i}/score": [1.0] for i in range(100)}
        processed = process_training_stats(stats, names=names)
        logged |= payload(processed, epoch, epoch, names=names).keys()
    assert {"env_maze/other", "env_undeclared/other"} <= logged
    assert len(logged) < 1100


def test_the_overview_has_the_reward_of_whoever_tells_it():
    assert process_training_stats({"reward": [1.0, 2.0]}).overview == {"reward": 1.5}
    assert process_training_stats({"episode/r": [3.0]}).overview == {"reward": 3.0}
    assert process_training_stats({"task_dependency/reward": [4.0]}).overview == {"reward": 4.0}
    both = {"episode/r": [3.0], "reward": [1.0], "overview/height": [2.0, 4.0]}
    assert process_training_stats(both).overview == {"reward": 1.0, "height": 3.0}
    assert process_training_stats({"goals": [3.0]}, reward_keys=("goals",)).overview["reward"] == 3
    assert process_training_stats({"goals": [3.0]}).overview == {}


def test_a_reward_is_a_mean_even_where_its_source_is_summed():
    declare(Metric(name="goals", reduction=Reduction.SUM, meaning="goals of all envs"))
    processed = process_training_stats({"goals": [1.0, 2.0]}, reward_keys=("goals",))
    assert processed.overview == {"reward": 1.5}
    assert processed.environment_stats == {"env_info/goals": 3.0}


def test_losses_and_experience_are_kept_apart():
    processed = process_training_stats(
        {},
        {"policy": [1.0, 3.0], "losses/value": 0.5, "name": "adam"},
        {"size": 10, "experience/reuse": 2.0},
    )
    assert processed.losses_stats == {"policy": 2.0, "value": 0.5}
    assert processed.experience_stats == {"size": 10.0, "reuse": 2.0}
    assert processed.environment_stats == {}
    assert processed.undeclared == ()


def test_experience_may_say_its_stats_when_asked():
    memory = SimpleNamespace(stats=lambda: {"size": 3})
    assert process_training_stats({}, None, memory).experience_stats == {"size": 3.0}
    with pytest.raises(ConfigError, match=r"method stats\(\)"):
        process_training_stats({}, None, SimpleNamespace())


def test_a_loss_that_was_switched_off_is_left_out():
    losses = {"policy": 1.0, "l2_reg": 0.0, "value": 2.0}
    for config in ({"l2_reg_coef": 0.0, "value_coef": 0.5}, SimpleNamespace(l2_reg_coef=0)):
        processed = process_training_stats({}, losses, None, config)
        assert processed.losses_stats == {"policy": 1.0, "value": 2.0}


def test_what_is_no_number_is_passed_over():
    stats = {
        "a/names": ["x", "y"],
        "a/mixed": [1.0, "x", None, 3.0],
        "a/single": 4,
        "a/none": [],
        "a/word": "word",
        "a/array": np.array([1.0, 2.0]),
    }
    assert process_training_stats(stats).environment_stats == {
        "env_a/mixed": 2.0,
        "env_a/single": 4.0,
        "env_a/array": 1.5,
    }


def test_a_loss_that_is_no_number_any_more_stays_visible():
    assert math.isnan(process_training_stats({}, {"policy": [math.nan]}).losses_stats["policy"])


# The payload.


def test_the_payload_is_flat_and_complete():
    processed = process_training_stats(
        {"hockey/goals": [1.0, 2.0], "reward": [0.5]}, {"policy": 0.25}, {"size": 9}
    )
    logged = payload(
        processed,
        agent_step=800,
        epoch=3,
        total_time_s=40.0,
        extra={"env_curriculum_stats/plan_version": 12, "note": "x"},
    )
    assert logged == {
        "metric/agent_step": 800.0,
        "metric/epoch": 3.0,
        "metric/total_time": 40.0,
        "overview/reward": 0.5,
        "overview/steps_per_second": 20.0,
        "losses/policy": 0.25,
        "experience/size": 9.0,
        "env_hockey/goals": 1.5,
        "env_info/reward": 0.5,
        "env_curriculum_stats/plan_version": 12.0,
    }
    assert all(type(value) is float for value in logged.values())


def test_a_measured_speed_comes_before_the_mean_one():
    logged = payload(None, 100, 1, total_time_s=10.0, steps_per_second=77.0)
    assert logged["overview/steps_per_second"] == 77.0
    assert "overview/steps_per_second" not in payload(None, 100, 1)
    assert "overview/steps_per_second" not in payload(None, 0, 0, total_time_s=0.0)


def test_an_env_cannot_move_the_x_axis_nor_speak_for_the_curriculum():
    stats = {"metric/agent_step": [5.0], f"{CURRICULUM}/stage": [0.0]}
    logged = payload(process_training_stats(stats), 64, 2, extra={f"{CURRICULUM}/stage": 3})
    assert logged["metric/agent_step"] == 64.0
    assert logged["env_curriculum_stats/stage"] == 3.0


def test_extra_values_beyond_the_limit_are_reduced_together():
    prefix = "env_curriculum_stats/per_label_samples"
    extra = {f"{prefix}/l{i}": 2.0 for i in range(MAX_PER_FAMILY + 3)}
    logged = payload(None, 0, 0, extra=extra, names=MetricNames())
    assert logged[f"{prefix}/other"] == 6.0
    assert sum(name.startswith(prefix) for name in logged) == MAX_PER_FAMILY + 1


@pytest.mark.parametrize(("agent_step", "epoch"), [(-1, 0), (0, -1)])
def test_counts_below_zero_are_refused(agent_step, epoch):
    with pytest.raises(ConfigError, match="count from 0"):
        payload(None, agent_step, epoch)


def test_keys_that_are_no_texts_are_logged_by_their_text():
    processed = process_training_stats({1: [2.0, 4.0], None: [1.0]}, {2: 0.5}, {3: 7.0})  # type: ignore[dict-item]
    assert processed.mean_stats == {"1": 3.0, "None": 1.0}
    assert processed.losses_stats == {"2": 0.5}
    assert processed.experience_stats == {"3": 7.0}
    assert payload(None, 1, 1, extra={4: 1.0})["env_info/4"] == 1.0  # type: ignore[dict-item]


def test_values_that_contain_themselves_are_left_out():
    inside: dict[str, Any] = {}
    inside["a"] = inside
    values: list[Any] = [1.0]
    values.append(values)
    processed = process_training_stats({"x": inside, "y": values}, {"z": inside}, inside)
    assert processed.mean_stats == {"y": 1.0}


@pytest.mark.parametrize("wrong", [3, None, 1.5])
def test_infos_that_are_none_are_refused(wrong: Any):
    with pytest.raises(ConfigError, match="infos must be"):
        accumulate_rollout_stats(wrong, {})


def test_what_is_no_mapping_is_refused():
    for given in ([1], "abc", 3):
        with pytest.raises(ConfigError, match="must be a mapping"):
            process_training_stats(given)  # type: ignore[arg-type]
    for step in ("a", None, float("nan"), float("inf"), -1, 10**400):
        with pytest.raises(ConfigError, match="count from 0"):
            payload(None, step, 1)  # type: ignore[arg-type]
