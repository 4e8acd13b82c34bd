"""The command itself: verbs, help, version, and what goes wrong in one line."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import stepladder
from cli.command_line import SOURCE, CommandLine, finished
from stepladder.cli import main as main_module
from stepladder.cli.main import VERBS
from stepladder.errors import RunError
from stepladder.runs import Run

"""Commands that take a name and little else."""

processes = [pytest.mark.processes, pytest.mark.timeout(60)]


def test_help_names_every_verb(command: CommandLine) -> None:
    for argv in ((), ("--help",), ("-h",)):
        code, out, err = command(*argv)
        assert (code, err) == (0, "")
        for verb, text in VERBS.items():
            assert f"  {verb:<{max(map(len, VERBS))}}  {text}\n" in out


def test_the_version_is_that_of_the_package(command: CommandLine) -> None:
    for flag in ("--version", "-V"):
        assert command(flag) == (0, f"stepladder {stepladder.__version__}\n", "")


def test_an_unknown_verb_is_refused_with_the_known_ones(command: CommandLine) -> None:
    said = command.fails("simulat")
    assert said == f"there is no command 'simulat'; there are {', '.join(VERBS)}."


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_that_explains_every_flag(command: CommandLine, verb: str) -> None:
    code, out, err = command(verb, "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"usage: stepladder {verb} [-h]")
    lines = [line.strip("│ ") for line in out.splitlines() if line.startswith(("│", " "))]
    flags = [number for number, line in enumerate(lines) if re.match("--[a-z]", line)]
    assert len(flags) > {"new": 0, "dashboard": 1, "completion": -1}.get(verb, 2)
    for number in flags:
        text = lines[number].partition("  ")[2].strip() or lines[number + 1]
        assert text, f"{lines[number]} has no help"
        assert not text.startswith(("-", "(default")), f"{lines[number]} has no help"
    if verb not in ("dashboard", "explain", "new", "report", "completion"):
        assert re.search(r"--seed (\{None\}\|)?INT", out)


def test_what_the_library_refuses_becomes_one_line(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(arguments: list[str]) -> int:
        raise RunError("two\n  lines")

    monkeypatch.setattr(main_module, "_run", refuse)
    assert command.fails("report") == "two lines"


def test_what_the_system_refuses_becomes_one_line(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(arguments: list[str]) -> int:
        raise PermissionError(13, "Permission denied", "/some/where")

    monkeypatch.setattr(main_module, "_run", refuse)
    assert command.fails("report") == "/some/where: Permission denied."


def test_a_mistake_of_ours_is_not_hidden(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stumble(arguments: list[str]) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(main_module, "_run", stumble)
    with pytest.raises(ZeroDivisionError):
        command("report")


def test_an_interruption_is_quiet(command: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(arguments: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(main_module, "_run", stop)
    assert command("simulate") == (130, "", "")


@pytest.mark.parametrize("package", ["tyro", "rich"])
def test_a_missing_package_is_named_with_its_extra(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    for name in [name for name in sys.modules if name.startswith("stepladder.cli.")]:
        if name != "stepladder.cli.main":
            monkeypatch.delitem(sys.modules, name)
            monkeypatch.delattr(name, raising=False)
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)  # pyright: ignore[reportArgumentType]
    monkeypatch.setitem(sys.modules, package, None)  # pyright: ignore[reportArgumentType]
    said = command.fails("compare")
    assert package in said
    assert said.endswith("pip install 'stepladder[cli]'")


class TestProcesses:
    pytestmark = processes

    def test_help_loads_nothing_heavy(self) -> None:
        code = (
            "import sys; from stepladder.cli.main import main; main(['--help'])\n"
            "print(*({'numba', 'numpy', 'gymnasium', 'tyro', 'rich'} & set(sys.modules)))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONPATH": str(SOURCE)},
            capture_output=True,
            text=True,
            timeout=50,
            check=True,
        )
        assert done.stdout.splitlines()[-1] == ""

    def test_both_ways_to_start_it_are_the_same(self, tmp_path: Path) -> None:
        first = finished("--version", cwd=tmp_path)
        second = subprocess.run(
            [sys.executable, "-W", "error", "-m", "stepladder.cli.main", "--version"],
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
            capture_output=True,
            text=True,
            timeout=50,
            check=True,
        )
        assert first.out == second.stdout == f"stepladder {stepladder.__version__}\n"

    @pytest.mark.parametrize("argv", [["--help"], ["compare", "--help"]])
    def test_a_reader_that_leaves_is_no_error(self, argv: list[str], tmp_path: Path) -> None:
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write, "w") as nobody:
            done = subprocess.run(
                [sys.executable, "-m", "stepladder", *argv],
                env={**os.environ, "PYTHONPATH": str(SOURCE)},
                stdout=nobody,
                stderr=subprocess.PIPE,
                text=True,
                timeout=50,
                check=False,
            )
        assert (done.returncode, done.stderr) == (141, "")

    def test_a_terminal_that_knows_no_such_letters_gets_question_marks(
        self, tmp_path: Path
    ) -> None:
        with Run.create(tmp_path / "run", kind="training"):
            pass
        done = subprocess.run(
            [sys.executable, "-m", "stepladder", "report", "run", "--out", "\u00fc.html"],
            env={**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONIOENCODING": "ascii"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "?.html\n", "")
