"""Weights & Biases without a network: offline files, nothing when disabled, one line if missing."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from runs.scenes import result_of
from stepladder.errors import ConfigError
from stepladder.runs import RunReader, WandbLogger

processes = [pytest.mark.processes, pytest.mark.timeout(60)]

# In a process of its own: W&B starts a service, and hooks into the interpreter's exit.
SCRIPT = """
import warnings
warnings.simplefilter("default")
mode, folder = argv[0], argv[1]
loggers = [
    WandbLogger("project", name=f"run{i}", config={"a": 1}, folder=f"{folder}/{i}", mode=mode,
                quiet=True)
    for i in range(2)
]
assert all(isinstance(logger, Logger) for logger in loggers)
with Run.create(f"{folder}/run", kind="training", loggers=loggers[:1]) as run:
    run.log(1000, {"overview/reward": 0.7251953125, "nan": float("nan")})
    run.event(1500, "stage_advanced", "success was enough")
    # Backwards, as after going back to a checkpoint.
    run.log(500, {"overview/reward": 0.1298828125})
loggers[1].log(1, {"only/second": 0.3310546875})
loggers[1].close()
print("errors", run.num_logger_errors)
"""


@pytest.fixture
def quiet_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep W&B's own files, and the network, out of it."""
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    for name in ("HOME", "WANDB_CONFIG_DIR", "WANDB_CACHE_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    return tmp_path / "files"


class TestProcesses:
    pytestmark = processes

    def test_offline_it_leaves_files_that_can_be_sent_later(self, quiet_home: Path) -> None:
        pytest.importorskip("wandb")
        code, out, err = result_of(SCRIPT, "offline", quiet_home)
        assert (code, out, err) == (0, "errors 0\n", "")
        (path,) = (quiet_home / "0/wandb").glob("offline-run-*/run-*.wandb")
        content = path.read_bytes()
        for piece in (
            b"overview/reward",
            b"0.7251953125",
            b"0.1298828125",
            b"events/stage_advanced",
            b"success was enough",
            b"metric/agent_step",
            b"1500",
        ):
            assert piece in content, piece
        # The second logger has a run of its own.
        assert b"only/second" not in content
        (path,) = (quiet_home / "1/wandb").glob("offline-run-*/run-*.wandb")
        assert b"0.3310546875" in path.read_bytes()
        assert RunReader(quiet_home / "run").metric("overview/reward")[0].tolist() == [500, 1000]

    def test_disabled_it_does_nothing(self, quiet_home: Path) -> None:
        pytest.importorskip("wandb")
        assert result_of(SCRIPT, "disabled", quiet_home) == (0, "errors 0\n", "")
        assert list(quiet_home.glob("*/wandb/*run-*")) == []

    def test_without_a_login_it_says_so_in_one_line(self, quiet_home: Path) -> None:
        pytest.importorskip("wandb")
        script = """
try:
    WandbLogger("project", folder=argv[0], quiet=True)
except Exception as error:
    print(type(error).__name__, str(error).replace("\\n", "LINE"))
"""
        code, out, _ = result_of(script, quiet_home)
        assert code == 0
        assert out.startswith("ConfigError Weights & Biases cannot start a run (")
        assert "wandb login" in out
        assert "LINE" not in out


@pytest.mark.parametrize("mode", ["off", "", None])
def test_another_mode_is_refused(mode: Any) -> None:
    with pytest.raises(ConfigError, match="mode must be one of online, offline, disabled; got"):
        WandbLogger("project", mode=mode)


def test_a_missing_package_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ConfigError, match=r"pip install 'stepladder\[wandb\]'") as caught:
        WandbLogger("project", folder=tmp_path / "files", mode="offline")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "files").exists()
