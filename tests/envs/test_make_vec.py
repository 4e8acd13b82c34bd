"""One call from envs and a curriculum to a vector env: arguments, errors, curricula, `auto`."""

import logging
import multiprocessing
from collections.abc import Iterator
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit, TransformReward

import stepladder
from stepladder import CurriculumEnv, CurriculumVectorEnv, make_vec
from stepladder.curricula import Staged, Uniform
from stepladder.envs.workers import WorkerVectorEnv, worker_count
from stepladder.errors import ConfigError, StepladderError
from stepladder.tasks import Task
from testing_env import PracticeEnv, arena
from worker_envs import TroubleEnv, no_actions, trouble_envs

pytestmark = [pytest.mark.processes, pytest.mark.timeout(60, method="signal")]


@pytest.fixture(autouse=True)
def no_worker_outlives_its_test() -> Iterator[None]:
    yield
    for process in multiprocessing.active_children():
        process.kill()
        process.join()


def tasks(num_tasks: int = 6) -> list[Task]:
    return [
        Task(f"task{index}", params={"length": 1 + index % 3, "success": 0.5})
        for index in range(num_tasks)
    ]


# What envs can be.


@pytest.mark.parametrize("num_workers", [0, 1])
def test_envs_may_be_an_id_a_spec_a_function_or_a_list(num_workers: int) -> None:
    spec = gym.spec("CartPole-v1")
    functions = [partial(gym.make, "CartPole-v1")] * 3
    ways: list[tuple[Any, int | None]] = [
        ("CartPole-v1", 3),
        (spec, 3),
        (lambda: gym.make("CartPole-v1"), 3),
        (functions, None),
        (functions, 3),
        (tuple(functions), None),
    ]
    observations = []
    for env, num_envs in ways:
        vec = make_vec(env, num_envs, num_workers=num_workers)
        assert isinstance(vec, WorkerVectorEnv)
        assert vec.num_envs == 3
        observations.append(vec.reset(seed=2)[0])
        vec.close()
    for observation in observations[1:]:
        np.testing.assert_array_equal(observation, observations[0])


def test_the_result_is_what_gymnasium_itself_would_have_made() -> None:
    theirs = gym.make_vec("CartPole-v1", num_envs=4, vectorization_mode="sync")
    ours = make_vec("CartPole-v1", 4, num_workers=1)
    np.testing.assert_array_equal(ours.reset(seed=1)[0], theirs.reset(seed=1)[0])
    for number in range(40):
        actions = np.full(4, number % 2)
        for our, their in zip(ours.step(actions)[:4], theirs.step(actions)[:4], strict=True):
            np.testing.assert_array_equal(our, their)
    ours.close()
    theirs.close()


def test_arguments_and_wrappers_reach_every_env() -> None:
    vec = make_vec(
        "Pendulum-v1",
        4,
        num_workers=1,
        env_kwargs={"g": 1.5},
        wrappers=[partial(TimeLimit, max_episode_steps=2), _negated],
    )
    assert vec.unwrapped.get_attr("g") == (1.5,) * 4
    vec.reset(seed=0)
    actions = np.zeros((4, 1), dtype=np.float32)
    assert (vec.step(actions)[1] > 0).all()
    assert vec.step(actions)[3].all()
    vec.close()


def _negated(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    return TransformReward(env, lambda reward: -float(reward))


def test_a_mode_may_be_named() -> None:
    for mode in AutoresetMode:
        for named in (mode, mode.value):
            vec = make_vec(TroubleEnv, 2, num_workers=0, autoreset_mode=named)
            assert vec.metadata["autoreset_mode"] is mode
            vec.close()


# What is refused.


class NoEnv:
    """Not callable, and no list either."""


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"num_envs": None}, "num_envs"),
        ({"num_envs": 0}, "num_envs"),
        ({"num_envs": 2.5}, "num_envs"),
        ({"env": []}, "list"),
        ({"env": [TroubleEnv, 3], "num_envs": None}, "function"),
        ({"env": NoEnv()}, "function"),
        ({"env": [TroubleEnv] * 3, "num_envs": 4}, "num_envs"),
        ({"num_workers": -1}, "num_workers"),
        ({"num_workers": 2.5}, "num_workers"),
        ({"num_workers": "all"}, "num_workers"),
        ({"num_workers": None}, "num_workers"),
        ({"autoreset_mode": "sometimes"}, "autoreset_mode"),
        ({"num_batches": 0}, "num_batches"),
        ({"num_batches": 1.5}, "num_batches"),
        ({"num_batches": 5}, "num_batches"),
        ({"start_method": "teleport"}, "start_method"),
        ({"on_worker_death": "weep"}, "on_worker_death"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"timeout_s": -1.0}, "timeout_s"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"timeout_s": "soon"}, "timeout_s"),
        ({"observation_mode": "odd"}, "observation_mode"),
        ({"env_kwargs": {"length": 3}}, "env_kwargs"),
        ({"curriculum_env": {}}, "curriculum_env"),
        ({"wrappers": 3}, "wrappers"),
        ({"wrappers": [3]}, "wrappers"),
    ],
)
def test_a_wrong_argument_is_named_in_one_line(arguments: dict[str, Any], named: str) -> None:
    given: dict[str, Any] = {"env": TroubleEnv, "num_envs": 4, "num_workers": 1, **arguments}
    with pytest.raises(ConfigError, match=named) as caught:
        make_vec(**given)
    assert "\n" not in str(caught.value)


def test_an_env_instead_of_a_function_is_refused_with_the_way_out() -> None:
    env = TroubleEnv()
    with pytest.raises(ConfigError, match="function that makes"):
        make_vec(env, 3, num_workers=0)  # type: ignore[arg-type]


def test_a_wrong_curriculum_is_refused_and_no_worker_is_left() -> None:
    with pytest.raises((StepladderError, TypeError, AttributeError)):
        make_vec(TroubleEnv, 3, num_workers=1, curriculum="uniform")  # type: ignore[arg-type]
    assert not multiprocessing.active_children()


def test_settings_of_a_curriculum_env_that_is_there_already_are_refused() -> None:
    with pytest.raises(ConfigError, match="already"):
        make_vec(
            lambda: CurriculumEnv(TroubleEnv(), enable_local_tracking=False),
            2,
            num_workers=0,
            curriculum=Uniform(tasks()),
            curriculum_env={"success_key": "won"},
        )


def test_nothing_is_left_when_a_later_step_fails() -> None:
    class Untaught(gym.Env[Any, Any]):
        """Has no way to be given a task."""

        observation_space = TroubleEnv.observation_space
        action_space = TroubleEnv.action_space

    with pytest.raises(StepladderError):
        make_vec(Untaught, 3, num_workers=1, curriculum=Uniform(tasks()), start_method="fork")
    assert not multiprocessing.active_children()


# With a curriculum.


def trace(vec: Any, num_steps: int, seed: int | None = 0) -> list[Any]:
    """Return what every env says it plays, and all that is observed, step by step."""
    observations, infos = vec.reset(seed=seed)
    traced: list[Any] = [observations.tolist(), _names(infos)]
    mode = vec.metadata["autoreset_mode"]
    for _ in range(num_steps):
        observations, rewards, terminated, truncated, infos = vec.step(no_actions(vec))
        traced += [observations.tolist(), rewards.tolist(), terminated.tolist(), _names(infos)]
        ended = terminated | truncated
        if mode is AutoresetMode.DISABLED and ended.any():
            traced.append(_names(vec.reset(options={"reset_mask": ended})[1]))
    return traced


def _names(infos: dict[str, Any]) -> Any:
    return infos.get("curriculum_task", np.empty(0)).tolist()


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_the_number_of_workers_changes_nothing_about_what_is_drawn(mode: AutoresetMode) -> None:
    traces, counts = [], []
    for workers, num_batches in ((0, 1), (1, 1), (3, 1), (1, 2)):
        vec = make_vec(
            PracticeEnv,
            5,
            curriculum=Uniform(tasks(), seed=3),
            curriculum_env={"seed_episodes": True},
            num_workers=workers,
            num_batches=num_batches,
            autoreset_mode=mode,
            start_method="fork",
        )
        assert isinstance(vec, CurriculumVectorEnv)
        traces.append(trace(vec, 25))
        counts.append(vec.counts)
        vec.close()
    assert all(other == traces[0] for other in traces[1:])
    assert all(other == counts[0] for other in counts[1:])
    assert counts[0].finished >= 40


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_envs_play_what_gymnasiums_plain_loop_plays(mode: AutoresetMode) -> None:
    """The plain loop steps `CurriculumEnv` itself; workers count returns and lengths for it."""
    curricula = [Uniform(tasks(), seed=3) for _ in range(2)]
    seen: list[list[Any]] = [[], []]
    for curriculum, records in zip(curricula, seen, strict=True):
        curriculum.add_listener(lambda some, records=records: records.extend(some.tolist()))
    with arena("sync", curricula[0], 5, mode=mode) as theirs:
        theirs.reset()
        theirs.run(30)
    vec = make_vec(
        PracticeEnv,
        5,
        curriculum=curricula[1],
        curriculum_env={"seed_episodes": True},
        num_workers=2,
        autoreset_mode=mode,
        start_method="fork",
    )
    trace(vec, 30, seed=None)
    vec.close()
    assert len(seen[0]) > 40
    assert seen[1] == seen[0]


@pytest.mark.parametrize("start_method", ["fork", "forkserver", "spawn"])
def test_every_start_method_draws_the_same(start_method: Any) -> None:
    expected = make_vec(
        partial(TroubleEnv, quiet=False), 3, curriculum=Uniform(tasks(), seed=1), num_workers=0
    )
    vec = make_vec(
        partial(TroubleEnv, quiet=False),
        3,
        curriculum=Uniform(tasks(), seed=1),
        num_workers=1,
        start_method=start_method,
    )
    assert trace(vec, 12) == trace(expected, 12)
    assert vec.counts == expected.counts
    vec.close()
    expected.close()


@pytest.mark.parametrize("start_method", ["forkserver", "spawn"])
def test_lambdas_travel_to_workers_of_every_start_method(start_method: Any) -> None:
    length = 2
    vec = make_vec(lambda: TroubleEnv(length=length), 2, num_workers=1, start_method=start_method)
    vec.reset(seed=0)
    vec.step(no_actions(vec))
    assert vec.step(no_actions(vec))[2].all()
    vec.close()


def test_halves_teach_the_curriculum_as_whole_steps_do() -> None:
    vec = make_vec(
        PracticeEnv, 4, curriculum=Uniform(tasks(), seed=1), num_workers=1, num_batches=2
    )
    assert isinstance(vec, CurriculumVectorEnv)
    vec.reset(seed=0)
    ended = 0
    actions = np.zeros(2, dtype=np.int64)
    vec.send(actions, 0)
    for number in range(40):
        vec.send(actions, 1 - number % 2)
        _, _, terminated, truncated, _ = vec.recv(number % 2)
        ended += int((terminated | truncated).sum())
        # What the other half has finished meanwhile is known already.
        assert vec.counts.finished >= ended
    _, _, terminated, truncated, _ = vec.recv(0)
    assert vec.counts.finished == ended + int((terminated | truncated).sum())
    vec.close()


def test_stages_advance_in_all_workers_at_once() -> None:
    stages = ["easy", "hard"]
    practice = [Task(f"{stage}{i}", stage, {"length": 1}) for stage in stages for i in range(2)]
    curriculum = Staged(practice, stages=stages, min_episodes=10, seed=0)
    vec = make_vec(TroubleEnv, 4, curriculum=curriculum, num_workers=1, check_interval_episodes=5)
    vec.reset(seed=0)
    for _ in range(60):
        vec.step(no_actions(vec))
    assert curriculum.current_stage == "hard"
    assert set(vec.call("get_curriculum_stage")) == {"hard"}
    assert isinstance(vec, CurriculumVectorEnv)
    vec.check_agreement()
    vec.close()


def test_a_run_can_be_saved_and_resumed_with_another_number_of_workers() -> None:
    def make(num_workers: int) -> Any:
        return make_vec(
            PracticeEnv,
            4,
            curriculum=Uniform(tasks(), seed=5),
            curriculum_env={"seed_episodes": True},
            num_workers=num_workers,
        )

    first = make(1)
    trace(first, 10)
    snapshot = first.snapshot()
    first.restore(snapshot)
    expected = trace(first, 10)
    second = make(2)
    second.restore(snapshot)
    resumed = trace(second, 10)
    # Observations count resets over the whole life of an env.
    assert [part for part in resumed if part and isinstance(part[0], str)] == [
        part for part in expected if part and isinstance(part[0], str)
    ]
    first.close()
    second.close()


# How many workers pay off.


def test_auto_uses_no_worker_for_a_single_env() -> None:
    vec = make_vec(TroubleEnv, 1)
    assert isinstance(vec, WorkerVectorEnv)
    assert vec.num_workers == 0
    vec.close()


def test_auto_uses_all_cores_for_slow_envs_and_none_for_quick_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_count, "usable_cores", lambda: 2)
    slow = make_vec(partial(TroubleEnv, pause_s=1e-2), 4)
    assert isinstance(slow, WorkerVectorEnv)
    assert slow.num_workers == 1
    slow.close()
    monkeypatch.setattr(worker_count, "usable_cores", lambda: 1)
    alone = make_vec(partial(TroubleEnv, pause_s=1e-2), 4)
    assert isinstance(alone, WorkerVectorEnv)
    assert alone.num_workers == 0
    alone.close()


def test_auto_leaves_no_process_and_no_trace_in_the_curriculum() -> None:
    traces = []
    for workers in ("auto", 0):
        curriculum = Uniform(tasks(), seed=3)
        before = curriculum.snapshot()
        vec: Any = make_vec(
            PracticeEnv,
            4,
            curriculum=curriculum,
            curriculum_env={"seed_episodes": True},
            num_workers=workers,  # type: ignore[arg-type]
        )
        assert curriculum.num_observed == 0
        assert repr(curriculum.snapshot()) == repr(before)
        assert len(multiprocessing.active_children()) == vec.unwrapped.num_workers
        traces.append(trace(vec, 10))
        assert vec.counts.started == vec.counts.finished + vec.counts.in_flight
        vec.close()
    assert traces[0] == traces[1]


def test_auto_closes_the_envs_that_it_tried(tmp_path: Any) -> None:
    diary = tmp_path / "closed"
    vec = make_vec(partial(_Diarist, diary), 4, start_method="fork")
    made, closed = diary.read_text().count("m"), diary.read_text().count("c")
    assert made == closed + 4
    vec.close()
    assert diary.read_text().count("c") == made


class _Diarist(TroubleEnv):
    """Writes down that it was made and closed."""

    def __init__(self, path: Any):
        super().__init__()
        self._path = path
        self._write("m")

    def _write(self, letter: str) -> None:
        with self._path.open("a") as file:
            file.write(letter)

    def close(self) -> None:
        self._write("c")


def test_auto_says_when_envs_could_not_be_tried(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "stepladder.envs"):
        vec = make_vec(trouble_envs(4, trouble={"step": "raise"}))
    assert isinstance(vec, WorkerVectorEnv)
    assert "could not be tried with workers (BoomError: boom in step of env 0)" in caplog.text
    assert vec.num_workers == 0
    vec.close()


def test_auto_lets_the_error_of_a_constructor_through() -> None:
    with pytest.raises(RuntimeError, match="boom in make of env 0"):
        make_vec(trouble_envs(4, trouble={"make": "raise"}))


def test_make_vec_is_part_of_the_public_surface() -> None:
    assert stepladder.make_vec is make_vec
    assert "make_vec" in stepladder.__all__


@pytest.mark.parametrize("num_workers", [0, 2])
def test_the_plain_loop_is_matched_with_a_time_limit_inside(num_workers: int) -> None:
    functions = [partial(_limited, row) for row in range(4)]
    theirs = SyncVectorEnv(functions)
    ours = make_vec(functions, num_workers=num_workers, start_method="fork")
    ours.reset(seed=0)
    theirs.reset(seed=0)
    for _ in range(12):
        for our, their in zip(
            ours.step(no_actions(ours))[:4], theirs.step(no_actions(theirs))[:4], strict=True
        ):
            np.testing.assert_array_equal(our, their)
    ours.close()
    theirs.close()


def _limited(row: int) -> gym.Env[Any, Any]:
    return TimeLimit(TroubleEnv(row, length=5), max_episode_steps=2 + row)
