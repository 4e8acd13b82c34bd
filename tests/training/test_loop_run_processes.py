"""A loop of one's own that is killed: nothing from before its last checkpoint is lost."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stepladder.runs import RunReader
from stepladder.runs.checkpoint_folders import find
from training import loop_scenes
from training.loop_results import left_behind
from training.loop_scenes import CHUNK, EVERY_OTHER_CHUNK, NUM_ENVS, play

pytestmark = pytest.mark.processes

STEPS = 40 * CHUNK
SCENES = Path(loop_scenes.__file__)


def started(folder: Path) -> subprocess.Popen[str]:
    """Start the loop as a program of its own."""
    paths = os.pathsep.join([str(SCENES.parents[1]), *sys.path])
    return subprocess.Popen(
        [sys.executable, str(SCENES), str(folder), str(STEPS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths},
        text=True,
    )


def killed_after(folder: Path, num_reports: int, delay_s: float) -> tuple[int, int]:
    """Kill the loop some time after a report; return the steps and episodes that it said last."""
    with started(folder) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        line = program.stdout.readline()
        for _ in range(num_reports - 1):
            program.stdin.write("\n")
            program.stdin.flush()
            line = program.stdout.readline()
        if delay_s:
            # It runs freely meanwhile, and may be killed anywhere, also while it saves.
            program.stdin.write("\n" * 7)
            program.stdin.flush()
            time.sleep(delay_s)
        program.kill()
        last = [line, *program.stdout.readlines()][-1]
    steps, episodes = map(int, last.split())
    return steps, episodes


@pytest.mark.timeout(100)
def test_a_killed_loop_goes_on_from_its_last_checkpoint_as_if_nothing_had_happened(
    tmp_path: Path,
) -> None:
    folder, begun = tmp_path / "killed", 0
    for num_reports, delay_s in ((3, 0.0), (2, 0.004), (1, 0.017)):
        steps, episodes = killed_after(folder, num_reports, delay_s)
        assert steps >= begun + num_reports * CHUNK
        assert episodes * CHUNK == steps * NUM_ENVS
        reader = RunReader(folder)
        assert reader.status == "killed"
        # At most two reports are played again: a checkpoint is made at every other one.
        begun = reader.checkpoint_step(find(folder)[0].name)
        assert steps - begun < 2 * CHUNK
    agent = play(folder, STEPS, checkpoints=EVERY_OTHER_CHUNK)
    assert agent.value == STEPS // CHUNK
    play(tmp_path / "whole", STEPS, checkpoints=EVERY_OTHER_CHUNK)
    assert left_behind(folder) == left_behind(tmp_path / "whole")
