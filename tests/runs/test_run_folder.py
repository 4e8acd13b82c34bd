"""A run's folder: what it is told by, what is written into it, and what is cleared away."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from stepladder.errors import RunError
from stepladder.runs import run_folder
from stepladder.runs.run_folder import RunInfo, clear, current_commit, describe, holds_run

INFO = RunInfo(
    kind="training",
    config={"rate": 0.5, "größe": [1]},
    seed=[1, 2],
    created="2030-01-02T03:04:05+00:00",
    version="0.9",
    git_commit=None,
)


def document(**changes: Any) -> dict[str, Any]:
    return {"package": "stepladder", "schema": 1, **vars(INFO), **changes}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    INFO.write(tmp_path)
    assert RunInfo.read(tmp_path) == INFO
    assert json.loads((tmp_path / "config.json").read_text()) == document()
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


@pytest.mark.parametrize("failure", ["fsync", "replace"])
def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    INFO.write(tmp_path)

    def interrupt(*arguments: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(*{"fsync": (os, "fsync"), "replace": (Path, "replace")}[failure], interrupt)
        with pytest.raises(KeyboardInterrupt):
            describe("simulation", {}, 1).write(tmp_path)
    assert RunInfo.read(tmp_path) == INFO
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is damaged"),
        ("{", "is damaged"),
        ("\udcff", "is damaged"),
        ("[" * 100_000, "is damaged"),
        ("7", "was not written by Stepladder"),
        ("{}", "was not written by Stepladder"),
        ('{"package": "stepladder"}', "was not written by Stepladder"),
        (json.dumps(document(package="other")), "was not written by Stepladder"),
        (json.dumps(document(schema=2)), r"schema 2; this version reads 1\. Use version 0\.9"),
        (json.dumps(document(schema="1")), "schema '1'; this version reads 1"),
        (json.dumps(document(config=[])), "config must be an object"),
        (json.dumps(document(kind=3)), "is damaged: kind must be a word; got 3"),
    ],
)
def test_a_file_that_is_none_of_ours_is_told_in_one_line(
    tmp_path: Path, content: str, words: str
) -> None:
    (tmp_path / "config.json").write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(RunError, match=words) as caught:
        RunInfo.read(tmp_path)
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_a_folder_without_a_run_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"missing is not a folder\. Give the folder of a run"):
        RunInfo.read(tmp_path / "missing")
    with pytest.raises(RunError, match=r"has no run: it has no config\.json"):
        RunInfo.read(tmp_path)


def test_a_folder_is_free_when_it_is_missing_or_empty(tmp_path: Path) -> None:
    assert not holds_run(tmp_path / "missing")
    assert not holds_run(tmp_path)
    INFO.write(tmp_path)
    assert holds_run(tmp_path)


def test_clearing_removes_what_a_run_wrote_and_leaves_its_config(tmp_path: Path) -> None:
    INFO.write(tmp_path)
    ours = ["run.sqlite", "run.sqlite-wal", "run.sqlite-shm", "checkpoints/a.1.npz"]
    others = ["notes", "run.sqlite.bak", "run.lock", "checkpoints/a.npz", "checkpoints/b.1.txt"]
    (tmp_path / "checkpoints/folder.1.npz").mkdir(parents=True)
    for name in ("step-000000000007", ".step-000000000008-2.99.part"):
        (tmp_path / "checkpoints" / name / "inside").mkdir(parents=True)
        ours.append(f"checkpoints/{name}")
    for name in ours[:4] + others:
        (tmp_path / name).write_text("")
    clear(tmp_path)
    assert not [name for name in ours if (tmp_path / name).exists()]
    assert all((tmp_path / name).exists() for name in others)
    assert (tmp_path / "checkpoints/folder.1.npz").is_dir()
    assert RunInfo.read(tmp_path) == INFO


# The commit.


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.processes
@pytest.mark.timeout(60)
def test_the_commit_of_the_working_directory_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert current_commit() is None
    git(tmp_path, "init", "--quiet")
    assert current_commit() is None
    git(tmp_path, "commit", "--quiet", "--allow-empty", "-m", "first")
    assert current_commit() == git(tmp_path, "rev-parse", "HEAD")
    assert describe("training", {}, None).git_commit == current_commit()


def test_no_commit_is_noted_where_git_is_missing_or_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_slow(*arguments: Any, **keywords: Any) -> None:
        raise subprocess.TimeoutExpired("git", 2)

    with monkeypatch.context() as patch:
        patch.setattr(run_folder.subprocess, "run", too_slow)
        assert current_commit() is None
    monkeypatch.setenv("PATH", "")
    assert current_commit() is None
