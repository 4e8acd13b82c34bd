"""The examples run from a shell, with tiny budgets; a timeout is a failure."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(*arguments: str, timeout: float = 80) -> str:
    environment = {**os.environ, "COLUMNS": "160", "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        cwd=ROOT,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.processes
@pytest.mark.timeout(90)
def test_the_demo_trains_and_accounts_for_every_episode():
    said = run("examples/staged_over_subprocesses.py", "--seconds", "3", "--seed", "1")
    assert "8 of 8 envs are on" in said
    assert "each observed once, 0 aborted, 8 being played" in said
    assert "next door -> in the street" in said


@pytest.mark.timeout(90)
def test_the_picture_of_the_readme_is_what_its_script_draws(tmp_path):
    picture = (ROOT / "docs/pictures/stages.svg").read_text()
    code = (
        "import runpy, sys\n"
        "module = runpy.run_path('docs/pictures/draw_stages.py')\n"
        "sys.stdout.write(module['draw']())\n"
    )
    assert run("-c", code) == picture
