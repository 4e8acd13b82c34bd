"""``stepladder doctor``: what it prints, its exit codes, its JSON; each check is explained."""

import json
import re
from pathlib import Path

import pytest

from cli.command_line import CommandLine
from dashboard.made_runs import make_run
from stepladder.diagnosis.finding import PAGE
from stepladder.diagnosis.registry import ALL_CHECKS, FAMILIES

ROOT = Path(__file__).parents[2]

WALK = """
import sys

import diagnosis.patients
from diagnosis.patients import WALKS, Walk


class Deaf(Walk):
    def set_task(self, task):
        self.length = 5


def leaves():
    sys.exit(3)
"""


def test_every_check_has_its_line_on_the_page() -> None:
    page = (ROOT / PAGE).read_text()
    sections = dict(re.findall(r"^### (.+)\n\n(.+)", page, flags=re.MULTILINE))
    assert sections.keys() == ALL_CHECKS.keys()
    assert len(ALL_CHECKS) == sum(len(family.CHECKS) for family in FAMILIES)
    for one in ALL_CHECKS.values():
        assert re.fullmatch(r"[a-z-]+", one.name)
        assert one.about.endswith(".")


@pytest.mark.processes
@pytest.mark.timeout(100, method="signal")
def test_an_env_its_broken_copy_and_one_that_exits(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("walks.py").write_text(WALK)
    quick = ("--tasks", "walks:WALKS", "--episodes", "6", "--seconds", "0.3")
    code, out, err = command("doctor", "walks:Walk", *quick)
    assert (code, err) == (0, ""), out
    assert out.startswith("walks:Walk: 6 tasks, 2 labels, ")
    assert "error" not in out
    assert "warning" not in out
    code, out, err = command("doctor", "walks:Deaf", *quick, "--json")
    told = json.loads(out)
    errors = [one for one in told["findings"] if one["severity"] == "error"]
    assert (code, err, told["is_healthy"]) == (1, "", False)
    assert [one["check"] for one in errors] == ["tasks-without-effect"]
    assert errors[0]["link"] == "docs/doctor.md#tasks-without-effect"
    code, out, err = command("doctor", "walks:leaves", *quick)
    assert (code, err) == (1, "")
    assert "error: env-dies\n  while making the env (walks.py line 14, in leaves)" in out


def test_a_run_and_wrong_input(command: CommandLine) -> None:
    make_run(Path("run"))
    code, out, err = command("doctor", "run")
    assert (code, err) == (0, "")
    assert out.startswith("run: simulation, finished, 24,000 steps; ")
    Path("staged.json").write_text('{"type": "staged", "stages": ["a"], "threshold": 7}')
    code, out, err = command("doctor", "staged.json")
    assert (code, err) == (1, "")
    assert "error: config-refused\n  threshold: must be at most 1" in out or "threshold:" in out
    said = command.fails("doctor", "run", "--tasks", "a:b")
    assert said == "tasks cannot be given beside a run, which has its own. Leave it out."
    assert command.fails("doctor", "none.json").startswith("none.json cannot be read")
    Path("named.json").write_text('{"env": "evil:make"}')
    assert "names 'evil:make': examining it would import that module" in command.fails(
        "doctor", "named.json"
    )


@pytest.mark.processes
@pytest.mark.timeout(100, method="signal")
def test_an_env_that_is_not_there_is_wrong_input(command: CommandLine) -> None:
    said = command.fails("doctor", "no-such-env-v0")
    assert said.startswith("'no-such-env-v0' is neither the folder of a run, nor a preset or")
