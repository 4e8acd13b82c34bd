"""What both vector wrappers share: who has died, and what is said of changes."""

import logging
import multiprocessing
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from stepladder.curricula import (
    Change,
    Phase,
    Phased,
    PlayCounter,
    Staged,
    StageReport,
    Uniform,
    UniformConfig,
)
from stepladder.envs import CurriculumVectorEnv
from stepladder.envs.sb3 import WatchedRemote
from stepladder.errors import WorkerDiedError
from stepladder.tasks import Task
from testing_env import GroupedVectorEnv, arena, end_all, make_env, staged_tasks

LONG = [Task("long", params={"length": 5})]


class SecretiveVectorEnv(GroupedVectorEnv):
    """Does not show its processes to anybody."""

    def __init__(self, *args: Any, **settings: Any):
        super().__init__(*args, **settings)
        self.secret, self.processes = self.processes, []
        self.was_closed = False

    def close_extras(self, **kwargs: Any) -> None:
        self.was_closed = True
        end_all(self.secret)


@pytest.fixture
def secretive() -> Iterator[SecretiveVectorEnv]:
    venv = SecretiveVectorEnv([make_env] * 4, 2, autoreset_mode=AutoresetMode.NEXT_STEP)
    yield venv
    end_all(venv.secret)


def step(venv: Any) -> Any:
    return venv.step(np.zeros(venv.num_envs, dtype=np.int64))


@pytest.mark.processes
@pytest.mark.timeout(90, method="signal")
def test_a_worker_takes_all_its_envs_with_it() -> None:
    with arena("grouped-2", Uniform(LONG), 4) as played:
        played.reset()
        played.run(2)
        os.kill(played.processes()[0].pid, signal.SIGKILL)
        with pytest.raises(WorkerDiedError, match=r"env 0, 1 died.*2 unfinished"):
            played.step()
        assert played.venv.counts.aborted == 2
        played.venv.close()
        assert not any(process.is_alive() for process in played.processes())


@pytest.mark.processes
@pytest.mark.timeout(90, method="signal")
def test_the_dead_are_found_by_their_mailboxes_where_no_process_is_known(
    secretive: SecretiveVectorEnv,
) -> None:
    venv = CurriculumVectorEnv(secretive, Uniform(LONG))
    venv.reset()
    os.kill(secretive.secret[1].pid, signal.SIGKILL)
    with pytest.raises(WorkerDiedError, match=r"env 2, 3 died"):
        step(venv)
    venv.close()
    assert secretive.was_closed
    assert venv.tracker.host.is_closed


@pytest.mark.processes
@pytest.mark.timeout(90, method="signal")
def test_a_death_is_told_even_if_nobody_knows_whose_it_was(secretive: SecretiveVectorEnv) -> None:
    venv = CurriculumVectorEnv(secretive, Uniform(LONG), backend="pushed")
    venv.reset()
    os.kill(secretive.secret[1].pid, signal.SIGKILL)
    with pytest.raises(WorkerDiedError, match=r"env \(unknown\) died"):
        step(venv)
    venv.close()
    assert secretive.was_closed


@pytest.mark.processes
@pytest.mark.timeout(90, method="signal")
def test_a_death_is_logged_as_an_error(caplog: pytest.LogCaptureFixture) -> None:
    with arena("async-fork", Uniform(LONG), 2) as played:
        played.reset()
        os.kill(played.processes()[1].pid, signal.SIGKILL)
        with pytest.raises(WorkerDiedError):
            played.step()
    errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert errors == ["[VecEnv] Worker of env [1] died; 1 episodes aborted"]


def speak_and_die(pipe: Any) -> None:
    pipe.send("last words")
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.processes
@pytest.mark.timeout(90, method="signal")
def test_a_watched_pipe_gives_the_last_words_and_then_the_end() -> None:
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=speak_and_die, args=(there,), daemon=True)
    process.start()
    try:
        # The other end stays open here, as it does in the siblings of a forked worker.
        watched = WatchedRemote(here, process)
        assert watched.recv() == "last words"
        with pytest.raises(EOFError, match="has died"):
            watched.recv()
        assert watched.fileno() == here.fileno()
        assert there.closed is False
    finally:
        end_all([process])


def test_changes_of_phase_are_told(caplog: pytest.LogCaptureFixture) -> None:
    curriculum = Phased(
        [Task("a")], phases=(Phase(name="shoot", episodes=4), Phase(name="play")), seed=1
    )
    venv = CurriculumVectorEnv(SyncVectorEnv([make_env] * 2), curriculum)
    with caplog.at_level(logging.INFO, "stepladder.envs"):
        venv.reset()
        for _ in range(6):
            step(venv)
    assert caplog.messages == [
        "[VecEnv] Curriculum moved to: play (syncing to all 2 environments): "
        f"{curriculum.history[0]}"
    ]
    assert "shoot -> play at episode 4" in caplog.messages[0]


@dataclass(frozen=True, kw_only=True)
class DoorOpened(Change):
    """What a curriculum of another package decides."""

    kind = "stage_advanced"
    headline = "advanced to: cellar"
    from_stage: str = "hall"
    success: float = 1.0
    episodes: int = 2

    def __str__(self) -> str:
        return "the door opened"


class Doors(PlayCounter):
    """A curriculum of another package with stages of its own."""

    def stage_report(self, stage: str | None = None) -> StageReport:
        report = Staged([Task("a")], stages=("default",)).stage_report()
        return replace(report, stage="cellar" if self.num_observed >= 2 else "hall")

    def changes(self) -> list[Change]:
        opened = DoorOpened(episode=2, step=2, plan_version=1)
        return [opened] if self.num_observed >= 2 else []

    def _reason(self, slot: int) -> tuple[str, dict[str, float]]:
        return "it is there", {}


def test_a_curriculum_of_another_package_is_logged_like_a_staged_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, "stepladder.envs"):
        doors = Doors([Task("a")], UniformConfig())
        venv = CurriculumVectorEnv(SyncVectorEnv([make_env] * 2), doors)
        venv.reset()
        for _ in range(2):
            step(venv)
    assert caplog.messages[:4] == [
        "[VecEnv] Synced stage 'hall' (mixing: 20.0%) to all 2 environments",
        "[VecEnv] Advancement check at 2 episodes: stage=hall, success_rate=100.00%, episodes=2, "
        "can_advance=True",
        "[VecEnv] Curriculum advanced to: cellar (syncing to all 2 environments): the door opened",
        "[VecEnv] Synced stage 'cellar' (mixing: 20.0%) to all 2 environments",
    ]


def test_what_happened_before_the_wrapper_is_not_told_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    curriculum = Staged(staged_tasks(), stages=("simplest", "simpler", "simple"))
    for _ in range(30):
        curriculum.record_episode("simplest", True)
    assert len(curriculum.history) == 1
    with caplog.at_level(logging.INFO, "stepladder.envs"):
        venv = CurriculumVectorEnv(SyncVectorEnv([make_env] * 2), curriculum)
        venv.reset()
        step(venv)
    assert caplog.messages == [
        "[VecEnv] Synced stage 'simpler' (mixing: 20.0%) to all 2 environments"
    ]


def test_after_a_restore_checks_are_told_where_they_happen(
    caplog: pytest.LogCaptureFixture,
) -> None:
    curriculum = Staged(staged_tasks(success=0.0), stages=("simplest", "simpler", "simple"))
    venv = CurriculumVectorEnv(
        SyncVectorEnv([make_env] * 2, autoreset_mode=AutoresetMode.SAME_STEP), curriculum
    )
    start = venv.snapshot()
    for _ in range(2):
        venv.restore(start)
        caplog.clear()
        with caplog.at_level(logging.INFO, "stepladder.envs"):
            venv.reset()
            for _ in range(12):
                step(venv)
        checks = [line for line in caplog.messages if "check at" in line]
        assert [line.split("check at ")[1].split(" ")[0] for line in checks] == ["10", "20"]
