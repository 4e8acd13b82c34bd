"""One env that plays what the curriculum chooses: alone, with its own tracking."""

import logging
import math
import multiprocessing
import pickle
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit

from stepladder.curricula import (
    LearningProgress,
    Phase,
    Phased,
    Ramp,
    Record,
    Stage,
    Staged,
    Uniform,
)
from stepladder.envs import CurriculumEnv
from stepladder.envs.curriculum_env import MOST_BUILD_FAILURES
from stepladder.errors import (
    BuildError,
    ChannelError,
    ConfigError,
    DeliveryError,
    NotConnectedError,
    RecordError,
    SignalError,
    WrongProcessError,
)
from stepladder.sync import LocalHost
from stepladder.tasks import FolderSource, Task
from testing_env import OptionsEnv, PracticeEnv, make_env, staged_tasks

ANY_WRAPPER = pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
"""Gymnasium's check recommends to check envs without wrappers, whatever the wrapper."""


def play(env: gym.Env[Any, Any], num_episodes: int) -> list[dict[str, Any]]:
    """Play to the end so many times; return the last infos."""
    infos = []
    for _ in range(num_episodes):
        env.reset()
        ended = False
        while not ended:
            _, _, terminated, truncated, info = env.step(0)
            ended = terminated or truncated
        infos.append(info)
    return infos


# Tracking by itself.


def test_a_single_env_teaches_its_curriculum_episode_by_episode() -> None:
    curriculum = Uniform([Task("a", params={"length": 2}), Task("b")], seed=1)
    env = CurriculumEnv(PracticeEnv(), curriculum)
    for number in range(1, 9):
        play(env, 1)
        assert curriculum.num_observed == number
    played = Counter(env.unwrapped.played)
    assert curriculum.plays.tolist() == [played["a"], played["b"]]
    assert curriculum.num_steps == 2 * played["a"] + played["b"]
    assert min(played.values()) > 0


def test_a_single_env_advances_through_all_stages() -> None:
    stages = ("simplest", "simpler", "simple")
    curriculum = Staged(staged_tasks(success=1.0), stages=stages, mixing=None, seed=1)
    env = CurriculumEnv(PracticeEnv(), curriculum, check_interval_episodes=5)
    infos = play(env, 90)
    # The early rule holds from the thirtieth episode on; every fifth is a check.
    assert [change.episode for change in curriculum.history] == [30, 60]
    assert Counter(info["curriculum_stage"] for info in infos) == dict.fromkeys(stages, 30)
    assert env.get_curriculum_stage() == "simple"


def test_a_result_counts_before_the_next_draw() -> None:
    curriculum = Staged(
        staged_tasks(success=1.0),
        stages=("simplest", "simpler", "simple"),
        mixing=None,
        min_episodes=1,
        threshold=0.5,
    )
    env = CurriculumEnv(PracticeEnv(), curriculum, check_interval_episodes=1)
    stages = [info["curriculum_stage"] for info in play(env, 3)]
    assert stages == ["simplest", "simpler", "simple"]


def test_reset_and_end_say_what_is_played() -> None:
    half = Stage(name="half", labels=("first_half",))
    curriculum = Staged([Task("one", "first_half", {"length": 2})], stages=(half,))
    env = CurriculumEnv(PracticeEnv(), curriculum)
    _, reset_info = env.reset()
    about = {
        "curriculum_stage": "half",
        "curriculum_label": "first_half",
        "curriculum_task": "one",
        "curriculum_slot": 0,
        "curriculum_generation": 0,
        "curriculum_plan_version": curriculum.plan.version,
    }
    assert reset_info == {"played": "one", **about}
    *_, info = env.step(0)
    assert info == {}
    *_, info = env.step(0)
    success = info["is_success"]
    assert info == {
        "played": "one",
        "is_success": success,
        **about,
        "curriculum_plan_version_end": curriculum.plan.version,
        "curriculum_success": float(success),
    }


def test_termination_and_truncation_are_told_apart() -> None:
    curriculum = Uniform([Task("cut", params={"truncates": True}), Task("whole")], seed=1)
    seen = spy_on(curriculum)
    play(CurriculumEnv(PracticeEnv(), curriculum), 20)
    names = [curriculum.pool.task(record.slot).name for record in seen]
    assert [record.truncated for record in seen] == [name == "cut" for name in names]
    assert set(names) == {"cut", "whole"}


def test_running_out_of_time_while_finishing_counts_as_finishing() -> None:
    class Both(PracticeEnv):
        def step(self, action: Any):
            observation, reward, terminated, _, info = super().step(action)
            return observation, reward, terminated, terminated, info

    curriculum = Uniform([Task("a")])
    seen = spy_on(curriculum)
    play(CurriculumEnv(Both(), curriculum), 1)
    assert [record.truncated for record in seen] == [False]


def spy_on(curriculum: Any) -> list[Record]:
    seen: list[Record] = []
    curriculum.add_listener(lambda records: seen.extend(Record(*row) for row in records.tolist()))
    return seen


def test_a_time_limit_inside_is_seen_and_counted() -> None:
    curriculum = Uniform([Task("long", params={"length": 50})])
    seen = spy_on(curriculum)
    env = CurriculumEnv(TimeLimit(PracticeEnv(), 3), curriculum)
    play(env, 2)
    assert [(record.length, record.truncated) for record in seen] == [(3, True)] * 2


def test_return_and_length_are_those_of_the_episode() -> None:
    curriculum = Uniform([Task("a", params={"length": 4})])
    seen = spy_on(curriculum)
    env = RecordEpisodeStatistics(CurriculumEnv(PracticeEnv(), curriculum))
    infos = play(env, 3)
    assert [(info["episode"]["r"], info["episode"]["l"]) for info in infos] == [(4.0, 4)] * 3
    assert [(record.episode_return, record.length) for record in seen] == [(4.0, 4)] * 3


def test_a_reset_in_mid_episode_counts_as_aborted_and_teaches_nothing() -> None:
    curriculum = Uniform([Task("a", params={"length": 3})])
    host = LocalHost(curriculum, 1)
    env = CurriculumEnv(PracticeEnv(), host.client(0))
    seen = spy_on(curriculum)
    env.reset()
    env.step(0)
    play(env, 1)
    host.collect()
    assert (host.counts.aborted, host.counts.finished) == (1, 1)
    # The step of the episode that was given up is not added to the next one.
    assert [(record.length, record.episode_return) for record in seen] == [(3, 3.0)]


def test_a_step_after_the_end_is_refused_when_it_ends_again() -> None:
    curriculum = Uniform([Task("a")])
    env = CurriculumEnv(PracticeEnv(), curriculum)
    play(env, 1)
    with pytest.raises(RecordError, match="never began"):
        env.step(0)
    assert curriculum.num_observed == 1
    play(env, 1)
    assert curriculum.num_observed == 2


def test_closing_frees_the_curriculum_for_another_env() -> None:
    curriculum = Uniform([Task("a")])
    env = CurriculumEnv(PracticeEnv(), curriculum)
    with pytest.raises(ChannelError, match="already carried"):
        CurriculumEnv(PracticeEnv(), curriculum)
    play(env, 2)
    env.close()
    env.close()
    with pytest.raises(ChannelError, match="closed"):
        env.reset()
    other = CurriculumEnv(PracticeEnv(), curriculum)
    play(other, 1)
    assert curriculum.num_observed == 3


@ANY_WRAPPER
def test_an_env_with_a_curriculum_passes_gymnasiums_own_check() -> None:
    curriculum = Uniform([Task(f"task{index}", params={"length": 5}) for index in range(4)])
    env = CurriculumEnv(PracticeEnv(counts_resets=False), curriculum)
    check_env(env, skip_render_check=True)


@ANY_WRAPPER
def test_one_task_of_one_step_passes_the_check_too() -> None:
    # Now the infos of the last step are compared as well: nothing in them may depend on chance.
    curriculum = Uniform([Task("only", params={"success": 1.0})])
    check_env(CurriculumEnv(PracticeEnv(counts_resets=False), curriculum), skip_render_check=True)
    assert curriculum.num_observed > 0


def test_the_wrapper_shows_spaces_and_attributes_of_the_env() -> None:
    env = CurriculumEnv(PracticeEnv(), Uniform([Task("a")]))
    assert env.observation_space == PracticeEnv.observation_space
    assert env.get_curriculum_task() is None
    env.reset()
    assert env.get_curriculum_task() == Task("a") == env.unwrapped.task
    assert env.get_wrapper_attr("resets") == 1


def test_a_wrong_kind_of_curriculum_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="got a list"):
        CurriculumEnv(PracticeEnv(), [Task("a")])  # type: ignore[arg-type]


def test_checks_without_stages_are_refused() -> None:
    curriculum = Uniform([Task("a")])
    with pytest.raises(ConfigError, match="Uniform has no stages"):
        CurriculumEnv(PracticeEnv(), curriculum, check_interval_episodes=10)
    play(CurriculumEnv(PracticeEnv(), curriculum), 1)


def test_the_check_interval_may_have_its_published_name_but_not_both() -> None:
    curriculum = Staged(staged_tasks(), stages=("simplest", "simpler", "simple"))
    CurriculumEnv(PracticeEnv(), curriculum, check_advancement_freq=7).close()
    assert curriculum.config.check_interval_episodes == 7
    with pytest.raises(ConfigError, match="two names of one setting"):
        CurriculumEnv(
            PracticeEnv(), curriculum, check_interval_episodes=5, check_advancement_freq=5
        )


def test_a_curriculum_in_use_elsewhere_is_left_as_it_is() -> None:
    curriculum = Staged(staged_tasks(), stages=("simplest", "simpler", "simple"))
    CurriculumEnv(PracticeEnv(), curriculum, check_interval_episodes=20)
    with pytest.raises(ChannelError, match="already carried"):
        CurriculumEnv(PracticeEnv(), curriculum, check_interval_episodes=5)
    assert curriculum.config.check_interval_episodes == 20


# Connecting.


def test_an_env_that_nobody_connected_says_what_to_do() -> None:
    env = CurriculumEnv(PracticeEnv(), Uniform([Task("a")]), enable_local_tracking=False)
    for ask in (env.reset, env.get_mixing_ratio, env.get_plan_version, env.get_curriculum_stage):
        with pytest.raises(NotConnectedError, match="CurriculumVecEnvWrapper"):
            ask()


def test_without_local_tracking_the_curriculum_is_left_alone() -> None:
    curriculum = Uniform([Task("a")])
    CurriculumEnv(PracticeEnv(), curriculum, enable_local_tracking=False)
    CurriculumEnv(PracticeEnv(), curriculum, enable_local_tracking=False)
    LocalHost(curriculum, 1).close()


def test_an_env_that_tracks_by_itself_cannot_be_connected() -> None:
    env = CurriculumEnv(PracticeEnv(), Uniform([Task("a")]))
    with LocalHost(Uniform([Task("b")]), 1) as host:
        with pytest.raises(ConfigError, match="count twice"):
            env.connect_curriculum(host.client(0))
        with pytest.raises(ConfigError, match="count twice"):
            env.curriculum_client = host.client(0)


def test_an_env_can_be_connected_again() -> None:
    env = make_env()
    with LocalHost(Uniform([Task("a")]), 1) as host:
        assert env.connect_curriculum(host.client(0)) == host.curriculum.plan.version
        assert env.reset()[1]["curriculum_task"] == "a"
    with LocalHost(Uniform([Task("b")]), 1) as host:
        env.curriculum_client = host.client(0)
        assert env.reset()[1]["curriculum_task"] == "b"


def test_a_plan_that_was_sent_needs_a_client_that_takes_one() -> None:
    env = make_env()
    with pytest.raises(NotConnectedError, match="no curriculum yet"):
        env.curriculum_call("pull", [0], 1)
    with LocalHost(Uniform([Task("a")]), 1) as host:
        env.connect_curriculum(host.client(0))
        with pytest.raises(NotConnectedError, match="'pull', which the LocalClient of this env"):
            env.curriculum_call("pull", [0], 1)


def try_local_tracking(results: Any, curriculum: Any) -> None:
    """Track in a process that does not own the curriculum."""
    try:
        CurriculumEnv(PracticeEnv(), curriculum)
    except WrongProcessError as error:
        results.send(str(error))
    else:
        results.send("was allowed")


@pytest.mark.processes
@pytest.mark.timeout(90, method="signal")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_local_tracking_in_a_worker_process_is_refused(method: str) -> None:
    context: Any = multiprocessing.get_context(method)
    here, there = context.Pipe()
    curriculum = Uniform([Task("a")])
    process = context.Process(target=try_local_tracking, args=(there, curriculum), daemon=True)
    process.start()
    try:
        assert here.poll(60), "the process has not answered"
        assert "enable_local_tracking=False" in here.recv()
    finally:
        process.kill()
        process.join()


def test_factories_travel_as_pickles_and_leave_the_curriculum_at_home() -> None:
    curriculum = Uniform([Task("a")])

    def make() -> CurriculumEnv:
        return CurriculumEnv(PracticeEnv(), curriculum, enable_local_tracking=False)

    copy = pickle.loads(cloudpickle.dumps(make))()
    assert isinstance(copy, CurriculumEnv)
    arrived = pickle.loads(pickle.dumps(partial(make_env, {"success_key": "is_success"})))()
    with LocalHost(curriculum, 2) as host:
        copy.connect_curriculum(host.client(0))
        arrived.connect_curriculum(host.client(1))
        play(copy, 1)
        play(arrived, 1)
        host.collect()
    assert curriculum.num_observed == 2


def test_an_env_that_is_not_connected_yet_can_be_pickled_itself() -> None:
    env = pickle.loads(pickle.dumps(make_env()))
    with LocalHost(Uniform([Task("a")]), 1) as host:
        env.connect_curriculum(host.client(0))
        play(env, 2)
        assert len(host.collect()) == 2


# Delivery and signals, as seen from outside.


def test_an_env_that_cannot_be_given_a_task_is_refused_at_once() -> None:
    with pytest.raises(DeliveryError, match=r"set_task\(task\).*deliver='options'.*deliver=func"):
        CurriculumEnv(gym.make("CartPole-v1"), Uniform([Task("a")]))


def test_a_registered_env_can_be_set_up_by_a_function() -> None:
    def set_length(env: gym.Env[Any, Any], task: Task) -> None:
        env.get_wrapper_attr("unwrapped").length = task.params["pole"]

    curriculum = Uniform([Task("short", params={"pole": 0.25}), Task("tall", params={"pole": 1.0})])
    env = CurriculumEnv(gym.make("CartPole-v1"), curriculum, deliver=set_length)
    infos = play(env, 6)
    assert curriculum.num_observed == 6
    assert {info["curriculum_task"] for info in infos} == {"short", "tall"}
    assert env.unwrapped.length == env.get_curriculum_task().params["pole"]
    assert env.spec.id == "CartPole-v1"


def test_options_reach_an_env_that_reads_them_with_those_of_the_user() -> None:
    env = CurriculumEnv(OptionsEnv(), Uniform([Task("a")]))
    env.reset(options={"difficulty": 2})
    assert env.unwrapped.options == {"difficulty": 2, "task": Task("a")}
    play(env, 2)
    assert env.unwrapped.played == ["a", "a"]


def staged_env(env: gym.Env[Any, Any], **settings: Any) -> CurriculumEnv:
    return CurriculumEnv(env, Staged([Task("a", "a", {"length": 3})], stages=("a",)), **settings)


@pytest.mark.parametrize("key", ["is_success", "success"])
def test_success_is_found_under_the_usual_keys(key: str) -> None:
    env = staged_env(PracticeEnv(success_key=key))
    for info in play(env, 5):
        assert info["curriculum_success"] == float(info[key])


def test_success_is_read_from_a_key_of_the_user() -> None:
    env = staged_env(PracticeEnv(success_key="has_won"), success_key="has_won")
    for info in play(env, 5):
        assert info["curriculum_success"] == float(info["has_won"])


@pytest.mark.parametrize(("threshold", "success"), [(3.0, 1.0), (3.5, 0.0)])
def test_success_can_be_a_return(threshold: float, success: float) -> None:
    env = staged_env(PracticeEnv(success_key=None), return_threshold=threshold)
    assert play(env, 1)[0]["curriculum_success"] == success


def test_an_episode_without_a_signal_is_an_error_and_not_a_failure() -> None:
    env = staged_env(PracticeEnv(success_key="score"))
    with pytest.raises(SignalError, match=r"\['played', 'score'\]"):
        play(env, 1)


def test_a_missing_signal_can_be_a_failure() -> None:
    env = staged_env(PracticeEnv(success_key=None), missing_success_is_failure=True)
    assert play(env, 1)[0]["curriculum_success"] == 0.0


def test_curricula_that_need_no_success_take_episodes_without() -> None:
    for curriculum in (
        Uniform([Task("a")]),
        LearningProgress([Task("a")], signal="return"),
    ):
        info = play(CurriculumEnv(PracticeEnv(success_key=None), curriculum), 1)[0]
        assert math.isnan(info["curriculum_success"])
        assert curriculum.num_observed == 1


def test_a_success_outside_its_range_is_an_error_in_the_env() -> None:
    class Boasting(PracticeEnv):
        def step(self, action: Any):
            *result, info = super().step(action)
            return (*result, {**info, "is_success": 7.0})

    with pytest.raises(RecordError, match=r"success 7\.0"):
        play(staged_env(Boasting()), 1)


def test_a_reward_that_is_nan_is_an_error_in_the_env() -> None:
    curriculum = Uniform([Task("a", params={"nan_reward": True, "length": 2})])
    env = CurriculumEnv(PracticeEnv(), curriculum)
    env.reset()
    env.step(0)
    with pytest.raises(RecordError, match="return nan"):
        env.step(0)
    assert curriculum.num_observed == 0


# Tasks that cannot be built.


def half_broken(count: int = 12) -> list[Task]:
    return [Task(f"task{index}", params={"broken": index % 3 == 0}) for index in range(count)]


def test_broken_tasks_are_skipped_reported_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    curriculum = Uniform(half_broken(), seed=1)
    env = CurriculumEnv(PracticeEnv(), curriculum)
    infos = play(env, 60)
    broken = {task.name for task in half_broken() if task.params["broken"]}
    assert {entry.task for entry in curriculum.quarantined} == broken
    assert all(entry.reason.startswith("ValueError: cannot") for entry in curriculum.quarantined)
    assert broken.isdisjoint(info["played"] for info in infos)
    assert curriculum.num_observed == 60
    counts = env._host.counts
    assert (counts.failed, counts.finished, counts.in_flight) == (4, 60, 0)
    assert sum("is quarantined" in record.getMessage() for record in caplog.records) == 4


def test_a_broken_task_makes_room_for_another_if_there_is_one() -> None:
    curriculum = Uniform(half_broken(60), seed=1, capacity=6)
    env = CurriculumEnv(PracticeEnv(), curriculum)
    play(env, 80)
    assert curriculum.num_quarantined == 0
    assert len(curriculum.quarantined) > 2
    assert all(entry.replaced for entry in curriculum.quarantined)


def test_after_too_many_failures_in_a_row_the_reason_is_raised() -> None:
    tasks = [Task(f"task{index}", params={"broken": True}) for index in range(30)]
    env = CurriculumEnv(PracticeEnv(), Uniform(tasks, seed=1), max_build_failures=3)
    with pytest.raises(BuildError, match=r"3 tasks in a row.*ValueError: cannot build task"):
        env.reset()


def test_when_no_task_is_left_the_reset_says_so() -> None:
    tasks = [Task(f"task{index}", params={"broken": True}) for index in range(3)]
    curriculum = Uniform(tasks, seed=1)
    env = CurriculumEnv(PracticeEnv(), curriculum)
    with pytest.raises(BuildError, match="no task is left"):
        env.reset()
    assert len(curriculum.quarantined) == 3


def test_only_the_errors_named_mean_that_a_task_is_at_fault() -> None:
    curriculum = Uniform(half_broken(), seed=1)
    env = CurriculumEnv(PracticeEnv(), curriculum, build_errors=(KeyError,))
    with pytest.raises(ValueError, match="cannot build"):
        play(env, 60)
    assert curriculum.quarantined == []


@pytest.mark.parametrize("number", [0, True, 2.5, MOST_BUILD_FAILURES + 1])
def test_the_number_of_failures_must_fit_into_a_mailbox(number: Any) -> None:
    # More could fill it while the host waits for this very reset: neither would ever go on.
    with pytest.raises(ConfigError, match="max_build_failures must be"):
        make_env({"max_build_failures": number})


def test_the_most_failures_allowed_in_one_reset_find_room() -> None:
    tasks = [Task(f"task{index}", params={"broken": True}) for index in range(500)]
    with LocalHost(Uniform(tasks, seed=1), 1, max_failed_share=1.0) as host:
        env = make_env({"max_build_failures": MOST_BUILD_FAILURES})
        env.connect_curriculum(host.client(0))
        with pytest.raises(BuildError, match=f"{MOST_BUILD_FAILURES} tasks in a row"):
            env.reset()
        host.collect()
        assert host.counts.failed == MOST_BUILD_FAILURES


def test_a_task_known_to_be_broken_is_not_built_again_while_nobody_collects() -> None:
    tasks = [Task("fine"), *(Task(f"bad{index}", params={"broken": True}) for index in range(4))]
    with LocalHost(Uniform(tasks, seed=3), 1) as host:
        env = make_env()
        env.connect_curriculum(host.client(0))
        for _ in range(15):
            assert env.reset()[1]["played"] == "fine"
        host.collect()
        counts = host.counts
        # Every one of them failed once; draws of it that followed left no trace.
        assert (counts.failed, len(host.curriculum.quarantined)) == (4, 4)
        assert counts.started == counts.failed + counts.aborted + counts.in_flight == 4 + 14 + 1


def test_draws_that_lead_nowhere_end_in_an_error() -> None:
    tasks = [Task(f"bad{index}", params={"broken": True}) for index in range(3)]
    with LocalHost(Uniform(tasks, seed=3), 1, max_failed_share=1.0) as host:
        env = make_env()
        env.connect_curriculum(host.client(0))
        with pytest.raises(BuildError, match=r"draws in a row.*3 different ones"):
            env.reset()


def test_a_level_that_cannot_be_read_counts_as_unbuildable(tmp_path: Path) -> None:
    folder = tmp_path / "easy"
    folder.mkdir()
    (folder / "good.json").write_text('{"length": 2}')
    (folder / "bad.json").write_text("{no json")
    curriculum = Uniform(FolderSource(tmp_path), seed=1)
    env = CurriculumEnv(PracticeEnv(), curriculum)
    infos = play(env, 10)
    assert {info["played"] for info in infos} == {"easy/good.json"}
    (entry,) = curriculum.quarantined
    assert (entry.task, entry.label) == ("easy/bad.json", "easy")
    assert "bad.json cannot be used" in entry.reason


# Seeds and settings.


def test_seeded_episodes_are_the_same_whoever_plays_them() -> None:
    tasks = [Task(f"task{index}") for index in range(5)]
    runs = []
    for _ in range(2):
        env = CurriculumEnv(PracticeEnv(), Uniform(tasks, seed=4), seed_episodes=True)
        runs.append([(info["played"], info["is_success"]) for info in play(env, 30)])
        assert len(set(env.unwrapped.seeds)) == 30
    assert runs[0] == runs[1]
    assert len(set(runs[0])) > 5


def test_without_seeded_episodes_the_env_goes_on_with_its_own_chance() -> None:
    env = CurriculumEnv(PracticeEnv(), Uniform([Task("a")], seed=4))
    play(env, 3)
    assert env.unwrapped.seeds == [None] * 3


def test_a_seed_of_the_user_comes_first() -> None:
    env = CurriculumEnv(PracticeEnv(), Uniform([Task("a")], seed=4), seed_episodes=True)
    env.reset(seed=17)
    assert env.unwrapped.seeds == [17]


def test_seeds_fit_into_what_any_generator_takes() -> None:
    env = CurriculumEnv(PracticeEnv(), Uniform([Task("a")], seed=4), seed_episodes=True)
    play(env, 50)
    assert all(0 <= seed < 2**31 for seed in env.unwrapped.seeds)
    assert max(env.unwrapped.seeds) > 2**30


def test_an_episode_after_a_broken_task_has_the_seed_of_its_own_draw() -> None:
    tasks = [Task("fine"), Task("bad", params={"broken": True})]
    with LocalHost(Uniform(tasks, seed=0), 1) as host, LocalHost(Uniform(tasks, seed=0), 1) as twin:
        env = make_env()
        env.connect_curriculum(host.client(0))
        client = twin.client(0)
        for _ in range(10):
            env.reset()
            draw = client.draw()
            while draw.task_id == 1:
                draw = client.draw()
            assert env.unwrapped.seeds[-1] == draw.seed % 2**31
        assert draw.episode_index > 10


def test_phase_settings_reach_the_env_in_the_params_of_the_task() -> None:
    curriculum = Phased(
        [Task("duel", params={"puck": {"speed": 1, "size": 2}})],
        phases=(
            Phase(
                name="slow",
                episodes=4,
                settings={"puck.speed": Ramp(start=0.0, end=1.0, ramp_episodes=4), "mode": "shoot"},
            ),
            Phase(name="fast", settings={"puck.speed": 9, "mode": "play"}),
        ),
    )
    env = CurriculumEnv(PracticeEnv(), curriculum)
    seen = []
    for _ in range(6):
        phase = env.get_curriculum_phase()
        play(env, 1)
        params = env.unwrapped.task.params
        seen.append((phase, params["mode"], params["puck"]["speed"]))
        assert params["puck"]["size"] == 2
    assert seen == [
        ("slow", "shoot", 0.0),
        ("slow", "shoot", 0.25),
        ("slow", "shoot", 0.5),
        ("slow", "shoot", 0.75),
        ("fast", "play", 9),
        ("fast", "play", 9),
    ]


def test_a_curriculum_without_stages_has_none() -> None:
    env = CurriculumEnv(PracticeEnv(), Uniform([Task("a")]))
    assert env.get_curriculum_stage() is None
    assert env.get_curriculum_phase() is None
    with pytest.raises(ConfigError, match="no stages"):
        env.get_mixing_ratio()


def test_nothing_is_printed_and_nothing_logged_by_an_ordinary_run(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "stepladder"):
        play(CurriculumEnv(PracticeEnv(), Uniform([Task("a")])), 3)
    assert capsys.readouterr().out == ""
    assert caplog.records == []


def test_rewards_of_any_numeric_kind_add_up() -> None:
    class Numpy(PracticeEnv):
        def step(self, action: Any):
            observation, _, *rest = super().step(action)
            return observation, np.float32(0.5), *rest

    curriculum = Uniform([Task("a", params={"length": 4})])
    seen = spy_on(curriculum)
    play(CurriculumEnv(Numpy(), curriculum), 1)
    assert seen[0].episode_return == 2.0


def test_a_single_env_that_tracks_can_be_saved_and_resumed():
    def play(env, episodes):
        names = []
        for _ in range(episodes):
            names.append(env.reset()[1]["curriculum_task"])
            env.step(0)
        return names

    whole, saved, resumed = (
        CurriculumEnv(PracticeEnv(), Uniform(staged_tasks(success=1.0), seed=3)) for _ in range(3)
    )
    expected = play(whole, 12)
    assert play(saved, 5) == expected[:5]
    resumed.restore(saved.snapshot())
    assert play(resumed, 7) == expected[5:]
    with pytest.raises(ConfigError, match="does not track by itself"):
        CurriculumEnv(PracticeEnv()).snapshot()
