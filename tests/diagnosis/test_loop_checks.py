"""Checks of a vector env that is in use, and of the machine."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

from diagnosis.examined import told
from diagnosis.patients import WALKS, Walk
from stepladder import CurriculumEnv, CurriculumVectorEnv, Uniform, doctor, make_vec
from stepladder.diagnosis import machine
from stepladder.diagnosis.machine import LeftOver, Machine
from stepladder.diagnosis.registry import examine

ACTIONS = np.ones(4, dtype=np.int64)


def practising() -> Any:
    envs = make_vec(Walk, 4, curriculum=Uniform(list(WALKS)), num_workers=0)
    envs.reset(seed=0)
    return envs


def test_nothing_is_found_in_a_loop_that_steps_its_envs() -> None:
    envs = practising()
    for _ in range(60):
        envs.step(ACTIONS)
    found = doctor(envs)
    assert (found.kind, told(found.findings)) == ("loop", {})
    envs.close()


def test_stepping_what_is_inside_makes_plans_stale() -> None:
    envs = practising()
    for step in range(301):
        (envs if step % 50 == 0 else envs.env).step(ACTIONS)
    assert told(doctor(envs).findings) == {"error": {"stale-plans"}}
    envs.close()


def test_an_env_that_never_gave_a_result_is_found() -> None:
    envs = practising()
    for _ in range(60):
        envs.env.step(ACTIONS)
    assert told(doctor(envs).findings) == {"error": {"results-not-collected"}}
    envs.close()


def test_episodes_that_are_reset_too_early_are_found() -> None:
    envs = practising()
    for _ in range(40):
        envs.step(0 * ACTIONS)
        envs.reset()
    assert told(doctor(envs).findings) == {"error": {"episodes-given-up"}}
    envs.close()


def test_an_env_with_another_plan_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    makers = [lambda: CurriculumEnv(Walk(), enable_local_tracking=False)] * 2
    envs = CurriculumVectorEnv(SyncVectorEnv(makers), Uniform(list(WALKS)))
    envs.reset(seed=0)
    assert told(doctor(envs).findings) == {}
    other: Any = envs.env.unwrapped
    monkeypatch.setattr(other.envs[1], "get_plan_version", lambda: 777)
    assert told(doctor(envs).findings) == {"error": {"plans-disagree"}}
    envs.close()


def test_left_over_memory_is_told_by_its_size() -> None:
    def found(num_bytes: int) -> dict[str, set[str]]:
        left = (LeftOver("psm_1", num_bytes),)
        return told(examine({"machine": Machine(4, left, 2**30)}))

    assert found(32) == {}
    assert found(2**26) == {"warning": {"memory-left-over"}}
    assert found(2**29) == {"error": {"memory-left-over"}}


@pytest.mark.skipif(not machine.SHARED_MEMORY.is_dir(), reason="there is no such folder")
def test_memory_that_nobody_uses_is_seen_and_memory_in_use_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"psm_doctor{os.getpid()}"
    path = machine.SHARED_MEMORY / name
    path.write_bytes(b"\0" * 4096)
    try:
        assert name not in [one.name for one in machine.look().left_over]  # it may be on its way
        monkeypatch.setattr(machine, "SETTLED_S", 0.0)
        assert LeftOver(name, 4096) in machine.look().left_over
        with path.open("rb"):
            assert name not in [one.name for one in machine.look().left_over]
        assert machine.remove_memory([name]) == [name]
    finally:
        path.unlink(missing_ok=True)
