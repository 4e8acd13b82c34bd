"""Ctrl-C while envs play in workers: the host stops them, and they say nothing themselves."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import stepladder

SCRIPT = """
import signal
import sys

from stepladder.curricula import Uniform
from stepladder.simulator import EnvsEngine, TaskDependencySimulator

method, is_patient = sys.argv[1], sys.argv[2] == "True"
noted = []

if __name__ == "__main__":
    simulator = TaskDependencySimulator(4)
    curriculum = Uniform(simulator.source())
    engine = EnvsEngine(simulator, curriculum, 2, num_workers=2, start_method=method)
    if is_patient:
        signal.signal(signal.SIGINT, lambda number, frame: noted.append(number))
    try:
        engine.advance(50)
        print("playing", flush=True)
        while not noted:
            engine.advance(simulator.num_plays + 2)
        engine.advance(simulator.num_plays + 50)
        print("went on to a good moment")
    except KeyboardInterrupt:
        print("interrupted")
    finally:
        engine.close()
"""


@pytest.mark.processes
@pytest.mark.timeout(60)
@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("is_patient", [True, False])
def test_workers_are_stopped_by_their_host_alone(
    method: str, is_patient: bool, tmp_path: Path
) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    with subprocess.Popen(
        [sys.executable, str(path), method, str(is_patient)],
        env={**os.environ, "PYTHONPATH": str(Path(stepladder.__file__).parents[1])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "playing\n"
            # To all of them, as a terminal does.
            os.killpg(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=30)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    said = "went on to a good moment\n" if is_patient else "interrupted\n"
    assert (process.returncode, out) == (0, said)
    assert "Traceback" not in err
    assert "Worker" not in err
