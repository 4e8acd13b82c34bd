"""Envs that do what no env may: the doctor survives it, says so, and leaves nothing behind."""

import os
import time
from functools import partial
from pathlib import Path

import pytest

from diagnosis.examined import examined, found_in, order_for, told
from diagnosis.patients import WALKS, LeavesMemory, LeavesProcess, Planted, Walk
from stepladder import doctor
from stepladder.diagnosis import machine
from stepladder.diagnosis.process import MARK, examine_env

pytestmark = [pytest.mark.processes, pytest.mark.timeout(100, method="signal")]


def nothing_is_left(before: set[str]) -> bool:
    ours = [pid for pid in machine._pids() if _is_marked(pid)]
    return not ours and not any(name in machine.memory_names() - before for name in ("psm_left",))


def _is_marked(pid: int) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return f"{MARK}={os.getpid()}-".encode() in environment


@pytest.mark.parametrize(
    ("fault", "check", "words"),
    [
        ("crashes", "env-dies", "SIGSEGV"),
        ("exits", "env-dies", "exit code 3"),
        ("hangs", "env-hangs", "no answer within 4 s"),
    ],
)
def test_an_env_that_does_not_come_back_is_the_only_error(fault, check, words) -> None:
    order, evidence = order_for(partial(Planted, "walk", fault), tasks=WALKS, limit_s=4.0)
    examine_env(order, evidence, None)
    found = found_in(evidence)
    assert told(found) == {"error": {check}}
    assert words in found[0].text
    assert "patients.py line" in found[0].text or fault == "exits"
    assert nothing_is_left(set())


def test_printing_is_told_and_printed_nowhere(capfd) -> None:
    order, evidence = order_for(partial(Planted, "walk", "prints"), tasks=WALKS)
    examine_env(order, evidence, None)
    assert told(found_in(evidence)) == {"warning": {"prints"}}
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("env", "check"),
    [(LeavesMemory, "memory-left-by-env"), (LeavesProcess, "processes-left-by-env")],
)
def test_what_an_env_leaves_behind_is_told_and_removed(env, check) -> None:
    before = machine.memory_names()
    order, evidence = order_for(env, tasks=WALKS)
    examine_env(order, evidence, None)
    assert told(found_in(evidence)) == {"error": {check}}
    assert nothing_is_left(before)
    assert not set(evidence.memory_left) & machine.memory_names()


def test_envs_that_share_a_generator_differ_with_the_number_of_processes() -> None:
    healthy = examined(Walk, tasks=WALKS, with_workers=True)
    assert told(found_in(healthy)) == {}
    assert healthy.rows is not None
    assert healthy.rows.largest_lag == 0
    make = partial(Planted, "walk", "generator of the class")
    ill = examined(make, tasks=WALKS, with_workers=True)
    assert told(found_in(ill)) == {"error": {"processes-disagree"}}


def test_an_env_that_depends_on_the_order_of_a_set_differs_in_another_process() -> None:
    began = time.monotonic()
    found = doctor(partial(Planted, "walk", "order of a set"), tasks=WALKS, episodes=4, seconds=0.3)
    assert told(found.findings) == {"error": {"processes-disagree"}}
    assert "in another process" in found.findings[0].text
    assert time.monotonic() - began < 60.0
