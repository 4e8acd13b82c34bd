"""``stepladder dashboard``, and ``--dashboard`` of the commands that make runs."""

import json
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from cli.command_line import CommandLine
from stepladder.dashboard.server.serving import open_socket
from stepladder.runs import Run


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "there is no folder runs here. Name folders of runs, or begin one"),
        (["nowhere"], "nowhere is not a folder"),
        (["here", "--port", "0"], "port must lie in [1, 65535]; got 0"),
        (["here", "--port", "x"], "--port"),
        (["here", "--host", "no such host"], "cannot listen at no such host"),
    ],
)
def test_a_mistake_is_one_line(command: CommandLine, argv: list[str], said: str) -> None:
    Path("here").mkdir()
    assert said in command.fails("dashboard", *argv)


def test_a_port_that_is_taken_is_one_line(command: CommandLine) -> None:
    Path("here").mkdir()
    with open_socket("127.0.0.1", None) as listener:
        port = listener.getsockname()[1]
        said = command.fails("dashboard", "here", "--port", port)
    assert f"cannot listen at 127.0.0.1:{port}" in said
    assert "Choose another --port, or leave it out" in said


def test_without_its_packages_it_says_what_to_install(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("here").mkdir()
    for name in [*sys.modules]:
        if name.startswith(("stepladder.dashboard.server", "starlette", "uvicorn")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette", None)
    said = command.fails("dashboard", "here")
    assert "Install it with: pip install 'stepladder[dashboard]'" in said


def test_a_run_that_is_not_kept_cannot_be_shown(command: CommandLine) -> None:
    said = command.fails("simulate", "--scenario", "chain-2", "--no-keep", "--dashboard")
    assert "--dashboard needs a run; leave out --no-keep" in said


def answer(address: str) -> list[dict[str, object]]:
    """Return the rows of the overview once the server answers and has a run."""
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{address}api/overview", timeout=5) as found:
                rows = json.load(found)["runs"]
        except urllib.error.URLError:
            rows = []
        if rows and "problem" not in rows[0]:
            return rows
        time.sleep(0.1)
    raise AssertionError("the dashboard did not answer")


@pytest.mark.processes
@pytest.mark.timeout(120)
def test_a_simulation_is_shown_while_it_runs_and_ends_its_dashboard(tmp_path: Path) -> None:
    line = "simulate --scenario chain-10 --num-epochs 100000 --out run --dashboard --json"
    process = subprocess.Popen(
        [sys.executable, "-m", "stepladder", *line.split()],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        first = process.stderr.readline()
        address = re.fullmatch(r"dashboard: (http://127\.0\.0\.1:\d+/)\n", first)
        assert address, first
        (row,) = answer(address[1])
        assert (row["name"], row["status"]) == ("run", "running")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert json.loads(out)["run"] == "run", "the result stays alone on standard output"
    assert "the dashboard has ended; open it again: stepladder dashboard run" in err
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address[1], timeout=2)


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_a_dashboard_that_dies_harms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from stepladder.cli.output import dashboard_beside

    monkeypatch.setattr(dashboard_beside.sys, "executable", "/bin/false")
    with dashboard_beside.dashboard_beside(tmp_path / "run", True):
        Run.create(tmp_path / "run", kind="training", config={}).close()
    assert "open it again" in capfd.readouterr().err
