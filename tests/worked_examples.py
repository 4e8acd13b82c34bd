"""The worked examples of CONTRIBUTING.md: read from the page, and put where the page says.

Nothing in `src/` is changed: a child process finds the new files, and the files with one line more,
in a folder beside it. Its own children find them too.
"""

import ast
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "CONTRIBUTING.md"

FINDER = """
import sys
from importlib.abc import MetaPathFinder
from importlib.util import spec_from_file_location


class Examples(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        place = FILES.get(name)
        return None if place is None else spec_from_file_location(name, place)


sys.meta_path.insert(0, Examples())
"""
"""Run at the start of every process, as ``sitecustomize``; `FILES` has files by module."""


@dataclass(frozen=True)
class WorkedExample:
    """What the page says about adding one kind of thing."""

    new_files: dict[str, str]
    """Content by path in the repository."""

    lines: dict[str, tuple[str, str]]
    """By path of a file that is there: the table in it, and the line that goes in."""

    @classmethod
    def read(cls, kind: str) -> "WorkedExample":
        """Read the section "Add a KIND"."""
        section = re.search(rf"^## Add an? {kind}\n(.*?)^## ", PAGE.read_text(), re.M | re.S)
        assert section is not None, f"CONTRIBUTING.md has no section about adding a {kind}"
        block = r"\n\n```python\n(.*?)```"
        files = re.findall(rf"[Nn]ew file\s+`([^`]+)`:{block}", section[1], re.S)
        line = r"[Oo]ne line in\s+`([^`]+)`, in the table\s+`(\w+)`:"
        lines = re.findall(rf"{line}{block}", section[1], re.S)
        return cls(dict(files), {path: (table, text) for path, table, text in lines})

    def install(self, folder: Path) -> None:
        """Put everything into a folder, from which `run` takes it."""
        files: dict[str, str] = {}
        contents = {**self.new_files, **{path: self._with_line(path) for path in self.lines}}
        for path, content in contents.items():
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(content)
            module = path.removeprefix("src/").removesuffix(".py").replace("/", ".")
            files[module.removesuffix(".__init__")] = str(place)
        (folder / "sitecustomize.py").write_text(f"FILES = {files!r}\n{FINDER}")

    def pack(self, package: str) -> dict[str, str]:
        """Return the files as another package has them: content by path, under names of its own."""
        # A single file, or a folder of them.
        top = os.path.commonpath(self.new_files).removesuffix(".py")
        inside = top.removeprefix("src/").replace("/", ".")
        outside = f"{package}.{inside.rpartition('.')[2]}"
        return {
            path.replace(top, outside.replace(".", "/")): content.replace(inside, outside)
            for path, content in self.new_files.items()
        }

    def _with_line(self, path: str) -> str:
        """Return a file's content with the example's line at the end of its table."""
        table, line = self.lines[path]
        text = (ROOT / path).read_text()
        tables = [
            node.value
            for node in ast.parse(text).body
            if isinstance(node, ast.Assign | ast.AnnAssign)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name) and target.id == table
        ]
        assert len(tables) == 1, f"{path} has no table {table}"
        assert tables[0] is not None
        (entries,) = [node for node in ast.walk(tables[0]) if isinstance(node, ast.Dict)]
        last = entries.values[-1].end_lineno
        assert last is not None
        rows = text.splitlines(keepends=True)
        return "".join([*rows[:last], line, *rows[last:]])


def run(folder: Path, *arguments: str, timeout_s: float = 280.0) -> str:
    """Run Python where an example is installed; return its output."""
    paths = [str(folder), str(ROOT / "src"), str(ROOT / "tests")]
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_contract(folder: Path, join: str, *arguments: str, timeout_s: float = 280.0) -> str:
    """Run a contract in a process of its own, after some code has added the example to its list."""
    plugin = f"def pytest_configure(config):\n    {join}\n"
    (folder / "joining.py").write_text(plugin)
    pytest = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "joining")
    return run(folder, *pytest, *arguments, timeout_s=timeout_s)
