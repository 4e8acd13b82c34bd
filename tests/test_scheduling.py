"""The suite ends, and every test is counted once, when tests end the processes they run in."""

import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = """
import sys

import pytest


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from scheduling import FromBothEnds

    config.option.loadscopereorder = False
    return FromBothEnds(config, log, lambda nodeid: nodeid.partition("::")[0])
"""
PASSES = "def test_passes{}(): pass\n"
ENDS_ITS_PROCESS = "def test_ends_its_process():\n    import os\n    os._exit(1)\n"


@pytest.mark.processes
@pytest.mark.timeout(100)
def test_tests_that_end_their_process_fail_once_and_the_others_are_run(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_first.py").write_text(PASSES.format(1) + ENDS_ITS_PROCESS)
    (tmp_path / "test_single.py").write_text(PASSES.format(1))
    (tmp_path / "test_last.py").write_text(ENDS_ITS_PROCESS + PASSES.format(1) + PASSES.format(2))
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:importnb"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(__file__).parent), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert result.stdout.splitlines()[-1].startswith("2 failed, 4 passed"), result.stdout
    assert result.returncode == 1
