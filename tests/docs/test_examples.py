"""The examples run from a shell, with tiny budgets; a timeout is a failure."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stepladder.dashboard.report import key
from stepladder.runs import RunReader

ROOT = Path(__file__).parents[2]


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
    counts = re.search(
        r"Started (\d+) episodes: (\d+) finished and each observed once, 0 aborted, (\d+) being",
        said,
    )
    assert counts is not None
    started, finished, playing = map(int, counts.groups())
    # An env that ended in the last step is reset in the next one, so fewer than 8 may be playing.
    assert started == finished + playing
    assert finished > 100
    assert playing <= 8
    assert "next door -> in the street" in said


@pytest.mark.processes
@pytest.mark.timeout(90)
def test_ppo_trains_over_workers_and_every_episode_is_accounted_for():
    said = run("examples/ppo_over_workers.py", "--steps", "4000", "--num-workers", "1")
    counts = re.search(
        r"Started (\d+) episodes: (\d+) finished and each observed once, 0 aborted, 8 being played",
        said,
    )
    assert counts is not None
    started, finished = map(int, counts.groups())
    assert started == finished + 8
    assert "Exam, far off only" in said


@pytest.mark.processes
@pytest.mark.timeout(90)
def test_the_picture_of_the_readme_is_what_its_script_draws(tmp_path):
    picture = (ROOT / "docs/pictures/stages.svg").read_text()
    code = (
        "import runpy, sys\n"
        "module = runpy.run_path('docs/pictures/draw_stages.py')\n"
        "sys.stdout.write(module['draw']().encoded('.svg').decode())\n"
    )
    assert run("-c", code) == picture


@pytest.mark.processes
@pytest.mark.timeout(90)
def test_a_simulated_run_lies_beside_a_real_one(tmp_path):
    said = run("examples/simulated_beside_real.py", "--out", str(tmp_path), "--epochs", "6")
    assert "simulated: mastered all 10 learnable tasks" in said
    page = (tmp_path / "report.html").read_text()
    written = re.search(r"<script[^>]*>(.*?)</script>", page, re.DOTALL)
    assert written is not None
    data = json.loads(written[1])
    assert data["runs"] == ["simulated", "real"]
    for name in data["runs"]:
        assert len(data["answers"][key("metrics", {"run": name})]) > 10
    simulated, real = (RunReader(tmp_path / name) for name in ("simulated", "real"))
    assert (simulated.kind, real.kind) == ("simulation", "loop")
    shared = set(simulated.metric_names()) & set(real.metric_names())
    assert "overview/sampling_entropy_normalized" in shared
    assert "env_curriculum_stats/per_label_samples/taskclass3" in shared
    steps, _ = real.metric("metric/agent_step")
    assert 6 * 50 * 8 * 0.5 < steps[-1] <= 6 * 50 * 8


@pytest.mark.processes
@pytest.mark.timeout(110)
@pytest.mark.parametrize(
    ("example", "ending"),
    [("ledge_stages", "Held-out levels solved: simplest"), ("hockey_phases", "Against itself: ")],
)
def test_a_game_is_learnt_and_every_episode_is_accounted_for(example, ending):
    # The kernels may have to be compiled first.
    said = run(f"examples/{example}.py", "--seconds", "3", "--seed", "1", timeout=100)
    counts = re.search(
        r"Started (\d+) \w+: (\d+) finished and each observed once, (\d+) aborted", said
    )
    assert counts is not None
    started, finished, aborted = map(int, counts.groups())
    assert finished > 1000
    assert 0 <= started - finished - aborted <= 1024
    assert ending in said
