"""Bad input gets one line that names the value, the expectation and the fix; nothing is lost."""

import multiprocessing
import re

import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv
from stable_baselines3.common.vec_env import DummyVecEnv

from stepladder.curricula import (
    DemotionRule,
    Mixed,
    Phase,
    Phased,
    Snapshot,
    Stage,
    Staged,
    Uniform,
)
from stepladder.envs import CurriculumEnv, CurriculumVectorEnv
from stepladder.envs.sb3 import CurriculumVecEnvWrapper
from stepladder.errors import (
    BuildError,
    ConfigError,
    SignalError,
    SnapshotError,
    StepladderError,
    WrongProcessError,
)
from stepladder.sync import LocalHost
from stepladder.tasks import Task
from testing_env import PracticeEnv, staged_tasks

TASKS = staged_tasks(("a", "b"))
STAGES = ("a", "b")


def envs():
    return SyncVectorEnv([lambda: CurriculumEnv(PracticeEnv())] * 2)


@pytest.mark.parametrize(
    ("make", "value", "fix"),
    [
        (lambda: Staged(TASKS), "stages is missing", "Give it"),
        (
            lambda: Staged(TASKS, stages=STAGES, foo=1),
            "foo: unknown key",
            "Known here: exploration,",
        ),
        (lambda: Staged(TASKS, stages="ab"), "'ab'", "Give a list or a tuple"),
        (lambda: Staged(TASKS, stages=(1, "b")), "got 1", "Give Stage(…)"),
        (lambda: Stage(name="a", labels="ab"), "'ab'", "Give a list or a tuple"),
        (lambda: Stage(name=3), "got 3", "must be a text"),
        (lambda: Staged(TASKS, stages=STAGES, early=True), "got True", "Give EarlyRule(…)"),
        (lambda: Staged(TASKS, stages=STAGES, trend=3), "got 3", "Give TrendRule(…)"),
        (lambda: Staged(TASKS, stages=STAGES, mixing=0.5), "got 0.5", "Give Mixing(…)"),
        (lambda: Staged(TASKS, stages=STAGES, demotion="x"), "'x'", "Give DemotionRule(…)"),
        (lambda: Staged(TASKS, stages=STAGES, standard="no"), "'no'", "true or false"),
        (lambda: Staged(TASKS, stages=STAGES, threshold="0.5"), "'0.5'", "number in that range"),
        (lambda: Staged(TASKS, stages=STAGES, threshold=1.5), "got 1.5", "number in that range"),
        (lambda: Staged(TASKS, stages=STAGES, min_episodes=-1), "got -1", "Give such a number"),
        (lambda: Staged(TASKS, stages=STAGES, starting_stage="x"), "'x'", "Correct the name"),
        (lambda: Staged(TASKS, stages=("a", "b", "a")), "'a'", "Rename one"),
        (lambda: Staged(TASKS, stages=STAGES, threshold=0.1), "below 0.2", "demotion to None"),
        (lambda: DemotionRule(threshold=float("nan")), "got nan", "number in that range"),
        (lambda: Phased(TASKS, phases=("a",)), "got 'a'", "Give Phase(…)"),
        (lambda: Phased(TASKS, phases=Phase(name="a")), "got Phase(", "Give a list or a tuple"),
        (
            lambda: Phase(name="p", curriculum=Uniform(TASKS)),
            "Uniform",
            "Give the config of one kind",
        ),
        (lambda: Phase(name="p", settings={"x": 1, "x.y": 2}), "'x.y'", "Remove one"),
        (lambda: Uniform(None), "got None", "Give one of these"),
        (lambda: Uniform("tasks"), "'tasks'", "Give one of these"),
        (lambda: CurriculumVectorEnv(envs(), None), "got None", "Auto(tasks)"),
        (lambda: CurriculumVecEnvWrapper(PracticeEnv(), Uniform(TASKS)), "Practice", "DummyVecEnv"),
        (lambda: LocalHost(Uniform(TASKS), 0), "got 0", "at least one env"),
    ],
)
def test_one_line_names_the_value_and_the_fix(make, value, fix):
    with pytest.raises(StepladderError) as raised:
        make()
    message = str(raised.value)
    assert value in message
    assert fix in message
    assert "\n" not in message


def test_a_confidence_bound_that_can_never_be_met_is_refused_with_its_limit():
    def make(**settings):
        settings = {"confidence_z": 1.96, "early": None, "trend": None, **settings}
        return Staged(TASKS, stages=STAGES, **settings)

    # 50 successes of 50: the bound is 50 / (50 + 1.96²) = 0.929.
    with pytest.raises(ConfigError, match=r"stage 'a' could never be left: .* at most 0.929"):
        make(threshold=0.95)
    curriculum = make(threshold=0.92, min_episodes=50)
    for _ in range(50):
        curriculum.record_episode("a", True)
    assert curriculum.current_stage == "b"
    waiting = make(threshold=0.9, min_episodes=50)
    for number in range(50):
        waiting.record_episode("a", number > 1)
    assert "lower bound of success 0.87 < 0.90" in str(waiting.explain())


def test_a_path_is_no_snapshot_and_each_snapshot_names_its_place(tmp_path):
    curriculum = Uniform(TASKS)
    with CurriculumEnv(PracticeEnv(), curriculum) as env:
        for target in (curriculum, env):
            with pytest.raises(SnapshotError, match=r"Snapshot\.load\(path\)"):
                target.restore(str(tmp_path / "x.npz"))
        with pytest.raises(SnapshotError, match=r"wrapper\.restore"):
            curriculum.restore(env.snapshot())
        with pytest.raises(SnapshotError, match=r"curriculum\.restore"):
            env.restore(curriculum.snapshot())


def test_saving_makes_the_folder(tmp_path):
    path = tmp_path / "run" / "deep" / "curriculum.npz"
    Uniform(TASKS).snapshot().save(path)
    assert Snapshot.load(path).state["curriculum"] == "Uniform"


def test_a_share_of_failures_counts_from_twenty_draws_on_whenever_they_came():
    tasks = [Task(f"bad{i}", params={"broken": True}) for i in range(9)] + [Task("good")]
    wrapped = CurriculumVectorEnv(envs(), Uniform(tasks, seed=1), max_failed_share=0.05)
    wrapped.reset(seed=0)
    with pytest.raises(BuildError, match=re.escape("allowed share of 0.05")):
        play(wrapped, 60)
    # It has been said once; whoever goes on after that knows.
    play(wrapped, 20)
    wrapped.close()


def play(wrapped, num_steps):
    for _ in range(num_steps):
        wrapped.step(np.zeros(2, dtype=np.int64))


def test_a_misspelt_success_key_is_an_error_whether_or_not_the_curriculum_needs_it():
    env = CurriculumEnv(PracticeEnv(), Uniform(TASKS), success_key="won")
    env.reset(seed=0)
    with pytest.raises(SignalError, match=r"without info\['won'\], the named success_key"):
        env.step(0)


def test_settings_of_a_phase_reach_a_loop_of_ones_own():
    phase = Phase(name="only", settings={"opponent": Mixed(("weak", "strong"))})
    curriculum = Phased(TASKS, phases=(phase,), seed=3)
    met = {curriculum.task(curriculum.draw_one()).params["opponent"] for _ in range(50)}
    assert met == {"weak", "strong"}


def peek(curriculum, answers):
    said = []
    for read in (lambda: curriculum.current_stage, lambda: curriculum.history):
        try:
            said.append(read())
        except WrongProcessError as error:
            said.append(type(error).__name__)
    answers.put(said)


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_a_fork_cannot_even_read_what_would_soon_be_out_of_date():
    context = multiprocessing.get_context("fork")
    curriculum, answers = Staged(TASKS, stages=STAGES), context.SimpleQueue()
    child = context.Process(target=peek, args=(curriculum, answers))
    child.start()
    said = answers.get()
    child.join()
    assert said == ["WrongProcessError", "WrongProcessError"]
    assert curriculum.current_stage == "a"


def test_dummy_envs_are_accepted_where_a_single_env_is_not():
    venv = DummyVecEnv([lambda: CurriculumEnv(PracticeEnv(), enable_local_tracking=False)])
    CurriculumVecEnvWrapper(venv, Uniform(TASKS)).close()
