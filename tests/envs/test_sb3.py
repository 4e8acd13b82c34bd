"""A curriculum over Stable-Baselines3's vector envs: what users do, and how the ancestor failed."""

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecMonitor, VecNormalize

from stepladder.curricula import DemotionRule, LearningProgress, Staged, Uniform
from stepladder.curricula.staged.config import SEVEN_STAGES
from stepladder.envs import CurriculumEnv
from stepladder.envs.sb3 import CurriculumVecEnvWrapper
from stepladder.errors import (
    ChannelError,
    ConfigError,
    DeliveryError,
    NotConnectedError,
    SnapshotError,
    WorkerDiedError,
)
from stepladder.tasks import Task
from testing_env import PracticeEnv, arena, end_all, make_env, staged_tasks

STAGES = ("simplest", "simpler", "simple")
processes = pytest.mark.processes
soon = pytest.mark.timeout(90, method="signal")


@pytest.fixture
def subproc() -> Iterator[Callable[..., SubprocVecEnv]]:
    """Makes vector envs whose workers are gone when the test is, whatever happens."""
    made: list[SubprocVecEnv] = []

    def make(env_fns: list[Callable[[], gym.Env]], start_method: str | None = "fork"):
        made.append(SubprocVecEnv(env_fns, start_method))
        return made[-1]

    yield make
    for venv in made:
        end_all(venv.processes)


def dummy(num_envs: int = 4, **practice: Any) -> DummyVecEnv:
    return DummyVecEnv([lambda: make_env(**practice) for _ in range(num_envs)])


def step(venv: Any, num_steps: int = 1) -> Any:
    result = None
    for _ in range(num_steps):
        result = venv.step(np.zeros(venv.num_envs, dtype=np.int64))
    return result


# The test sketches of the ancestor's analysis.


def record_twelve_of_thirty(**settings: Any) -> Staged:
    curriculum = Staged(staged_tasks(), stages=STAGES, **settings)
    for i in range(30):
        curriculum.record_episode("simplest", i < 12)
    assert curriculum.mixing_ratio("simplest") == 0.40
    return curriculum


def test_mixing_ratio_sync_multi_env() -> None:
    curriculum = record_twelve_of_thirty()

    def make() -> CurriculumEnv:
        return CurriculumEnv(PracticeEnv(), curriculum, enable_local_tracking=False)

    venv = CurriculumVecEnvWrapper(DummyVecEnv([make for _ in range(4)]), curriculum)
    venv.reset()
    assert venv.env_method("get_mixing_ratio", "simplest") == [0.40] * 4
    venv.close()


@processes
@soon
@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_mixing_ratio_sync_multi_env_in_subprocesses(subproc: Any, method: str) -> None:
    curriculum = record_twelve_of_thirty()

    def make() -> CurriculumEnv:
        return CurriculumEnv(PracticeEnv(), curriculum, enable_local_tracking=False)

    venv = CurriculumVecEnvWrapper(subproc([make for _ in range(4)], method), curriculum)
    assert venv.env_method("get_mixing_ratio", "simplest") == [0.40] * 4
    venv.reset()
    assert venv.env_method("get_mixing_ratio", "simplest") == [0.40] * 4
    # Also without a step in between: there is only one ratio.
    for _ in range(30):
        curriculum.record_episode("simplest", True)
    # 2 of the last 20 and then 30 more are 32 of the 50 in the window.
    assert curriculum.mixing_ratio("simplest") == 0.25
    assert venv.env_method("get_mixing_ratio", "simplest") == [0.25] * 4
    venv.close()


@processes
@soon
@pytest.mark.parametrize("kind", ["dummy", "subproc-fork", "subproc-spawn"])
@pytest.mark.parametrize("backend", ["auto", "pushed"])
def test_adaptive_mixing_during_training(kind: str, backend: Any) -> None:
    # A high bar keeps the stage while success rises from 0.3 over 0.6 and 0.7 to 1.
    curriculum = Staged(
        staged_tasks(),
        stages=STAGES,
        starting_stage="simpler",
        threshold=1.0,
        early=None,
        trend=None,
        demotion=None,
        min_episodes=10_000,
    )
    seen = []
    with arena(kind, curriculum, wrapper={"backend": backend}) as played:
        played.reset()
        for skill in (0.3, 0.57, 0.72, 1.0):
            played.call("set_skill", skill)
            ratios = Counter()
            for _ in range(150):
                played.step()
                (ratio,) = set(played.call("get_mixing_ratio"))
                assert ratio == curriculum.mixing_ratio()
                ratios[ratio] += 1
            seen.append(ratios.most_common(1)[0][0])
            shares = Counter(
                start.task.partition("/")[0] for starts in played.starts for start in starts[-100:]
            )
            assert shares["simpler"] > shares["simplest"] > 0
            assert shares["simple"] == 0
    assert seen == [0.40, 0.25, 0.15, 0.05]


# The migration guide.


@processes
@soon
def test_one_factory_serves_all_envs_of_a_subproc_vec_env(subproc: Any) -> None:
    curriculum = Staged(
        staged_tasks(success=1.0),
        stages=STAGES,
        mixing=None,
        early=None,
        trend=None,
        min_episodes=20,
    )

    def make() -> CurriculumEnv:
        base_env = PracticeEnv()
        return CurriculumEnv(base_env, curriculum, enable_local_tracking=False)

    venv = subproc([make for _ in range(4)], None)
    venv = CurriculumVecEnvWrapper(venv, curriculum, check_interval_episodes=10)
    venv.reset()
    step(venv, 5)
    assert venv.env_method("get_curriculum_stage") == ["simpler"] * 4
    assert venv.total_episodes == 20
    assert curriculum.history[0].episode == 20
    venv.close()


def test_a_single_env_needs_no_vector_wrapper() -> None:
    curriculum = Staged(staged_tasks(success=1.0), stages=STAGES, min_episodes=20, mixing=None)
    env = CurriculumEnv(PracticeEnv(), curriculum, enable_local_tracking=True)
    model = PPO("MlpPolicy", env, **TINY)
    model.learn(64)
    assert curriculum.current_stage == "simple"
    assert curriculum.num_observed == 64


@pytest.mark.parametrize(("interval", "episode"), [(1, 20), (7, 21), (9, 27)])
def test_checks_come_after_so_many_episodes_of_all_envs_together(
    interval: int, episode: int
) -> None:
    curriculum = Staged(
        staged_tasks(success=1.0), stages=STAGES, mixing=None, early=None, min_episodes=20
    )
    venv = CurriculumVecEnvWrapper(dummy(4), curriculum, interval)
    venv.reset()
    step(venv, 8)
    assert curriculum.history[0].episode == episode
    assert curriculum.config.check_interval_episodes == interval


def test_total_episodes_are_those_of_the_envs() -> None:
    curriculum = record_twelve_of_thirty()
    venv = CurriculumVecEnvWrapper(dummy(4), curriculum)
    venv.reset()
    assert venv.total_episodes == 0
    step(venv, 3)
    assert venv.total_episodes == 12
    assert curriculum.num_observed == 42


def test_a_curriculum_without_stages_has_no_checks() -> None:
    curriculum = Uniform(staged_tasks())
    with pytest.raises(ConfigError, match="no stages to advance"):
        CurriculumVecEnvWrapper(dummy(), curriculum, 10)
    # What was refused does not hold on to the curriculum.
    CurriculumVecEnvWrapper(dummy(), curriculum).close()


def test_seven_stages_of_the_ancestor_are_passed_in_order() -> None:
    names = tuple(entry.name for entry in SEVEN_STAGES.stages)
    curriculum = Staged(staged_tasks(names, success=0.97), SEVEN_STAGES, seed=1)
    venv = CurriculumVecEnvWrapper(dummy(4), curriculum)
    venv.reset()
    step(venv, 200)
    assert [change.to_stage for change in curriculum.history] == list(names[1:])


# What it says.


def test_the_log_tells_episodes_checks_and_changes(caplog: pytest.LogCaptureFixture) -> None:
    curriculum = Staged(
        staged_tasks(success=1.0),
        stages=STAGES,
        early=None,
        trend=None,
        min_episodes=10,
        seed=1,
    )
    with caplog.at_level(logging.DEBUG, "stepladder.envs"):
        venv = CurriculumVecEnvWrapper(dummy(4), curriculum, check_advancement_freq=10)
        venv.reset()
        step(venv, 3)
    lines = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert all(record.getMessage().startswith("[VecEnv] ") for record in caplog.records)
    episode = (
        "[VecEnv] Env {} completed episode {}: stage=simplest, success=True, total_episodes={}"
    )
    assert lines == [
        ("INFO", "[VecEnv] Synced stage 'simplest' (mixing: 20.0%) to all 4 environments"),
        *(("DEBUG", episode.format(env, 1, env + 1)) for env in range(4)),
        *(("DEBUG", episode.format(env, 2, env + 5)) for env in range(4)),
        *(("DEBUG", episode.format(env, 3, env + 9)) for env in range(4)),
        (
            "INFO",
            "[VecEnv] Advancement check at 10 episodes: stage=simplest, success_rate=100.00%, "
            "episodes=10, can_advance=True",
        ),
        (
            "INFO",
            "[VecEnv] Curriculum advanced to: simpler (syncing to all 4 environments): "
            f"{curriculum.history[0]}",
        ),
        ("INFO", "[VecEnv] Synced stage 'simpler' (mixing: 20.0%) to all 4 environments"),
    ]


def test_a_check_that_changes_nothing_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    curriculum = Staged(staged_tasks(success=0.0), stages=STAGES)
    for _ in range(30):
        curriculum.record_episode("simplest", False)
    with caplog.at_level(logging.INFO, "stepladder.envs"):
        venv = CurriculumVecEnvWrapper(dummy(4), curriculum)
        venv.reset()
        step(venv, 5)
    checks = [line for line in caplog.messages if "Advancement check" in line]
    rest = "stage=simplest, success_rate=0.00%"
    # 20 episodes of 4 envs make two checks, at 40 and at 50 of all that was observed.
    assert len(checks) == 2
    assert f"check at 42 episodes: {rest}, episodes=42, can_advance=False" in checks[0]
    assert f"check at 50 episodes: {rest}, episodes=50, can_advance=False" in checks[1]


def test_going_back_and_going_by_hand_are_told_as_what_they_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    curriculum = Staged(
        staged_tasks(success=0.0),
        stages=STAGES,
        mixing=None,
        demotion=DemotionRule(threshold=0.2, min_episodes=8),
    )
    venv = CurriculumVecEnvWrapper(dummy(4), curriculum, check_interval_episodes=4)
    venv.reset()
    with caplog.at_level(logging.INFO, "stepladder.envs"):
        curriculum.go_to("simple")
        step(venv, 5)
    text = "\n".join(caplog.messages)
    assert "Curriculum moved to: simple (syncing to all 4 environments)" in text
    assert "stage=simple, success_rate=0.00%, episodes=8, can_advance=False" in text
    assert "Curriculum fell back to: simpler (syncing to all 4 environments)" in text


def test_a_time_limit_around_the_curriculum_env_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    curriculum = Uniform([Task("long", params={"length": 100})])
    venv = CurriculumVecEnvWrapper(
        DummyVecEnv([lambda: TimeLimit(make_env(), 3) for _ in range(2)]), curriculum
    )
    venv.reset()
    step(venv, 9)
    assert venv.counts.aborted == 6
    (warning,) = [line for line in caplog.messages if "did not see end" in line]
    assert "put it inside CurriculumEnv" in warning


def test_a_log_never_names_the_successor_of_a_task(caplog: pytest.LogCaptureFixture) -> None:
    tasks = [Task(f"task{index}", f"label{index}") for index in range(60)]
    curriculum = LearningProgress(
        tasks, seed=2, capacity=3, eviction_plays=2, eviction_percentile=1.0
    )
    venv = CurriculumVecEnvWrapper(dummy(2), curriculum)
    venv.reset()
    said = 0
    with caplog.at_level(logging.DEBUG, "stepladder.envs"):
        for _ in range(40):
            caplog.clear()
            _, _, _, infos = step(venv)
            for info, line in zip(infos, caplog.messages, strict=True):
                stage = line.partition("stage=")[2].partition(",")[0]
                assert stage in (info["curriculum_stage"], "(replaced)")
                said += stage != "(replaced)"
    assert curriculum.num_evicted > 10
    assert said > 10


# With the rest of Stable-Baselines3.

TINY: dict[str, Any] = {
    "n_steps": 16,
    "batch_size": 16,
    "n_epochs": 1,
    "policy_kwargs": {"net_arch": [4]},
    "device": "cpu",
}


def test_ppo_learns_on_the_wrapper_unchanged() -> None:
    curriculum = Staged(staged_tasks(success=0.9, length=2), stages=STAGES, min_episodes=30)
    venv = CurriculumVecEnvWrapper(
        DummyVecEnv([lambda: Monitor(make_env()) for _ in range(4)]), curriculum
    )
    model = PPO("MlpPolicy", venv, seed=3, **TINY)
    model.learn(512)
    assert curriculum.num_observed == venv.total_episodes == 256
    assert curriculum.current_stage == "simple"
    # Monitor lies outside and sees what the curriculum saw.
    assert {entry["l"] for entry in model.ep_info_buffer} == {2}
    assert len(model.ep_success_buffer) == 100
    model.learn(64, reset_num_timesteps=False)
    venv.close()


@processes
@soon
def test_ppo_learns_over_subprocesses_with_normalisation_around(subproc: Any) -> None:
    curriculum = Staged(staged_tasks(success=0.9, length=2), stages=STAGES, min_episodes=30)
    wrapped = CurriculumVecEnvWrapper(subproc([make_env] * 4), curriculum)
    venv = VecMonitor(VecNormalize(wrapped))
    PPO("MlpPolicy", venv, **TINY).learn(512)
    assert curriculum.num_observed == 256
    assert venv.env_method("get_curriculum_stage") == [curriculum.current_stage] * 4
    assert curriculum.current_stage == "simple"
    # Names of the wrapper are found through those around it.
    assert venv.total_episodes == 256
    venv.close()
    assert wrapped.tracker.host.is_closed


def test_an_env_with_a_curriculum_passes_the_check_of_stable_baselines() -> None:
    curriculum = Uniform([Task("a", params={"length": 5})])
    check_env(CurriculumEnv(PracticeEnv(), curriculum), skip_render_check=True)
    assert curriculum.num_observed > 0


def test_normalisation_may_also_lie_inside() -> None:
    curriculum = Uniform(staged_tasks())
    venv = CurriculumVecEnvWrapper(VecNormalize(dummy(2)), curriculum)
    venv.reset()
    step(venv, 5)
    assert curriculum.num_observed == 10
    # The curriculum sees the env's own rewards, not the normalised ones.
    assert curriculum.num_steps == 10


def test_a_policy_can_be_evaluated_on_the_wrapper() -> None:
    curriculum = Uniform(staged_tasks(length=3))
    venv = CurriculumVecEnvWrapper(
        DummyVecEnv([lambda: Monitor(make_env()) for _ in range(2)]), curriculum
    )
    mean, _ = evaluate_policy(PPO("MlpPolicy", venv, **TINY), venv, n_eval_episodes=6)
    assert mean == 3.0
    assert curriculum.num_observed == 6


def test_an_evaluation_env_without_wrapper_says_what_it_lacks() -> None:
    venv = dummy(1)
    with pytest.raises(NotConnectedError, match="CurriculumVecEnvWrapper"):
        venv.reset()


def test_seeds_and_options_reach_the_envs() -> None:
    venv = CurriculumVecEnvWrapper(dummy(2), Uniform(staged_tasks()))
    venv.seed(40)
    venv.set_options({"difficulty": 2})
    venv.reset()
    assert venv.get_attr("seeds") == [[40], [41]]
    assert venv.get_attr("options") == [{"difficulty": 2}] * 2
    step(venv)
    # Only once: afterwards the curriculum seeds each episode.
    assert all(seeds[1] not in (40, 41, None) for seeds in venv.get_attr("seeds"))


def test_infos_say_what_was_played_at_reset_and_end() -> None:
    curriculum = Staged(staged_tasks(), stages=STAGES)
    venv = CurriculumVecEnvWrapper(dummy(2), curriculum)
    venv.reset()
    first = list(venv.unwrapped.reset_infos)
    _, _, dones, infos = step(venv)
    assert dones.all()
    for before, info in zip(first, infos, strict=True):
        assert before["curriculum_stage"] == info["curriculum_stage"] == "simplest"
        assert before["curriculum_task"] == info["curriculum_task"] == info["played"]
        assert info["curriculum_success"] == float(info["is_success"])
        assert "terminal_observation" in info


# How the ancestor failed.


@processes
@soon
@pytest.mark.parametrize("num_envs", [1, 4, 8])
def test_no_worker_ever_has_another_ratio_than_the_host(num_envs: int) -> None:
    curriculum = Staged(staged_tasks(success=0.7), stages=STAGES, seed=num_envs, threshold=0.75)
    with arena("subproc-fork", curriculum, num_envs) as played:
        played.reset()
        ratios = set()
        while curriculum.num_observed < 2000:
            played.step()
            ratio = curriculum.mixing_ratio()
            assert played.call("get_mixing_ratio") == [ratio] * num_envs
            ratios.add(ratio)
    assert ratios >= {0.05, 0.15, 0.20, 0.25}


@pytest.mark.parametrize("num_envs", [32, 64, 128])
def test_many_envs_that_always_succeed_do_advance(num_envs: int) -> None:
    curriculum = Staged(staged_tasks(success=1.0), stages=STAGES)
    venv = CurriculumVecEnvWrapper(dummy(num_envs), curriculum)
    venv.reset()
    step(venv, 12)
    assert [change.to_stage for change in curriculum.history] == ["simpler", "simple"]
    assert venv.env_method("get_curriculum_stage") == ["simple"] * num_envs


@pytest.mark.slow
def test_two_stages_cannot_take_turns_for_ever() -> None:
    tasks = [Task("easy", "easy", {"success": 1.0}), Task("wall", "wall", {"success": 0.0})]
    demotion = DemotionRule(min_episodes=20)
    curriculum = Staged(
        tasks, stages=("easy", "wall"), demotion=demotion, min_episodes=10, mixing=None
    )
    venv = CurriculumVecEnvWrapper(dummy(8), curriculum)
    venv.reset()
    step(venv, 1000)
    demotions = [change.episodes for change in curriculum.history if "demotion" in change.rules]
    # The k-th needs at least 20 * 2**k episodes on the wall; 8000 have room for eight.
    assert all(count >= 20 * 2**k for k, count in enumerate(demotions))
    assert 4 <= len(demotions) <= math.log2(8000 / 20)


@processes
@soon
@pytest.mark.parametrize("kind", ["dummy", "subproc-fork"])
def test_envs_that_end_on_the_step_of_an_advancement_play_one_old_task_at_most(kind: str) -> None:
    curriculum = Staged(
        staged_tasks(success=1.0), stages=STAGES, mixing=None, early=None, min_episodes=16
    )
    with arena(kind, curriculum, 4, wrapper={"check_interval_episodes": 4}) as played:
        played.reset()
        played.run(20)
        for starts in played.starts:
            stages = [start.task.partition("/")[0] for start in starts]
            assert stages == ["simplest"] * 5 + ["simpler"] * 5 + ["simple"] * 11


def test_results_of_one_episode_are_counted_once() -> None:
    curriculum = Uniform(staged_tasks())
    venv = CurriculumVecEnvWrapper(dummy(4), curriculum)
    venv.reset()
    step(venv, 25)
    assert curriculum.num_observed == 100
    assert sum(map(len, venv.get_attr("played"))) == 100


def test_two_wrappers_on_one_curriculum_are_refused() -> None:
    curriculum = Staged(staged_tasks(), stages=STAGES)
    first = CurriculumVecEnvWrapper(dummy(2), curriculum, 20)
    with pytest.raises(ChannelError, match="already carried"):
        CurriculumVecEnvWrapper(dummy(2), curriculum, 5)
    # What was refused has changed nothing.
    assert curriculum.config.check_interval_episodes == 20
    first.reset()
    step(first, 2)
    first.close()
    second = CurriculumVecEnvWrapper(dummy(2), curriculum)
    second.reset()
    step(second, 2)
    assert curriculum.num_observed == 8


def test_envs_that_are_not_wrapped_are_refused() -> None:
    curriculum = Uniform(staged_tasks())
    with pytest.raises(DeliveryError, match=r"env 1 is not wrapped.*CurriculumEnv\(env"):
        CurriculumVecEnvWrapper(DummyVecEnv([make_env, PracticeEnv]), curriculum)
    CurriculumVecEnvWrapper(dummy(), curriculum).close()


@processes
@soon
def test_envs_that_are_not_wrapped_are_refused_in_subprocesses(subproc: Any) -> None:
    venv = subproc([PracticeEnv, PracticeEnv])
    with pytest.raises(DeliveryError, match="env 0 is not wrapped"):
        CurriculumVecEnvWrapper(venv, Uniform(staged_tasks()))
    venv.close()


def test_an_env_that_tracks_by_itself_inside_a_wrapper_is_refused() -> None:
    curriculum = Uniform(staged_tasks())
    venv = DummyVecEnv([lambda: CurriculumEnv(PracticeEnv(), Uniform(staged_tasks()))])
    with pytest.raises(ConfigError, match=r"count twice.*enable_local_tracking=False"):
        CurriculumVecEnvWrapper(venv, curriculum)
    CurriculumVecEnvWrapper(dummy(), curriculum).close()


def test_the_one_curriculum_in_an_env_and_in_its_wrapper_is_refused() -> None:
    curriculum = Uniform(staged_tasks())
    venv = DummyVecEnv([lambda: CurriculumEnv(PracticeEnv(), curriculum)])
    with pytest.raises(ChannelError, match="already carried"):
        CurriculumVecEnvWrapper(venv, curriculum)


@processes
@soon
def test_a_worker_that_tracks_by_itself_cannot_be_connected(
    subproc: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    curriculum = Uniform(staged_tasks())
    venv = subproc([lambda: CurriculumEnv(PracticeEnv(), Uniform(staged_tasks()))] * 2)
    with pytest.raises(WorkerDiedError, match="pass enable_local_tracking=False"):
        CurriculumVecEnvWrapper(venv, curriculum)
    assert "every episode would count twice" in capfd.readouterr().err
    CurriculumVecEnvWrapper(dummy(), curriculum).close()


@processes
@soon
def test_local_tracking_of_the_hosts_curriculum_ends_a_worker_with_the_reason(
    capfd: pytest.CaptureFixture[str],
) -> None:
    curriculum = Uniform(staged_tasks())
    with pytest.raises((EOFError, ConnectionError)):
        SubprocVecEnv([lambda: CurriculumEnv(PracticeEnv(), curriculum)], "fork")
    assert "WrongProcessError" in capfd.readouterr().err


def test_an_unknown_backend_is_refused() -> None:
    curriculum = Uniform(staged_tasks())
    with pytest.raises(ConfigError, match="no entry 'smoke'; there are local, shared, pushed"):
        CurriculumVecEnvWrapper(dummy(), curriculum, backend="smoke")
    CurriculumVecEnvWrapper(dummy(), curriculum).close()


@processes
@soon
def test_local_memory_does_not_reach_other_processes(subproc: Any) -> None:
    venv = subproc([make_env] * 2)
    with pytest.raises(ConfigError, match="needs all envs in this process"):
        CurriculumVecEnvWrapper(venv, Uniform(staged_tasks()), backend="local")
    venv.close()


def test_a_connection_lost_by_an_env_itself_is_no_dead_worker() -> None:
    class Remote(PracticeEnv):
        def step(self, action: Any):
            raise ConnectionResetError("the game server has gone")

    def make() -> CurriculumEnv:
        return CurriculumEnv(Remote(), enable_local_tracking=False)

    venv = CurriculumVecEnvWrapper(DummyVecEnv([make]), Uniform(staged_tasks()))
    venv.reset()
    with pytest.raises(ConnectionResetError, match="game server"):
        step(venv)
    venv.close()


# Saving, resuming, closing.


def test_a_snapshot_resumes_in_another_wrapper_as_if_nothing_had_happened() -> None:
    def make() -> CurriculumVecEnvWrapper:
        curriculum = Staged(staged_tasks(success=0.7), stages=STAGES, min_episodes=30, seed=3)
        return CurriculumVecEnvWrapper(dummy(3), curriculum)

    whole, first, second = make(), make(), make()
    whole.reset()
    step(whole, 60)
    first.reset()
    step(first, 25)
    second.restore(first.snapshot())
    second.reset()
    step(second, 35)
    for old, new in zip(first.get_attr("played"), second.get_attr("played"), strict=True):
        assert len(old) + len(new) == 60
    played = [
        old + new
        for old, new in zip(first.get_attr("played"), second.get_attr("played"), strict=True)
    ]
    assert played == whole.get_attr("played")
    assert second.curriculum.history == whole.curriculum.history
    assert second.curriculum.history
    assert second.counts == whole.counts
    assert second.staleness == whole.staleness
    np.testing.assert_array_equal(second.curriculum.probs(), whole.curriculum.probs())


@pytest.mark.parametrize("backend", ["local", "shared", "pushed"])
def test_going_back_in_time_forgets_what_could_not_be_built(backend: Any) -> None:
    tasks = [Task(f"task{i}", params={"broken": i % 4 == 0}) for i in range(12)]
    curriculum = Uniform(tasks, seed=5)
    venv = CurriculumVecEnvWrapper(dummy(2), curriculum, backend=backend)
    start = venv.snapshot()
    venv.reset()
    step(venv, 30)
    once = (venv.counts, curriculum.quarantined, venv.get_attr("played"))
    assert len(curriculum.quarantined) == 3
    venv.restore(start)
    assert curriculum.quarantined == []
    venv.env_method("forget")
    venv.reset()
    step(venv, 30)
    assert (venv.counts, curriculum.quarantined, venv.get_attr("played")) == once


def test_a_step_between_restore_and_reset_is_refused() -> None:
    venv = CurriculumVecEnvWrapper(dummy(2, counts_resets=True), Uniform(staged_tasks(length=3)))
    venv.reset()
    step(venv, 4)
    snapshot = venv.snapshot()
    step(venv, 3)
    venv.restore(snapshot)
    # The envs are in the middle of other tasks than those that the snapshot says are in flight.
    with pytest.raises(ChannelError, match="Reset the vector env first"):
        step(venv)
    venv.reset()
    step(venv, 3)
    assert venv.total_episodes == 4


def test_a_snapshot_of_another_number_of_envs_is_refused() -> None:
    first = CurriculumVecEnvWrapper(dummy(2), Uniform(staged_tasks()))
    second = CurriculumVecEnvWrapper(dummy(3), Uniform(staged_tasks()))
    with pytest.raises(SnapshotError, match="made with 2 envs and this channel has 3"):
        second.restore(first.snapshot())


@processes
@soon
@pytest.mark.parametrize("backend", ["shared", "pushed"])
def test_subprocesses_take_over_a_snapshot(subproc: Any, backend: Any) -> None:
    settings: dict[str, Any] = {"stages": STAGES, "min_episodes": 30, "seed": 3}
    first = CurriculumVecEnvWrapper(dummy(2), Staged(staged_tasks(success=0.9), **settings))
    first.reset()
    step(first, 40)
    in_flight = [task.name for task in first.env_method("get_curriculum_task")]
    second = CurriculumVecEnvWrapper(
        subproc([make_env] * 2), Staged(staged_tasks(success=0.9), **settings), backend=backend
    )
    second.restore(first.snapshot())
    assert second.check_agreement() == first.curriculum.plan.version
    assert second.env_method("get_curriculum_stage") == [first.curriculum.current_stage] * 2
    second.reset()
    assert [task.name for task in second.env_method("get_curriculum_task")] == in_flight
    second.close()


def test_closing_twice_is_closing_once() -> None:
    curriculum = Uniform(staged_tasks())
    venv = CurriculumVecEnvWrapper(dummy(2), curriculum)
    venv.reset()
    step(venv, 2)
    venv.close()
    venv.close()
    with pytest.raises(ChannelError, match="closed"):
        step(venv)
    assert curriculum.num_observed == 4
    assert venv.total_episodes == 4


@processes
@soon
def test_closing_subprocesses_twice_is_closing_once(subproc: Any) -> None:
    venv = CurriculumVecEnvWrapper(subproc([make_env] * 2), Uniform(staged_tasks()))
    venv.reset()
    step(venv, 2)
    venv.close()
    venv.close()
    assert not any(process.is_alive() for process in venv.worker_processes())
    assert venv.counts.finished == 4


@processes
@soon
def test_closing_between_the_halves_of_a_step_loses_nothing(subproc: Any) -> None:
    curriculum = Uniform(staged_tasks())
    venv = CurriculumVecEnvWrapper(subproc([make_env] * 2), curriculum)
    venv.reset()
    venv.step_async(np.zeros(2, dtype=np.int64))
    venv.close()
    assert curriculum.num_observed == 2
