"""``stepladder new``: the project works as it is, and the tutorial shows what it holds."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cli.command_line import SOURCE, CommandLine
from stepladder.cli import new

TUTORIAL = Path(__file__).parents[2] / "docs/tutorial.md"


def begun(folder: Path, *words: str) -> subprocess.Popen[str]:
    """Start Python in a project; warnings are errors."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", *words],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.processes
@pytest.mark.timeout(120)
def test_the_project_passes_its_tests_and_trains_from_the_shell_and_from_python(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = command("new", "small_maze")
    assert code == 0
    project = tmp_path / "small_maze"
    files = {str(path.relative_to(project)) for path in project.rglob("*") if path.is_file()}
    assert {line.strip() for line in out.splitlines()} >= files
    assert {"small_maze/env.py", "tests/test_small_maze.py", "pyproject.toml"} <= files
    text = "".join((project / file).read_text() for file in files)
    assert "SmallMazeEnv" in text
    assert not re.search(r"my.?env", text, flags=re.IGNORECASE)
    plain = ("-p", "no:importnb", "-p", "no:cacheprovider", "-p", "no:xdist", "-q")
    quick = ("--trust", "--total-steps", "2048", "--out", "runs/a")
    processes = [
        # Gymnasium's checker warns of an env that is not registered.
        begun(project, "-m", "pytest", *plain, "-W", "default"),
        begun(project, "train.py", "--steps", "2048"),
        begun(project, "-P", "-m", "stepladder", "train", "config.yaml", *quick),
    ]
    try:
        tested, scripted, typed = (one.communicate(timeout=100)[0] for one in processes)
    finally:
        for one in processes:
            one.kill()
            one.communicate()
    assert [one.returncode for one in processes] == [0, 0, 0], (tested, scripted, typed)
    assert "10 passed" in tested
    assert re.findall(r"^(\w+): solved [\d.]+ ", scripted, re.M) == ["easy", "middle", "hard"]
    assert "held out, at 2,0" in typed
    assert "Staged: 6 tasks" in command("explain", "small_maze/runs/a").out


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Maze", "lower-case letters"),
        ("../maze", "lower-case letters"),
        ("maze\n", "lower-case letters"),
        ("m" * 41, "at most 40"),
        ("class", "Python and the project"),
        ("train", "Python and the project"),
        ("json", "can be imported already"),
        ("gymnasium", "can be imported already"),
    ],
)
def test_a_name_that_cannot_be_a_module_is_refused(
    command: CommandLine, tmp_path: Path, name: str, said: str
) -> None:
    assert said in command.fails("new", name, "--into", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_replaced(command: CommandLine, tmp_path: Path) -> None:
    for thing in ("empty_folder", "a_file", "a_link"):
        place = tmp_path / thing
        {"empty_folder": place.mkdir, "a_file": place.touch}.get(
            thing, lambda place=place: place.symlink_to("nowhere")
        )()
        assert "already something at" in command.fails("new", thing, "--into", tmp_path)
    assert (tmp_path / "a_file").read_text() == ""
    assert "is not a folder" in command.fails("new", "maze", "--into", tmp_path / "missing")
    assert "is not a folder" in command.fails("new", "maze", "--into", tmp_path / "a_file")


def test_half_a_project_is_not_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Path.write_text

    def full(path: Path, text: str, **options: str) -> int:
        if path.name == "train.py":
            raise OSError(28, "No space left on device")
        return write(path, text, **options)

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space"):
        new.write_project("maze", tmp_path / "maze")
    assert list(tmp_path.iterdir()) == []


def test_the_tutorial_shows_the_files_of_the_project(tmp_path: Path) -> None:
    files = new.write_project("my_env", tmp_path / "my_env")
    texts = [(tmp_path / "my_env" / file).read_text() for file in files]
    shown = re.findall(r"```(?:python|yaml)\n(.*?)```", TUTORIAL.read_text(), flags=re.DOTALL)
    assert len(shown) == 6
    for snippet in shown:
        assert any(snippet in text for text in texts), snippet
