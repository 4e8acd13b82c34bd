"""Threads, forks, interruptions and the end of vector envs of games."""

import copy
import gc
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from games.game_cases import (
    SAME_STEP,
    SINGLE_ENVS,
    assert_same,
    level_task,
    make_batch,
    random_actions,
)
from stepladder import CurriculumVectorEnv
from stepladder.curricula import LearningProgress, Uniform
from stepladder.errors import EnvError, StepladderError
from stepladder.plans.status import PLAYING
from stepladder.tasks import Task

EACH_GAME = pytest.mark.parametrize("case", ["hockey defence", "ledge"])
NUM_ENVS = 100


_OLD: set[threading.Thread] = set()
"""Helpers of other tests that have not closed what they made."""


def helpers() -> list[threading.Thread]:
    return [
        each
        for each in threading.enumerate()
        if each.name.startswith("stepladder-game") and each not in _OLD
    ]


@pytest.fixture(autouse=True)
def helpers_of_other_tests_do_not_count() -> Iterator[None]:
    _OLD.update(helpers())
    yield
    _OLD.clear()


def wait_until(is_so: Callable[[], bool], timeout_s: float = 5.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline, f"it has not come about in {timeout_s} s"
        time.sleep(0.005)


def play(vec: Any, num_steps: int, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [vec.step(random_actions(vec, rng)) for _ in range(num_steps)]


def play_until_interrupted(vec: Any, timer: threading.Timer) -> None:
    timer.start()
    while True:
        play(vec, 1)


def started(case: str = "ledge", num_threads: int = 3, **settings: Any) -> Any:
    """Return a vector env with helpers at work."""
    vec = make_batch(case, NUM_ENVS, num_threads=num_threads, **settings)
    vec.reset(seed=1)
    play(vec, 3)
    assert len(helpers()) == num_threads - 1
    return vec


def curriculum() -> LearningProgress:
    """Return one that evicts: steps leave compiled code all the time."""
    return LearningProgress(
        [level_task(f"task {index}", time_limit=3 + index % 5) for index in range(400)],
        seed=1,
        capacity=20,
        eviction_plays=3,
        novice_plays=2,
        eviction_percentile=1.0,
    )


# How many.


def test_helpers_start_with_the_first_step_and_end_with_the_vector_env() -> None:
    vec = make_batch("ledge", NUM_ENVS, num_threads=3)
    vec.reset(seed=0)
    assert helpers() == []
    play(vec, 1)
    assert len(helpers()) == 2
    vec.close()
    assert helpers() == []


def test_there_are_never_more_threads_than_parts_to_work_on() -> None:
    for num_envs, expected in ((1, 0), (32, 0), (33, 1), (64, 1), (65, 2), (500, 2)):
        vec = make_batch("ledge", num_envs, num_threads=3)
        vec.reset(seed=0)
        play(vec, 1)
        assert len(helpers()) == expected
        vec.close()


def test_a_vector_env_is_closed_by_its_with_block() -> None:
    with started() as vec:
        play(vec, 2)
    assert helpers() == []
    with pytest.raises(EnvError, match="closed"):
        play(vec, 1)


# Let go of.


def test_a_vector_env_that_is_forgotten_leaves_no_thread() -> None:
    started("hockey")
    gc.collect()
    wait_until(lambda: helpers() == [])


def test_one_with_a_curriculum_that_is_forgotten_leaves_no_thread_either() -> None:
    def forget() -> None:
        vec = CurriculumVectorEnv(make_batch("ledge", NUM_ENVS, num_threads=2), curriculum())
        vec.reset(seed=0)
        play(vec, 5)
        assert len(helpers()) == 1

    forget()
    gc.collect()
    wait_until(lambda: helpers() == [])


@pytest.mark.timeout(30)
def test_a_helper_itself_may_be_the_one_that_lets_go() -> None:
    """Python collects garbage in whichever thread happens to run."""
    vec = started()
    team = vec._team
    (epoch, work, arguments), errors, threads = team._order, [], set()

    def work_and_close(control: Any, epoch: int, num_spins: int, *arguments: Any) -> None:
        if num_spins == 0:
            work(control, epoch, num_spins, *arguments)
            return
        threads.add(threading.current_thread())
        try:
            team.close()
        except RuntimeError as error:
            errors.append(error)

    team._order = (epoch, work_and_close, arguments)
    while not threads:
        # A helper that is about to fall asleep is not woken; the next round wakes it.
        time.sleep(0.01)
        team.play_round()
    wait_until(lambda: helpers() == [])
    assert threads
    assert errors == []


# Interrupted.


class Interrupted:
    """A bell that Ctrl-C keeps from ringing, once."""

    def __init__(self, bell: Any):
        self.bell = bell
        self.is_spent = False

    def release(self) -> None:
        if not self.is_spent:
            self.is_spent = True
            raise KeyboardInterrupt
        self.bell.release()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.bell, name)


@pytest.mark.timeout(30)
def test_an_interruption_while_helpers_are_woken_loses_none_of_them() -> None:
    vec, twin = started(), make_batch("ledge", NUM_ENVS, num_threads=1)
    twin.reset(seed=1)
    play(twin, 3)
    team = vec._team
    time.sleep(0.05)  # Until they sleep.
    for helper in team._helpers:
        helper._bell = Interrupted(helper._bell)
    num_interrupted = 0
    for number in range(20):
        ours = None
        while ours is None:
            try:
                ours = play(vec, 1, number)
            except KeyboardInterrupt:
                num_interrupted += 1
        assert_same(ours, play(twin, 1, number))
        time.sleep(0.005)
    assert num_interrupted == 2
    closing = threading.Thread(target=vec.close, daemon=True)
    closing.start()
    closing.join(10)
    assert not closing.is_alive()
    assert helpers() == []


@pytest.mark.timeout(60, method="signal")
@pytest.mark.parametrize("has_curriculum", [False, True])
def test_ctrl_c_leaves_a_vector_env_that_can_be_used(has_curriculum: bool) -> None:
    base = make_batch("ledge", NUM_ENVS, num_threads=2, time_limit=None)
    tasks = [level_task(f"task {index}", time_limit=3 + index % 5) for index in range(40)]
    vec: Any = CurriculumVectorEnv(base, Uniform(tasks, seed=1)) if has_curriculum else base
    vec.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(15):
        timer = threading.Timer(rng.uniform(0.001, 0.03), signal.raise_signal, (signal.SIGINT,))
        with pytest.raises(KeyboardInterrupt):
            play_until_interrupted(vec, timer)
        timer.join()
        play(vec, 2)
    if has_curriculum:
        assert vec.curriculum.num_observed > 100
        states, records = base.batch.episodes["state"], base.playing.records  # type: ignore[attr-defined]
        for row, task in enumerate(vec.call("get_curriculum_task")):
            if states[row] == PLAYING:
                assert records["time_limit"][row] == task.params["time_limit"]
    twin = make_batch("ledge", NUM_ENVS, num_threads=1, time_limit=None)
    if not has_curriculum:
        assert_same(vec.reset(seed=5), twin.reset(seed=5))
        assert_same(play(vec, 50), play(twin, 50))
    vec.close()


def test_a_beginning_that_is_interrupted_does_not_play_on_in_the_old_world(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tasks = [level_task(f"task {index}", time_limit=50 + index) for index in range(500)]
    base: Any = make_batch("ledge", 6, time_limit=None)
    vec = CurriculumVectorEnv(base, Uniform(tasks, seed=1))
    vec.reset(seed=0)
    play(vec, 5)
    put = type(base).put
    num_put = 0

    def put_three(self: Any, *arguments: Any) -> None:
        nonlocal num_put
        num_put += 1
        if num_put == 4:
            raise KeyboardInterrupt
        put(self, *arguments)

    monkeypatch.setattr(type(base), "put", put_three)
    with pytest.raises(KeyboardInterrupt):
        vec.reset()
    monkeypatch.undo()
    play(vec, 1)
    # Those that had been prepared have begun by now, in this step or the one before.
    assert (base.runners["steps"] <= 1).all()
    for row, task in enumerate(vec.call("get_curriculum_task")):
        assert base.playing.records["time_limit"][row] == task.params["time_limit"]
    counts = vec.counts
    assert counts.started == counts.finished + counts.aborted + counts.in_flight
    vec.close()


# Several at once.


@EACH_GAME
def test_two_vector_envs_can_be_stepped_from_two_threads(case: str) -> None:
    vecs = [make_batch(case, 70, num_threads=2, autoreset_mode=SAME_STEP) for _ in range(2)]
    results: dict[int, Any] = {}

    def run(number: int) -> None:
        results[number] = [vecs[number].reset(seed=number), *play(vecs[number], 150, number)]

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(2):
        alone = make_batch(case, 70, num_threads=1, autoreset_mode=SAME_STEP)
        assert_same(results[number], [alone.reset(seed=number), *play(alone, 150, number)])
        vecs[number].close()


def test_a_vector_env_may_move_from_thread_to_thread() -> None:
    vec, twin = started("hockey defence"), make_batch("hockey defence", NUM_ENVS, num_threads=1)
    twin.reset(seed=1)
    play(twin, 3)
    got: list[Any] = []

    def run(number: int) -> None:
        got.append(play(vec, 10, number))

    for number in range(5):
        thread = threading.Thread(target=run, args=(number,))
        thread.start()
        thread.join()
        assert_same(got[-1], play(twin, 10, number))
    vec.close()


# Forked, copied, sent.


def play_in_fork(vec: Any, pipe: Any) -> None:
    before = len(helpers())
    results = play(vec, 30, 9)
    during = len(helpers())
    vec.close()
    pipe.send(
        (before, during, len(helpers()), [[part.sum() for part in each[1:4]] for each in results])
    )
    pipe.close()


@EACH_GAME
@pytest.mark.processes
@pytest.mark.timeout(60)
def test_a_fork_plays_on_by_itself(case: str) -> None:
    vec = started(case, num_threads=2)
    context = multiprocessing.get_context("fork")
    for _ in range(3):
        ours, theirs = context.Pipe()
        child = context.Process(target=play_in_fork, args=(vec, theirs))
        child.start()
        theirs.close()
        assert ours.poll(30)
        told = ours.recv()
        child.join(30)
        assert child.exitcode == 0
        twin = copy.deepcopy(vec)
        expected = play(twin, 30, 9)
        twin.close()
        # The parent's threads are not in the fork, which starts its own.
        assert told[:3] == (0, 1, 0)
        assert_same(told[3], [[part.sum() for part in each[1:4]] for each in expected])
        play(vec, 2)
    vec.close()


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_a_fork_cannot_teach_the_curriculum_of_its_parent() -> None:
    vec = CurriculumVectorEnv(make_batch("ledge", 40, num_threads=2), curriculum())
    vec.reset(seed=0)
    play(vec, 10)
    num_observed = vec.curriculum.num_observed
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            play(vec, 30)
        except StepladderError:
            status = 0
        finally:
            os._exit(status)
    _, ended = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(ended) == 0
    assert vec.curriculum.num_observed == num_observed
    play(vec, 10)
    vec.close()


@pytest.mark.parametrize("case", ["hockey both", "hockey", "ledge", "ledge shaped"])
def test_a_copy_plays_on_by_itself(case: str) -> None:
    """As a search needs it: try something out on a copy, then go on with the original."""
    vec, twin = (make_batch(case, 40, num_threads=2) for _ in range(2))
    for each in (vec, twin):
        each.reset(seed=3)
        play(each, 5)
    other = copy.deepcopy(vec)
    play(other, 30, seed=8)
    again = copy.deepcopy(vec)
    assert_same(play(vec, 30, seed=4), play(twin, 30, seed=4))
    assert_same(play(vec, 30, seed=5), play(twin, 30, seed=5))
    last = copy.deepcopy(vec)
    assert_same(play(vec, 10), play(last, 10))
    assert len(play(again, 10)) == 10
    for each in (vec, twin, other, again, last):
        each.close()


@pytest.mark.parametrize("game", ["hockey", "ledge"])
def test_a_copy_of_a_single_game_plays_on_by_itself(game: str) -> None:
    env = SINGLE_ENVS[game]()
    env.action_space.seed(0)
    env.reset(seed=1)
    actions = [env.action_space.sample() for _ in range(40)]
    for action in actions[:10]:
        env.step(action)
    other = copy.deepcopy(env)
    tried = [other.step(action) for action in actions[10:]]
    assert_same([env.step(action) for action in actions[10:]], tried)


@pytest.mark.parametrize("game", ["hockey", "ledge"])
def test_what_is_machine_code_cannot_be_pickled(game: str) -> None:
    for env in (SINGLE_ENVS[game](), make_batch(game, 3)):
        with pytest.raises((TypeError, StepladderError), match="pickle"):
            pickle.dumps(env)


def test_tasks_and_what_is_returned_can_be_pickled() -> None:
    vec = make_batch("ledge", 3, autoreset_mode=SAME_STEP)
    vec.reset(seed=0)
    for result in play(vec, 30):
        assert_same(pickle.loads(pickle.dumps(result)), result)
    task = Task("one", params={"stage": "simple"}, seed=1)
    assert pickle.loads(pickle.dumps(task)) == task
