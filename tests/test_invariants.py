"""What must always be true (design, section 1), with real processes.

The envs write down what they played; the curriculum says what it has seen. Each test compares the
two through Stable-Baselines3's and Gymnasium's own vector envs, by every start method.
"""

import json
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from stepladder.curricula import Curriculum, LearningProgress, LevelReplay, Mixing, Staged, Uniform
from stepladder.errors import BuildError, WorkerDiedError
from stepladder.plans.record import Record
from stepladder.saving.snapshot import Snapshot
from stepladder.sync import SharedHost
from stepladder.tasks import Choice, FloatRange, IntRange, ListSource, ParameterSource, Task
from stepladder.tasks.editing import FIRST_EDIT
from testing_env import ARENAS, Arena, arena, dismiss

pytestmark = [pytest.mark.processes, pytest.mark.timeout(90, method="signal")]

STAGES = ("simplest", "simpler", "simple")
BOTH = pytest.mark.parametrize("backend", ["shared", "pushed"])
EACH = pytest.mark.parametrize("kind", ARENAS)
MODES = list(AutoresetMode)
LOGS_ERRORS = pytest.mark.filterwarnings("ignore:.*ERROR:UserWarning")
"""Gymnasium tells errors of its workers as warnings before it raises them."""


@pytest.fixture(scope="module", autouse=True)
def no_worker_is_left_behind() -> Iterator[None]:
    yield
    dismiss()


def various_tasks(count: int = 12, **params: Any) -> list[Task]:
    """Tasks of one to four steps, some cut off by a time limit."""
    return [
        Task(
            f"task{index}",
            params={"length": 1 + index % 4, "truncates": index % 3 == 0, **params},
        )
        for index in range(count)
    ]


def quick_stages(seed: int = 5, **settings: Any) -> Staged:
    """Three stages of short and long tasks that are passed within some tens of episodes."""
    tasks = [
        Task(f"{stage}/{index}", stage, {"length": 1 + index, "success": 0.8})
        for stage in STAGES
        for index in range(3)
    ]
    rules = {"min_episodes": 12, "threshold": 0.5, "window_episodes": 12}
    return Staged(
        tasks,
        seed=seed,
        stages=STAGES,
        check_interval_episodes=4,
        **{"mixing": Mixing(min_results=2), **rules, **settings},
    )


# 1. Conservation.


@EACH
def test_every_finished_episode_is_observed_exactly_once(kind: str) -> None:
    curriculum = Uniform(various_tasks(), seed=1)
    with arena(kind, curriculum) as played:
        played.reset()
        played.run(120)
        by_env = played.get("played")
        counts = played.venv.counts
        assert [[end.played for end in ends] for ends in played.ends] == by_env
        assert by_slot(curriculum) == Counter(name for names in by_env for name in names)
        lengths = {task.name: task.params["length"] for task in various_tasks()}
        steps = sum(lengths[name] for names in by_env for name in names)
        assert curriculum.num_steps == steps
        assert curriculum.num_observed == counts.finished == sum(map(len, by_env)) > 50
        assert counts.started == sum(map(len, played.starts))
        assert (counts.aborted, counts.failed) == (0, 0)
        assert counts.in_flight == counts.started - counts.finished


def by_slot(curriculum: Uniform) -> Counter[str]:
    names = [curriculum.pool.task(slot).name for slot in range(curriculum.pool.num_slots)]
    plays = zip(names, curriculum.plays.tolist(), strict=True)
    return Counter({name: count for name, count in plays if count})


@EACH
@pytest.mark.parametrize("victim", [0, 1])
def test_a_worker_killed_in_mid_episode_loses_that_episode_and_nothing_else(
    kind: str, victim: int
) -> None:
    curriculum = Uniform([Task("long", params={"length": 5})], seed=1)
    with arena(kind, curriculum, keeps=False) as played:
        played.reset()
        while not played.all_ends():
            played.step()
        # Under next-step autoreset the next step begins the second episode.
        played.run(3)
        os.kill(played.processes()[victim].pid, signal.SIGKILL)
        with pytest.raises(WorkerDiedError, match=rf"env {victim} died.*1 unfinished"):
            played.step()
        counts = played.venv.counts
        assert curriculum.num_observed == counts.finished == len(played.all_ends()) == 2
        assert (counts.started, counts.aborted, counts.in_flight) == (4, 1, 1)
        with pytest.raises(WorkerDiedError, match="has died"):
            played.step()
        played.venv.close()
        assert not any(process.is_alive() for process in played.processes())
        # The other worker was ended by us, so its episode will not end either.
        assert played.venv.counts.aborted == 2
        assert curriculum.num_observed == 2
        assert len(curriculum.draw(3)) == 3


@pytest.mark.parametrize("kind", ["subproc-fork", "async-fork"])
def test_a_worker_killed_inside_a_step_leaves_what_the_others_finish(kind: str) -> None:
    curriculum = Uniform([Task("slow", params={"length": 2})], seed=1)
    with arena(kind, curriculum, 3, keeps=False, pause_s=0.4) as played:
        played.reset()
        played.step()
        victim = played.processes()[1].pid
        killer = threading.Timer(0.1, os.kill, (victim, signal.SIGKILL))
        killer.start()
        with pytest.raises(WorkerDiedError, match="env 1 died"):
            played.step()
        killer.join()
        assert played.venv.counts.aborted == 1
        host = played.venv.tracker.host
        wait_until(lambda: host.episodes_of(0) == host.episodes_of(2) == 1)
        played.venv.close()
        # The two others were still playing when the pipe broke; they had ended before the close.
        assert curriculum.num_observed == played.venv.counts.finished == 2


@pytest.mark.parametrize("kind", ["subproc-fork", "async-fork"])
def test_a_killed_worker_is_noticed_by_reset_agreement_and_close_as_well(kind: str) -> None:
    curriculum = Uniform([Task("long", params={"length": 5})], seed=1)
    for notice in ("reset", "check_agreement", "close"):
        with arena(kind, curriculum, keeps=False) as played:
            played.reset()
            victim = played.processes()[1]
            os.kill(victim.pid, signal.SIGKILL)
            victim.join(10)
            if notice == "close":
                played.venv.close()
            else:
                with pytest.raises(WorkerDiedError, match="env 1 died"):
                    getattr(played.venv, notice)()
                played.venv.close()
            counts = played.venv.counts
            assert counts.aborted == counts.started
            assert not any(process.is_alive() for process in played.processes())
            assert played.venv.tracker.host.is_closed


@pytest.mark.parametrize("kind", ["subproc-fork", "async-fork"])
def test_several_workers_can_die_at_once_while_they_reset(kind: str) -> None:
    tasks = [Task("fine", params={"length": 3}), Task("deadly", params={"kills": True})]
    curriculum = Uniform(tasks, seed=2)
    with arena(kind, curriculum, 4, keeps=False) as played:
        with pytest.raises(WorkerDiedError, match="died"):
            played.reset()
        assert played.venv.counts.aborted > 0
        played.venv.close()
        counts = played.venv.counts
        assert counts.finished == curriculum.num_observed == 0
        assert counts.started == counts.aborted
        assert not any(process.is_alive() for process in played.processes())


@pytest.mark.parametrize("kind", ["subproc-fork", "async-fork"])
def test_a_killed_worker_does_not_hang_the_pushed_backend(kind: str) -> None:
    curriculum = Uniform([Task("short")], seed=1)
    with arena(kind, curriculum, keeps=False, wrapper={"backend": "pushed"}) as played:
        played.reset()
        played.run(3)
        finished = curriculum.num_observed
        os.kill(played.processes()[0].pid, signal.SIGKILL)
        with pytest.raises(WorkerDiedError, match=r"env 0 died\. Episodes .* same step are lost"):
            played.step()
        assert curriculum.num_observed == finished == len(played.all_ends())
        played.venv.close()


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, "it has not come about in 60 s"
        time.sleep(0.01)


# 2. Credit.


@pytest.mark.parametrize("kind", ["async-fork", "grouped-1"])
@pytest.mark.parametrize("mode", MODES)
def test_an_episode_is_credited_to_the_task_that_was_played(kind: str, mode: AutoresetMode) -> None:
    curriculum = Uniform(various_tasks(), seed=2)
    credited = spy_on(curriculum)
    with arena(kind, curriculum, mode=mode) as played:
        played.reset()
        played.run(80)
        assert_credited(played, credited)


@pytest.mark.parametrize("kind", ["subproc-fork", "subproc-spawn", "async-spawn"])
def test_an_episode_is_credited_to_the_task_that_was_played_in_any_process(kind: str) -> None:
    curriculum = Uniform(various_tasks(), seed=2)
    credited = spy_on(curriculum)
    with arena(kind, curriculum) as played:
        played.reset()
        played.run(80)
        assert_credited(played, credited)


def spy_on(curriculum: Curriculum) -> list[Record]:
    """Write down what a curriculum is given to observe."""
    seen: list[Record] = []
    curriculum.add_listener(lambda records: seen.extend(Record(*row) for row in records.tolist()))
    return seen


def assert_credited(played: Arena, credited: list[Record]) -> None:
    pool = played.curriculum.pool
    for env_index, ends in enumerate(played.ends):
        records = [record for record in credited if record.env_index == env_index]
        assert len(records) == len(ends) > 15
        for record, end in zip(records, ends, strict=True):
            assert end.played == end.task == pool.task(record.slot).name
            assert (record.slot, record.generation) == (end.slot, end.generation)
            assert record.plan_version == end.plan_version
            assert record.success == end.success
            params = pool.task(record.slot).params
            assert record.length == record.episode_return == params["length"]
            assert record.truncated == params["truncates"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["async-fork", "subproc-fork"])
def test_a_result_of_an_evicted_task_never_lands_on_its_successor(
    kind: str, mode: AutoresetMode
) -> None:
    curriculum = LearningProgress(
        [Task(f"task{index}", params={"length": 1 + 2 * (index % 4)}) for index in range(500)],
        seed=3,
        capacity=3,
        eviction_plays=4,
        novice_plays=2,
        eviction_percentile=1.0,
    )
    with arena(kind, curriculum, 3, mode=mode) as played:
        played.reset()
        played.run(400)
        by_life = Counter((end.slot, end.generation) for end in played.all_ends())
        assert curriculum.num_evicted > 20
        assert curriculum.num_orphaned > 5
        assert curriculum.num_observed == len(played.all_ends())
        for slot, plays in enumerate(curriculum.plays().tolist()):
            assert plays == by_life[slot, int(curriculum.pool.generations[slot])]
        for end in played.all_ends():
            assert end.played == end.task


# 3. Freshness.


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["async-fork", "async-spawn"])
def test_a_plan_is_never_older_than_the_autoreset_mode_makes_it(
    kind: str, mode: AutoresetMode
) -> None:
    with arena(kind, quick_stages(), mode=mode) as played:
        assert_fresh(played, most=1 if mode is AutoresetMode.SAME_STEP else 0)


@pytest.mark.parametrize("kind", ["subproc-fork", "subproc-spawn"])
@BOTH
def test_a_plan_is_at_most_one_step_old_in_stable_baselines(kind: str, backend: Any) -> None:
    with arena(kind, quick_stages(), wrapper={"backend": backend}) as played:
        assert_fresh(played, most=1)


def assert_fresh(played: Arena, most: int) -> None:
    """Compare each draw's version with the host's before the step; then look at the measurement."""
    played.reset()
    now = played.curriculum.plan.version
    for _ in range(150):
        numbers = [len(starts) for starts in played.starts]
        played.step()
        for starts, number in zip(played.starts, numbers, strict=True):
            for start in starts[number:]:
                assert start.plan_version == now
        now = played.curriculum.plan.version
    staleness = played.venv.staleness
    assert staleness.largest == most
    assert sum(staleness.draws_by_lag) == played.venv.counts.finished
    if most:
        # All but the first draw of each env are made before their step is collected.
        assert staleness.draws_by_lag[0] == played.num_envs
    assert now > 5


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
@pytest.mark.parametrize("kind", ["async-fork", "async-spawn"])
def test_a_reset_right_after_an_advancement_draws_from_the_new_stage(
    kind: str, mode: AutoresetMode
) -> None:
    curriculum = quick_stages(mixing=None)
    with arena(kind, curriculum, 3, mode=mode) as played:
        played.reset()
        num_after = 0
        for _ in range(200):
            stage = curriculum.current_stage
            numbers = [len(starts) for starts in played.starts]
            played.step()
            for starts, number in zip(played.starts, numbers, strict=True):
                for start in starts[number:]:
                    assert start.task.partition("/")[0] == stage
                    num_after += stage != STAGES[0]
        assert len(curriculum.history) == 2
        assert num_after > 50


# 4. Agreement.


@EACH
@BOTH
def test_all_workers_agree_after_every_advancement(kind: str, backend: Any) -> None:
    curriculum = quick_stages(demotion=None)
    with arena(kind, curriculum, wrapper={"backend": backend}) as played:
        played.reset()
        ratios = set()
        num_changes = 0
        for _ in range(120):
            played.step()
            if len(curriculum.history) > num_changes:
                num_changes = len(curriculum.history)
                assert_agreed(played, curriculum)
            ratios.add(curriculum.mixing_ratio())
        assert_agreed(played, curriculum)
        assert num_changes == 2
        assert len(ratios) > 2


def assert_agreed(played: Arena, curriculum: Staged) -> None:
    everywhere = played.num_envs
    assert played.call("get_curriculum_stage") == [curriculum.current_stage] * everywhere
    assert played.call("get_plan_version") == [curriculum.plan.version] * everywhere
    assert played.venv.check_agreement() == curriculum.plan.version
    for stage in STAGES:
        ratio = curriculum.mixing_ratio(stage)
        assert played.call("get_mixing_ratio", stage) == [ratio] * everywhere


# 5. Determinism.


SAME_STEP = AutoresetMode.SAME_STEP
WAYS = {
    "dummy": ("dummy", None, "auto"),
    "dummy, shared memory": ("dummy", None, "shared"),
    "dummy, pushed": ("dummy", None, "pushed"),
    "subproc-fork": ("subproc-fork", None, "auto"),
    "subproc-forkserver": ("subproc-forkserver", None, "auto"),
    "subproc-fork, pushed": ("subproc-fork", None, "pushed"),
    "sync": ("sync", SAME_STEP, "auto"),
    "async-fork": ("async-fork", SAME_STEP, "auto"),
    "async-fork, pushed": ("async-fork", SAME_STEP, "pushed"),
    "4 envs in 1 process": ("grouped-1", SAME_STEP, "auto"),
    "4 envs in 2 processes": ("grouped-2", SAME_STEP, "auto"),
    "4 envs in 4 processes": ("grouped-4", SAME_STEP, "auto"),
    "4 envs in 2 processes, pushed": ("grouped-2", SAME_STEP, "pushed"),
}


def with_broken_tasks() -> Staged:
    tasks = [
        Task(f"{stage}/{index}", stage, {"length": 1 + index % 3, "broken": index == 4})
        for stage in STAGES
        for index in range(8)
    ]
    return Staged(tasks, seed=7, stages=STAGES, threshold=0.4, min_episodes=20, window_episodes=10)


def with_evictions() -> LearningProgress:
    tasks = [
        Task(f"task{index}", params={"length": 1 + index % 3, "broken": index % 11 == 0})
        for index in range(200)
    ]
    return LearningProgress(
        tasks, seed=7, capacity=10, eviction_plays=4, eviction_percentile=0.8, novice_plays=2
    )


def with_edits() -> LevelReplay:
    ranges = {
        "length": IntRange(1, 4),
        "success": FloatRange(0.2, 0.8),
        "broken": Choice([False, True], [9, 1]),
    }
    return LevelReplay(
        ParameterSource(ranges, num_tasks=40),
        seed=7,
        capacity=10,
        eviction_plays=2,
        eviction_percentile=0.8,
        editing=0.8,
        changes_per_edit=2,
    )


@pytest.mark.parametrize("make", [with_broken_tasks, with_evictions, with_edits])
def test_the_same_seed_draws_the_same_whatever_carries_it(make: Any) -> None:
    traces = {way: trace_of(make(), *how) for way, how in WAYS.items()}
    reference = traces["dummy"]
    assert len(reference["quarantined"]) > 1
    assert reference["moved"]
    assert (max(reference["tasks"]) >= FIRST_EDIT) == (make is with_edits)
    for way, trace in traces.items():
        assert trace == reference, way


@pytest.mark.parametrize("make", [with_broken_tasks, with_evictions])
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
def test_the_same_seed_draws_the_same_under_the_other_modes(make: Any, mode: AutoresetMode) -> None:
    ways = [("sync", "auto"), ("async-fork", "auto"), ("async-fork", "pushed"), ("sync", "pushed")]
    if mode is AutoresetMode.NEXT_STEP:
        ways += [("grouped-2", "auto"), ("async-spawn", "auto")]
    traces = {way: trace_of(make(), way[0], mode, way[1]) for way in ways}
    reference = traces["sync", "auto"]
    assert len(reference["quarantined"]) > 1
    for way, trace in traces.items():
        assert trace == reference, way


def trace_of(
    curriculum: Any, kind: str, mode: AutoresetMode | None, backend: Any
) -> dict[str, Any]:
    """Play and return all that must not depend on processes or backends."""
    with arena(kind, curriculum, 4, mode=mode, wrapper={"backend": backend}) as played:
        played.reset()
        played.run(150)
        return {
            "starts": played.starts,
            "ends": [[(end.task, end.success) for end in ends] for ends in played.ends],
            "counts": played.venv.counts,
            "lags": played.venv.staleness.draws_by_lag,
            "version": curriculum.plan.version,
            "quarantined": curriculum.quarantined,
            "moved": getattr(curriculum, "history", None) or curriculum.num_evicted,
            "probs": curriculum.probs().tolist(),
            "tasks": curriculum.pool.task_ids.tolist(),
        }


@EACH
def test_neither_draws_nor_results_touch_the_global_generator(kind: str) -> None:
    np.random.seed(1)  # noqa: NPY002, the global generator is what is tested
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    with arena(kind, quick_stages()) as played:
        played.reset()
        played.run(20)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


# 6. Exact resume.


def one_step_stages() -> Staged:
    tasks = [
        Task(f"{stage}/{index}", stage, {"success": 0.7, "broken": index == 3})
        for stage in STAGES
        for index in range(5)
    ]
    return Staged(tasks, seed=9, stages=STAGES, min_episodes=40, threshold=0.6, window_episodes=20)


def half(kind: str) -> int:
    """Return the steps to the snapshot: an episode takes two under next-step autoreset."""
    return 32 if kind.startswith("subproc") else 64


def result_of(played: Arena, curriculum: Staged) -> dict[str, Any]:
    return {
        "starts": [[asdict(start) for start in starts] for starts in played.starts],
        "ends": [[asdict(end) for end in ends] for ends in played.ends],
        "seeds": played.get("seeds"),
        "history": [change.to_json() for change in curriculum.history],
        "probs": curriculum.probs().tolist(),
        "counts": asdict(played.venv.counts),
        "lags": list(played.venv.staleness.draws_by_lag),
        "quarantined": [asdict(entry) for entry in curriculum.quarantined],
        "version": curriculum.plan.version,
    }


@pytest.mark.parametrize("kind", ["subproc-fork", "async-fork", "async-spawn"])
def test_save_kill_load_continue_equals_never_having_stopped(kind: str, tmp_path: Path) -> None:
    curriculum = one_step_stages()
    with arena(kind, curriculum) as played:
        played.reset()
        played.run(2 * half(kind))
        never_stopped = result_of(played, curriculum)
    context = multiprocessing.get_context("spawn")
    first = context.Process(target=train_until_killed, args=(kind, str(tmp_path)))
    first.start()
    try:
        wait_until(lambda: (tmp_path / "ready").exists() or not first.is_alive())
        assert first.is_alive(), "the training process has ended"
    finally:
        kill_group(first)
    second = context.Process(target=train_on, args=(kind, str(tmp_path)))
    second.start()
    try:
        second.join(60)
        assert second.exitcode == 0
    finally:
        kill_group(second)

    before = json.loads((tmp_path / "first.json").read_text())
    after = json.loads((tmp_path / "second.json").read_text())
    assert len(never_stopped["history"]) == 2
    assert never_stopped["quarantined"]
    assert len(before["history"]) == 1
    for key in ("history", "probs", "counts", "lags", "quarantined", "version"):
        assert after[key] == never_stopped[key], key
    for env_index, starts in enumerate(never_stopped["starts"]):
        old, new = before["starts"][env_index], after["starts"][env_index]
        # The episode in flight at the snapshot is begun again: the same draw, the same seed.
        assert old[-1] == new[0]
        assert old[:-1] + new == starts
        ends = before["ends"][env_index] + after["ends"][env_index]
        assert ends == never_stopped["ends"][env_index]
        seeds = before["seeds"][env_index][:-1] + after["seeds"][env_index]
        assert seeds == never_stopped["seeds"][env_index]


def train_until_killed(kind: str, folder: str) -> None:
    """Save after a while, then train on for ever."""
    os.setsid()
    path = Path(folder)
    curriculum = one_step_stages()
    with arena(kind, curriculum, keeps=False) as played:
        played.reset()
        played.run(half(kind))
        played.venv.snapshot().save(path / "snapshot.npz")
        (path / "first.json").write_text(json.dumps(result_of(played, curriculum)))
        while True:
            played.run(5)
            (path / "ready").touch()


def train_on(kind: str, folder: str) -> None:
    """Load what the other saved, and train to the end."""
    os.setsid()
    path = Path(folder)
    curriculum = one_step_stages()
    with arena(kind, curriculum, keeps=False) as played:
        played.venv.restore(Snapshot.load(path / "snapshot.npz"))
        played.reset()
        played.run(half(kind))
        (path / "second.json").write_text(json.dumps(result_of(played, curriculum)))


def kill_group(process: Any) -> None:
    """Kill a training process and all its workers at once."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        process.kill()
    process.join(10)


# 7. Flat cost: what travels to an env, and what an episode leaves behind, do not grow. The time
# itself is measured in benchmarks/.


def test_what_travels_to_an_env_does_not_grow_with_the_number_of_tasks() -> None:
    sizes = []
    for num_tasks in (1_000, 100_000):
        with SharedHost(Uniform(ListSource.numbered(num_tasks)), 2) as host:
            sizes.append((len(pickle.dumps(host.client(1))), host.mails.words[0].nbytes))
    small, large = sizes
    # Only the digits of a few numbers differ.
    assert large[0] - small[0] < 32
    assert large[1] == small[1]


# 8. Nothing swallowed.


@pytest.mark.parametrize("kind", ["sync", "dummy", "async-fork", "async-spawn"])
@LOGS_ERRORS
def test_an_error_in_a_step_comes_out_as_it_is(kind: str) -> None:
    curriculum = Uniform([Task("fine", params={"length": 3, "raises": True})], seed=1)
    with arena(kind, curriculum, keeps=False) as played:
        played.reset()
        with pytest.raises(ZeroDivisionError, match="fine is at fault"):
            played.step()
        played.venv.close()
        assert curriculum.quarantined == []
        assert curriculum.num_observed == 0


@pytest.mark.parametrize("kind", ["subproc-fork", "subproc-spawn"])
def test_an_error_that_ends_a_worker_of_stable_baselines_is_a_death(
    kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    curriculum = Uniform([Task("fine", params={"length": 3, "raises": True})], seed=1)
    with arena(kind, curriculum, keeps=False) as played:
        played.reset()
        with pytest.raises(WorkerDiedError, match="died"):
            played.step()
        played.venv.close()
        assert curriculum.num_observed == 0
        assert played.venv.counts.aborted == 2
    assert "ZeroDivisionError: fine is at fault" in capfd.readouterr().err


@EACH
@BOTH
def test_tasks_that_cannot_be_built_are_quarantined_reported_and_counted(
    kind: str, backend: Any, caplog: pytest.LogCaptureFixture
) -> None:
    broken = {"task2", "task5", "task9"}
    tasks = [Task(f"task{i}", params={"broken": f"task{i}" in broken}) for i in range(12)]
    curriculum = Uniform(tasks, seed=4)
    with arena(kind, curriculum, wrapper={"backend": backend}) as played:
        played.reset()
        played.run(60)
        reported = {entry.task: entry.reason for entry in curriculum.quarantined}
        assert reported == {name: f"ValueError: cannot build {name}" for name in broken}
        counts = played.venv.counts
        assert counts.failed >= 3
        assert counts.started == counts.finished + counts.failed + counts.in_flight
        assert counts.finished == len(played.all_ends())
        assert curriculum.num_quarantined == 3
        assert broken.isdisjoint(played.finished_by_task())
        assert not curriculum.probs()[quarantined_slots(curriculum)].any()
    warnings = [entry.getMessage() for entry in caplog.records if entry.levelname == "WARNING"]
    assert len(warnings) == 3
    for name in broken:
        assert any(f"could not build task '{name}'" in warning for warning in warnings)


@pytest.mark.parametrize("kind", ["sync", "dummy", "async-fork", "subproc-fork"])
@BOTH
def test_what_fails_in_a_reset_is_quarantined_before_the_next_step(kind: str, backend: Any) -> None:
    tasks = [Task(f"task{i}", params={"length": 2, "broken": i % 2 == 0}) for i in range(12)]
    curriculum = Uniform(tasks, seed=6)
    with arena(kind, curriculum, 4, wrapper={"backend": backend}) as played:
        played.reset()
        assert played.venv.counts.failed >= len(curriculum.quarantined) > 1
        assert not curriculum.probs()[quarantined_slots(curriculum)].any()


def quarantined_slots(curriculum: Curriculum) -> list[int]:
    return [entry.slot for entry in curriculum.quarantined]


@pytest.mark.parametrize("kind", ["async-fork", "subproc-fork"])
@LOGS_ERRORS
def test_when_hardly_a_task_can_be_built_the_step_raises_with_the_reason(kind: str) -> None:
    tasks = [Task(f"task{i}", params={"broken": i > 0}) for i in range(200)]
    curriculum = Uniform(tasks, seed=4)
    with arena(kind, curriculum, keeps=False) as played:
        with pytest.raises(BuildError, match=r"could not be built.*cannot build task"):
            played.reset()
        assert len(curriculum.quarantined) >= 20
        played.venv.close()
