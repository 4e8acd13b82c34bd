"""A curriculum over Gymnasium's vector envs, under all three autoreset modes."""

import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics

from stepladder.curricula import Record, Staged, Uniform
from stepladder.envs import CurriculumEnv, CurriculumVectorEnv
from stepladder.errors import (
    AgreementError,
    ChannelError,
    ConfigError,
    DeliveryError,
    SnapshotError,
    WorkerDiedError,
)
from stepladder.tasks import Task
from testing_env import PracticeEnv, arena, end_all, info_of, make_env, staged_tasks

STAGES = ("simplest", "simpler", "simple")
NEXT_STEP, SAME_STEP, DISABLED = (
    AutoresetMode.NEXT_STEP,
    AutoresetMode.SAME_STEP,
    AutoresetMode.DISABLED,
)
LOGS_ERRORS = pytest.mark.filterwarnings("ignore:.*ERROR:UserWarning")
"""Gymnasium tells errors of its workers as warnings before it raises them."""

KINDS = pytest.mark.parametrize("kind", ["sync", "async"])
MODES = pytest.mark.parametrize("mode", list(AutoresetMode))
processes = [pytest.mark.processes, pytest.mark.timeout(90, method="signal")]
pytestmark = processes

Maker = Callable[..., Any]


@pytest.fixture
def make() -> Iterator[Maker]:
    """Makes vector envs whose workers are gone when the test is, whatever happens."""
    made: list[Any] = []

    def make_vector(
        kind: str, makers: Any = 2, mode: AutoresetMode = NEXT_STEP, **settings: Any
    ) -> Any:
        fns = [make_env] * makers if isinstance(makers, int) else makers
        if kind == "sync":
            return SyncVectorEnv(fns, autoreset_mode=mode, **settings)
        made.append(AsyncVectorEnv(fns, context="fork", autoreset_mode=mode, **settings))
        return made[-1]

    yield make_vector
    for venv in made:
        end_all(venv.processes)
        venv.closed = True


def step(venv: Any, num_steps: int = 1) -> Any:
    result = None
    for _ in range(num_steps):
        result = venv.step(np.zeros(venv.num_envs, dtype=np.int64))
    return result


def various() -> list[Task]:
    return [
        Task("short", params={"length": 1}),
        Task("long", params={"length": 3}),
        Task("cut", params={"length": 2, "truncates": True}),
    ]


def spy_on(curriculum: Any) -> list[Record]:
    seen: list[Record] = []
    curriculum.add_listener(lambda records: seen.extend(Record(*row) for row in records.tolist()))
    return seen


# Playing.


@KINDS
@MODES
def test_every_mode_is_right(kind: str, mode: AutoresetMode) -> None:
    curriculum = Uniform(various(), seed=3)
    seen = spy_on(curriculum)
    lengths = {"short": 1, "long": 3, "cut": 2}
    with arena(f"{kind}-fork" if kind == "async" else kind, curriculum, 3, mode=mode) as played:
        played.reset()
        played.run(60)
        assert [[end.played for end in ends] for ends in played.ends] == played.get("played")
        for starts, ends in zip(played.starts, played.ends, strict=True):
            assert [start.task for start in starts][: len(ends)] == [end.task for end in ends]
            assert len(starts) - len(ends) in (0, 1)
            assert len(ends) >= 15
    assert len(seen) == len(played.all_ends())
    for record in seen:
        name = curriculum.pool.task(record.slot).name
        # Under next-step autoreset the step that resets belongs to no episode.
        assert record.length == record.episode_return == lengths[name]
        assert record.truncated == (name == "cut")


@KINDS
def test_seeds_reach_the_envs(make: Maker, kind: str) -> None:
    makers = [partial(make_env, {"seed_episodes": False})] * 2
    venv = CurriculumVectorEnv(make(kind, makers), Uniform(various()))
    venv.reset(seed=7)
    venv.reset(seed=[3, None])
    assert venv.unwrapped.get_attr("seeds") == ([7, 3], [8, None])
    venv.close()


@KINDS
def test_a_seed_makes_a_run_repeatable(make: Maker, kind: str) -> None:
    runs = []
    for _ in range(2):
        makers = [partial(make_env, {"seed_episodes": False})] * 2
        venv = CurriculumVectorEnv(make(kind, makers), Uniform(various(), seed=5))
        venv.reset(seed=11)
        successes = []
        for _ in range(30):
            *_, infos = step(venv)
            successes += [info_of(infos, i).get("curriculum_success") for i in range(2)]
        runs.append(successes)
        venv.close()
    assert runs[0] == runs[1]
    assert {0.0, 1.0} <= set(runs[0])


@KINDS
def test_only_the_envs_of_a_mask_are_reset(make: Maker, kind: str) -> None:
    curriculum = Uniform([Task("long", params={"length": 5})])
    venv = CurriculumVectorEnv(make(kind, 3, DISABLED), curriculum)
    venv.reset()
    step(venv, 2)
    _, infos = venv.reset(options={"reset_mask": np.array([False, True, False])})
    assert infos["_curriculum_task"].tolist() == [False, True, False]
    assert venv.unwrapped.get_attr("steps") == (2, 0, 2)
    # In mid-episode: the old one is given up.
    assert (venv.counts.started, venv.counts.aborted, venv.counts.in_flight) == (4, 1, 3)
    *_, terminated, _, _ = step(venv, 3)
    assert terminated.tolist() == [True, False, True]
    assert curriculum.num_observed == 2
    venv.close()


@KINDS
def test_options_of_the_user_reach_the_envs(make: Maker, kind: str) -> None:
    venv = CurriculumVectorEnv(make(kind), Uniform(various()))
    venv.reset(options={"difficulty": 2})
    assert venv.unwrapped.get_attr("options") == ({"difficulty": 2},) * 2
    venv.close()


@KINDS
@MODES
def test_a_reset_in_mid_episode_counts_as_aborted(
    make: Maker, kind: str, mode: AutoresetMode
) -> None:
    curriculum = Uniform([Task("long", params={"length": 5})])
    venv = CurriculumVectorEnv(make(kind, 2, mode), curriculum)
    venv.reset()
    step(venv, 3)
    venv.reset()
    step(venv, 5)
    counts = venv.counts
    assert (counts.aborted, counts.finished, curriculum.num_observed) == (2, 2, 2)
    assert curriculum.num_steps == 10
    venv.close()


# Infos.


ABOUT = ("stage", "label", "task", "slot", "generation", "plan_version")


@KINDS
def test_infos_say_at_reset_what_is_played(make: Maker, kind: str) -> None:
    curriculum = Staged(staged_tasks(length=2), stages=STAGES)
    venv = CurriculumVectorEnv(make(kind), curriculum)
    _, infos = venv.reset()
    for env_index in range(2):
        info = info_of(infos, env_index)
        assert [f"curriculum_{name}" in info for name in ABOUT] == [True] * 6
        assert info["curriculum_stage"] == info["curriculum_label"] == "simplest"
        assert info["curriculum_task"] == info["played"]
        slot = info["curriculum_slot"]
        assert curriculum.pool.task(slot).name == info["played"]
        assert info["curriculum_plan_version"] == curriculum.plan.version
    *_, infos = step(venv)
    assert not any(key.startswith("curriculum") for key in infos)
    venv.close()


@KINDS
@pytest.mark.parametrize("mode", [NEXT_STEP, DISABLED])
def test_infos_say_at_the_end_what_was_played(make: Maker, kind: str, mode: AutoresetMode) -> None:
    curriculum = Staged(staged_tasks(), stages=STAGES)
    venv = CurriculumVectorEnv(make(kind, 2, mode), curriculum)
    _, first = venv.reset()
    *_, infos = step(venv)
    for env_index in range(2):
        before, info = info_of(first, env_index), info_of(infos, env_index)
        for name in ABOUT:
            assert info[f"curriculum_{name}"] == before[f"curriculum_{name}"]
        assert info["curriculum_success"] == float(info["is_success"])
        assert info["curriculum_plan_version_end"] == before["curriculum_plan_version"]
    if mode is NEXT_STEP:
        *_, infos = step(venv)
        # This step was the reset: it tells of the next episode and of no success.
        assert infos["_curriculum_task"].all()
        assert "curriculum_success" not in infos
    venv.close()


@KINDS
def test_final_infos_tell_of_the_old_episode_and_infos_of_the_new(make: Maker, kind: str) -> None:
    curriculum = Staged(staged_tasks(), stages=STAGES, seed=2)
    venv = CurriculumVectorEnv(make(kind, 2, SAME_STEP), curriculum)
    _, before = venv.reset()
    differed = 0
    for _ in range(10):
        *_, infos = step(venv)
        for env_index in range(2):
            final = info_of(infos["final_info"], env_index)
            assert final["curriculum_task"] == before["curriculum_task"][env_index]
            assert final["curriculum_success"] == float(final["is_success"])
            assert infos["curriculum_task"][env_index] == infos["played"][env_index]
            differed += final["curriculum_task"] != infos["curriculum_task"][env_index]
        assert "curriculum_success" not in infos
        before = infos
    assert differed > 3
    venv.close()


@KINDS
def test_a_plan_that_moves_during_an_episode_is_told_at_its_end(make: Maker, kind: str) -> None:
    curriculum = Staged(staged_tasks(length=3), stages=STAGES)
    venv = CurriculumVectorEnv(make(kind), curriculum)
    _, first = venv.reset()
    step(venv, 2)
    curriculum.go_to("simple")
    *_, infos = step(venv)
    assert (infos["curriculum_plan_version"] == first["curriculum_plan_version"]).all()
    assert (infos["curriculum_plan_version_end"] == curriculum.plan.version).all()
    # The episode belongs to the stage it was drawn in.
    assert infos["curriculum_stage"].tolist() == ["simplest"] * 2
    *_, infos = step(venv)
    assert set(infos["curriculum_stage"]) <= {"simple", "simpler"}
    venv.close()


# With the rest of Gymnasium.


def test_envs_may_lie_in_shared_memory_or_not(make: Maker) -> None:
    for shared_memory in (True, False):
        curriculum = Uniform(various(), seed=1)
        venv = CurriculumVectorEnv(make("async", shared_memory=shared_memory), curriculum)
        observations, _ = venv.reset()
        assert observations.tolist() == [[0, 1], [0, 1]]
        step(venv, 30)
        played = venv.unwrapped.get_attr("played")
        assert curriculum.num_observed == sum(map(len, played)) > 10
        venv.close()


@KINDS
@pytest.mark.parametrize("mode", [NEXT_STEP, SAME_STEP])
def test_statistics_of_gymnasium_around_agree_with_the_curriculum(
    make: Maker, kind: str, mode: AutoresetMode
) -> None:
    curriculum = Uniform(various(), seed=1)
    seen = spy_on(curriculum)
    venv = RecordEpisodeStatistics(CurriculumVectorEnv(make(kind, 2, mode), curriculum))
    venv.reset()
    step(venv, 40)
    assert venv.episode_count == len(seen) == curriculum.num_observed > 20
    assert list(venv.return_queue) == [record.episode_return for record in seen]
    assert list(venv.length_queue) == [record.length for record in seen]
    venv.close()
    assert venv.env.tracker.host.is_closed


def test_other_wrappers_may_lie_inside_and_outside(make: Maker) -> None:
    curriculum = Uniform(various(), seed=1)
    venv = CurriculumVectorEnv(RecordEpisodeStatistics(make("async")), curriculum)
    venv = DictInfoToList(venv)
    _, infos = venv.reset()
    assert [info["curriculum_task"] for info in infos] == [info["played"] for info in infos]
    step(venv, 20)
    assert curriculum.num_observed > 5
    venv.close()


def test_make_vec_takes_the_wrapper_for_each_env() -> None:
    def set_length(env: gym.Env[Any, Any], task: Task) -> None:
        env.unwrapped.length = task.params["pole"]

    curriculum = Uniform([Task("pole", params={"pole": 0.7})])
    venv = gym.make_vec(
        "CartPole-v1",
        num_envs=2,
        vectorization_mode="sync",
        wrappers=[partial(CurriculumEnv, deliver=set_length)],
    )
    venv = CurriculumVectorEnv(venv, curriculum)
    venv.reset(seed=1)
    for _ in range(60):
        venv.step(np.ones(2, dtype=np.int64))
    assert curriculum.num_observed > 8
    assert venv.unwrapped.get_attr("length") == (0.7, 0.7)
    venv.close()


def test_a_wrapper_around_the_curriculum_env_does_not_hide_it(make: Maker) -> None:
    curriculum = Uniform(various(), seed=1)
    makers = [lambda: gym.wrappers.RecordEpisodeStatistics(make_env())] * 2
    venv = CurriculumVectorEnv(make("async", makers), curriculum)
    venv.reset()
    assert venv.check_agreement() == curriculum.plan.version
    step(venv, 20)
    assert curriculum.num_observed > 5
    venv.close()


def test_a_time_limit_around_the_curriculum_env_is_told_once(
    make: Maker, caplog: pytest.LogCaptureFixture
) -> None:
    curriculum = Uniform([Task("long", params={"length": 100})])
    makers = [lambda: TimeLimit(make_env(), 3)] * 2
    venv = CurriculumVectorEnv(make("async", makers), curriculum)
    venv.reset()
    step(venv, 12)
    assert venv.counts.aborted == 6
    (warning,) = [line for line in caplog.messages if "did not see end" in line]
    assert "put it inside CurriculumEnv" in warning
    venv.close()


# Connecting.


@LOGS_ERRORS
@KINDS
def test_envs_that_are_not_wrapped_are_refused(make: Maker, kind: str) -> None:
    curriculum = Uniform(various())
    with pytest.raises(DeliveryError, match=r"cannot be connected.*CurriculumEnv\(env"):
        CurriculumVectorEnv(make(kind, [PracticeEnv] * 2), curriculum)
    # What was refused does not hold on to the curriculum.
    CurriculumVectorEnv(make("sync"), curriculum).close()


@LOGS_ERRORS
@KINDS
def test_one_env_that_is_not_wrapped_is_enough(make: Maker, kind: str) -> None:
    with pytest.raises(DeliveryError, match="cannot be connected"):
        CurriculumVectorEnv(make(kind, [make_env, PracticeEnv]), Uniform(various()))


def track_alone() -> CurriculumEnv:
    return CurriculumEnv(PracticeEnv(), Uniform(various()))


@LOGS_ERRORS
@KINDS
def test_an_env_that_tracks_by_itself_is_refused(make: Maker, kind: str) -> None:
    curriculum = Uniform(various())
    with pytest.raises(ConfigError, match=r"count twice.*enable_local_tracking=False"):
        CurriculumVectorEnv(make(kind, [track_alone] * 2), curriculum)
    CurriculumVectorEnv(make("sync"), curriculum).close()


def test_two_wrappers_on_one_curriculum_are_refused(make: Maker) -> None:
    curriculum = Uniform(various())
    first = CurriculumVectorEnv(make("sync"), curriculum)
    with pytest.raises(ChannelError, match="already carried"):
        CurriculumVectorEnv(make("sync"), curriculum)
    with pytest.raises(ChannelError, match="already carried"):
        CurriculumVectorEnv(first, curriculum)
    first.reset()
    step(first, 10)
    assert curriculum.num_observed > 0


def test_checks_of_a_curriculum_without_stages_are_refused(make: Maker) -> None:
    curriculum = Uniform(various())
    with pytest.raises(ConfigError, match="no stages"):
        CurriculumVectorEnv(make("sync"), curriculum, check_interval_episodes=10)
    CurriculumVectorEnv(make("sync"), curriculum).close()


def test_checks_come_after_so_many_episodes_of_all_envs(make: Maker) -> None:
    curriculum = Staged(
        staged_tasks(success=1.0), stages=STAGES, mixing=None, early=None, min_episodes=10
    )
    venv = CurriculumVectorEnv(make("async", 3, SAME_STEP), curriculum, check_interval_episodes=4)
    venv.reset()
    step(venv, 5)
    assert [change.episode for change in curriculum.history] == [12]
    assert venv.call_all("get_curriculum_stage") == ["simpler"] * 3
    venv.close()


def test_an_env_with_another_plan_is_found_out(make: Maker) -> None:
    curriculum = Staged(staged_tasks(), stages=STAGES)
    venv = CurriculumVectorEnv(make("sync"), curriculum, backend="pushed")
    assert venv.check_agreement() == curriculum.plan.version
    curriculum.go_to("simple")
    with pytest.raises(AgreementError, match="2 of 2 envs disagree"):
        venv.check_agreement()
    # The next collection brings the plan to everybody.
    venv.reset()
    assert venv.check_agreement() == curriculum.plan.version
    assert venv.call_all("get_curriculum_stage") == ["simple"] * 2


def test_a_plan_that_the_host_changes_by_itself_reaches_the_envs_without_a_step(
    make: Maker,
) -> None:
    curriculum = Staged(staged_tasks(), stages=STAGES)
    venv = CurriculumVectorEnv(make("async"), curriculum)
    curriculum.go_to("simple")
    assert venv.check_agreement() == curriculum.plan.version
    assert venv.call_all("get_curriculum_stage") == ["simple"] * 2
    venv.close()


# Saving and resuming.


def playing(make: Maker, kind: str, backend: Any = "auto", mode: Any = SAME_STEP) -> Any:
    curriculum = Staged(staged_tasks(success=0.7), stages=STAGES, min_episodes=30, seed=3)
    return CurriculumVectorEnv(make(kind, 3, mode), curriculum, backend=backend)


@pytest.mark.parametrize("first", [("sync", "local"), ("async", "shared"), ("async", "pushed")])
@pytest.mark.parametrize("second", [("sync", "shared"), ("async", "shared"), ("sync", "pushed")])
def test_a_snapshot_resumes_in_any_other_vector_env(make: Maker, first: Any, second: Any) -> None:
    whole, old, new = playing(make, "sync"), playing(make, *first), playing(make, *second)
    whole.reset()
    step(whole, 50)
    old.reset()
    step(old, 20)
    new.restore(old.snapshot())
    new.reset()
    step(new, 30)
    halves = zip(old.unwrapped.get_attr("played"), new.unwrapped.get_attr("played"), strict=True)
    assert tuple(before + after for before, after in halves) == whole.unwrapped.get_attr("played")
    assert new.curriculum.history == whole.curriculum.history != []
    assert new.counts == whole.counts
    assert new.staleness == whole.staleness
    np.testing.assert_array_equal(new.curriculum.probs(), whole.curriculum.probs())
    old.close()
    new.close()


@KINDS
def test_a_wrapper_can_go_back_to_its_own_snapshot(make: Maker, kind: str) -> None:
    venv = playing(make, kind)
    venv.reset()
    step(venv, 10)
    snapshot = venv.snapshot()
    runs = []
    for _ in range(2):
        venv.call_all("forget")
        venv.restore(snapshot)
        venv.reset()
        step(venv, 30)
        runs.append((venv.unwrapped.get_attr("played"), venv.counts, venv.curriculum.history))
    assert runs[0] == runs[1]
    venv.close()


@KINDS
def test_a_step_between_restore_and_reset_is_refused(make: Maker, kind: str) -> None:
    venv = playing(make, kind)
    venv.reset()
    venv.restore(venv.snapshot())
    with pytest.raises(ChannelError, match="Reset the vector env first"):
        step(venv)
    venv.reset()
    step(venv)
    venv.close()


def test_a_snapshot_of_other_tasks_is_refused_and_changes_nothing(make: Maker) -> None:
    venv = playing(make, "async")
    other = CurriculumVectorEnv(
        make("sync", 3),
        Staged(staged_tasks(success=0.6), stages=STAGES, min_episodes=30, seed=3),
    )
    venv.reset()
    step(venv, 5)
    before = venv.counts, venv.curriculum.plan.version
    with pytest.raises(SnapshotError, match="names, parameters or seeds"):
        venv.restore(other.snapshot())
    assert (venv.counts, venv.curriculum.plan.version) == before
    step(venv, 5)
    assert venv.counts.finished == 30
    venv.close()


# The end.


@KINDS
def test_closing_twice_is_closing_once(make: Maker, kind: str) -> None:
    curriculum = Uniform(various())
    venv = CurriculumVectorEnv(make(kind), curriculum)
    venv.reset()
    step(venv, 10)
    finished = curriculum.num_observed
    venv.close()
    venv.close()
    assert venv.counts.finished == curriculum.num_observed == finished
    with pytest.raises((ChannelError, ClosedEnvironmentError)):
        step(venv, 2)
    # The curriculum can be used elsewhere.
    other = CurriculumVectorEnv(make("sync"), curriculum)
    other.reset()
    step(other, 10)
    assert curriculum.num_observed > finished


def test_closing_takes_the_arguments_of_gymnasium(make: Maker) -> None:
    venv = CurriculumVectorEnv(make("async"), Uniform(various()))
    venv.reset()
    venv.close(timeout=5.0)
    assert not any(process.is_alive() for process in venv.worker_processes())


@pytest.mark.parametrize("backend", ["shared", "pushed"])
def test_closing_ends_after_a_worker_has_died(make: Maker, backend: Any) -> None:
    venv = CurriculumVectorEnv(make("async", 3), Uniform(various()), backend=backend)
    venv.reset()
    os.kill(venv.worker_processes()[1].pid, signal.SIGKILL)
    with pytest.raises(WorkerDiedError, match="env 1 died"):
        step(venv, 2)
    venv.close()
    venv.close()
    assert not any(process.is_alive() for process in venv.worker_processes())
    # Gymnasium must not try to talk to the dead when the vector env is collected.
    assert venv.unwrapped.closed


class FailingEnv(PracticeEnv):
    def step(self, action: Any):
        raise ZeroDivisionError("this env is at fault")


def make_failing() -> CurriculumEnv:
    return CurriculumEnv(FailingEnv(), enable_local_tracking=False)


@LOGS_ERRORS
@KINDS
def test_an_error_of_one_env_does_not_lose_what_another_has_finished(
    make: Maker, kind: str
) -> None:
    curriculum = Uniform([Task("short")])
    venv = CurriculumVectorEnv(make(kind, [make_env, make_failing]), curriculum)
    venv.reset()
    with pytest.raises(ZeroDivisionError, match="this env is at fault"):
        step(venv)
    venv.close()
    assert venv.counts.finished == curriculum.num_observed == 1
    assert venv.counts.started == 2


def test_a_connection_lost_by_an_env_itself_is_no_dead_worker(make: Maker) -> None:
    class Remote(PracticeEnv):
        def step(self, action: Any):
            raise ConnectionResetError("the game server has gone")

    makers = [lambda: CurriculumEnv(Remote(), enable_local_tracking=False)] * 2
    venv = CurriculumVectorEnv(make("sync", makers), Uniform(various()))
    venv.reset()
    with pytest.raises(ConnectionResetError, match="game server"):
        step(venv)
